//! The names by which browsers may call this server.
//!
//! A page of a stranger's site can have its name lead to an address of this network once it is loaded (DNS rebinding). Its browser then takes this server
//! for the page's own: it says of no request that it comes from elsewhere, and shows the page every answer. But it still says which name was called, and
//! this server knows that the name is not its own.

use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, Uri, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use std::{
    net::{Ipv4Addr, Ipv6Addr},
    sync::Arc,
};
use thiserror::Error;

use crate::refusal::Refusal;

/// DNS has no longer names.
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;
/// The characters of a refused name that the refusal repeats.
const SHOWN_CHARS_MAX: usize = 80;

/// The names of a server. By an IP address and by `localhost` every server may be called: no page has such a name from DNS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    any: bool,
    /// In small letters, without a dot at the end.
    names: Vec<String>,
    /// The ends of names, with the dot before them.
    ends: Vec<String>,
}

/// A text is no name of a host.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is no host's name; write the name alone, as meta-1.example, or *.example for all names that end so, or * for any name"
)]
pub struct NotAName(String);

/// A browser has called this server by a name that this server does not know as its own.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{0} is no name of this server, and a browser that is led here by such a name may be misused by another site's page: \
     call the server by its own name or its address, or add the name to http_hosts."
)]
pub struct Misdirected(String);

impl Hosts {
    /// `named`: names, `*.example.com` for all names that end so, or `*` for any name. `known`: further names of this server, as they stand in its
    /// configuration; a text that is no name is left out.
    ///
    /// # Errors
    /// A text in `named` is neither a name, nor `*.` and a name, nor `*`.
    pub fn new(named: &[String], known: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, NotAName> {
        let mut hosts = Self::default();
        for text in named {
            match text.strip_prefix('*') {
                Some("") => hosts.any = true,
                Some(end) => match end.strip_prefix('.').and_then(name) {
                    Some(end) => hosts.ends.push(format!(".{end}")),
                    None => return Err(NotAName(text.clone())),
                },
                None => hosts.names.push(name(text).ok_or_else(|| NotAName(text.clone()))?),
            }
        }
        hosts.names.extend(known.into_iter().filter_map(|known| name(known.as_ref())));
        Ok(hosts)
    }

    /// # Errors
    /// The request may come from a browser, and names no host, or a host that is not this server.
    pub fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Misdirected> {
        if self.any || !may_be_of_a_browser(headers) {
            return Ok(());
        }
        let lines = headers.get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or_default());
        // An address with a host in it, as proxies are asked, counts as well.
        let called: Vec<&str> = lines.chain(uri.authority().map(|authority| authority.as_str())).collect();
        match called.iter().find(|authority| !self.has(authority)) {
            None if !called.is_empty() => Ok(()),
            refused => Err(Misdirected(shown(refused.copied().unwrap_or_default()))),
        }
    }

    /// Whether `host` or `host:port` names this server.
    pub fn has(&self, authority: &str) -> bool {
        let Some(host) = host(authority) else { return false };
        if is_address(host) {
            return true;
        }
        let Some(name) = name(host) else { return false };
        name == "localhost"
            || name.ends_with(".localhost")
            || self.names.contains(&name)
            || self.ends.iter().any(|end| name.ends_with(&**end))
    }
}

/// The host of `host` or `host:port`. `None`: the text is neither.
fn host(authority: &str) -> Option<&str> {
    let is_port = |port: &str| port.bytes().all(|digit| digit.is_ascii_digit());
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        let is_end = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
        return (is_end && host.parse::<Ipv6Addr>().is_ok()).then_some(host);
    }
    match authority.split_once(':') {
        None => Some(authority),
        Some((host, port)) => is_port(port).then_some(host),
    }
}

/// Browsers write addresses as four decimal numbers, or with the brackets that are gone here: other ways to write them are names.
fn is_address(host: &str) -> bool {
    let bare = host.strip_suffix('.').unwrap_or(host);
    bare.parse::<Ipv4Addr>().is_ok() || host.parse::<Ipv6Addr>().is_ok()
}

/// The name in small letters, and without the dot that ends a whole name. `None`: the text is none.
fn name(text: &str) -> Option<String> {
    let bare = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    (bare.len() <= NAME_BYTES_MAX && bare.split('.').all(is_label)).then(|| bare.to_ascii_lowercase())
}

/// A name as it may stand in a sentence.
fn shown(authority: &str) -> String {
    let plain = |c: char| if c.is_ascii_graphic() && !"<>&\"'`".contains(c) { c } else { '?' };
    match authority {
        "" => "An empty Host".to_owned(),
        name => name.chars().take(SHOWN_CHARS_MAX).map(plain).collect(),
    }
}

/// Whether a browser may have sent a request. Over plain HTTP browsers say little of themselves, and a page may leave `Referer` out and, in some of them, write
/// another `User-Agent`. It cannot leave out `Accept-Language`, nor set a header that begins with `Sec-`. Programs send none of these.
fn may_be_of_a_browser(headers: &HeaderMap) -> bool {
    let of_browsers =
        [header::ORIGIN, header::REFERER, header::ACCEPT_LANGUAGE, header::UPGRADE_INSECURE_REQUESTS];
    let agents = headers.get_all(header::USER_AGENT);
    of_browsers.iter().any(|name| headers.contains_key(name))
        || headers.keys().any(|name| name.as_str().starts_with("sec-"))
        || agents.iter().any(|agent| agent.as_bytes().starts_with(b"Mozilla/"))
}

/// Lets those requests through that may call the server as they do.
pub(crate) async fn check(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    match hosts.check(request.headers(), request.uri()) {
        Ok(()) => next.run(request).await,
        Err(misdirected) => {
            let status = StatusCode::MISDIRECTED_REQUEST;
            Refusal { status, message: misdirected.to_string() }.into_response()
        }
    }
}

#[cfg(test)]
mod tests;
