//! Refusals as WebHDFS tells them: a status, and the exception as JSON.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use base::FsError;
use client::Error;
use proto::exception;
use serde_json::json;
use web::origin::ForeignChange;

pub type Result<T> = std::result::Result<T, Refusal>;

/// The answer to a request that is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    /// The Java class of the exception.
    pub class: &'static str,
    pub message: String,
}

impl Refusal {
    /// The request itself makes no sense.
    pub fn illegal(message: impl Into<String>) -> Self {
        Self::of_class(exception::JAVA_ILLEGAL_ARGUMENT, message.into())
    }

    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::of_class(exception::UNSUPPORTED_OPERATION, message.into())
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::of_class(exception::FILE_NOT_FOUND, message.into())
    }

    pub fn invalid_path(path: &str) -> Self {
        Self::of_class(exception::INVALID_PATH, format!("Invalid path name {path}"))
    }

    /// The client may not do it, whatever the file system says.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::of_class(exception::AUTHORIZATION, message.into())
    }

    pub fn io(message: impl Into<String>) -> Self {
        Self::of_class(exception::IO, message.into())
    }

    /// The client had better try again a little later.
    pub fn busy(message: impl Into<String>) -> Self {
        Self { status: StatusCode::SERVICE_UNAVAILABLE, class: exception::RETRIABLE, message: message.into() }
    }

    /// A method or a place that WebHDFS does not have.
    pub fn no_such(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, class: exception::UNSUPPORTED_OPERATION, message: message.into() }
    }

    fn of_class(class: &'static str, message: String) -> Self {
        Self { status: status_of(class), class, message }
    }
}

/// The status under which Hadoop tells an exception of this class.
fn status_of(class: &str) -> StatusCode {
    match class {
        exception::FILE_NOT_FOUND => StatusCode::NOT_FOUND,
        exception::ILLEGAL_ARGUMENT
        | exception::JAVA_ILLEGAL_ARGUMENT
        | exception::INVALID_PATH
        | exception::UNSUPPORTED_OPERATION => StatusCode::BAD_REQUEST,
        // An IOException of any kind; and those of security.
        _ => StatusCode::FORBIDDEN,
    }
}

impl From<ForeignChange> for Refusal {
    fn from(error: ForeignChange) -> Self {
        Self::unauthorized(error.to_string())
    }
}

impl From<FsError> for Refusal {
    fn from(error: FsError) -> Self {
        let (class, message) = exception::to_remote(&error);
        Self::of_class(class, message)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::Fs(error) => error.into(),
            Error::NotServing { .. } => Self::of_class(exception::STANDBY, error.to_string()),
            Error::Unreachable { .. } => Self::busy(error.to_string()),
            Error::Read { .. } => Self::of_class(exception::BLOCK_MISSING, error.to_string()),
            Error::Nonsense { .. } | Error::Config(_) => {
                tracing::error!(%error, "a WebHDFS request was not answered");
                Self {
                    status: StatusCode::INTERNAL_SERVER_ERROR,
                    class: exception::IO,
                    message: error.to_string(),
                }
            }
            error => Self::io(error.to_string()),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let simple = self.class.rsplit(['.', '$']).next().unwrap_or_default();
        let body = json!({ "RemoteException": {
            "exception": simple,
            "javaClassName": self.class,
            "message": self.message,
        }});
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = self.status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_hadoops() {
        let status = |error: FsError| Refusal::from(error).status.as_u16();
        assert_eq!(status(FsError::NotFound("x".into())), 404);
        assert_eq!(status(FsError::AccessDenied("x".into())), 403);
        assert_eq!(status(FsError::NotActive("x".into())), 403);
        assert_eq!(status(FsError::Io("x".into())), 403);
        assert_eq!(status(FsError::InvalidArgument("x".into())), 400);
        assert_eq!(status(FsError::InvalidPath("x".into())), 400);
        assert_eq!(status(FsError::Unsupported("x".into())), 400);
        let unreachable =
            Error::Unreachable { target: "t".into(), tried: "s".into(), reason: "refused".into() };
        assert_eq!(Refusal::from(unreachable).status.as_u16(), 503);
    }
}
