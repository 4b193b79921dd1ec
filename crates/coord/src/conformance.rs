//! The behaviour that every coordinator shows, as a suite to run on each.
//!
//! `open` opens the coordinator on the same stored state each time, as after a restart of its process; `pair` opens
//! two on that state, as two processes would have them. The groups 900 to 999 and the cluster must not exist before.

use crate::{Basis, ChangeError, Coordinator, Event, MemberRecord, Version, Versioned, wait};
use base::{Epoch, GroupId, GroupView, MemberId, MemberLife, MemberStore, Sn, TxId};
use std::{
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

/// Two doors to one state.
pub type Pair = [Arc<dyn Coordinator>; 2];

/// Runs all of it; panics with a sentence where the coordinator misbehaves.
pub fn all(mut open: impl FnMut() -> Arc<dyn Coordinator>, mut pair: impl FnMut() -> Pair) {
    a_group_is_made_once(&*open());
    a_change_needs_the_version_it_was_based_on(&*open());
    groups_do_not_see_each_other(&*open());
    all_groups_with_a_view_are_told(&*open());
    a_view_that_cannot_be_is_refused(&*open());
    one_of_many_rivals_wins(pair());
    members_records_are_kept(&*open());
    an_earlier_life_does_not_replace_a_later_one(&*open());
    a_change_can_require_that_members_still_live(&*open());
    a_view_is_confirmed_while_it_stands(&*open());
    the_cluster_is_named_once(&*open());
    watches_tell_of_changes_by_others(pair());
    a_lock_goes_with_its_holder(pair());
    everything_survives_a_restart(&mut open);
}

/// The events that a watch has received. Waiting for one panics after ten seconds.
pub struct Told(mpsc::Receiver<(GroupId, Event)>);

impl Told {
    pub fn watch(coordinator: &dyn Coordinator, group: GroupId) -> Self {
        let (sender, receiver) = mpsc::channel();
        coordinator.watch(
            group,
            Arc::new(move |group, event| {
                let _ = sender.send((group, event));
            }),
        );
        Self(receiver)
    }

    /// Waits for this event; others before it are dropped.
    ///
    /// # Panics
    /// The event was not told within ten seconds, or the coordinator is gone. The text says what was told instead.
    pub fn wait(&self, group: GroupId, event: Event) {
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut others = Vec::new();
        while let Ok(told) = self.0.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            if told == (group, event) {
                return;
            }
            others.push(told);
        }
        panic!("{event:?} of group {group} was not told; what was: {others:?}");
    }

    /// All that was told and not waited for.
    pub fn rest(&self) -> Vec<Event> {
        self.0.try_iter().map(|(_, event)| event).collect()
    }
}

/// # Panics
/// The coordinator cannot be read.
pub fn read(coordinator: &dyn Coordinator, group: GroupId) -> Option<Versioned> {
    wait(|done| coordinator.read(group, done)).expect("the view can be read")
}

/// # Errors
/// Those of [`Coordinator::create`]: `BadVersion` if the group has a view, `Refused` for a view that cannot be,
/// `Unknown` if no answer came.
pub fn create(coordinator: &dyn Coordinator, group: GroupId, view: &GroupView) -> Result<Basis, ChangeError> {
    wait(|done| coordinator.create(group, view.clone(), done)).map(|version| basis(version, view))
}

/// # Errors
/// Those of [`Coordinator::change`]: `BadVersion` if the view is not the expected one, `Refused` for a view that
/// cannot be, `Unknown` if no answer came.
pub fn change(
    coordinator: &dyn Coordinator,
    group: GroupId,
    expected: Basis,
    view: &GroupView,
) -> Result<Basis, ChangeError> {
    wait(|done| coordinator.change(group, expected, view.clone(), &[], done))
        .map(|version| basis(version, view))
}

/// # Errors
/// Those of [`Coordinator::change`]: `BadVersion` if the view is not the expected one, `MemberChanged` if a member
/// lives another life than required, `Unknown` if no answer came.
pub fn change_requiring(
    coordinator: &dyn Coordinator,
    group: GroupId,
    expected: Basis,
    requires: &[MemberLife],
) -> Result<Basis, ChangeError> {
    wait(|done| coordinator.change(group, expected, sample(), requires, done))
        .map(|version| basis(version, &sample()))
}

/// # Errors
/// Those of [`Coordinator::write_member`]: `Refused` if the record that is there tells of a later life, `Unknown` if
/// no answer came.
pub fn write_member(
    coordinator: &dyn Coordinator,
    group: GroupId,
    record: &MemberRecord,
) -> Result<(), ChangeError> {
    wait(|done| coordinator.write_member(group, record.clone(), done))
}

/// # Panics
/// The coordinator cannot be read.
pub fn members(coordinator: &dyn Coordinator, group: GroupId) -> Vec<MemberRecord> {
    wait(|done| coordinator.read_members(group, done)).expect("the members can be read")
}

/// # Errors
/// Those of [`Coordinator::confirm`]: `BadVersion` if the view is not the expected one, `Unknown` if no answer came.
pub fn confirm(coordinator: &dyn Coordinator, group: GroupId, expected: Basis) -> Result<(), ChangeError> {
    wait(|done| coordinator.confirm(group, expected, MemberId(1), done))
}

fn basis(version: Version, view: &GroupView) -> Basis {
    Basis { version, change_id: view.change_id }
}

/// A member's record in the given life.
pub fn record(member: u32, generation: u64, boot: u64) -> MemberRecord {
    let store = MemberStore { member: MemberId(member), generation };
    MemberRecord {
        life: MemberLife { store, boot },
        peer_address: format!("host-{member}.example:8021"),
        rpc_address: format!("host-{member}.example:8020"),
        http_address: format!("host-{member}.example:9870"),
    }
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
    view.unclean_epoch = Epoch(3);
    view.lease_ms = 400;
    view
}

fn a_group_is_made_once(coordinator: &dyn Coordinator) {
    let group = GroupId(900);
    assert_eq!(read(coordinator, group), None, "a group that was never made is not there");
    let Basis { version, .. } = create(coordinator, group, &sample()).expect("a new group can be made");
    assert_eq!(read(coordinator, group), Some(Versioned { version, view: sample() }));
    assert_eq!(create(coordinator, group, &sample()), Err(ChangeError::BadVersion));
}

fn a_change_needs_the_version_it_was_based_on(coordinator: &dyn Coordinator) {
    let group = GroupId(901);
    assert_eq!(
        change(coordinator, group, basis(Version(0), &sample()), &sample()),
        Err(ChangeError::BadVersion)
    );
    let first = create(coordinator, group, &sample()).unwrap();
    let mut next = sample();
    (next.epoch, next.change_id) = (Epoch(5), 7);
    let second = change(coordinator, group, first, &next).expect("the version is the current one");
    assert!(second.version > first.version, "versions rise");
    assert_eq!(change(coordinator, group, first, &sample()), Err(ChangeError::BadVersion));
    assert_eq!(read(coordinator, group), Some(Versioned { version: second.version, view: next.clone() }));
    // Writing an equal value is a change as well: else a rival's change could go unnoticed.
    let third = change(coordinator, group, second, &next).unwrap();
    assert!(third.version > second.version);
    // The version of another view: the coordinator was put back from a backup, and has come so far again.
    let other = basis(third.version, &sample());
    assert_eq!(change(coordinator, group, other, &sample()), Err(ChangeError::BadVersion));
    assert_eq!(confirm(coordinator, group, other), Err(ChangeError::BadVersion));
    assert_eq!(confirm(coordinator, group, third), Ok(()));
}

fn groups_do_not_see_each_other(coordinator: &dyn Coordinator) {
    let first = create(coordinator, GroupId(902), &sample()).unwrap();
    create(coordinator, GroupId(903), &sample()).unwrap();
    change(coordinator, GroupId(903), read(coordinator, GroupId(903)).unwrap().basis(), &sample()).unwrap();
    assert_eq!(read(coordinator, GroupId(902)).unwrap().basis(), first);
}

fn all_groups_with_a_view_are_told(coordinator: &dyn Coordinator) {
    let told = || -> Vec<GroupId> {
        let all = wait(|done| coordinator.groups(done)).expect("it can be read");
        all.into_iter().filter(|group| (980..=989).contains(&group.0)).collect()
    };
    assert_eq!(told(), []);
    for group in [GroupId(989), GroupId(980)] {
        wait(|done| coordinator.create(group, sample(), done)).expect("it is new");
    }
    // A group of which only a member's record is there has no view.
    wait(|done| coordinator.write_member(GroupId(985), record(1, 0, 1), done)).expect("it is new");
    assert_eq!(told(), [GroupId(980), GroupId(989)], "in their order");
}

fn a_view_that_cannot_be_is_refused(coordinator: &dyn Coordinator) {
    let group = GroupId(907);
    let mut twice = sample();
    twice.exiles = vec![twice.in_sync[0]];
    let mut unsorted = sample();
    unsorted.in_sync.reverse();
    let mut complete_exiles = sample();
    complete_exiles.in_sync_min = 2;
    let mut nobody = sample();
    (nobody.in_sync, nobody.exiles) = (Vec::new(), Vec::new());
    for view in [twice, unsorted, complete_exiles, nobody] {
        let answer = create(coordinator, group, &view);
        assert!(matches!(answer, Err(ChangeError::Refused { .. })), "{view:?}: {answer:?}");
    }
    assert_eq!(read(coordinator, group), None);
}

fn one_of_many_rivals_wins(pair: Pair) {
    let group = GroupId(904);
    let version = create(&*pair[0], group, &sample()).unwrap();
    let wins: usize = std::thread::scope(|scope| {
        let rivals: Vec<_> = (0..8)
            .map(|rival| {
                let coordinator = pair[rival % 2].clone();
                scope.spawn(move || {
                    let mut view = sample();
                    view.change_id = rival as u64;
                    usize::from(change(&*coordinator, group, version, &view).is_ok())
                })
            })
            .collect();
        rivals.into_iter().map(|rival| rival.join().unwrap()).sum()
    });
    assert_eq!(wins, 1, "of changes based on one version exactly one is made");
}

fn members_records_are_kept(coordinator: &dyn Coordinator) {
    let group = GroupId(908);
    assert_eq!(members(coordinator, group), [], "a group that was never made has no members");
    for member in [10, 2, 1] {
        write_member(coordinator, group, &record(member, 0, 1)).unwrap();
    }
    assert_eq!(members(coordinator, group), [record(1, 0, 1), record(2, 0, 1), record(10, 0, 1)]);
    let mut moved = record(2, 0, 2);
    moved.rpc_address = "elsewhere.example:8020".into();
    write_member(coordinator, group, &moved).unwrap();
    assert_eq!(members(coordinator, group), [record(1, 0, 1), moved, record(10, 0, 1)]);
    assert_eq!(members(coordinator, GroupId(909)), [], "members belong to one group");
}

fn an_earlier_life_does_not_replace_a_later_one(coordinator: &dyn Coordinator) {
    let group = GroupId(910);
    write_member(coordinator, group, &record(1, 1, 5)).unwrap();
    write_member(coordinator, group, &record(1, 1, 5)).expect("the same life may write again");
    for earlier in [record(1, 1, 4), record(1, 0, 9)] {
        let answer = write_member(coordinator, group, &earlier);
        assert!(matches!(answer, Err(ChangeError::Refused { .. })), "{:?}: {answer:?}", earlier.life);
    }
    write_member(coordinator, group, &record(1, 2, 1)).expect("a new store may count its starts anew");
    assert_eq!(members(coordinator, group), [record(1, 2, 1)]);
}

fn a_change_can_require_that_members_still_live(coordinator: &dyn Coordinator) {
    let group = GroupId(911);
    let first = create(coordinator, group, &sample()).unwrap();
    let (one, two) = (record(1, 0, 3), record(2, 7, 1));
    let missing = change_requiring(coordinator, group, first, &[one.life]);
    assert_eq!(missing, Err(ChangeError::MemberChanged(MemberId(1))), "no record is no life");
    write_member(coordinator, group, &one).unwrap();
    write_member(coordinator, group, &two).unwrap();
    let second = change_requiring(coordinator, group, first, &[one.life, two.life]).unwrap();
    assert!(second.version > first.version);
    assert_eq!(read(coordinator, group), Some(Versioned { version: second.version, view: sample() }));
    let outdated = change_requiring(coordinator, group, first, &[one.life]);
    assert_eq!(outdated, Err(ChangeError::BadVersion));
    write_member(coordinator, group, &record(2, 7, 2)).unwrap();
    let restarted = change_requiring(coordinator, group, second, &[one.life, two.life]);
    assert_eq!(restarted, Err(ChangeError::MemberChanged(MemberId(2))));
    assert_eq!(read(coordinator, group).unwrap().basis(), second, "nothing of it was made");
}

fn a_view_is_confirmed_while_it_stands(coordinator: &dyn Coordinator) {
    let group = GroupId(912);
    assert_eq!(confirm(coordinator, group, basis(Version(1), &sample())), Err(ChangeError::BadVersion));
    let first = create(coordinator, group, &sample()).unwrap();
    assert_eq!(confirm(coordinator, group, first), Ok(()));
    assert_eq!(confirm(coordinator, group, first), Ok(()));
    assert_eq!(read(coordinator, group).unwrap().basis(), first, "confirming changes nothing");
    let second = change(coordinator, group, first, &sample()).unwrap();
    assert_eq!(confirm(coordinator, group, first), Err(ChangeError::BadVersion));
    assert_eq!(confirm(coordinator, group, second), Ok(()));
}

fn the_cluster_is_named_once(coordinator: &dyn Coordinator) {
    let cluster = || wait(|done| coordinator.read_cluster(done)).expect("it can be read");
    let name = |text: &str| wait(|done| coordinator.create_cluster(text.into(), done));
    assert_eq!(cluster(), None);
    assert!(matches!(name(""), Err(ChangeError::Refused { .. })), "no text is no cluster");
    let not_text = wait(|done| coordinator.create_cluster(vec![0xff], done));
    assert!(matches!(not_text, Err(ChangeError::Refused { .. })), "it is text");
    assert_eq!(name("the first"), Ok(()));
    assert_eq!(name("the second"), Err(ChangeError::BadVersion));
    assert_eq!(cluster().as_deref(), Some(&b"the first"[..]));
}

fn watches_tell_of_changes_by_others([one, two]: Pair) {
    let group = GroupId(905);
    let told = Told::watch(&*one, group);
    let version = create(&*two, group, &sample()).unwrap();
    told.wait(group, Event::View);
    for start in 1..4 {
        write_member(&*two, group, &record(2, 0, start)).unwrap();
        told.wait(group, Event::Members);
    }
    let version = change(&*two, group, version, &sample()).unwrap();
    told.wait(group, Event::View);
    change(&*one, group, version, &sample()).unwrap();
    told.wait(group, Event::View);
}

fn a_lock_goes_with_its_holder([one, two]: Pair) {
    let group = GroupId(913);
    create(&*one, group, &sample()).unwrap();
    let told = Told::watch(&*one, group);
    two.hold_lock(group, MemberId(2), Epoch(7));
    // The lock is a hint: nothing says when it is taken, but it is.
    std::thread::sleep(Duration::from_millis(300));
    drop(two);
    told.wait(group, Event::LockGone);
    one.hold_lock(group, MemberId(1), Epoch(8));
    std::thread::sleep(Duration::from_millis(300));
    one.release_lock(group);
    told.wait(group, Event::LockGone);
}

fn everything_survives_a_restart(open: &mut impl FnMut() -> Arc<dyn Coordinator>) {
    let group = GroupId(906);
    let first = create(&*open(), group, &sample()).unwrap();
    let coordinator = open();
    assert_eq!(read(&*coordinator, group), Some(Versioned { version: first.version, view: sample() }));
    let next = change(&*coordinator, group, first, &sample()).unwrap();
    assert!(next.version > first.version, "versions rise over a restart");
    write_member(&*coordinator, group, &record(1, 2, 3)).unwrap();
    drop(coordinator);
    let coordinator = open();
    assert_eq!(read(&*coordinator, group).unwrap().basis(), next);
    assert_eq!(members(&*coordinator, group), [record(1, 2, 3)]);
    assert!(wait(|done| coordinator.read_cluster(done)).unwrap().is_some());
}
