//! Paths of the file system in the addresses of pages.

use crate::refusal::Refusal;
use axum::http::StatusCode;
use gateway::path;
use percent_encoding::percent_decode_str;

/// The path that stands behind `prefix` in a URI's path.
///
/// # Errors
/// It is no path that the file system has: it is too long, not UTF-8, or has an empty name, `.`, `..` or a colon in it.
pub fn decode(prefix: &str, uri_path: &str) -> Result<String, Refusal> {
    let rest = uri_path.strip_prefix(prefix).unwrap_or_default();
    let refuse =
        |reason: String| Refusal::new(StatusCode::BAD_REQUEST, "This is no path of the file system", reason);
    let Ok(decoded) = percent_decode_str(rest).decode_utf8() else {
        return Err(refuse("It is not UTF-8.".to_owned()));
    };
    let whole = decoded.trim_start_matches('/');
    path::check(&format!("/{whole}")).map_err(|refusal| refuse(refusal.message))
}

/// The address of the page of a path: `/files` and the path, escaped.
pub fn page(path: &str) -> String {
    format!("/files{}", path::encode(path))
}

/// The address of the page of an entry of a directory.
pub fn child(directory: &str, name: &str) -> String {
    page(&join(directory, name))
}

pub fn join(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.trim_end_matches('/'))
}

/// The directory above; `None` above the root.
pub fn parent(path: &str) -> Option<&str> {
    match path.rsplit_once('/')? {
        ("", "") => None,
        ("", _) => Some("/"),
        (parent, _) => Some(parent),
    }
}

/// The last name of a path; empty for the root.
pub fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// The title of the page of a path.
pub fn title(path: &str) -> String {
    if path == "/" { "Files".to_owned() } else { name(path).to_owned() }
}

/// A part of a path with the address of its page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crumb {
    pub name: String,
    pub href: String,
}

/// The directories on the way to a path, from the root, and the path itself.
pub fn crumbs(path: &str) -> Vec<Crumb> {
    let mut crumbs = vec![Crumb { name: "/".to_owned(), href: page("/") }];
    let mut so_far = String::new();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        so_far = format!("{so_far}/{name}");
        crumbs.push(Crumb { name: name.to_owned(), href: page(&so_far) });
    }
    crumbs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_comes_back_from_its_address() {
        for path in ["/", "/a b/c%d?e#f&g=h;i+j", "/ä/\u{1F600}", "/\"<script>\\^`{|}'"] {
            assert_eq!(decode("/files", &page(path)).unwrap(), path);
        }
        assert_eq!(decode("/files", "/files").unwrap(), "/");
        assert_eq!(decode("/files", "/files/a/").unwrap(), "/a");
        for odd in
            ["/files/a/../b", "/files/%2e%2e", "/files/a//b", "/files/%ff", "/files/a:b", "/files/a%00"]
        {
            assert!(decode("/files", odd).is_err(), "{odd}");
        }
        assert!(decode("/files", &format!("/files/{}", "a/".repeat(30_000))).is_err());
    }

    #[test]
    fn ways_to_a_path_begin_at_the_root() {
        let names: Vec<_> = crumbs("/a b/c").into_iter().map(|crumb| (crumb.name, crumb.href)).collect();
        let wanted = [("/", "/files/"), ("a b", "/files/a%20b"), ("c", "/files/a%20b/c")];
        assert_eq!(names, wanted.map(|(name, href)| (name.to_owned(), href.to_owned())));
        assert_eq!((parent("/"), parent("/a"), parent("/a/b")), (None, Some("/"), Some("/a")));
        assert_eq!((name("/"), name("/a/b")), ("", "b"));
        assert_eq!(child("/", "x"), "/files/x");
    }
}
