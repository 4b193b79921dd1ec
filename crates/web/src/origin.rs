//! Pages of other origins: which of them may read answers, and that none may forge a change.
//!
//! Clients are not authenticated, so a page that a user of this network looks at could have the user's browser change files. Browsers
//! say where a request comes from; other clients say nothing, and are not asked.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use thiserror::Error;

/// How long a browser may remember what a preflight said: twenty days, as in Hadoop.
const PREFLIGHT_SECONDS: &str = "1728000";
const METHODS: &str = "GET, PUT, POST, DELETE";
const HEADERS: &str = "Accept, Content-Type, X-Requested-With";
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The origins whose pages may use this server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    any: bool,
    /// Whole origins, as `https://console.example:8443`.
    named: Vec<String>,
}

/// A page of another origin asks for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a page of another origin may change nothing here; cors_origins names the origins that may")]
pub struct ForeignChange;

/// The verdict on a request, by its header `Origin`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The request comes from a page of this server, or from a program that is no browser.
    Own,
    /// A page that may use this server.
    Allowed(HeaderValue),
    Foreign,
}

impl Origins {
    /// `named`: origins, or `*` for all.
    pub fn new(named: &[String]) -> Self {
        let bare = |origin: &String| origin.trim_end_matches('/').to_ascii_lowercase();
        Self { any: named.iter().any(|origin| origin == "*"), named: named.iter().map(bare).collect() }
    }

    pub fn judge(&self, headers: &HeaderMap) -> Origin {
        let Some(origin) = headers.get(header::ORIGIN) else {
            let site = headers.get(FETCH_SITE).map(HeaderValue::as_bytes);
            let is_foreign = !matches!(site, None | Some(b"none" | b"same-origin"));
            return if is_foreign && !self.any { Origin::Foreign } else { Origin::Own };
        };
        if self.any {
            return Origin::Allowed(HeaderValue::from_static("*"));
        }
        let Ok(text) = origin.to_str().map(str::to_ascii_lowercase) else { return Origin::Foreign };
        let authority = text.split_once("://").map_or("", |(_, authority)| authority);
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).map(str::to_ascii_lowercase);
        if !authority.is_empty() && host.as_deref() == Some(authority) {
            return Origin::Own;
        }
        match self.named.contains(&text) {
            true => Origin::Allowed(origin.clone()),
            false => Origin::Foreign,
        }
    }

    /// For requests with GET that change something, as Hadoop's tools send them. For a picture of another page's a browser sends no `Origin`, and on plain HTTP no
    /// `Sec-Fetch-Site` either: of a browser such a request is taken only if a page of this server leads to it.
    ///
    /// # Errors
    /// The request comes from a page that may not, or from a browser that does not say from which.
    pub fn check_change_by_get(&self, headers: &HeaderMap) -> Result<(), ForeignChange> {
        self.judge(headers).check_change()?;
        let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let says_where_from = headers.contains_key(header::ORIGIN) || headers.contains_key(FETCH_SITE);
        let is_browser = text(header::USER_AGENT).is_some_and(|agent| agent.starts_with("Mozilla/"));
        if self.any || says_where_from || !is_browser {
            return Ok(());
        }
        let from = text(header::REFERER).and_then(|referer| referer.split_once("://"));
        let from = from.map(|(_, rest)| rest.split('/').next().unwrap_or_default().to_ascii_lowercase());
        let here = text(header::HOST).map(str::to_ascii_lowercase);
        match from.is_some() && from == here {
            true => Ok(()),
            false => Err(ForeignChange),
        }
    }
}

/// The host of `host:port`, without the brackets of an IPv6 address.
pub fn host_of(authority: &str) -> &str {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => host,
        _ => authority,
    };
    host.trim_start_matches('[').trim_end_matches(']')
}

impl Origin {
    /// # Errors
    /// The request would change something, and comes from a page that may not.
    pub fn check_change(&self) -> Result<(), ForeignChange> {
        match self {
            Self::Foreign => Err(ForeignChange),
            Self::Own | Self::Allowed(_) => Ok(()),
        }
    }

    /// Lets the browser show the answer to the page.
    pub fn tell(&self, headers: &mut HeaderMap) {
        if let Self::Allowed(origin) = self {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(header::VARY, HeaderValue::from_static("Origin"));
            let exposed = HeaderValue::from_static("Location, Content-Length");
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        }
    }

    /// The answer to a preflight.
    pub fn tell_preflight(&self, headers: &mut HeaderMap) {
        headers.insert(header::ALLOW, HeaderValue::from_static("GET, PUT, POST, DELETE, OPTIONS"));
        if let Self::Allowed(_) = self {
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(HEADERS));
            headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(PREFLIGHT_SECONDS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(origins: &Origins, headers: &[(&'static str, &'static str)]) -> Origin {
        let pairs = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        origins.judge(&pairs.collect())
    }

    #[test]
    fn pages_of_other_origins_are_foreign_unless_they_are_named() {
        let origins = Origins::new(&["https://Console.example/".into(), "http://meta-1:9870".into()]);
        let here = ("host", "data-1:9864");
        assert_eq!(judge(&origins, &[here]), Origin::Own);
        assert_eq!(judge(&origins, &[here, ("origin", "http://data-1:9864")]), Origin::Own);
        assert_eq!(judge(&origins, &[here, ("sec-fetch-site", "same-origin")]), Origin::Own);
        for allowed in ["https://console.example", "http://meta-1:9870", "http://Meta-1:9870"] {
            assert!(matches!(judge(&origins, &[here, ("origin", allowed)]), Origin::Allowed(_)), "{allowed}");
        }
        for foreign in
            ["http://evil.example", "null", "http://console.example", "http://meta-1", "http://meta-1:98700"]
        {
            assert_eq!(judge(&origins, &[here, ("origin", foreign)]), Origin::Foreign, "{foreign}");
        }
        for site in ["cross-site", "same-site"] {
            assert_eq!(judge(&origins, &[here, ("sec-fetch-site", site)]), Origin::Foreign, "{site}");
        }
        let any = Origins::new(&["*".into()]);
        assert!(matches!(judge(&any, &[here, ("origin", "null")]), Origin::Allowed(_)));
    }

    #[test]
    fn only_changes_are_refused() {
        assert!(Origin::Foreign.check_change().is_err());
        let mut headers = HeaderMap::new();
        Origin::Foreign.tell(&mut headers);
        assert!(headers.is_empty());
    }

    #[test]
    fn a_browser_that_does_not_say_from_which_page_it_comes_changes_nothing_by_get() {
        let origins = Origins::new(&[]);
        let of = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in [("host", "meta-1:9870")].iter().chain(pairs) {
                headers.insert(*name, HeaderValue::from_static(value));
            }
            origins.check_change_by_get(&headers)
        };
        let browser = ("user-agent", "Mozilla/5.0 (X11)");
        assert_eq!(of(&[browser]), Err(ForeignChange));
        assert_eq!(of(&[browser, ("referer", "http://evil.example/meta-1:9870/")]), Err(ForeignChange));
        assert_eq!(of(&[browser, ("referer", "http://meta-1:9870/logLevel")]), Ok(()));
        assert_eq!(of(&[browser, ("sec-fetch-site", "same-origin")]), Ok(()));
        assert_eq!(of(&[browser, ("sec-fetch-site", "cross-site")]), Err(ForeignChange));
        assert_eq!(of(&[("user-agent", "Java/17.0.2")]), Ok(()));
        assert_eq!(of(&[]), Ok(()));
    }
}
