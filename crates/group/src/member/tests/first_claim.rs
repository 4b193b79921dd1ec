//! Stories of the first claim after a start, by a view that may be an older one.

use super::{
    super::*,
    cluster::{Cluster, store},
    groups::serving,
};

/// Ends everybody, puts the coordinator back, and starts these members at the same moment.
fn begin_again(cluster: &mut Cluster, backup: (GroupView, u64), members: &[u32]) {
    (1..=3).for_each(|id| cluster.kill(id));
    (cluster.view, cluster.version) = backup;
    members.iter().for_each(|id| cluster.restart(*id));
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
    for gone in [1, 2] {
        cluster.step(3, Input::PeerGone(MemberId(gone)));
    }
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
