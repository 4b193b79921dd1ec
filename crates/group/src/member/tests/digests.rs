//! Members compare what they have made of the log.

use super::cluster::{Cluster, store};
use super::groups::serving;
use crate::{Agreement, ImageFate, Input, Restored, Role, StateDigest};
use base::{Epoch, MemberId, Sn, TxId};

fn digest(sn: u64, digest: u64) -> StateDigest {
    StateDigest { at: TxId { epoch: Epoch(1), sn: Sn(sn) }, form: 1, digest }
}

/// Each of the members has come to this entry, and made this of it.
fn reached(cluster: &mut Cluster, sn: u64, digests: &[(u32, u64)]) {
    for (id, made) in digests {
        cluster.step(*id, Input::Digest(digest(sn, *made)));
    }
    cluster.settle();
}

fn differs(cluster: &Cluster, id: u32) -> bool {
    matches!(cluster.members[&id].member.agreement(), Agreement::Differs(_))
}

fn trouble(cluster: &Cluster, id: u32) -> Option<String> {
    cluster.members[&id].member.status(cluster.now).trouble
}

fn is_stopped(cluster: &Cluster, id: u32) -> bool {
    matches!(cluster.role(id), Role::Stopped { .. })
}

#[test]
fn members_that_have_made_the_same_agree_whoever_is_late() {
    let mut cluster = serving(3);
    assert_eq!(cluster.members[&1].member.agreement(), Agreement::Agrees, "there is nothing to compare");
    reached(&mut cluster, 10, &[(1, 7), (2, 7)]);
    assert_eq!(
        cluster.members[&1].member.agreement(),
        Agreement::Waits,
        "member 3 is in sync and has not told"
    );
    reached(&mut cluster, 10, &[(3, 7)]);
    // The state of a member that lags far behind is compared at the entry that it has reached.
    for sn in 11..30 {
        reached(&mut cluster, sn, &[(1, sn), (2, sn)]);
    }
    reached(&mut cluster, 11, &[(3, 11)]);
    for id in 1..=3 {
        assert!(!differs(&cluster, id) && !is_stopped(&cluster, id));
        assert_eq!(trouble(&cluster, id), None);
    }
}

#[test]
fn the_one_that_differs_from_two_stops_and_is_renewed_whether_it_leads_or_not() {
    for wrong in 1..=3 {
        let mut cluster = serving(3);
        cluster.propose(1, "kept");
        let made = [1, 2, 3].map(|id| (id, if id == wrong { 666 } else { 7 }));
        reached(&mut cluster, 10, &made);
        let reason = cluster.members[&wrong].differs.clone().expect("it stops, and is renewed");
        assert!(StateDigest::is_difference(&reason), "{reason}");
        let own = format!("at entry 1-10 the digest is {:016x} on member {wrong}", 666);
        let right: Vec<String> = (1..=3).filter(|id| *id != wrong).map(|id| id.to_string()).collect();
        let theirs = format!("and {:016x} on member {}", 7, right.join(", "));
        assert!(reason.contains(&own) && reason.contains(&theirs), "{reason}");
        assert!(is_stopped(&cluster, wrong));
        // The others may make images, and take none while that one may give them.
        let right: Vec<u32> = (1..=3).filter(|id| *id != wrong).collect();
        let agreement = |cluster: &Cluster, id: u32| cluster.members[&id].member.agreement();
        for id in &right {
            assert!(matches!(agreement(&cluster, *id), Agreement::Prevails(_)));
            assert!(trouble(&cluster, *id).unwrap().contains("A majority agrees with this member"));
        }
        // The others go on, and nothing is lost.
        cluster.kill(wrong);
        assert!(right.iter().all(|id| agreement(&cluster, *id) == Agreement::Agrees));
        cluster.pass(2_000);
        let active = cluster.serving().expect("the others go on");
        assert_ne!(active, wrong);
        assert_eq!(cluster.operations(active), ["kept"]);
        assert!((1..=3).all(|id| id == wrong || cluster.members[&id].differs.is_none()));
    }
}

#[test]
fn of_two_nobody_stops_and_both_say_so_until_they_agree_again() {
    let mut cluster = serving(2);
    cluster.propose(1, "kept");
    reached(&mut cluster, 10, &[(1, 7), (2, 8)]);
    cluster.pass(1_000);
    for id in [1, 2] {
        assert!(differs(&cluster, id) && !is_stopped(&cluster, id));
        assert!(trouble(&cluster, id).unwrap().contains("No majority tells who is right"));
    }
    // Both still have every entry, so neither is given up, and changes go on.
    assert_eq!(cluster.view.in_sync, [store(1), store(2)]);
    cluster.propose(1, "kept as well");
    cluster.pass(10);
    assert_eq!(cluster.operations(2).len(), 2);
    // Started again the standby makes the same of its log as the active.
    cluster.kill(2);
    cluster.restart(2);
    cluster.pass(500);
    assert!(differs(&cluster, 1), "what the life before has told stands until another is told");
    reached(&mut cluster, 10, &[(2, 7)]);
    assert!(!differs(&cluster, 1) && !differs(&cluster, 2));
}

/// The next start goes by an image, and is sound without one.
#[test]
fn no_image_is_made_or_taken_while_two_differ() {
    let fates = |cluster: &Cluster, id: u32, waited_ms: u64| {
        let agreement = cluster.members[&id].member.agreement();
        let fate = |is_own| agreement.of_image(is_own, waited_ms);
        (agreement.may_make_images(), fate(true), fate(false))
    };
    let both = |fate: ImageFate| (true, fate.clone(), fate);
    let mut cluster = serving(2);
    assert_eq!(fates(&cluster, 1, 0), both(ImageFate::Counts), "there is nothing to compare");
    reached(&mut cluster, 10, &[(1, 7)]);
    assert_eq!(fates(&cluster, 1, 2_999), both(ImageFate::Waits), "member 2 has not told");
    assert_eq!(fates(&cluster, 1, 3_000), both(ImageFate::Counts), "it runs an earlier release, perhaps");
    reached(&mut cluster, 10, &[(2, 8)]);
    for id in [1, 2] {
        for waited_ms in [0, 3_000, 3_600_000] {
            let (may_make, own, other) = fates(&cluster, id, waited_ms);
            assert!(!may_make, "member {id} makes images");
            assert!(matches!((own, other), (ImageFate::Refused(_), ImageFate::Refused(_))));
        }
    }
    // Started again member 2 makes the same of its log.
    cluster.kill(2);
    cluster.restart(2);
    cluster.pass(500);
    reached(&mut cluster, 10, &[(2, 7)]);
    for id in [1, 2] {
        assert_eq!(fates(&cluster, id, 0), both(ImageFate::Counts));
    }
}

#[test]
fn the_majority_makes_images_and_takes_none_of_the_one_that_differs() {
    let mut cluster = serving(3);
    reached(&mut cluster, 10, &[(1, 7), (2, 7), (3, 8)]);
    let agreement = cluster.members[&1].member.agreement();
    assert!(agreement.may_make_images());
    assert_eq!(agreement.of_image(true, 0), ImageFate::Counts);
    assert!(matches!(agreement.of_image(false, 3_000), ImageFate::Refused(_)));
    // Once it is gone nobody gives a wrong one.
    cluster.kill(3);
    assert_eq!(cluster.members[&1].member.agreement().of_image(false, 0), ImageFate::Counts);
}

#[test]
fn a_store_that_may_be_the_only_complete_one_is_not_given_up() {
    // Members 2 and 3 agree, and neither is in sync.
    let mut cluster = Cluster::new(3, 1, 1);
    for (from, to) in [(2, 1), (3, 1)] {
        cluster.cut.insert((from, to));
    }
    cluster.pass(1_500);
    cluster.view.in_sync_min = 1;
    let told = |id| Input::Message {
        from: store(id),
        boot: 1,
        message: crate::Message::Digests { digests: vec![digest(10, 8)] },
    };
    cluster.step(1, Input::Digest(digest(10, 7)));
    cluster.step(1, told(2));
    cluster.step(1, told(3));
    assert_eq!(cluster.view.in_sync, [store(1)]);
    assert!(cluster.members[&1].differs.is_none() && !is_stopped(&cluster, 1));
    assert!(trouble(&cluster, 1).unwrap().contains("no member of it is in sync"));
}

#[test]
fn one_that_differs_again_after_it_was_renewed_stops_for_a_person() {
    let mut cluster = serving(3);
    let node = cluster.node(3);
    let (boot, log, promised) = (node.boot, node.log.clone(), node.promised);
    let restored = Restored { promised, tail: log, boot, has_differed: true, ..Restored::default() };
    let (settings, now) = (cluster.settings, cluster.now);
    cluster.node(3).member = super::super::Member::new(settings, store(3), restored, now, 3);
    cluster.read_view(3);
    reached(&mut cluster, 10, &[(1, 7), (2, 7), (3, 8)]);
    assert!(cluster.members[&3].differs.is_none(), "nothing is given up a second time");
    let Role::Stopped { reason } = cluster.role(3) else { panic!("{:?}", cluster.role(3)) };
    assert!(reason.contains("differs again"), "{reason}");
}

#[test]
fn what_cannot_be_compared_is_not() {
    let mut cluster = serving(3);
    // Another form, as a neighbour of another release has it; another entry; a member that is none of the group.
    let told = |id: u32, digests| Input::Message {
        from: store(id),
        boot: 1,
        message: crate::Message::Digests { digests },
    };
    cluster.step(1, Input::Digest(digest(10, 7)));
    cluster.step(1, told(2, vec![StateDigest { form: 2, ..digest(10, 8) }]));
    cluster.step(1, told(3, vec![digest(9, 8), digest(11, 8)]));
    cluster.step(1, told(9, vec![digest(10, 8)]));
    assert!(!differs(&cluster, 1));
    // Digests from before come late, from a life of member 2 that has ended.
    cluster.step(1, told(2, vec![digest(10, 7), digest(12, 7)]));
    cluster.step(1, told(2, vec![digest(10, 8)]));
    assert!(!differs(&cluster, 1));
    assert!(cluster.view.members.contains(&MemberId(3)));
}
