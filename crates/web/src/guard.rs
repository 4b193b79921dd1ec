//! What a page for people tells a browser, so that it harms no other page, and no other page harms it.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// Puts the headers of a page. `policy`: what the page may load and do, its content security policy.
pub fn guard(headers: &mut HeaderMap, policy: &'static str) {
    let always = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in always {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}
