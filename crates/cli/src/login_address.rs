//! The addresses by which users sign in to a console.

use ::console::login::{Link, PURPOSE};
use metad::peers::Secret;

/// The address that signs a user in to the console of a member, once and within some minutes. `http`: `host:port`.
pub fn of(secret: &Secret, member: u32, http: &str, user: &str) -> String {
    let made_ms = jiff::Timestamp::now().as_millisecond().try_into().unwrap_or_default();
    let link = Link { member, made_ms, nonce: ::console::random(), user: user.to_owned() };
    let proof = secret.sign(PURPOSE, &[link.signed().as_bytes()]);
    format!("http://{http}/login?key={}", gateway::path::encode(&link.text(&proof)))
}
