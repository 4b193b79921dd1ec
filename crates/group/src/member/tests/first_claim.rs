//! Stories of the first claim after a start, by a view that may be an older one.

use super::{
    super::*,
    cluster::{Cluster, settings, store},
    groups::serving,
};

/// Ends everybody, puts the coordinator back, and starts these members at the same moment. The addresses of the others refuse.
pub fn begin_again(cluster: &mut Cluster, backup: (GroupView, u64), members: &[u32]) {
    let all: Vec<u32> = cluster.members.keys().copied().collect();
    all.iter().for_each(|id| cluster.kill(*id));
    (cluster.view, cluster.version) = backup;
    members.iter().for_each(|id| cluster.restart(*id));
    let silent = all.iter().filter(|id| !members.contains(id));
    for gone in silent {
        members.iter().for_each(|id| cluster.step(*id, Input::PeerGone(MemberId(*gone))));
    }
}

/// A process that begins again and knows from its checkpoint what has committed up to `base`.
pub fn restart_with_base(cluster: &mut Cluster, id: u32, base: usize) {
    cluster.restart(id);
    let node = &cluster.members[&id];
    let log = node.log.clone();
    let point = if base == 0 { LogPoint::default() } else { log[base - 1].point() };
    let restored = Restored {
        promised: node.promised,
        base: point,
        tail: log[base..].to_vec(),
        boot: node.boot,
        ..Restored::default()
    };
    cluster.node(id).member = Member::new(settings(), store(id), restored, cluster.now, u64::from(id));
    cluster.read_view(id);
    for other in cluster.up().into_iter().filter(|other| *other != id) {
        cluster.step(id, Input::PeerConnected(MemberId(other)));
    }
}

/// Lets time pass until this holds, and says how many ms it took; `None`: it did not hold in time.
pub fn until(cluster: &mut Cluster, ms: u64, holds: impl Fn(&Cluster) -> bool) -> Option<u64> {
    (0..ms).find(|_| {
        if holds(cluster) {
            return true;
        }
        cluster.pass(1);
        false
    })
}

/// The first entry of the epoch that this member leads; 0: it has not appended one.
pub fn epoch_start(cluster: &Cluster, id: u32) -> Sn {
    cluster.members[&id].member.leading.as_ref().map_or(Sn(0), |leading| leading.epoch_start)
}

/// Member 3 lacks what 1 and 2 have committed. By the older view 1 is the active, whom a claim ends. Member 3 claims, ends before
/// anybody is there, and claims again when only 1 is.
#[test]
fn what_the_old_active_holds_is_adopted() {
    let mut cluster = serving(3);
    let backup = (cluster.view.clone(), cluster.version);
    assert_eq!(backup.0.active, Some(MemberId(1)));
    cluster.kill(3);
    cluster.pass(600);
    cluster.propose(1, "3 lacks this");
    begin_again(&mut cluster, backup, &[3]);
    // Until what it may have granted before is over, and member 3 claims.
    let epoch = cluster.view.epoch;
    for _ in 0..5_000 {
        if cluster.view.epoch > epoch {
            break;
        }
        cluster.pass(1);
    }
    assert_eq!(cluster.view.active, Some(MemberId(3)));
    cluster.kill(3);
    cluster.restart(3);
    cluster.restart(1);
    cluster.pass(5_000);
    let active = cluster.serving().expect("one of the two leads");
    assert_eq!(cluster.operations(active), ["3 lacks this"]);
}

/// By the older view member 1 is not complete. Since then it was let in, and member 3, which is complete by that view, lacks what
/// has committed.
#[test]
fn what_a_member_holds_that_is_not_complete_by_the_view_is_adopted() {
    let mut cluster = serving(3);
    cluster.kill(1);
    cluster.pass(600);
    let old = cluster.serving().expect("another leads");
    let lacking = 5 - old;
    cluster.propose(old, "1 lacks this for a while");
    let backup = (cluster.view.clone(), cluster.version);
    assert!(!cluster.view.is_eligible(store(1)));
    cluster.restart(1);
    cluster.pass(2_000);
    cluster.kill(lacking);
    cluster.pass(600);
    cluster.propose(old, "1 has this, and another one lacks it");
    begin_again(&mut cluster, backup, &[1, lacking]);
    cluster.pass(8_000);
    let active = cluster.serving().expect("one of the two leads");
    assert_eq!(
        cluster.operations(active),
        ["1 lacks this for a while", "1 has this, and another one lacks it"]
    );
}

/// Member 2 has heard that 3 claims, and nothing more: it knows no better than before whether the view is an older one.
#[test]
fn to_have_heard_a_claimant_is_not_to_have_taken_part() {
    let mut cluster = serving(3);
    let backup = (cluster.view.clone(), cluster.version);
    cluster.kill(2);
    cluster.pass(600);
    cluster.propose(1, "2 lacks this");
    begin_again(&mut cluster, backup, &[2]);
    let epoch = Epoch(cluster.view.epoch.0 + 1);
    let message = crate::Message::NewEpoch { epoch };
    cluster.step(2, Input::Message { from: store(3), boot: 9, message });
    cluster.view.epoch = epoch;
    cluster.view.active = Some(MemberId(3));
    cluster.version += 1;
    cluster.read_view(2);
    for gone in [1, 3] {
        cluster.step(2, Input::PeerGone(MemberId(gone)));
    }
    for _ in 0..8_000 {
        assert!(!matches!(cluster.role(2), Role::Reading { .. }), "{:?}", cluster.role(2));
        cluster.pass(1);
    }
    let trouble = cluster.members[&2].member.status(cluster.now).trouble;
    assert!(
        matches!(cluster.role(2), Role::Starting { .. }),
        "{:?} {trouble:?} {:?}",
        cluster.role(2),
        cluster.view
    );
    cluster.restart(1);
    cluster.pass(5_000);
    let active = cluster.serving().expect("one of the two leads");
    assert_eq!(cluster.operations(active), ["2 lacks this"]);
}

/// By the older view member 1 is not complete, and `lacking` is. `lacking` begins alone, claims, and waits below the minimum: nothing
/// has committed. Then member 1 turns up, which holds what was acknowledged.
#[test]
fn a_member_not_complete_by_the_view_turns_up_before_anything_has_committed() {
    let mut cluster = serving(3);
    cluster.kill(1);
    cluster.pass(600);
    let old = cluster.serving().expect("another leads");
    let lacking = 5 - old;
    cluster.propose(old, "1 lacks this for a while");
    let backup = (cluster.view.clone(), cluster.version);
    cluster.restart(1);
    cluster.pass(2_000);
    cluster.kill(lacking);
    cluster.pass(600);
    cluster.propose(old, "1 has this, and another one lacks it");
    assert_eq!(cluster.operations(old).len(), 2, "it was acknowledged");
    begin_again(&mut cluster, backup, &[lacking]);
    cluster.pass(3_000);
    assert!(matches!(cluster.role(lacking), Role::Starting { .. }), "{:?}", cluster.role(lacking));
    cluster.restart(1);
    cluster.pass(8_000);
    let active = cluster.serving().expect("one of the two leads");
    assert_eq!(
        cluster.operations(active),
        ["1 lacks this for a while", "1 has this, and another one lacks it"]
    );
}

/// All are complete by the older view, so it is not below the minimum. Member 3 leads, and the coordinator
/// is slow to confirm that the others are out. Then 2 turns up, which holds what was acknowledged.
#[test]
fn a_complete_member_turns_up_before_the_silent_are_taken_out() {
    let mut cluster = serving(3);
    let backup = (cluster.view.clone(), cluster.version);
    cluster.kill(3);
    cluster.pass(600);
    cluster.propose(1, "3 lacks this");
    assert_eq!(cluster.operations(1).len(), 1, "it was acknowledged");
    begin_again(&mut cluster, backup, &[3]);
    let waited = until(&mut cluster, 5_000, |cluster| cluster.view.active == Some(MemberId(3)));
    waited.expect("3 claims");
    cluster.is_deaf = true;
    cluster.pass(1_000);
    assert_eq!(epoch_start(&cluster, 3), Sn(0), "alone it begins no epoch");
    cluster.restart(2);
    cluster.pass(200);
    cluster.is_deaf = false;
    cluster.pass(8_000);
    let active = cluster.serving().expect("one of the two leads");
    assert_eq!(cluster.operations(active), ["3 lacks this"]);
}

/// By the older view 1 and 3 are in sync and 1 is the active. What was acknowledged since is on 1 and 2. Member 3 claims, and leaves
/// 1 in the in-sync set: so it is not below the minimum by its view. The coordinator is away for a moment, and 1 turns up.
#[test]
fn the_old_active_turns_up_before_it_is_taken_out() {
    let mut cluster = serving(3);
    cluster.kill(2);
    cluster.pass(600);
    cluster.propose(1, "1 and 3 have this");
    cluster.pass(100);
    assert_eq!(cluster.view.in_sync, [store(1), store(3)]);
    let backup = (cluster.view.clone(), cluster.version);
    cluster.restart(2);
    cluster.pass(2_000);
    cluster.kill(3);
    cluster.pass(600);
    cluster.propose(1, "1 and 2 have this");
    assert_eq!(cluster.operations(1).len(), 2, "it was acknowledged");
    begin_again(&mut cluster, backup, &[3]);
    until(&mut cluster, 5_000, |cluster| cluster.view.active == Some(MemberId(3))).expect("3 claims");
    cluster.is_deaf = true;
    cluster.pass(1_000);
    assert_eq!(epoch_start(&cluster, 3), Sn(0), "alone it begins no epoch");
    cluster.restart(1);
    cluster.pass(200);
    cluster.is_deaf = false;
    cluster.pass(8_000);
    let active = cluster.serving().expect("one of the two leads");
    assert_eq!(cluster.operations(active), ["1 and 3 have this", "1 and 2 have this"]);
}

/// Member 3 has checkpointed further than 1 and 2, and has begun an epoch once by the older view. 1 and 2 hold what was
/// acknowledged, with an older checkpoint: between the points that are in memory nothing is common.
#[test]
fn a_longer_log_with_an_older_checkpoint_is_adopted() {
    let mut cluster = serving(3);
    for number in 0..5 {
        cluster.propose(1, &format!("all have {number}"));
    }
    cluster.pass(100);
    let checkpoint = cluster.members[&3].member.committed().0 as usize;
    let backup = (cluster.view.clone(), cluster.version);
    cluster.kill(3);
    cluster.pass(600);
    cluster.propose(1, "3 lacks this");
    let all = cluster.operations(1);
    begin_again(&mut cluster, backup, &[]);
    restart_with_base(&mut cluster, 3, checkpoint);
    for gone in [1, 2] {
        cluster.step(3, Input::PeerGone(MemberId(gone)));
    }
    until(&mut cluster, 5_000, |cluster| cluster.view.active == Some(MemberId(3))).expect("3 leads");
    cluster.pass(1_000);
    cluster.kill(3);
    cluster.restart(1);
    cluster.restart(2);
    restart_with_base(&mut cluster, 3, checkpoint);
    // 3 is the first to claim.
    for other in [1, 2] {
        cluster.node(other).member.candidacy.no_claim_before = cluster.now.plus_ms(2_000);
    }
    cluster.pass(8_000);
    let active = cluster.serving().expect("somebody leads");
    assert_eq!(cluster.operations(active), all);
}

/// By the older view all four are complete. 3 has begun an epoch alone, and nothing more; 1 holds what it and 2 have acknowledged.
/// 4 claims, and hears both: 3's end is of the later epoch, and is no more than the beginning of one.
#[test]
fn a_bare_beginning_of_an_epoch_does_not_hide_what_another_holds() {
    let mut cluster = serving(4);
    cluster.propose(1, "all have this");
    cluster.pass(100);
    let backup = (cluster.view.clone(), cluster.version);
    cluster.kill(3);
    cluster.kill(4);
    cluster.pass(600);
    cluster.propose(1, "1 and 2 have this");
    let all = cluster.operations(1);
    assert_eq!(all.len(), 2, "it was acknowledged");
    begin_again(&mut cluster, backup, &[3]);
    until(&mut cluster, 5_000, |cluster| cluster.view.active == Some(MemberId(3))).expect("3 leads");
    cluster.pass(1_000);
    cluster.kill(3);
    for id in [1, 3, 4] {
        cluster.restart(id);
    }
    for id in [1, 3, 4] {
        cluster.step(id, Input::PeerGone(MemberId(2)));
        if id != 4 {
            cluster.node(id).member.candidacy.no_claim_before = cluster.now.plus_ms(2_000);
        }
    }
    cluster.pass(8_000);
    let active = cluster.serving().expect("somebody leads");
    assert_eq!(cluster.operations(active), all);
}

/// Member 2 begins with a checkpoint in an epoch that the older coordinator lets member 1 lead once more. 2 hears 1's beacon,
/// which shows nothing and commits nothing. Then 1 is gone, and 3, which is not complete by the view, runs and holds what was acknowledged.
#[test]
fn a_beacon_in_the_epoch_of_the_own_checkpoint_is_not_to_have_taken_part() {
    let mut cluster = Cluster::new(4, 2, 2);
    cluster.kill(3);
    cluster.kill(4);
    cluster.pass(1_500);
    assert_eq!(cluster.serving(), Some(1));
    cluster.propose(1, "kept");
    let backup = (cluster.view.clone(), cluster.version);
    assert_eq!(cluster.view.in_sync, [store(1), store(2)]);
    // 3 leads the next epoch, with 2 and 4.
    cluster.restart(3);
    cluster.restart(4);
    cluster.pass(4_000);
    for id in [2, 4] {
        cluster.node(id).member.candidacy.no_claim_before = cluster.now.plus_ms(1_500);
    }
    cluster.kill(1);
    cluster.pass(4_000);
    assert_eq!(cluster.serving(), Some(3));
    cluster.propose(3, "2, 3 and 4 have this");
    cluster.pass(100);
    let base = cluster.members[&2].member.committed().0 as usize;
    cluster.kill(2);
    cluster.pass(2_000);
    cluster.propose(3, "3 and 4 have this");
    assert_eq!(cluster.operations(3).len(), 3);
    begin_again(&mut cluster, backup, &[1]);
    until(&mut cluster, 5_000, |cluster| {
        matches!(cluster.role(1), Role::Starting { .. }) && cluster.view.active == Some(MemberId(1))
    })
    .expect("1 leads");
    restart_with_base(&mut cluster, 2, base);
    // The next of 1's beacons is on its way already when 2 begins.
    let message =
        crate::Message::Beacon { epoch: cluster.view.epoch, round: 9, committed: Sn(0), lease_ms: 400 };
    let boot = cluster.members[&1].boot;
    cluster.step(2, Input::Message { from: store(1), boot, message });
    until(&mut cluster, 300, |cluster| cluster.members[&2].member.evidence.has_taken_part);
    cluster.pass(100);
    cluster.restart(3);
    cluster.restart(4);
    cluster.pass(10_000);
    let active = cluster.serving().expect("somebody leads");
    assert_eq!(cluster.operations(active), ["kept", "2, 3 and 4 have this", "3 and 4 have this"]);
}

/// Minimum 1, and an older coordinator. 1 is dead for good; the operator lets 3 lead without it. 2 runs, was heard, and holds
/// what was acknowledged; by the view it is not complete.
#[test]
fn an_order_to_lead_without_the_silent_is_no_order_to_lead_without_those_who_run() {
    let mut cluster = Cluster::new(3, 1, 1);
    cluster.pass(1_500);
    assert_eq!(cluster.serving(), Some(1));
    cluster.kill(2);
    cluster.pass(600);
    cluster.propose(1, "1 and 3 have this");
    cluster.pass(100);
    let backup = (cluster.view.clone(), cluster.version);
    cluster.restart(2);
    cluster.pass(2_000);
    cluster.kill(3);
    cluster.pass(600);
    cluster.propose(1, "1 and 2 have this");
    assert_eq!(cluster.operations(1).len(), 2, "it was acknowledged");
    begin_again(&mut cluster, backup, &[2, 3]);
    cluster.pass(2_000);
    assert_eq!(cluster.serving(), None);
    cluster.step(3, Input::Operator { ticket: 7, order: Order::UncleanElect });
    cluster.pass(3_000);
    let active = cluster.serving().expect("3 leads");
    assert_eq!(cluster.operations(active), ["1 and 3 have this", "1 and 2 have this"]);
}
