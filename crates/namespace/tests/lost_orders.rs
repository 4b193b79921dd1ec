//! A group loses changes of which other groups have heard, as after an unclean election. Orders about blocks go on all the same: no group takes one order for another, and no group frees a block
//! that a file has.

mod common;

use base::{FsResult, GroupId};
use common::{
    Dice,
    cluster::{Cluster, GROUPS},
    then::Then,
};
use namespace::{Reply, outbox::Message};

const YES: FsResult<Reply> = Ok(Reply::Bool(true));

/// Three directories, and files of the second group that have moved to the directory of the third.
struct Story {
    cluster: Cluster,
    dice: Dice,
    paths: Vec<String>,
}

const SENDER: GroupId = GROUPS[2];
const RECEIVER: GroupId = GROUPS[1];

impl Story {
    fn new(files: usize) -> Self {
        let mut cluster = Cluster::new(9);
        let directories = cluster.directories(1);
        let in_home =
            |group| directories.iter().find(|directory| cluster.home(directory) == group).unwrap().clone();
        let (from, to) = (in_home(RECEIVER), in_home(SENDER));
        let paths: Vec<String> = (0..files).map(|file| format!("{to}/f{file}")).collect();
        for (file, path) in paths.iter().enumerate() {
            let source = format!("{from}/f{file}");
            cluster.write(&source, &[10 + file as u64]).unwrap();
            assert_eq!(cluster.rename(&source, path), YES);
        }
        Self { cluster, dice: Dice(9), paths }
    }

    fn delete(&mut self, file: usize) {
        assert_eq!(self.cluster.delete(&self.paths[file]), YES);
    }

    fn waiting(&self) -> Vec<Message> {
        let waiting = self.cluster.groups[&SENDER].ns.messages_to(RECEIVER);
        waiting.map(|message| (**message).clone()).collect()
    }

    fn blocks_of_receiver(&self) -> usize {
        self.cluster.maps[&RECEIVER].len()
    }
}

#[test]
fn a_group_that_has_lost_what_it_carried_out_goes_on_with_later_orders() {
    let mut story = Story::new(3);
    let then = Then::of(&story.cluster, RECEIVER);
    story.delete(0);
    story.cluster.deliver_all(&mut story.dice);
    assert_eq!(story.blocks_of_receiver(), 2);
    then.comes_back(&mut story.cluster);
    assert_eq!(story.blocks_of_receiver(), 3, "the block of a file that is gone stays");

    story.delete(1);
    story.cluster.deliver_all(&mut story.dice);
    assert_eq!(story.waiting(), []);
    assert_eq!(story.blocks_of_receiver(), 2);
    assert_eq!(story.cluster.unknown, []);
}

#[test]
fn orders_of_a_group_that_has_lost_others_are_not_taken_for_those() {
    let mut story = Story::new(3);
    let then = Then::of(&story.cluster, SENDER);
    story.delete(0);
    story.cluster.deliver_all(&mut story.dice);
    then.comes_back(&mut story.cluster);

    // The first file is there again, without its block, which is gone. The second one is deleted for the first time.
    story.delete(1);
    assert_ne!(story.waiting()[0].number, 1);
    story.cluster.deliver_all(&mut story.dice);
    assert_eq!(story.blocks_of_receiver(), 1);
    assert_eq!(story.cluster.unknown, []);

    // An order about a file whose block is gone does not keep up the orders behind it.
    story.delete(0);
    story.delete(2);
    story.cluster.deliver_all(&mut story.dice);
    assert_eq!(story.blocks_of_receiver(), 0);
    assert_eq!(story.cluster.unknown.len(), 1);
}

/// The other group may have got another message under the same number than the one that waits: the part of the log that has come back may never have committed.
#[test]
fn what_waits_after_a_loss_is_sent_under_new_numbers() {
    let mut story = Story::new(3);
    story.delete(0);
    let then = Then::of(&story.cluster, SENDER);
    let first = story.waiting();
    assert_eq!(story.cluster.carry_out(SENDER, RECEIVER, &first), 1);
    then.comes_back(&mut story.cluster);
    let again = story.waiting();
    assert!(again.len() == 1 && again[0].number > 1 && again[0].orders == first[0].orders, "{again:?}");
    story.delete(1);
    story.cluster.deliver_all(&mut story.dice);
    assert_eq!(story.blocks_of_receiver(), 1);
    assert_eq!(story.cluster.unknown.len(), 1, "it was carried out before");
}

/// Messages that the group had sent in the lost line come late: before and after the first message of the new line.
#[test]
fn late_messages_of_a_lost_line_do_no_harm() {
    let mut story = Story::new(4);
    let then = Then::of(&story.cluster, SENDER);
    story.delete(0);
    story.delete(1);
    let lost = story.waiting();
    then.comes_back(&mut story.cluster);
    assert_eq!(story.cluster.carry_out(SENDER, RECEIVER, &lost[..1]), 1);
    story.delete(2);
    let new = story.waiting();
    let last = story.cluster.carry_out(SENDER, RECEIVER, &new);
    assert_eq!(story.blocks_of_receiver(), 2);
    assert_eq!(story.cluster.carry_out(SENDER, RECEIVER, &lost), last, "they are over");
    assert_eq!(story.blocks_of_receiver(), 2, "the second file, which is there again, keeps its block");
}
