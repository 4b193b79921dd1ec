//! A look at a namespace as it was, without a server: everything is readable, as for a superuser.

use base::{Caller, FsResult, Moment, Timestamp};
use namespace::{
    AccessPolicy, Context, FileStatus, Limits, Namespace,
    reads::{get_block_locations, get_content_summary, get_file_info, get_listing},
};

/// A look at a namespace that does not change.
pub struct Look<'a> {
    namespace: &'a Namespace,
    caller: Caller,
    limits: Limits,
}

impl<'a> Look<'a> {
    pub fn new(namespace: &'a Namespace) -> Self {
        let name = "operator";
        let access = AccessPolicy { superuser: name.into(), ..AccessPolicy::default() };
        let limits = Limits { access, ..Limits::default() };
        Self { namespace, caller: Caller::simple(name, &[name]), limits }
    }

    fn context(&self) -> Context<'_> {
        Context {
            caller: &self.caller,
            origin: None,
            fingerprint: 0,
            now: Timestamp::from_ms(0),
            moment: Moment::default(),
            limits: &self.limits,
            renewals: None,
            looks: None,
            told: None,
            room: None,
        }
    }

    /// The status of the file or directory at this path; `None` where there is none.
    ///
    /// # Errors
    /// [`base::FsError::InvalidPath`] if the path is invalid, [`base::FsError::NotFound`] if it names an inode that is
    /// not there, [`base::FsError::AccessDenied`] if it leads through a file.
    pub fn status(&self, path: &str) -> FsResult<Option<FileStatus<'_>>> {
        get_file_info::get(self.namespace, &self.context(), path)
    }

    /// # Errors
    /// [`base::FsError::NotFound`] if there is no such path; and those of [`Look::status`].
    pub fn summary(&self, path: &str) -> FsResult<get_content_summary::ContentSummary> {
        let context = self.context();
        let mut walk = get_content_summary::Walk::start(self.namespace, &context, path)?;
        loop {
            if let Some(summary) = walk.step(self.namespace, &context)? {
                return Ok(summary);
            }
        }
    }

    /// # Errors
    /// [`base::FsError::NotFound`] if there is no such path or it is not a file; and those of [`Look::status`].
    pub fn blocks(&self, path: &str) -> FsResult<namespace::FileBlocks> {
        get_block_locations::get(self.namespace, &self.context(), path, 0, i64::MAX as u64)
    }

    /// Gives the children of a directory with their paths, and with `is_recursive` all below it, each directory before what is in it;
    /// a file gives itself. `visit` breaks it off with an error.
    ///
    /// # Errors
    /// [`base::FsError::NotFound`] if there is no such path, those of [`Look::status`], or the error of `visit`.
    pub fn walk<E: From<base::FsError>>(
        &self,
        path: &str,
        is_recursive: bool,
        visit: &mut dyn FnMut(&str, &FileStatus<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut pending = vec![path.to_owned()];
        while let Some(directory) = pending.pop() {
            let mut below = Vec::new();
            let mut start_after: Vec<u8> = Vec::new();
            loop {
                let context = self.context();
                let page = get_listing::get(self.namespace, &context, &directory, &start_after, false)?;
                let page = page
                    .ok_or_else(|| base::FsError::NotFound(format!("{directory}: there is no such path")))?;
                for status in &page.entries {
                    let path = joined(&directory, status.name);
                    visit(&path, status)?;
                    if is_recursive && status.is_directory() {
                        below.push(path);
                    }
                }
                match page.entries.last() {
                    Some(last) if page.remaining > 0 => start_after = last.name.to_vec(),
                    _ => break,
                }
            }
            // The last in first out, so that a directory is followed by what is in it.
            pending.extend(below.into_iter().rev());
        }
        Ok(())
    }
}

/// A file that lists itself has no name there.
fn joined(directory: &str, name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    match (directory.strip_suffix('/'), name.is_empty()) {
        (_, true) => directory.to_owned(),
        (Some(above), false) => format!("{above}/{name}"),
        (None, false) => format!("{directory}/{name}"),
    }
}
