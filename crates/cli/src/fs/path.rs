//! Paths as people write them: with a scheme, absolute, or relative to their home.

use super::failure::{Failure, Outcome};

/// A path as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub scheme: Option<String>,
    /// The text between `//` and the path; empty if there is none.
    pub authority: String,
    /// The rest, with `//`, `.` and `..` resolved; relative unless it begins with a slash.
    pub path: String,
    /// Written as a directory: ends in a slash, or is `.` or `..`.
    pub is_directory_like: bool,
}

impl Written {
    pub fn parse(text: &str) -> Outcome<Self> {
        if text.is_empty() {
            return Err(Failure::Usage("Can not create a Path from an empty string".into()));
        }
        let (scheme, rest) = match (text.find(':'), text.find('/')) {
            (Some(colon @ 1..), Some(slash)) if slash == colon + 1 => {
                (Some(text[..colon].to_owned()), &text[colon + 1..])
            }
            _ => (None, text),
        };
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) if scheme.is_some() => {
                let end = rest.find('/').unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
            _ => (String::new(), rest),
        };
        let last = path.rsplit('/').next().unwrap_or_default();
        let is_directory_like = matches!(last, "" | "." | "..");
        let path = match (path, &scheme) {
            // `hdfs://host` means its root.
            ("", Some(_)) => "/".to_owned(),
            (path, _) => resolve(path),
        };
        Ok(Self { scheme, authority, path, is_directory_like })
    }

    pub fn is_absolute(&self) -> bool {
        self.path.starts_with('/')
    }
}

/// Takes out empty parts, `.` and `..`; a `..` above the root stays at the root, one before a relative path
/// stays where it is. The empty relative path is `.`.
pub fn resolve(path: &str) -> String {
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            ".." if is_absolute => {}
            part => parts.push(part),
        }
    }
    match (is_absolute, parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) => ".".into(),
        (false, false) => parts.join("/"),
    }
}

/// The absolute path of `name` in `directory`.
pub fn join(directory: &str, name: &str) -> String {
    match directory {
        "/" => format!("/{name}"),
        directory => format!("{directory}/{name}"),
    }
}

/// The directory of an absolute path; nothing for the root.
pub fn parent(path: &str) -> Option<&str> {
    match path.rfind('/')? {
        0 if path.len() == 1 => None,
        0 => Some("/"),
        end => Some(&path[..end]),
    }
}

/// The last name of a path; empty for the root.
pub fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// How an absolute path is written from `home`: `.` for itself, `..` for what is above.
pub fn relative_to(home: &str, path: &str) -> String {
    let parts = |path: &str| -> Vec<String> {
        path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let (home, path) = (parts(home), parts(path));
    let common = home.iter().zip(&path).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..", home.len() - common);
    let relative: Vec<&str> = up.chain(path[common..].iter().map(String::as_str)).collect();
    match relative.is_empty() {
        true => ".".into(),
        false => relative.join("/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart() {
        let written = |text| Written::parse(text).unwrap();
        let full = written("hdfs://h:1/a//b/../c/");
        assert_eq!((full.scheme.as_deref(), &*full.authority, &*full.path), (Some("hdfs"), "h:1", "/a/c"));
        assert!(full.is_directory_like);
        assert_eq!(written("hdfs:///a").authority, "");
        assert_eq!(written("hdfs://h").path, "/");
        assert_eq!(written("//a").path, "/a");
        assert_eq!(written("a/b:c").path, "a/b:c");
        assert_eq!(written("a:b").scheme, None);
        assert_eq!((written(".").path.as_str(), written(".").is_directory_like), (".", true));
        assert!(!written("/a").is_directory_like);
        assert!(Written::parse("").is_err());
    }

    #[test]
    fn dots_are_resolved() {
        assert_eq!(resolve("/../a/./b//"), "/a/b");
        assert_eq!(resolve("../../a/.."), "../..");
        assert_eq!(resolve("a/.."), ".");
        assert_eq!(resolve("/"), "/");
    }

    #[test]
    fn relative_spelling_goes_up_and_down() {
        assert_eq!(relative_to("/user/me", "/user/me/a/b"), "a/b");
        assert_eq!(relative_to("/user/me", "/user/me"), ".");
        assert_eq!(relative_to("/user/me", "/user/you/x"), "../you/x");
        assert_eq!(relative_to("/user/me", "/"), "../..");
    }

    #[test]
    fn parents_and_names() {
        assert_eq!((parent("/"), parent("/a"), parent("/a/b")), (None, Some("/"), Some("/a")));
        assert_eq!((name("/"), name("/a"), name("a")), ("", "a", "a"));
        assert_eq!((join("/", "a"), join("/a", "b")), ("/a".into(), "/a/b".into()));
    }
}
