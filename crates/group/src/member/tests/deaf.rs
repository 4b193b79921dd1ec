//! An active that no data server reaches, while some reach another member.

use super::cluster::{Cluster, store};
use super::groups::serving;
use crate::{Input, Role};
use base::MemberId;

/// The time after which an active without data servers gives way, as the settings of the cluster have it.
const DEAF_MS: u64 = 15_000;

/// After this time an active that gives way because of data servers has done so.
const LONG_MS: u64 = 100_000;

/// Lets time pass. A member that hands over has no writer here, so it is quiet at once.
fn pass(cluster: &mut Cluster, ms: u64) {
    for _ in 0..ms / 50 {
        cluster.pass(50);
        for id in cluster.up() {
            if matches!(cluster.role(id), Role::HandingOver { .. }) {
                cluster.step(id, Input::Quiet);
                cluster.settle();
            }
        }
    }
}

/// Tells the members 1, 2 and 3 how many data servers reach each of them.
fn reach(cluster: &mut Cluster, counts: [u32; 3]) {
    for (id, count) in (1..).zip(counts) {
        cluster.step(id, Input::DataServers(count));
    }
}

fn takeovers(cluster: &Cluster) -> u64 {
    cluster.view.epoch.0
}

#[test]
fn an_active_that_no_data_server_reaches_gives_way_to_the_one_that_most_reach() {
    let mut cluster = serving(3);
    cluster.propose(1, "kept");
    reach(&mut cluster, [4, 4, 3]);
    pass(&mut cluster, LONG_MS);
    assert_eq!(cluster.serving(), Some(1));
    reach(&mut cluster, [0, 4, 3]);
    pass(&mut cluster, DEAF_MS - 1_000);
    assert_eq!(cluster.serving(), Some(1), "not before its time");
    let now = cluster.now;
    assert!(cluster.members[&1].member.status(now).trouble.unwrap().contains("4 reach member 2"));
    pass(&mut cluster, 2_000);
    assert_eq!(cluster.serving(), Some(2));
    assert_eq!(cluster.operations(2), ["kept"]);
    // After this hand-over, as after any other, no member has lost anything, and none has to be renewed.
    pass(&mut cluster, LONG_MS);
    assert_eq!((cluster.serving(), takeovers(&cluster)), (Some(2), 2));
    assert_eq!(cluster.view.in_sync.len(), 3);
    assert!(!cluster.members[&1].rebuild && cluster.members[&1].distrust.is_none());
}

#[test]
fn an_active_stays_where_nobody_is_reached_or_it_is_reached_by_some() {
    // Never by anybody, by less than the other one, and by the only one there is.
    for counts in [[0, 0, 0], [1, 9, 9], [2, 2, 0], [1, 0, 0]] {
        let mut cluster = serving(3);
        reach(&mut cluster, counts);
        pass(&mut cluster, LONG_MS);
        assert_eq!((cluster.serving(), takeovers(&cluster)), (Some(1), 1), "{counts:?}");
    }
}

#[test]
fn data_servers_that_all_end_or_all_begin_move_nobody() {
    let mut cluster = serving(3);
    // Nobody has the news of them in the same moment as the active.
    for counts in [[0, 3, 0], [3, 3, 3], [0, 3, 3], [0, 0, 0]] {
        reach(&mut cluster, counts);
        pass(&mut cluster, DEAF_MS / 2);
    }
    // However long they are all gone.
    pass(&mut cluster, LONG_MS);
    assert_eq!((cluster.serving(), takeovers(&cluster)), (Some(1), 1));
    // Nor does it add up where the link comes and goes.
    for _ in 0..10 {
        reach(&mut cluster, [0, 3, 3]);
        pass(&mut cluster, DEAF_MS / 2);
        reach(&mut cluster, [1, 3, 3]);
        pass(&mut cluster, 1_000);
    }
    assert_eq!((cluster.serving(), takeovers(&cluster)), (Some(1), 1));
}

#[test]
fn links_that_come_and_go_do_not_send_the_group_to_and_fro() {
    let mut cluster = serving(2);
    assert_eq!(cluster.settings.deaf_ms, DEAF_MS);
    // Always the one that leads is cut off, as if it were done on purpose.
    for _ in 0..40 {
        let active = cluster.serving().unwrap();
        for id in [1, 2] {
            cluster.step(id, Input::DataServers(u32::from(id != active)));
        }
        pass(&mut cluster, DEAF_MS / 2);
    }
    let passed = 40 / 2;
    assert!(takeovers(&cluster) > 3, "each of them gives way at last: {}", takeovers(&cluster));
    assert!(takeovers(&cluster) <= 2 + passed / super::super::deaf::PATIENCE_TIMES);
}

#[test]
fn whoever_is_to_go_on_must_be_in_sync_and_know_where_the_blocks_are() {
    let mut cluster = serving(3);
    cluster.propose(1, "kept");
    cluster.step(2, Input::Ready(false));
    reach(&mut cluster, [0, 5, 0]);
    pass(&mut cluster, LONG_MS);
    assert_eq!(cluster.serving(), Some(1), "clients would wait for member 2");
    // If the active is not ready either, nothing is lost by handing over.
    cluster.step(1, Input::Ready(false));
    pass(&mut cluster, 1_000);
    assert_eq!(cluster.serving(), Some(2));

    let mut cluster = serving(3);
    cluster.propose(1, "kept");
    // Member 3 hears its active and cannot answer.
    cluster.cut.insert((3, 1));
    reach(&mut cluster, [0, 0, 5]);
    pass(&mut cluster, LONG_MS);
    assert!(!cluster.view.in_sync.contains(&store(3)));
    assert_eq!(cluster.serving(), Some(1));
}

#[test]
fn an_operator_who_names_a_deaf_member_is_not_overruled_at_once() {
    let mut cluster = serving(3);
    cluster.propose(1, "kept");
    reach(&mut cluster, [2, 0, 2]);
    pass(&mut cluster, 1_000);
    let order = crate::Order::HandOver { to: Some(MemberId(2)) };
    cluster.step(1, Input::Operator { ticket: 1, order });
    pass(&mut cluster, 2 * DEAF_MS);
    assert_eq!(cluster.serving(), Some(2));
    pass(&mut cluster, LONG_MS);
    assert_ne!(cluster.serving(), Some(2));
}

#[test]
fn of_equals_a_hand_over_names_one_that_data_servers_reach() {
    let mut cluster = serving(3);
    cluster.propose(1, "kept");
    reach(&mut cluster, [2, 2, 0]);
    pass(&mut cluster, 1_000);
    // The higher number would be chosen otherwise.
    cluster.step(1, Input::Operator { ticket: 1, order: crate::Order::HandOver { to: None } });
    pass(&mut cluster, 1_000);
    assert_eq!(cluster.serving(), Some(2));
}
