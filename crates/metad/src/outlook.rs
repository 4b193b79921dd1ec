//! A look at a running server from outside, by one who must not keep it from ending.

use crate::{core::Core, metrics};
use std::sync::Weak;

/// Sees one [`crate::MetaServer`] for as long as it runs, and keeps nothing of it open.
#[derive(Clone)]
pub struct Outlook(pub(crate) Weak<Core>);

impl Outlook {
    /// Whether the server's own watch of its threads says that they are sound, or what is wrong with them. Takes no lock.
    /// `None`: the server has ended.
    pub fn verdict(&self) -> Option<Result<(), String>> {
        let core = self.0.upgrade()?;
        Some(core.threads.verdict(core.moment()))
    }

    /// The state in a few words, as `/health` has it, with the numbers of the member and its epoch. Waits for locks of the
    /// server's. `None`: the server has ended.
    pub fn state(&self) -> Option<String> {
        let health = metrics::health(&self.0.upgrade()?);
        let detail = |name: &str| health.details.get(name).map_or("", String::as_str);
        let mut text = health.state.clone();
        match health.details.get("reason") {
            Some(reason) => text += &format!(": {reason}"),
            None => {
                text += &format!(
                    "; member {}, epoch {}, data servers alive: {}",
                    detail("member"),
                    detail("epoch"),
                    detail("live_data_servers")
                );
            }
        }
        Some(text)
    }
}
