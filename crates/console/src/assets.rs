//! The style, the script and the icon, which are parts of the program.

use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::Response,
};

pub const STYLE: &str = include_str!("../assets/console.css");
pub const SCRIPT: &str = include_str!("../assets/console.js");
pub const ICON: &str = include_str!("../assets/icon.svg");

/// A file of the program. A browser asks again after some minutes, and after an upgrade sees the new one.
fn asset(kind: &'static str, content: &'static str) -> Response {
    let mut response = Response::new(Body::from(content));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    response
}

pub async fn style() -> Response {
    asset("text/css; charset=utf-8", STYLE)
}

pub async fn script() -> Response {
    asset("text/javascript; charset=utf-8", SCRIPT)
}

pub async fn icon() -> Response {
    asset("image/svg+xml", ICON)
}
