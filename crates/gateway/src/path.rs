//! Paths between a URI and the file system.

use crate::error::{Refusal, Result};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The beginning of all paths of WebHDFS.
pub const PREFIX: &str = "/webhdfs/v1";

/// Bytes of a path; Hadoop's limit. Longer ones are refused here, so that a message does not repeat them.
const BYTES_MAX: usize = 8_000 * 4;

/// All bytes of a path that are written as `%XX` in a URI.
const IN_URI: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The path of the file system that a URI's path means, behind [`PREFIX`].
///
/// # Errors
/// A `FileNotFoundException` (404) for a URI elsewhere, an `IllegalArgumentException` (400) for a path that is not UTF-8 or has a broken
/// escape, and what [`check`] refuses.
pub fn decode(uri_path: &str) -> Result<String> {
    let Some(rest) = uri_path.strip_prefix(PREFIX).filter(|rest| rest.is_empty() || rest.starts_with('/'))
    else {
        return Err(Refusal::not_found(format!("WebHDFS is at {PREFIX}")));
    };
    check_escapes(rest)?;
    let Ok(path) = percent_decode_str(rest).decode_utf8() else {
        return Err(Refusal::illegal("the path in the URI is not UTF-8"));
    };
    // Clients that put a path of their own behind a slash mean it, and Hadoop's servers take it.
    let whole = path.trim_start_matches('/').len();
    check(&format!("/{}", &path[path.len() - whole..]))
}

/// A `%` that does not begin two hexadecimal digits would stand for itself here, and for something else elsewhere.
fn check_escapes(text: &str) -> Result<()> {
    let bytes = text.as_bytes();
    let is_whole =
        |at: usize| bytes.get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    match bytes.iter().enumerate().all(|(at, byte)| *byte != b'%' || is_whole(at)) {
        true => Ok(()),
        false => Err(Refusal::illegal("the path in the URI has a % without two hexadecimal digits")),
    }
}

/// Refuses a path that Hadoop's servers refuse; a slash at its end means nothing.
///
/// # Errors
/// An `InvalidPathException` (400) for a path that is relative or has an empty name, `.`, `..` or a colon in it; an
/// `IllegalArgumentException` (400) for a path that is too long.
pub fn check(path: &str) -> Result<String> {
    if path.len() > BYTES_MAX {
        return Err(Refusal::illegal(format!("a path of {} bytes; {BYTES_MAX} are the most", path.len())));
    }
    let Some(inner) = path.strip_prefix('/') else { return Err(Refusal::invalid_path(path)) };
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    let is_below_inodes = inner.starts_with(".reserved/.inodes/");
    let is_valid = |name: &str| match name {
        "" | "." => false,
        ".." => is_below_inodes,
        name => !name.contains([':', '\0']),
    };
    match inner.is_empty() || inner.split('/').all(is_valid) {
        true => Ok(format!("/{inner}")),
        false => Err(Refusal::invalid_path(path)),
    }
}

/// The path as it stands in a URI.
pub fn encode(path: &str) -> String {
    utf8_percent_encode(path, IN_URI).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(path: &str) -> std::result::Result<String, u16> {
        decode(path).map_err(|refusal| refusal.status.as_u16())
    }

    #[test]
    fn paths_are_decoded_once() {
        for (uri, path) in [
            ("/webhdfs/v1", "/"),
            ("/webhdfs/v1/", "/"),
            ("/webhdfs/v1/a/b/", "/a/b"),
            ("/webhdfs/v1//a", "/a"),
            ("/webhdfs/v1/a%20b+c%2Bd", "/a b+c+d"),
            ("/webhdfs/v1/%25zz%3F%23", "/%zz?#"),
            ("/webhdfs/v1/%C3%A4", "/ä"),
            ("/webhdfs/v1/.reserved/.inodes/16385/..", "/.reserved/.inodes/16385/.."),
        ] {
            assert_eq!(decoded(uri).as_deref(), Ok(path), "{uri}");
        }
    }

    #[test]
    fn tricks_are_refused() {
        for uri in [
            "/webhdfs/v1/a/../b",
            "/webhdfs/v1/a/%2e%2e/b",
            "/webhdfs/v1/a%2F..%2Fb",
            "/webhdfs/v1/./a",
            "/webhdfs/v1/a//b",
            "/webhdfs/v1/a%00b",
            "/webhdfs/v1/a:b",
            "/webhdfs/v1/%ff",
            "/webhdfs/v1/a%2",
            "/webhdfs/v1/%zz",
        ] {
            assert_eq!(decoded(uri), Err(400), "{uri}");
        }
        assert_eq!(decoded("/webhdfs/v2/a"), Err(404));
        assert_eq!(decoded("/webhdfs/v1a"), Err(404));
        assert_eq!(decoded(&format!("/webhdfs/v1/{}", "a/".repeat(20_000))), Err(400));
    }

    #[test]
    fn an_encoded_path_is_decoded_to_itself() {
        for path in ["/", "/a b/c%d?e#f&g=h;i+j", "/ä/\u{1F600}", "/\"<>\\^`{|}"] {
            assert_eq!(decode(&format!("{PREFIX}{}", encode(path))).unwrap(), path);
        }
    }
}
