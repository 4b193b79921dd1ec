//! The coordinator of a single machine: a file.

use crate::{
    Basis, ChangeError, Coordinator, Done, Event, MemberRecord, OpenError, ReadError, Version, Versioned,
    Watch,
    file::{self, Kept},
    text,
};
use base::{Epoch, GroupId, GroupView, MemberId, MemberLife};
use env::{Env, pulse};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Keeps everything in one file, which is synced before a change is answered. Changes are rare, and are made one after the other.
/// A reader does not wait for the disk: while a change is written, it gets the state of before that change.
///
/// If a change could not be written, it may or may not be there after a restart: the answer is `Unknown`, and
/// until the same file is written successfully everything else is `Unknown` as well.
///
/// Members that share a process share the file, each through a [`Embedded::session`] of its own: dropped, as
/// when its member is killed, it loses its locks and tells the others so.
pub struct Embedded {
    store: Arc<Store>,
    session: u64,
}

struct Store {
    env: Env,
    directory: PathBuf,
    /// The thread that makes a change holds it while it writes the file.
    change: Mutex<()>,
    /// Held briefly. A thread that needs both locks takes `change` first.
    state: Mutex<State>,
}

struct State {
    kept: Kept,
    /// The state that was being written when a write failed. The file holds it, or the one before it.
    in_doubt: Option<Kept>,
    /// The session that holds each group's lock.
    locks: BTreeMap<GroupId, u64>,
    /// Sessions that want a group's lock.
    wanted: BTreeMap<GroupId, Vec<u64>>,
    watches: Vec<Watching>,
    last_session: u64,
}

struct Watching {
    session: u64,
    group: GroupId,
    watch: Watch,
}

impl Embedded {
    /// Opens the file in `directory`, which is made when it is missing. One process at a time: the caller
    /// holds the lock of the store beside it.
    ///
    /// # Errors
    /// Those of [`file::load`].
    pub fn open(env: &Env, directory: &Path) -> Result<Self, OpenError> {
        let kept = file::load(&*env.disk, directory)?;
        let state = State {
            kept,
            in_doubt: None,
            locks: BTreeMap::new(),
            wanted: BTreeMap::new(),
            watches: Vec::new(),
            last_session: 0,
        };
        let store = Store {
            env: env.clone(),
            directory: directory.to_owned(),
            change: Mutex::default(),
            state: Mutex::new(state),
        };
        Ok(Self { store: Arc::new(store), session: 0 })
    }

    /// Another session with the same store, as another process would have.
    pub fn session(&self) -> Self {
        let mut state = self.store.state.lock();
        state.last_session += 1;
        Self { store: self.store.clone(), session: state.last_session }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        let held: Vec<GroupId> = {
            let mut state = self.store.state.lock();
            state.watches.retain(|watching| watching.session != self.session);
            state.wanted.keys().copied().collect()
        };
        held.into_iter().for_each(|group| self.release_lock(group));
    }
}

impl Store {
    /// Makes a change durable, or leaves it in doubt.
    fn keep<T>(&self, change: impl FnOnce(&mut Kept) -> Result<T, ChangeError>) -> Result<T, ChangeError> {
        let _one_at_a_time = pulse::lock(&self.change);
        let (mut kept, in_doubt) = {
            let state = self.state.lock();
            (state.kept.clone(), state.in_doubt.clone())
        };
        let answer = change(&mut kept)?;
        if in_doubt.is_some_and(|doubtful| doubtful != kept) {
            return Err(ChangeError::Unknown { reason: "an earlier change is still in doubt".into() });
        }
        let stored = file::store(&*self.env.disk, &self.directory, &kept);
        let mut state = self.state.lock();
        match stored {
            Ok(()) => {
                state.kept = kept;
                state.in_doubt = None;
                Ok(answer)
            }
            Err(error) => {
                state.in_doubt = Some(kept);
                Err(ChangeError::Unknown { reason: error.to_string() })
            }
        }
    }

    fn read<T>(&self, read: impl FnOnce(&Kept) -> T) -> Result<T, ReadError> {
        let state = self.state.lock();
        match &state.in_doubt {
            Some(_) => Err(ReadError { reason: "an earlier change is still in doubt".into() }),
            None => Ok(read(&state.kept)),
        }
    }

    fn tell(&self, group: GroupId, event: Event) {
        let watches: Vec<Watch> = {
            let state = self.state.lock();
            state.watches.iter().filter(|watching| watching.group == group).map(|w| w.watch.clone()).collect()
        };
        watches.iter().for_each(|watch| watch(group, event));
    }

    fn set_view(
        &self,
        group: GroupId,
        expected: Option<Basis>,
        view: GroupView,
        requires: &[MemberLife],
    ) -> Result<Version, ChangeError> {
        text::check(&view).map_err(|reason| ChangeError::Refused { reason })?;
        self.keep(|kept| {
            if kept.views.get(&group).map(Versioned::basis) != expected {
                return Err(ChangeError::BadVersion);
            }
            for life in requires {
                let record = kept.members.get(&(group, life.store.member));
                if record.map(|record| record.life) != Some(*life) {
                    return Err(ChangeError::MemberChanged(life.store.member));
                }
            }
            let version = Version(expected.map_or(1, |basis| basis.version.0 + 1));
            kept.views.insert(group, Versioned { version, view });
            Ok(version)
        })
    }

    fn set_view_and_tell(
        &self,
        group: GroupId,
        expected: Option<Basis>,
        view: GroupView,
        requires: &[MemberLife],
        done: Done<Result<Version, ChangeError>>,
    ) {
        let answer = self.set_view(group, expected, view, requires);
        let is_made = answer.is_ok();
        done(answer);
        if is_made {
            self.tell(group, Event::View);
        }
    }
}

impl Coordinator for Embedded {
    fn read(&self, group: GroupId, done: Done<Result<Option<Versioned>, ReadError>>) {
        done(self.store.read(|kept| kept.views.get(&group).cloned()));
    }

    fn groups(&self, done: Done<Result<Vec<GroupId>, ReadError>>) {
        done(self.store.read(|kept| kept.views.keys().copied().collect()));
    }

    fn create(&self, group: GroupId, view: GroupView, done: Done<Result<Version, ChangeError>>) {
        self.store.set_view_and_tell(group, None, view, &[], done);
    }

    fn change(
        &self,
        group: GroupId,
        expected: Basis,
        view: GroupView,
        requires: &[MemberLife],
        done: Done<Result<Version, ChangeError>>,
    ) {
        self.store.set_view_and_tell(group, Some(expected), view, requires, done);
    }

    fn read_members(&self, group: GroupId, done: Done<Result<Vec<MemberRecord>, ReadError>>) {
        let of_group = (group, MemberId(0))..=(group, MemberId(u32::MAX));
        done(
            self.store.read(|kept| kept.members.range(of_group).map(|(_, record)| record.clone()).collect()),
        );
    }

    fn write_member(&self, group: GroupId, record: MemberRecord, done: Done<Result<(), ChangeError>>) {
        let answer = self.store.keep(|kept| {
            let held = kept.members.get(&(group, record.life.store.member));
            record.may_replace(held)?;
            kept.members.insert((group, record.life.store.member), record);
            Ok(())
        });
        let is_made = answer.is_ok();
        done(answer);
        if is_made {
            self.store.tell(group, Event::Members);
        }
    }

    fn confirm(
        &self,
        group: GroupId,
        expected: Basis,
        _member: MemberId,
        done: Done<Result<(), ChangeError>>,
    ) {
        let basis = self.store.read(|kept| kept.views.get(&group).map(Versioned::basis));
        done(match basis {
            Ok(basis) if basis == Some(expected) => Ok(()),
            Ok(_) => Err(ChangeError::BadVersion),
            Err(ReadError { reason }) => Err(ChangeError::Unknown { reason }),
        });
    }

    fn hold_lock(&self, group: GroupId, _member: MemberId, _epoch: Epoch) {
        let mut state = self.store.state.lock();
        let wanted = state.wanted.entry(group).or_default();
        if !wanted.contains(&self.session) {
            wanted.push(self.session);
        }
        state.locks.entry(group).or_insert(self.session);
    }

    fn release_lock(&self, group: GroupId) {
        {
            let mut state = self.store.state.lock();
            let wanted = state.wanted.entry(group).or_default();
            wanted.retain(|session| *session != self.session);
            let next = wanted.first().copied();
            if state.locks.get(&group) != Some(&self.session) {
                return;
            }
            state.locks.remove(&group);
            if let Some(next) = next {
                state.locks.insert(group, next);
            }
        }
        self.store.tell(group, Event::LockGone);
    }

    fn read_cluster(&self, done: Done<Result<Option<Vec<u8>>, ReadError>>) {
        done(self.store.read(|kept| kept.cluster.clone().map(String::into_bytes)));
    }

    fn create_cluster(&self, text: Vec<u8>, done: Done<Result<(), ChangeError>>) {
        done(self.store.keep(|kept| {
            let text = text::cluster(text).map_err(|reason| ChangeError::Refused { reason })?;
            if kept.cluster.is_some() {
                return Err(ChangeError::BadVersion);
            }
            kept.cluster = Some(text);
            Ok(())
        }));
    }

    fn watch(&self, group: GroupId, watch: Watch) {
        self.store.state.lock().watches.push(Watching { session: self.session, group, watch });
    }
}

#[cfg(test)]
mod tests;
