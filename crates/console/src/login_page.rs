//! The pages by which users come and go.

use crate::{
    asked::Asked,
    changes::Form,
    page::{self, Frame, shown},
    refusal::Refusal,
    sessions::{self, SESSION_MS},
    text,
};
use askama::Template;
use axum::{
    http::{HeaderValue, StatusCode, header},
    response::Response,
};

/// A form has a link at most, which strangers may send as well.
pub const FORM_BYTES_MAX: usize = 8 << 10;

#[derive(Template)]
#[template(path = "login.html")]
struct Page {
    frame: Frame,
    key: String,
}

/// Asks whether to sign in. A look at a link does not use it up: programs that show previews of links look at it.
pub async fn offer(asked: Asked) -> Result<Response, Refusal> {
    let key = asked.parameter("key").unwrap_or_default();
    Ok(shown(&Page { frame: Frame::new("Sign in", "", &asked.visitor), key }))
}

/// Uses a link.
pub async fn open(asked: Asked, form: Form) -> Result<Response, Refusal> {
    let all = &asked.shared.sessions;
    let opened = all.open(form.get("key").unwrap_or_default(), text::now_ms());
    let (secret, user) =
        opened.map_err(|reason| Refusal::new(StatusCode::UNAUTHORIZED, "You are not signed in", reason))?;
    tracing::info!(user, "a user has signed in to the web console");
    let seconds = SESSION_MS / 1_000;
    Ok(with_cookie(&all.cookie(), &secret, seconds, "/files"))
}

pub async fn close(asked: Asked, _: Form) -> Result<Response, Refusal> {
    let all = &asked.shared.sessions;
    if let Some(secret) = sessions::cookie(&asked.parts.headers, &all.cookie()) {
        all.close(&secret);
    }
    Ok(with_cookie(&all.cookie(), "", 0, "/"))
}

fn with_cookie(name: &str, value: &str, seconds: u64, address: &str) -> Response {
    let mut response = page::elsewhere(address);
    let cookie = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}
