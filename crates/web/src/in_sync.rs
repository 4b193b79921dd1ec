//! `/in-sync`: whether a member of a group has all that the group has acknowledged. A program that restarts the members one by one goes on
//! to the next one when the last one answers 200.

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use serde_json::json;
use std::sync::Arc;

/// A member's place in its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InSync {
    /// The member leads, or is in the in-sync set.
    pub is_in_sync: bool,
    /// One word or two for what it is: "active", "standby".
    pub state: &'static str,
}

/// Tells it. Asked at each request, and must be quick.
pub type InSyncSource = Arc<dyn Fn() -> InSync + Send + Sync>;

/// The page.
pub fn in_sync(source: InSyncSource) -> Router {
    Router::new().route("/in-sync", get(show)).with_state(source)
}

async fn show(State(source): State<InSyncSource>) -> impl IntoResponse {
    let InSync { is_in_sync, state } = source();
    let status = if is_in_sync { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")];
    (status, headers, format!("{}\n", json!({ "in_sync": is_in_sync, "state": state })))
}
