//! Refusals of the small pages: a status, and one line of text that says why.

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};

pub type Result<T> = std::result::Result<T, Refusal>;

/// The answer to a request that is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    pub message: String,
}

impl Refusal {
    /// The request itself makes no sense.
    pub fn bad(message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, message: message.into() }
    }

    /// The server has nothing of this name.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, message: message.into() }
    }

    /// The sender of the request may not ask for it.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self { status: StatusCode::FORBIDDEN, message: message.into() }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let headers = [
            (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        (self.status, headers, self.message + "\n").into_response()
    }
}
