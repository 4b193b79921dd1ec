//! The coordinator of a single machine: a file.

use crate::{ChangeError, Coordinator, Done, ReadError, Version, Versioned, Watch};
use base::{GroupId, GroupView};
use env::Env;
use std::{io, path::Path};

/// Keeps the views of all groups in one file, synced before it answers.
pub struct Embedded {}

impl Embedded {
    /// Opens the file in `directory`, which is made when it is missing.
    pub fn open(_env: &Env, _directory: &Path) -> io::Result<Self> {
        todo!()
    }
}

impl Coordinator for Embedded {
    fn read(&self, _group: GroupId, _done: Done<Result<Option<Versioned>, ReadError>>) {
        todo!()
    }
    fn create(&self, _group: GroupId, _view: GroupView, _done: Done<Result<Version, ChangeError>>) {
        todo!()
    }
    fn change(
        &self,
        _group: GroupId,
        _expected: Version,
        _view: GroupView,
        _done: Done<Result<Version, ChangeError>>,
    ) {
        todo!()
    }
    fn watch(&self, _group: GroupId, _watch: Watch) {
        todo!()
    }
}
