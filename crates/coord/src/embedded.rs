//! The coordinator of a single machine: a file.

use crate::{
    ChangeError, Coordinator, Done, OpenError, ReadError, Version, Versioned, Watch,
    file::{self, Views},
};
use base::{GroupId, GroupView};
use env::Env;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};

/// Keeps the views of all groups in one file, synced before it answers. Changes are rare, so one lock is
/// held while the file is written.
///
/// If a change could not be written, it may or may not be there after a restart: the answer is `Unknown`, and
/// until the same file is written successfully everything else is `Unknown` as well.
pub struct Embedded {
    env: Env,
    directory: PathBuf,
    state: Mutex<State>,
}

struct State {
    views: Views,
    /// What was being written when a write failed.
    in_doubt: Option<Views>,
    watches: Vec<(GroupId, Watch)>,
}

impl Embedded {
    /// Opens the file in `directory`, which is made when it is missing. One process at a time: the caller
    /// holds the lock of the store beside it.
    pub fn open(env: &Env, directory: &Path) -> Result<Self, OpenError> {
        let views = file::load(&*env.disk, directory)?;
        Ok(Self {
            env: env.clone(),
            directory: directory.to_owned(),
            state: Mutex::new(State { views, in_doubt: None, watches: Vec::new() }),
        })
    }

    fn update(
        &self,
        group: GroupId,
        expected: Option<Version>,
        view: GroupView,
    ) -> Result<Version, ChangeError> {
        let mut state = self.state.lock();
        if state.views.get(&group).map(|held| held.version) != expected {
            return Err(ChangeError::BadVersion);
        }
        let version = Version(expected.map_or(1, |version| version.0 + 1));
        let mut views = state.views.clone();
        views.insert(group, Versioned { version, view });
        if state.in_doubt.as_ref().is_some_and(|doubtful| *doubtful != views) {
            return Err(ChangeError::Unknown { reason: "an earlier change is still in doubt".into() });
        }
        match file::store(&*self.env.disk, &self.directory, &views) {
            Ok(()) => {
                state.views = views;
                state.in_doubt = None;
                Ok(version)
            }
            Err(error) => {
                state.in_doubt = Some(views);
                Err(ChangeError::Unknown { reason: error.to_string() })
            }
        }
    }

    fn update_and_tell(
        &self,
        group: GroupId,
        expected: Option<Version>,
        view: GroupView,
        done: Done<Result<Version, ChangeError>>,
    ) {
        let answer = self.update(group, expected, view);
        let watches: Vec<Watch> = if answer.is_ok() {
            let state = self.state.lock();
            state.watches.iter().filter(|(watched, _)| *watched == group).map(|(_, w)| w.clone()).collect()
        } else {
            Vec::new()
        };
        done(answer);
        watches.iter().for_each(|watch| watch(group));
    }
}

impl Coordinator for Embedded {
    fn read(&self, group: GroupId, done: Done<Result<Option<Versioned>, ReadError>>) {
        let answer = {
            let state = self.state.lock();
            match &state.in_doubt {
                Some(_) => Err(ReadError { reason: "an earlier change is still in doubt".into() }),
                None => Ok(state.views.get(&group).cloned()),
            }
        };
        done(answer);
    }

    fn create(&self, group: GroupId, view: GroupView, done: Done<Result<Version, ChangeError>>) {
        self.update_and_tell(group, None, view, done);
    }

    fn change(
        &self,
        group: GroupId,
        expected: Version,
        view: GroupView,
        done: Done<Result<Version, ChangeError>>,
    ) {
        self.update_and_tell(group, Some(expected), view, done);
    }

    fn watch(&self, group: GroupId, watch: Watch) {
        self.state.lock().watches.push((group, watch));
    }
}

#[cfg(test)]
mod tests;
