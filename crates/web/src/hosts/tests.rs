use super::*;
use axum::http::{HeaderName, HeaderValue};

const BROWSER: (&str, &str) = ("user-agent", "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0");

fn hosts(named: &[&str]) -> Hosts {
    let named: Vec<_> = named.iter().map(ToString::to_string).collect();
    Hosts::new(&named, ["Meta-1.Corp.Example", "10.0.0.7", "", "not a name"]).unwrap()
}

fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers
}

fn may_call(hosts: &Hosts, host: &'static str) -> bool {
    hosts.check(&headers(&[BROWSER, ("host", host)]), &Uri::from_static("/health")).is_ok()
}

#[test]
fn a_browser_calls_by_addresses_and_by_names_of_this_server() {
    let hosts = hosts(&["console.example.", "*.Hdfs.Example"]);
    for own in [
        "127.0.0.1:9870",
        "127.0.0.1",
        "127.0.0.1.:9870",
        "192.168.7.9:",
        "[::1]:9870",
        "[2001:db8::7]",
        "[::ffff:10.0.0.1]:9870",
        "localhost",
        "LocalHost.:9870",
        "meta.localhost:9870",
        "meta-1.corp.example:9870",
        "META-1.CORP.EXAMPLE",
        "meta-1.corp.example.:9870",
        "console.example",
        "a.hdfs.example:9864",
        "a.b.hdfs.example.",
    ] {
        assert!(may_call(&hosts, own), "{own}");
    }
    for foreign in [
        "",
        ":9870",
        ".",
        "evil.example:9870",
        "meta-1",
        "meta-1.corp.example.evil.example",
        "evil-meta-1.corp.example",
        "hdfs.example",
        "evilhdfs.example",
        "localhost.evil.example",
        "notlocalhost",
        "127.0.0.1.evil.example",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "127.0.0.1@evil.example",
        "evil.example@127.0.0.1",
        "user:password@localhost",
        "localhost:9870:evil.example",
        "localhost:9870@evil.example",
        "[::1",
        "[::1]evil.example",
        "[::1]:x",
        "[evil.example]",
        "[127.0.0.1]",
        "::1",
        "localhost,evil.example",
        "localhost evil.example",
        "localhost..",
        "http://localhost",
        "localhost/",
        "lo\u{e9}",
    ] {
        let called = HeaderValue::from_bytes(foreign.as_bytes()).unwrap();
        let mut headers = headers(&[BROWSER]);
        headers.insert(header::HOST, called);
        assert!(hosts.check(&headers, &Uri::from_static("/health")).is_err(), "{foreign}");
    }
}

#[test]
fn every_mark_of_a_browser_counts_and_programs_call_as_they_like() {
    let hosts = hosts(&[]);
    let check = |more: &[(&'static str, &'static str)]| {
        let mut lines = vec![("host", "alias.of.ours:9870")];
        lines.extend(more);
        hosts.check(&headers(&lines), &Uri::from_static("/webhdfs/v1/?op=LISTSTATUS"))
    };
    for mark in [
        BROWSER,
        ("origin", "null"),
        ("referer", "http://alias.of.ours:9870/"),
        ("sec-fetch-site", "same-origin"),
        ("sec-ch-ua", "\"Chromium\""),
        ("sec-gpc", "1"),
        // All that is left of a page's request if the page writes what it may.
        ("accept-language", ""),
        ("upgrade-insecure-requests", "1"),
    ] {
        assert!(check(&[mark]).is_err(), "{mark:?}");
        assert!(check(&[("user-agent", "curl/8.5.0"), mark]).is_err(), "{mark:?}");
    }
    for program in [
        &[("user-agent", "curl/8.5.0"), ("accept", "*/*")][..],
        &[("user-agent", "Java/17.0.2"), ("accept", "text/html, image/gif, image/jpeg, */*; q=0.2")],
        &[("user-agent", "Prometheus/3.1.0"), ("x-prometheus-scrape-timeout-seconds", "10")],
        &[("user-agent", "python-requests/2.32.3"), ("x-forwarded-host", "evil.example")],
        &[],
    ] {
        assert_eq!(check(program), Ok(()), "{program:?}");
    }
}

#[test]
fn every_name_that_a_request_has_counts() {
    let hosts = hosts(&[]);
    let check = |lines: &[(&'static str, &'static str)], uri: &'static str| {
        hosts.check(&headers(lines), &Uri::from_static(uri)).is_ok()
    };
    let (own, foreign) = (("host", "localhost:9870"), ("host", "evil.example"));
    assert!(check(&[BROWSER, own], "http://localhost:9870/health"));
    assert!(check(&[BROWSER], "http://localhost:9870/health"));
    assert!(!check(&[BROWSER], "/health"));
    assert!(check(&[], "/health"));
    assert!(!check(&[BROWSER, own], "http://evil.example/health"));
    assert!(!check(&[BROWSER, foreign], "http://localhost/health"));
    assert!(!check(&[BROWSER, own, foreign], "/health"));
    assert!(!check(&[BROWSER, foreign, own], "/health"));
    // Other headers say nothing of the name.
    assert!(!check(&[BROWSER, foreign, ("x-forwarded-host", "localhost")], "/health"));
    assert!(check(&[BROWSER, own, ("x-forwarded-host", "evil.example")], "/health"));
}

#[test]
fn a_star_turns_the_check_off_and_no_other_text_does() {
    assert!(may_call(&hosts(&["*"]), "evil.example"));
    for wrong in [
        "",
        "**",
        "*example",
        "*.",
        "*.*",
        "a.*",
        "a b",
        "a:9870",
        "http://a",
        "a/b",
        "a..b",
        ".a",
        "b\u{fc}cher.example",
    ] {
        assert!(Hosts::new(&[wrong.to_owned()], [""; 0]).is_err(), "{wrong}");
    }
    let long = vec!["a".repeat(LABEL_BYTES_MAX); 4].join(".");
    assert!(Hosts::new(std::slice::from_ref(&long), [""; 0]).is_err());
    assert!(Hosts::new(&[long[..NAME_BYTES_MAX - 1].to_owned()], [""; 0]).is_ok());
}

#[test]
fn a_refusal_names_the_key_and_repeats_no_markup() {
    let refused =
        hosts(&[]).check(&headers(&[BROWSER, ("host", "<script>.example")]), &Uri::from_static("/"));
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("http_hosts") && text.contains("?script?.example"), "{text}");
}
