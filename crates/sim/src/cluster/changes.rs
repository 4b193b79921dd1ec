//! The way of a change of the view to the coordinator, and of its answer back.

use super::{
    happening::{Arrival, Happening},
    world::{World, member},
};

impl World {
    pub(super) fn ask_for_change(&mut self, seat: usize, life: u64, change: group::ViewChange) {
        let (asked, answer) = (change.name(), Err(group::ChangeFailed::Unknown));
        let unknown = Arrival::Changed { asked, answer };
        if !self.keeper.is_reachable(member(seat)) {
            return self.after_ms(200, Happening::Arrival { seat, life, what: unknown });
        }
        match self.dice.below(100) {
            // Kept under way for long; the author hears nothing.
            0..3 => {
                let late_ms = self.dice.below(3_000);
                self.after_ms(late_ms, Happening::Change { seat, life, change, is_heard: false });
                self.after_ms(250, Happening::Arrival { seat, life, what: unknown });
            }
            // Carried out, and the answer gets lost.
            3..6 => {
                self.soon(Happening::Change { seat, life, change, is_heard: false });
                self.after_ms(250, Happening::Arrival { seat, life, what: unknown });
            }
            _ => self.soon(Happening::Change { seat, life, change, is_heard: true }),
        }
    }

    /// Most answers come at once; some come late, behind those to later changes, and some come twice.
    pub(super) fn answer_change(
        &mut self,
        seat: usize,
        life: u64,
        asked: group::ChangeName,
        answer: Result<u64, group::ChangeFailed>,
    ) {
        let what = Arrival::Changed { asked, answer };
        let arrival = Happening::Arrival { seat, life, what };
        match self.dice.below(100) {
            0..4 => {
                let late_ms = self.dice.below(1_500);
                self.after_ms(late_ms, arrival);
            }
            4..8 => {
                let late_ms = self.dice.below(1_500);
                self.after_ms(late_ms, arrival.clone());
                self.soon(arrival);
            }
            _ => self.soon(arrival),
        }
    }
}
