//! Replicas are to move to the media of their policy, and a newcomer swallows every block that it is sent.

use super::{
    cluster::*,
    satisfying::{COLD, Story},
};
use crate::StorageType::{Archive, Disk};

/// A story with so many known servers, of which the first has everything, and newcomers with room on the medium that is wanted.
fn with_newcomers(blocks: u64, known: u16, newcomers: &[u16]) -> Story {
    let known: Vec<_> = (1..=known).map(|server| (server, &[Disk][..])).collect();
    let mut story = Story::new(config(), &known);
    for server in newcomers {
        story.cluster.start(*server);
        story.servers.push((*server, vec![Archive]));
        story.beat(*server);
        story.report(*server, Archive, &[]);
    }
    for id in 1..=blocks {
        story.store(id, 1, &[(1, Disk)]);
    }
    story.policy = COLD;
    story.satisfy(&(1..=blocks).collect::<Vec<_>>());
    story
}

/// The orders to send something to this server.
fn to(server: u16, orders: &[(u64, u16, u16)]) -> Vec<(u64, u16, u16)> {
    let mut found: Vec<_> = orders.iter().copied().filter(|(_, _, to)| *to == server).collect();
    found.sort();
    found
}

fn each_once(orders: &[(u64, u16, u16)]) -> bool {
    orders.windows(2).all(|pair| pair[0].0 != pair[1].0)
}

#[test]
fn a_newcomer_that_swallows_a_copy_is_not_sent_it_again() {
    let mut story = with_newcomers(12, 2, &[3, 4]);
    story.absorbing = vec![3];
    let orders = story.pass(800);
    assert!(!to(3, &orders).is_empty() && each_once(&to(3, &orders)), "{orders:?}");
    for id in 1..=12 {
        assert_eq!(story.places(id), [(4, Archive)], "block {id}");
    }
}

/// The only known server has the block already, so that the newcomer cannot show that it stores it, and its replica is the one that goes.
#[test]
fn a_newcomer_that_can_prove_nothing_is_tried_once() {
    let mut story = with_newcomers(12, 1, &[2, 3]);
    let orders = story.pass(300);
    for newcomer in [2, 3] {
        assert!(!to(newcomer, &orders).is_empty() && each_once(&to(newcomer, &orders)), "{orders:?}");
    }
    for id in 1..=12 {
        assert_eq!(story.places(id), [(1, Disk)], "block {id}");
    }
    assert_eq!(story.outcome(), (0, 0, 12));
}

#[test]
fn a_newcomer_that_has_passed_since_is_tried_again() {
    let mut story = with_newcomers(1, 1, &[2]);
    story.absorbing = vec![2];
    assert_eq!(to(2, &story.pass(2)).len(), 1);
    story.cluster.pass_trial(2);
    story.absorbing.clear();
    story.pass(400);
    assert_eq!(story.places(1), [(2, Archive)]);
}
