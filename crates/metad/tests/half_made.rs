//! A cluster whose making was interrupted between its two words to the coordinator, or whose answer was lost.

#[path = "lone/mod.rs"]
#[allow(dead_code, reason = "this story starts no server")]
mod lone;

use base::{Epoch, GroupId, GroupView, MemberId, MemberLife};
use coord::{
    Basis, ChangeError, Coordinator, Done, MemberRecord, ReadError, Version, Versioned, Watch, wait,
};
use env::Env;
use metad::{CoordinatorConfig, FormatError, GroupConfig, format::GROUP};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

/// A coordinator that fails so many creations of the view.
struct Failing {
    real: coord::Embedded,
    left: AtomicU32,
    how: How,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// Nothing is made.
    Refuses,
    /// It is made, and the answer is lost.
    LosesAnswers,
}

impl Coordinator for Failing {
    fn create(&self, group: GroupId, view: GroupView, done: Done<Result<Version, ChangeError>>) {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            return self.real.create(group, view, done);
        }
        self.left.store(left - 1, Ordering::Relaxed);
        let reason = "planted by a test".to_owned();
        if self.how == How::LosesAnswers {
            let _ = wait(|made| self.real.create(group, view, made));
            return done(Err(ChangeError::Unknown { reason }));
        }
        done(Err(ChangeError::Refused { reason }));
    }

    fn read(&self, group: GroupId, done: Done<Result<Option<Versioned>, ReadError>>) {
        self.real.read(group, done);
    }

    fn change(
        &self,
        group: GroupId,
        expected: Basis,
        view: GroupView,
        requires: &[MemberLife],
        done: Done<Result<Version, ChangeError>>,
    ) {
        self.real.change(group, expected, view, requires, done);
    }

    fn read_members(&self, group: GroupId, done: Done<Result<Vec<MemberRecord>, ReadError>>) {
        self.real.read_members(group, done);
    }

    fn write_member(&self, group: GroupId, record: MemberRecord, done: Done<Result<(), ChangeError>>) {
        self.real.write_member(group, record, done);
    }

    fn confirm(
        &self,
        group: GroupId,
        expected: Basis,
        member: MemberId,
        done: Done<Result<(), ChangeError>>,
    ) {
        self.real.confirm(group, expected, member, done);
    }

    fn hold_lock(&self, group: GroupId, member: MemberId, epoch: Epoch) {
        self.real.hold_lock(group, member, epoch);
    }

    fn release_lock(&self, group: GroupId) {
        self.real.release_lock(group);
    }

    fn read_cluster(&self, done: Done<Result<Option<Vec<u8>>, ReadError>>) {
        self.real.read_cluster(done);
    }

    fn create_cluster(&self, text: Vec<u8>, done: Done<Result<(), ChangeError>>) {
        self.real.create_cluster(text, done);
    }

    fn watch(&self, group: GroupId, watch: Watch) {
        self.real.watch(group, watch);
    }
}

fn coordinator(directory: &Path, how: How, left: u32) -> Arc<Failing> {
    let real = coord::Embedded::open(&Env::production(), &directory.join("coordinator")).unwrap();
    Arc::new(Failing { real, left: AtomicU32::new(left), how })
}

fn format(
    directory: &Path,
    name: &str,
    id: Option<&str>,
    coordinator: &Arc<Failing>,
) -> Result<String, FormatError> {
    let group =
        GroupConfig { coordinator: CoordinatorConfig::Shared(coordinator.clone()), ..GroupConfig::default() };
    let address = "127.0.0.1".parse().unwrap();
    let id = id.map(str::to_owned);
    metad::format(&Env::production(), &directory.join(name), id, address, &group).map(|made| made.cluster_id)
}

#[test]
fn an_order_that_came_no_further_than_the_names_is_finished_by_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let coordinator = coordinator(directory.path(), How::Refuses, 1);
    let first = format(directory.path(), "name", None, &coordinator);
    assert!(matches!(first, Err(FormatError::Coordinator(_))), "{first:?}");
    assert!(wait(|done| coordinator.read(GROUP, done)).unwrap().is_none(), "nobody is in it");
    // Under another id it would be another cluster.
    let other = format(directory.path(), "name", Some("CID-other"), &coordinator);
    assert!(matches!(other, Err(FormatError::Coordinator(_))), "{other:?}");

    let id = format(directory.path(), "name", None, &coordinator).unwrap();
    let told = wait(|done| coordinator.read_cluster(done)).unwrap().unwrap();
    assert!(String::from_utf8_lossy(&told).contains(&id), "the names are those of the first order");
    // It is whole now: nobody makes it again.
    let again = format(directory.path(), "another", None, &coordinator);
    assert!(matches!(again, Err(FormatError::Coordinator(_))), "{again:?}");
}

#[test]
fn an_order_whose_answer_was_lost_finds_that_it_was_carried_out() {
    let directory = tempfile::tempdir().unwrap();
    let coordinator = coordinator(directory.path(), How::LosesAnswers, 2);
    let id = format(directory.path(), "name", None, &coordinator).unwrap();
    assert_eq!(
        metad::read_cluster(&Env::production(), &directory.path().join("name")).unwrap().cluster_id,
        id
    );
}
