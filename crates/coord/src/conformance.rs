//! The behaviour that every coordinator shows, as a suite to run on each.
//!
//! `open` opens the coordinator on the same stored state each time, as after a restart of its process. The
//! groups 900 to 999 must not exist before.

use crate::{ChangeError, Coordinator, Event, Version, Versioned, wait};
use base::{Epoch, GroupId, GroupView, MemberId, MemberStore, Sn, TxId};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
    mpsc,
};

/// Runs all of it; panics with a sentence where the coordinator misbehaves.
pub fn all(mut open: impl FnMut() -> Arc<dyn Coordinator>) {
    a_group_is_made_once(&*open());
    a_change_needs_the_version_it_was_based_on(&*open());
    groups_do_not_see_each_other(&*open());
    one_of_many_rivals_wins(open());
    watches_tell_of_changes(&*open());
    everything_survives_a_restart(&mut open);
}

pub fn read(coordinator: &dyn Coordinator, group: GroupId) -> Option<Versioned> {
    wait(|done| coordinator.read(group, done)).expect("the view can be read")
}

pub fn create(
    coordinator: &dyn Coordinator,
    group: GroupId,
    view: &GroupView,
) -> Result<Version, ChangeError> {
    wait(|done| coordinator.create(group, view.clone(), done))
}

pub fn change(
    coordinator: &dyn Coordinator,
    group: GroupId,
    expected: Version,
    view: &GroupView,
) -> Result<Version, ChangeError> {
    wait(|done| coordinator.change(group, expected, view.clone(), &[], done))
}

/// A view with something in every field.
pub fn sample() -> GroupView {
    let store = |member, generation| MemberStore { member: MemberId(member), generation };
    let mut view = GroupView::new(&[store(3, 1), store(1, 0), store(2, 7)], 3);
    view.epoch = Epoch(4);
    view.active = Some(MemberId(2));
    view.in_sync = vec![store(1, 0), store(2, 7)];
    view.exiles = vec![store(3, 1)];
    view.change_id = u64::MAX;
    view.commit_hint = TxId { epoch: Epoch(4), sn: Sn(1 << 40) };
    view
}

fn a_group_is_made_once(coordinator: &dyn Coordinator) {
    let group = GroupId(900);
    assert_eq!(read(coordinator, group), None, "a group that was never made is not there");
    let version = create(coordinator, group, &sample()).expect("a new group can be made");
    assert_eq!(read(coordinator, group), Some(Versioned { version, view: sample() }));
    assert_eq!(create(coordinator, group, &sample()), Err(ChangeError::BadVersion));
}

fn a_change_needs_the_version_it_was_based_on(coordinator: &dyn Coordinator) {
    let group = GroupId(901);
    assert_eq!(change(coordinator, group, Version(0), &sample()), Err(ChangeError::BadVersion));
    let first = create(coordinator, group, &sample()).unwrap();
    let mut next = sample();
    next.epoch = Epoch(5);
    let second = change(coordinator, group, first, &next).expect("the version is the current one");
    assert!(second > first, "versions rise");
    assert_eq!(change(coordinator, group, first, &sample()), Err(ChangeError::BadVersion));
    assert_eq!(read(coordinator, group), Some(Versioned { version: second, view: next.clone() }));
    // The same value again is a change as well: else a rival's change could go unnoticed.
    assert!(change(coordinator, group, second, &next).unwrap() > second);
}

fn groups_do_not_see_each_other(coordinator: &dyn Coordinator) {
    let first = create(coordinator, GroupId(902), &sample()).unwrap();
    create(coordinator, GroupId(903), &sample()).unwrap();
    change(coordinator, GroupId(903), read(coordinator, GroupId(903)).unwrap().version, &sample()).unwrap();
    assert_eq!(read(coordinator, GroupId(902)).unwrap().version, first);
}

fn one_of_many_rivals_wins(coordinator: Arc<dyn Coordinator>) {
    let group = GroupId(904);
    let version = create(&*coordinator, group, &sample()).unwrap();
    let wins: usize = std::thread::scope(|scope| {
        let rivals: Vec<_> = (0..8)
            .map(|rival| {
                let coordinator = coordinator.clone();
                scope.spawn(move || {
                    let mut view = sample();
                    view.change_id = rival;
                    usize::from(change(&*coordinator, group, version, &view).is_ok())
                })
            })
            .collect();
        rivals.into_iter().map(|rival| rival.join().unwrap()).sum()
    });
    assert_eq!(wins, 1, "of changes based on one version exactly one is made");
}

fn watches_tell_of_changes(coordinator: &dyn Coordinator) {
    let group = GroupId(905);
    let version = create(coordinator, group, &sample()).unwrap();
    let (sender, receiver) = mpsc::channel();
    let seen = Arc::new(AtomicUsize::new(0));
    coordinator.watch(
        group,
        Arc::new(move |group, event| {
            seen.fetch_add(1, Ordering::Relaxed);
            let _ = sender.send((group, event));
        }),
    );
    change(coordinator, group, version, &sample()).unwrap();
    let told = receiver.recv_timeout(std::time::Duration::from_secs(10));
    assert_eq!(told, Ok((group, Event::View)), "a watch is told of a change");
}

fn everything_survives_a_restart(open: &mut impl FnMut() -> Arc<dyn Coordinator>) {
    let group = GroupId(906);
    let version = create(&*open(), group, &sample()).unwrap();
    let coordinator = open();
    assert_eq!(read(&*coordinator, group), Some(Versioned { version, view: sample() }));
    let next = change(&*coordinator, group, version, &sample()).unwrap();
    assert!(next > version, "versions rise over a restart");
    assert_eq!(read(&*open(), group).unwrap().version, next);
}
