//! First claims by an older view, where the others have purged what the claimant lacks.

use super::{
    super::*,
    cluster::{Cluster, store},
    company::stories,
    first_claim::{begin_again, epoch_start, restart_with_base, until},
    groups::serving,
};

/// 3 lacks what 1 and 2 have committed, and these have purged it behind their checkpoints. By the older view all are complete, or 2 is not.
/// 3 claims alone; then 2 turns up.
fn two_turns_up(is_complete: bool) -> Cluster {
    let mut cluster = serving(3);
    if !is_complete {
        cluster.kill(2);
        cluster.pass(700);
    }
    let backup = (cluster.view.clone(), cluster.version);
    if !is_complete {
        cluster.restart(2);
        cluster.pass(2_000);
        assert!(cluster.view.in_sync.contains(&store(2)));
    }
    cluster.kill(3);
    cluster.pass(700);
    for number in 0..5 {
        cluster.propose(1, &format!("3 lacks {number}"));
    }
    cluster.pass(100);
    let base = cluster.members[&2].member.committed();
    assert_eq!(cluster.operations(2).len(), 5);
    cluster.propose(1, "and this");
    begin_again(&mut cluster, backup, &[3]);
    until(&mut cluster, 5_000, |cluster| cluster.view.active == Some(MemberId(3))).expect("3 claims");
    cluster.pass(1_000);
    for id in [1, 2] {
        cluster.purged.insert(id, base);
    }
    restart_with_base(&mut cluster, 2, base.0 as usize);
    cluster.pass(6_000);
    cluster
}

/// Nobody says that it leads and does not, and nobody complains of an active that leads no more.
fn troubles_are_true(cluster: &Cluster) {
    for id in cluster.up() {
        let member = &cluster.members[&id].member;
        let trouble = member.status(cluster.now).trouble.unwrap_or_default();
        let leads = member.leading.is_some();
        assert!(leads || !trouble.starts_with("this member leads"), "{id}: {trouble}");
        assert!(!leads || !trouble.contains("leads with others in their place"), "{id}: {trouble}");
    }
}

/// 2 cannot hand on what it has, and shows that it has committed. So 3 gives way, and leads no epoch without it.
#[test]
fn a_claimant_that_is_shown_a_commit_beyond_its_log_gives_way() {
    let cluster = two_turns_up(true);
    assert_eq!(
        cluster.serving(),
        Some(2).filter(|_| cluster.view.in_sync.len() > 1),
        "{}",
        stories(&cluster)
    );
    assert!(!matches!(cluster.role(3), Role::Starting { .. }), "{}", stories(&cluster));
    troubles_are_true(&cluster);
    // By this view 2 is not complete, and must not lead by itself: 3 says what it waits for.
    let cluster = two_turns_up(false);
    let trouble = cluster.members[&3].member.status(cluster.now).trouble.unwrap_or_default();
    assert!(matches!(cluster.role(3), Role::Following), "{}", stories(&cluster));
    assert!(trouble.contains("It waits for that member") && trouble.contains("group repair"), "{trouble}");
    troubles_are_true(&cluster);
}

#[test]
fn then_the_third_member_comes_and_everything_is_there() {
    for is_complete in [true, false] {
        let mut cluster = two_turns_up(is_complete);
        let base = cluster.purged[&1];
        restart_with_base(&mut cluster, 1, base.0 as usize);
        cluster.asked = 0;
        cluster.pass(20_000);
        let active = cluster.serving().unwrap_or_else(|| panic!("{}", stories(&cluster)));
        assert_eq!(cluster.operations(active).len(), 6);
        troubles_are_true(&cluster);
    }
}

/// By the older view 3 is in sync. It lags so far that only an image helps. As long as it counts as in sync nothing commits, and as long as it
/// counts as complete it takes no image.
#[test]
pub fn a_member_that_needs_an_image_does_not_stay_in_sync() {
    let mut cluster = serving(3);
    let backup = (cluster.view.clone(), cluster.version);
    cluster.kill(3);
    cluster.pass(700);
    for number in 0..5 {
        cluster.propose(1, &format!("3 lacks {number}"));
    }
    cluster.pass(100);
    let base = cluster.members[&1].member.committed();
    begin_again(&mut cluster, backup, &[]);
    for id in [1, 2] {
        cluster.purged.insert(id, base);
        restart_with_base(&mut cluster, id, base.0 as usize);
    }
    cluster.restart(3);
    cluster.pass(5_000);
    let active = cluster.serving().unwrap_or_else(|| panic!("{}", stories(&cluster)));
    assert_eq!(cluster.operations(active).len(), 5);
    assert!(!cluster.view.is_eligible(store(3)) && cluster.node(3).needs_image, "{}", stories(&cluster));
}

/// Member 1 leads and appends what member 2 never gets. Member 2 claims, and appends only the beginning of its epoch. Both end.
/// Member 1 begins again with a log that is purged behind its checkpoint, and member 2 no longer knows what has committed. Nothing
/// commits without member 2, so it takes no image. Its log holds the checkpoint's entry, from which the two logs can be compared.
#[test]
pub fn a_member_that_does_not_know_what_has_committed_is_asked_from_the_purge_on() {
    let mut cluster = Cluster::new(2, 2, 2);
    until(&mut cluster, 3_000, |cluster| cluster.serving() == Some(1)).expect("member 1 serves");
    for number in 0..3 {
        cluster.propose(1, &format!("both hold {number}"));
    }
    cluster.pass(1_000);
    let base = cluster.members[&1].member.committed();
    cluster.cut.insert((1, 2));
    cluster.propose(1, "only 1 holds this");
    cluster.kill(1);
    cluster.cut.clear();
    until(&mut cluster, 5_000, |cluster| epoch_start(cluster, 2) > Sn(0)).expect("member 2 begins an epoch");
    cluster.kill(2);
    cluster.purged.insert(1, base);
    restart_with_base(&mut cluster, 1, base.0 as usize);
    cluster.step(1, Input::LockGone);
    until(&mut cluster, 5_000, |cluster| cluster.view.active == Some(MemberId(1))).expect("member 1 claims");
    cluster.restart(2);
    cluster.asked = 0;
    cluster.pass(10_000);
    let active = cluster.serving().unwrap_or_else(|| panic!("{}", stories(&cluster)));
    let wanted = ["both hold 0", "both hold 1", "both hold 2", "only 1 holds this"];
    assert_eq!(cluster.operations(active), wanted, "{}", stories(&cluster));
    assert!(!cluster.node(2).needs_image, "{}", stories(&cluster));
    troubles_are_true(&cluster);
}
