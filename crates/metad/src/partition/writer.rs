//! The writer: the one thread that changes the tree.

use super::{
    Partition, follow,
    queue::Work,
    turn::{TURN_NS_MAX, Turn},
};
use crate::{
    directories,
    fatal::InHand,
    watch::{Threads, WRITER},
};
use env::pulse;
use std::{collections::VecDeque, sync::Arc};

impl Partition {
    /// Runs on the writer's thread until [`Partition::close`].
    pub fn run_writer(self: &Arc<Self>, threads: &Threads) {
        let _watched = threads.pulses.begin(WRITER);
        let mut batch = VecDeque::new();
        while self.queue.take(&mut batch) {
            self.run_batch(&mut batch);
        }
    }

    /// Does what waits, in its order.
    fn run_batch(self: &Arc<Self>, batch: &mut VecDeque<Work>) {
        while let Some(work) = batch.front() {
            match work {
                Work::Attempt(..) if self.member.is_serving() => {
                    self.member.wait_for_room();
                    self.run_turn(batch);
                }
                _ => match batch.pop_front().expect("looked at above") {
                    Work::Attempt(in_hand, attempt) => {
                        let _holding = in_hand.map(InHand::hold);
                        attempt(None);
                    }
                    Work::Follow(followed) => follow::follow(self, followed),
                    Work::Between(run) => run(),
                },
            }
            pulse::step();
        }
    }

    /// Runs attempts for a millisecond at most, so that readers get in between.
    fn run_turn(self: &Arc<Self>, batch: &mut VecDeque<Work>) {
        let began = self.moment();
        let finished = {
            let mut tree = self.tree_mut();
            tree.forget(self.commit.certain());
            let mut turn = Turn::begin(self, &mut tree, began);
            while let Some(Work::Attempt(..)) = batch.front() {
                let Some(Work::Attempt(in_hand, attempt)) = batch.pop_front() else {
                    unreachable!("looked at above")
                };
                {
                    let _holding = in_hand.map(InHand::hold);
                    attempt(Some(&mut turn));
                }
                pulse::step();
                turn.taken_up = self.moment();
                if turn.taken_up.ns - began.ns > TURN_NS_MAX {
                    break;
                }
            }
            turn.clean_up_orphans();
            let finished = turn.finish();
            self.look_for_homes(&tree);
            finished
        };
        directories::pump(self);
        // The lock is free again: readers need not wait for the disk. Replies that need not wait go out here.
        self.member.carry_on(finished.proposed);
        for (until, release) in finished.releases {
            self.commit.when(until, release);
        }
        for (_, release) in finished.unreleased {
            release(Err("this member was deposed before the operation reached the log"));
        }
        if finished.orphans_left {
            // Behind those who came meanwhile: a large delete does not stop anyone.
            self.queue.take_more(batch);
            batch.push_back(Work::Attempt(None, Box::new(|_| {})));
        }
    }
}
