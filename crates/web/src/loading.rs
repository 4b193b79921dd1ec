//! The answers of a server that is not up yet, at all addresses that it will have later: a page for people, and a short refusal for programs.

use crate::{amounts::duration, guard::guard, settings::escaped};
use axum::{
    Router,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{Html, IntoResponse, Response},
    routing::any,
};
use proto::exception;
use serde_json::json;
use std::{fmt::Write, sync::Arc};

/// How far the server is.
#[derive(Clone, Debug, PartialEq)]
pub struct Loading {
    /// What the server does now, as a phrase that follows the words "This server".
    pub does: &'static str,
    /// For how long it has been starting, in milliseconds.
    pub since_ms: u64,
    pub parts: Vec<Part>,
}

/// A part of the work.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// One word.
    pub name: &'static str,
    /// From 0 to 1.
    pub share: f64,
    /// The whole of it, if that is known: "1.50 GiB".
    pub of: Option<String>,
}

impl Part {
    /// `43 % of 1.50 GiB`
    pub fn text(&self) -> String {
        let percent = (self.share * 100.0).floor();
        match &self.of {
            Some(whole) => format!("{percent} % of {whole}"),
            None => format!("{percent} %"),
        }
    }
}

/// Asked at each request; must be quick.
pub type LoadingSource = Arc<dyn Fn() -> Loading + Send + Sync>;

/// A browser and a program ask again after this many seconds.
const AGAIN_SECONDS: &str = "2";

const POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const STYLE: &str = ":root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;margin:2rem auto;max-width:40rem;padding:0 1rem}\
    progress{width:100%;height:1.25rem}label{display:block;margin:1rem 0}";

/// The router of such a server. Pages that have something to tell already are merged with it, and come first.
/// `is_alone`: there are no other metadata servers.
pub fn loading(source: LoadingSource, is_alone: bool) -> Router {
    // A client of WebHDFS that gets the first asks its other servers next, and one that gets the second waits. Hadoop's NameNode always has the
    // second here, for which a client waits although another server may serve.
    let (status, class) = match is_alone {
        false => (StatusCode::FORBIDDEN, exception::STANDBY),
        true => (StatusCode::SERVICE_UNAVAILABLE, exception::RETRIABLE),
    };
    let webhdfs = move |State(source): State<LoadingSource>| async move { refused(&source(), status, class) };
    Router::new()
        .route("/webhdfs/{*path}", any(webhdfs))
        .route("/", any(show))
        .route("/{*path}", any(show))
        .with_state(source)
}

fn refused(loading: &Loading, status: StatusCode, class: &'static str) -> Response {
    let message = format!("this server is not up yet: it {}", loading.does);
    let exception = class.rsplit('.').next().unwrap_or(class);
    let body =
        json!({ "RemoteException": { "exception": exception, "javaClassName": class, "message": message } });
    let headers = [(header::RETRY_AFTER, AGAIN_SECONDS), (header::CONTENT_TYPE, "application/json")];
    (status, headers, body.to_string()).into_response()
}

async fn show(State(source): State<LoadingSource>, headers: HeaderMap) -> Response {
    let loading = source();
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let mut response = match accept.is_some_and(|accept| accept.contains("text/html")) {
        true => Html(html(&loading)).into_response(),
        false => text(&loading).into_response(),
    };
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(AGAIN_SECONDS));
    guard(response.headers_mut(), POLICY);
    response
}

fn text(loading: &Loading) -> String {
    let parts = loading.parts.iter().map(|part| format!("{} {}", part.name, part.text()));
    let parts = parts.collect::<Vec<_>>().join(", ");
    format!("This server is not up yet: it {} ({parts}).\n", loading.does)
}

fn html(loading: &Loading) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <meta http-equiv=\"refresh\" content=\"{AGAIN_SECONDS}\"><link rel=\"icon\" href=\"data:,\">\
         <title>Metadata server is starting</title><style>{STYLE}</style></head>\n\
         <body><h1>This metadata server is starting</h1>\n<p>For {} now. It {}.</p>\n",
        duration(loading.since_ms),
        escaped(loading.does)
    );
    for part in &loading.parts {
        let _ = writeln!(
            page,
            "<label>{}: {}<progress max=\"1\" value=\"{:.3}\"></progress></label>",
            escaped(part.name),
            escaped(&part.text()),
            part.share
        );
    }
    page += "<p>This page looks again every two seconds, and the page that you wanted comes by itself. If the group has other \
             metadata servers, they may answer meanwhile. Also here: <a href=\"/startupProgress\">/startupProgress</a>, <a href=\"/health\">/health</a>, \
             <a href=\"/jmx\">/jmx</a>, <a href=\"/stacks\">/stacks</a>.</p>\n</body></html>\n";
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Health, Pages, Web};
    use prometheus_client::registry::Registry;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };

    /// The head and the body of an answer.
    async fn ask(path: &str, accept: &str) -> (String, String) {
        ask_one(path, accept, false).await
    }

    async fn ask_one(path: &str, accept: &str, is_alone: bool) -> (String, String) {
        let part = |name, share, of: Option<&str>| Part { name, share, of: of.map(str::to_owned) };
        let source: LoadingSource = Arc::new(move || Loading {
            does: "reads the image",
            since_ms: 61_000,
            parts: vec![part("image", 0.4321, Some("1.50 GiB")), part("journal", 0.0, None)],
        });
        let pages = Pages { router: loading(source, is_alone), ..Pages::default() };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let web =
            Web::serve(listener, Arc::new(Registry::default()), Arc::new(Health::default), pages).unwrap();
        let mut stream = TcpStream::connect(web.local_addr()).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.to_lowercase().contains("retry-after: 2"), "{head}");
        (head.to_owned(), body.to_owned())
    }

    #[tokio::test]
    async fn a_browser_sees_at_any_address_how_far_the_server_is() {
        for path in ["/", "/files/logs", "/dfshealth.html"] {
            let (head, page) = ask(path, "text/html,*/*").await;
            assert!(head.starts_with("HTTP/1.1 503"), "{head}");
            assert!(page.contains("For 61 s now. It reads the image."), "{page}");
            assert!(page.contains("image: 43 % of 1.50 GiB<progress max=\"1\" value=\"0.432\">"), "{page}");
        }
    }

    #[tokio::test]
    async fn a_program_is_told_in_one_line_and_a_client_of_webhdfs_to_ask_another_server() {
        let (head, line) = ask("/conf", "*/*").await;
        assert!(head.starts_with("HTTP/1.1 503"), "{head}");
        assert_eq!(
            line,
            "This server is not up yet: it reads the image (image 43 % of 1.50 GiB, journal 0 %).\n"
        );
        let (head, refusal) = ask("/webhdfs/v1/a?op=OPEN", "*/*").await;
        assert!(head.starts_with("HTTP/1.1 403"), "{head}");
        let told: serde_json::Value = serde_json::from_str(&refusal).unwrap();
        let told = &told["RemoteException"];
        assert_eq!(
            (told["exception"].as_str(), told["javaClassName"].as_str(), told["message"].as_str()),
            (
                Some("StandbyException"),
                Some("org.apache.hadoop.ipc.StandbyException"),
                Some("this server is not up yet: it reads the image")
            )
        );
        let (head, refusal) = ask_one("/webhdfs/v1/a?op=OPEN", "*/*", true).await;
        assert!(
            head.starts_with("HTTP/1.1 503") && refusal.contains("RetriableException"),
            "{head} {refusal}"
        );
    }
}
