//! The trash of a user, in the place where Hadoop's shell has it.

use crate::{Error, FileSystem};
use std::time::{SystemTime, UNIX_EPOCH};

/// The reason why something was not moved to the trash.
#[derive(Debug, thiserror::Error)]
pub enum NotTrashed {
    #[error("it is in the trash already")]
    IsThere,
    #[error("it holds the trash, and cannot be moved there")]
    HoldsTrash,
    #[error(transparent)]
    Failed(#[from] Error),
}

/// Moves a path into the trash of the user, and returns its place there. Directories of the trash that are missing are made for the user alone.
///
/// # Errors
/// The path is in the trash already, or holds it; or it cannot be moved.
pub async fn move_to_trash(fs: &FileSystem, path: &str) -> Result<String, NotTrashed> {
    let trash = format!("/user/{}/.Trash", fs.user());
    if is_within(path, &trash) {
        return Err(NotTrashed::IsThere);
    }
    if is_within(&trash, path) {
        return Err(NotTrashed::HoldsTrash);
    }
    let mut place = format!("{trash}/Current{path}");
    let above = place.rsplit_once('/').map_or("/", |(above, _)| above).to_owned();
    fs.make_directory(&above, true, 0o700).await?;
    if fs.exists(&place).await? {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        place = format!("{place}{}", now.as_millis());
    }
    fs.rename(path, &place, false).await?;
    Ok(place)
}

/// Whether a path is `directory` or below it.
fn is_within(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_within_itself_and_those_above_it() {
        for (path, directory, is) in [
            ("/user/ann/.Trash", "/user/ann/.Trash", true),
            ("/user/ann/.Trash/Current/a", "/user/ann/.Trash", true),
            ("/user/ann/.Trashes", "/user/ann/.Trash", false),
            ("/user/ann/.Trash", "/user", true),
            ("/user/ann/.Trash", "/", true),
            ("/user/ann/.Trash", "/user/an", false),
        ] {
            assert_eq!(is_within(path, directory), is, "{path} in {directory}");
        }
    }
}
