//! The addresses of a NameNode's pages, which people have in their notes.

use crate::{
    asked::Asked,
    page::{Frame, shown},
    refusal::Refusal,
};
use askama::Template;
use axum::response::Response;

#[derive(Template)]
#[template(path = "moved.html")]
struct Moved {
    frame: Frame,
    /// Where readers without scripts go on.
    href: &'static str,
    name: &'static str,
    /// The script finds the page from the part of the address behind `#`, which no browser sends.
    kind: &'static str,
}

pub async fn health(asked: Asked) -> Result<Response, Refusal> {
    let frame = Frame::new("The pages have moved", "", &asked.visitor);
    Ok(shown(&Moved { frame, href: "/", name: "Overview", kind: "health" }))
}

pub async fn explorer(asked: Asked) -> Result<Response, Refusal> {
    let frame = Frame::new("The files have moved", "", &asked.visitor);
    Ok(shown(&Moved { frame, href: "/files", name: "Files", kind: "explorer" }))
}
