//! Requests that are not carried out, as pages.

use axum::http::StatusCode;
use client::Error;
use std::time::Duration;
use web::origin::ForeignChange;

/// The answer to a request that is not carried out: a status, a title and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    pub title: &'static str,
    pub reason: String,
}

/// Longer reasons are cut: they may repeat a path of 32 KiB.
const REASON_CHARS_MAX: usize = 1_000;

impl Refusal {
    pub fn new(status: StatusCode, title: &'static str, reason: impl Into<String>) -> Self {
        let reason = reason.into().chars().take(REASON_CHARS_MAX).collect();
        Self { status, title, reason }
    }

    /// What the request asks for cannot be meant.
    pub fn nonsense(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "The request makes no sense", reason)
    }

    pub fn busy(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "Try again in a moment", reason)
    }

    pub fn too_slow(patience: Duration) -> Self {
        let reason = format!("The metadata server has not answered within {} s.", patience.as_secs());
        Self::new(StatusCode::GATEWAY_TIMEOUT, "No answer yet", reason)
    }
}

impl From<gateway::error::Refusal> for Refusal {
    fn from(refusal: gateway::error::Refusal) -> Self {
        let title = match refusal.status {
            StatusCode::NOT_FOUND => "Nothing is there",
            StatusCode::BAD_REQUEST => "The request makes no sense",
            StatusCode::FORBIDDEN => "The file system refuses",
            StatusCode::SERVICE_UNAVAILABLE => "Try again in a moment",
            _ => "It did not work",
        };
        // Only the first line is for people; a trace of Java's may follow.
        let reason = refusal.message.lines().next().unwrap_or_default().to_owned();
        Self::new(refusal.status, title, reason)
    }
}

impl From<ForeignChange> for Refusal {
    fn from(error: ForeignChange) -> Self {
        gateway::error::Refusal::from(error).into()
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        gateway::error::Refusal::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::Error;

    #[test]
    fn refusals_of_the_file_system_are_told_in_a_line() {
        let remote = Error::Unreachable { target: "t".into(), tried: "s".into(), reason: "refused".into() };
        let refusal = Refusal::from(remote);
        assert_eq!(refusal.status, StatusCode::SERVICE_UNAVAILABLE);
        let traced = Refusal::from(Error::Checksum { path: "/a".into(), reason: "one\n\tat two".into() });
        assert!(traced.reason.ends_with(": one"), "{traced:?}");
        let long = Refusal::new(StatusCode::BAD_REQUEST, "x", "y".repeat(50_000));
        assert_eq!(long.reason.len(), REASON_CHARS_MAX);
    }
}
