//! A path that a command works on: what it is, and how it was written.

use super::{
    failure::{Failure, Outcome},
    path,
};
use client::{FileStatus, FileSystem};

/// A path of a file system, with its status where something is there.
#[derive(Clone)]
pub struct Item {
    pub fs: FileSystem,
    /// Absolute, without a scheme.
    pub path: String,
    /// The path as the person wrote it, or as it is spelt below the one that was written.
    pub shown: String,
    /// Written as a directory: with a slash at the end, or as `.` or `..`.
    pub is_directory_like: bool,
    pub status: Option<FileStatus>,
}

impl Item {
    /// The status; an error in the shell's words where nothing is there.
    pub fn existing(&self) -> Outcome<&FileStatus> {
        self.status.as_ref().ok_or_else(|| Failure::not_found(&self.shown))
    }

    pub fn exists(&self) -> bool {
        self.status.is_some()
    }

    pub fn is_dir(&self) -> bool {
        self.status.as_ref().is_some_and(FileStatus::is_dir)
    }

    /// The status of something that is no directory.
    pub fn file(&self) -> Outcome<&FileStatus> {
        match self.existing()? {
            status if status.is_dir() => Err(Failure::is_directory(&self.shown)),
            status => Ok(status),
        }
    }

    /// HDFS has no name with a colon. Said here, where the name is still the one that was written: the server would
    /// complain of a temporary one.
    pub fn check_name(&self) -> Outcome {
        match path::name(&self.path).contains(':') {
            true => Err(Failure::path(&self.shown, "a name in HDFS cannot have a `:' in it")),
            false => Ok(()),
        }
    }

    /// An entry of this directory.
    pub fn child(&self, status: FileStatus) -> Self {
        Self { status: Some(status.clone()), ..self.child_named(status.name()) }
    }

    /// The place of a name in this directory, whether or not something is there.
    pub fn child_named(&self, name: &str) -> Self {
        let shown = match &*self.shown {
            "." => name.to_owned(),
            shown if shown.ends_with('/') => format!("{shown}{name}"),
            shown => format!("{shown}/{name}"),
        };
        Self {
            fs: self.fs.clone(),
            path: path::join(&self.path, name),
            shown,
            is_directory_like: false,
            status: None,
        }
    }

    /// Asks for the status again.
    pub async fn refresh(&mut self) -> Outcome {
        self.status = self.fs.find(&self.path).await?;
        Ok(())
    }

    /// The whole URI.
    pub fn uri(&self) -> String {
        format!("{}{}", self.fs.uri(), self.path)
    }

    /// Whether the directory that this is to be made in is there.
    pub async fn parent_exists(&self) -> Outcome<bool> {
        let directory = match self.is_directory_like {
            true => Some(&*self.path),
            false => path::parent(&self.path),
        };
        match directory {
            Some(directory) => Ok(self.fs.exists(directory).await?),
            None => Ok(true),
        }
    }

    /// The entries of this directory in the order of names.
    pub async fn children(&self) -> Outcome<Vec<Item>> {
        let entries = self.fs.list(&self.path).collect().await?;
        Ok(entries.into_iter().map(|status| self.child(status)).collect())
    }
}
