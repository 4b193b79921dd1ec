//! Stories of stores that are lost, and of the empty ones that take their place: they have promised nothing.

use super::{
    super::*,
    cluster::{Cluster, store},
    company::stories,
    groups::serving,
};

/// The disk of this member is replaced.
fn begin_with_an_empty_store(cluster: &mut Cluster, id: u32) {
    cluster.kill(id);
    let (now, node) = (cluster.now, cluster.node(id));
    let anew = MemberStore { member: MemberId(id), generation: 1 };
    let restored = Restored { boot: node.boot + 1, ..Restored::default() };
    (node.boot, node.promised, node.is_up) = (restored.boot, Epoch(0), true);
    node.log.clear();
    node.member = Member::new(Settings::default(), anew, restored, now, u64::from(id));
    cluster.read_view(id);
    for other in cluster.up().into_iter().filter(|other| *other != id) {
        cluster.step(id, Input::PeerConnected(MemberId(other)));
        cluster.step(other, Input::PeerConnected(MemberId(id)));
    }
}

/// 1 leads, and is cut off from everything. 2 leads then, and has committed more with 3. The disk of 2 is replaced: its new store has another
/// generation, and has promised nothing. 1 reaches 2 again, and nobody else. The grants of the new store are none of the old one, which
/// has claimed since it granted anything: 1 answers no read.
#[test]
fn a_store_that_is_made_anew_grants_no_lease_in_the_place_of_the_old_one() {
    let mut cluster = Cluster::new(3, 2, 2);
    cluster.kill(3);
    cluster.pass(1_500);
    assert_eq!((cluster.serving(), &cluster.view.in_sync[..]), (Some(1), &[store(1), store(2)][..]));
    cluster.propose(1, "1 and 2 have this");
    cluster.pass(100);
    cluster.cut_off.insert(1);
    cluster.cut.extend([(1, 2), (2, 1), (1, 3), (3, 1)]);
    cluster.restart(3);
    cluster.pass(3_000);
    assert_eq!(cluster.view.active, Some(MemberId(2)), "{}", stories(&cluster));
    cluster.propose(2, "2 and 3 have this");
    cluster.pass(100);
    assert_eq!(cluster.operations(2).len(), 2, "it was acknowledged");
    // The process of 2 ends, and begins with an empty store. 3 does not reach it yet.
    cluster.cut.extend([(2, 3), (3, 2)]);
    cluster.cut.remove(&(1, 2));
    cluster.cut.remove(&(2, 1));
    begin_with_an_empty_store(&mut cluster, 2);
    for _ in 0..2_000 {
        cluster.asked = 0;
        cluster.pass(1);
        let lease = cluster.members[&1].member.lease_end();
        let answers = lease.is_none_or(|end| end > cluster.now);
        assert!(!answers, "1 answers reads and lacks what was acknowledged: {}", stories(&cluster));
    }
}

/// 1 and 2 have acknowledged something, and it is torn off 2. The disk of 1 is replaced, so nobody holds it any more. That its new store answers
/// does not mean that the old one has: 2 does not go on without an order.
#[test]
fn a_torn_log_does_not_take_the_answer_of_a_new_store_for_that_of_the_old_one() {
    let mut cluster = Cluster::new(3, 2, 2);
    cluster.kill(3);
    cluster.pass(1_500);
    cluster.propose(1, "kept");
    cluster.pass(100);
    cluster.propose(1, "lost with the disk of 1, and torn off 2");
    assert_eq!(cluster.operations(1).len(), 2, "it was acknowledged");
    cluster.kill(1);
    cluster.kill(2);
    begin_with_an_empty_store(&mut cluster, 1);
    cluster.node(2).log.pop();
    cluster.restart(2);
    cluster.node(2).member.is_suspect = true;
    cluster.pass(8_000);
    assert_eq!(cluster.serving(), None, "{}", stories(&cluster));
    let trouble = cluster.members[&2].member.status(cluster.now).trouble.unwrap_or_default();
    assert!(trouble.contains("waits until all of 1 answer"), "{trouble}");
    cluster.step(2, Input::Operator { ticket: 1, order: Order::UncleanElect });
    cluster.pass(5_000);
    assert_eq!(cluster.serving(), Some(2), "{}", stories(&cluster));
    assert_eq!(cluster.operations(2), ["kept"]);
}

/// The end of 1's log is torn. 1 has heard that 2 begins an epoch, and then the disk of 2 is replaced. 1 remembers 2 as its leader, which does
/// not keep it from saying what it waits for and which order helps.
#[test]
fn a_torn_log_whose_leader_has_lost_its_store_says_what_it_waits_for() {
    let mut cluster = Cluster::new(2, 2, 2);
    cluster.pass(1_500);
    cluster.propose(1, "kept");
    cluster.pass(100);
    cluster.kill(1);
    cluster.kill(2);
    cluster.restart(1);
    cluster.restart(2);
    cluster.node(1).member.is_suspect = true;
    while cluster.members[&1].member.following.leader.is_none() {
        cluster.pass(1);
        assert!(cluster.serving().is_none(), "{}", stories(&cluster));
    }
    begin_with_an_empty_store(&mut cluster, 2);
    assert!(cluster.members[&1].member.is_suspect);
    cluster.pass(3_000);
    assert_eq!(cluster.serving(), None, "{}", stories(&cluster));
    let trouble = cluster.members[&1].member.status(cluster.now).trouble.unwrap_or_default();
    assert!(
        trouble.contains("waits until all of 2 answer") && trouble.contains("unclean-elect 1"),
        "{trouble}"
    );
}

/// The store of member 2 is put back to a copy of an hour ago. That copy has been begun as often as the coordinator
/// knows, so only the view shows that the store has promised more than it says. Member 1 commits nothing with it.
#[test]
fn a_store_that_was_put_back_does_not_obey_an_active_of_before_the_view() {
    let mut cluster = Cluster::new(3, 2, 2);
    cluster.kill(3);
    cluster.pass(1_500);
    cluster.propose(1, "1 and 2 have this");
    cluster.pass(100);
    let copy = (cluster.members[&2].log.clone(), cluster.members[&2].promised);
    cluster.cut_off.insert(1);
    cluster.cut.extend([(1, 2), (2, 1), (1, 3), (3, 1)]);
    cluster.restart(3);
    cluster.pass(3_000);
    assert_eq!(cluster.view.active, Some(MemberId(2)), "{}", stories(&cluster));
    cluster.propose(2, "2 and 3 have this");
    cluster.pass(1_500);
    assert_eq!(cluster.operations(2).len(), 2, "it was acknowledged");
    cluster.cut.extend([(2, 3), (3, 2)]);
    cluster.cut.remove(&(1, 2));
    cluster.cut.remove(&(2, 1));
    cluster.kill(2);
    (cluster.node(2).log, cluster.node(2).promised) = copy;
    cluster.restart(2);
    for _ in 0..2_000 {
        cluster.asked = 0;
        cluster.pass(1);
        let lease = cluster.members[&1].member.lease_end();
        let answers = lease.is_none_or(|end| end > cluster.now);
        assert!(!answers, "1 answers reads and lacks what was acknowledged: {}", stories(&cluster));
        if cluster.serving() == Some(1) {
            cluster.propose(1, "2 and 3 have something else");
        }
        let has_committed = cluster.operations(1).len() > 1;
        assert!(!has_committed, "acknowledged by two actives: {}", stories(&cluster));
    }
}

/// The disks of all members are replaced by copies of themselves, and the coordinator's is not.
#[test]
fn stores_that_were_all_restored_from_copies_are_kept_and_one_of_them_leads_by_order() {
    let mut cluster = serving(3);
    cluster.propose(1, "in the copies");
    cluster.pass(500);
    let copies = [1, 2, 3].map(|id| (id, cluster.members[&id].log.clone(), cluster.members[&id].promised));
    cluster.kill(1);
    cluster.pass(2_000);
    cluster.restart(1);
    cluster.pass(2_000);
    let second = cluster.serving().expect("another leads");
    cluster.propose(second, "later");
    cluster.pass(1_500);
    (1..=3).for_each(|id| cluster.kill(id));
    for (id, log, promised) in copies {
        (cluster.node(id).log, cluster.node(id).promised) = (log, promised);
    }

    // Started again and again, nobody leads, and nobody gives up the only copies that there are.
    for _ in 0..2 {
        (1..=3).for_each(|id| cluster.restart(id));
        cluster.pass(60_000);
        assert_eq!(cluster.serving(), None, "nobody has what the view knows to have committed");
        for id in 1..=3 {
            assert!(cluster.members[&id].distrust.is_none(), "{id}: {:?}", cluster.members[&id].distrust);
        }
        (1..=3).for_each(|id| cluster.kill(id));
    }

    cluster.restart(3);
    cluster.pass(10_000);
    cluster.step(3, Input::Operator { ticket: 9, order: Order::UncleanElect });
    cluster.pass(1_000);
    (1..=2).for_each(|id| cluster.restart(id));
    cluster.pass(3_000);
    assert_eq!(cluster.serving(), Some(3), "{:?}", cluster.members[&3].answers);
    assert_eq!(cluster.view.in_sync.len(), 3);
    for id in 1..=3 {
        assert_eq!(cluster.operations(id), ["in the copies"]);
        assert!(cluster.members[&id].distrust.is_none(), "nobody has to be renewed");
    }
}
