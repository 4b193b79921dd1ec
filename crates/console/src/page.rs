//! The frame of all pages, and the headers that keep a browser to this server.

use crate::refusal::Refusal;
use askama::Template;
use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};

/// Nothing runs, is loaded or is sent that is not this server's own, and no other page may show this one within itself.
pub const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
                          form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The pages that are linked from each page: address and name.
const PAGES: [(&str, &str); 11] = [
    ("/", "Overview"),
    ("/group", "Group"),
    ("/data-servers", "Data servers"),
    ("/files", "Files"),
    ("/usage", "Usage"),
    ("/blocks", "Blocks"),
    ("/snapshots", "Snapshots"),
    ("/open-files", "Open files"),
    ("/calls", "Calls"),
    ("/configuration", "Configuration"),
    ("/logs", "Logs"),
];
const START: (&str, &str) = ("/start", "Start");

/// The parts of a page around its content.
#[derive(Clone, Debug)]
pub struct Frame {
    pub title: String,
    /// The address of the page among those that are linked from each one.
    pub here: &'static str,
    pub visitor: Visitor,
    /// The script renews the page after so many seconds; 0: never.
    pub refresh_s: u32,
}

/// The user in whose name a page asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visitor {
    pub user: String,
    /// The user has come by a login link, and may change files.
    pub is_signed_in: bool,
}

pub struct Entry {
    pub href: &'static str,
    pub name: &'static str,
    pub is_here: bool,
}

impl Frame {
    pub fn new(title: impl Into<String>, here: &'static str, visitor: &Visitor) -> Self {
        Self { title: title.into(), here, visitor: visitor.clone(), refresh_s: 0 }
    }

    pub fn refreshing(self, refresh_s: u32) -> Self {
        Self { refresh_s, ..self }
    }

    pub fn entries(&self) -> Vec<Entry> {
        let all = PAGES.into_iter().chain([START]);
        all.map(|(href, name)| Entry { href, name, is_here: href == self.here }).collect()
    }
}

/// The answer with a page.
pub fn shown(page: &impl Template) -> Response {
    shown_as(StatusCode::OK, page)
}

fn shown_as(status: StatusCode, page: &impl Template) -> Response {
    let (status, text) = match page.render() {
        Ok(text) => (status, text),
        Err(error) => {
            tracing::error!(%error, "a page of the console was not made");
            (StatusCode::INTERNAL_SERVER_ERROR, "The page could not be made.".to_owned())
        }
    };
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

#[derive(Template)]
#[template(path = "refusal.html")]
struct RefusalPage<'a> {
    frame: Frame,
    refusal: &'a Refusal,
    offers_login: bool,
}

pub fn refused(refusal: &Refusal, visitor: &Visitor) -> Response {
    let frame = Frame::new(refusal.title, "", visitor);
    let offers_login = refusal.status == StatusCode::FORBIDDEN && !visitor.is_signed_in;
    let mut response = shown_as(refusal.status, &RefusalPage { frame, refusal, offers_login });
    if refusal.status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Sends the browser on to another page of this server.
pub fn elsewhere(address: &str) -> Response {
    let mut response = Response::new(Body::empty());
    match HeaderValue::from_str(address) {
        Ok(address) => {
            *response.status_mut() = StatusCode::SEE_OTHER;
            response.headers_mut().insert(header::LOCATION, address);
        }
        Err(_) => *response.status_mut() = StatusCode::BAD_REQUEST,
    }
    response
}

/// The headers of all answers of the console.
pub fn guard(headers: &mut HeaderMap) {
    web::guard::guard(headers, POLICY);
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A name that would do harm if it stood in a page as it is.
    pub const HOSTILE: &str = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>";

    pub fn frame() -> Frame {
        let visitor = Visitor { user: HOSTILE.to_owned(), is_signed_in: false };
        Frame::new(HOSTILE, "/", &visitor)
    }

    /// The text of a page, after the checks that hold for every page.
    pub fn text(page: &impl Template) -> String {
        let text = page.render().unwrap();
        assert_eq!(text.matches("<script").count(), 1, "one script, which is this server's own: {text}");
        assert!(text.contains("<script src=\"/assets/console.js\" defer></script>"), "{text}");
        assert!(!text.contains("<img src=x") && !text.contains("onerror=alert(2)>"), "{text}");
        for inline in [" style=", "javascript:", " onclick=", "<style"] {
            assert!(!text.contains(inline), "{inline}: {text}");
        }
        text
    }

    #[test]
    fn every_page_of_the_frame_is_linked_and_names_are_escaped() {
        let refusal = Refusal::new(StatusCode::FORBIDDEN, "No", HOSTILE);
        let text = text(&RefusalPage { frame: frame(), refusal: &refusal, offers_login: true });
        for (href, _) in PAGES.into_iter().chain([START]) {
            assert!(text.contains(&format!("href=\"{href}\"")), "{href}");
        }
        assert!(text.contains("&#60;script&#62;alert(1)"), "{text}");
    }

    #[test]
    fn a_page_that_renews_itself_does_so_without_scripts_as_well() {
        let refusal = Refusal::new(StatusCode::FORBIDDEN, "No", "x");
        let page = RefusalPage { frame: frame().refreshing(5), refusal: &refusal, offers_login: false };
        let text = text(&page);
        assert!(text.contains("<noscript><meta http-equiv=\"refresh\" content=\"30\"></noscript>"), "{text}");
        assert!(text.contains("data-refresh=\"5\""), "{text}");
    }
}
