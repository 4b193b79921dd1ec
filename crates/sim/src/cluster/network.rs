//! The network between members: delay, loss, copies, and directions that are cut.

use crate::dice::Dice;
use base::MemberId;
use std::collections::BTreeSet;

/// A place that packets go between. Clients and the coordinator have paths of their own.
#[derive(Clone, Debug)]
pub struct Network {
    dice: Dice,
    /// One direction each.
    cut: BTreeSet<(MemberId, MemberId)>,
    pub loss_percent: u64,
    pub copy_percent: u64,
    pub delay_us_max: u64,
}

impl Network {
    pub fn new(dice: Dice) -> Self {
        Self { dice, cut: BTreeSet::new(), loss_percent: 0, copy_percent: 0, delay_us_max: 400 }
    }

    /// When a packet that is sent now arrives, in nanoseconds from now: not at all, once or twice.
    pub fn send(&mut self, from: MemberId, to: MemberId) -> Vec<u64> {
        if self.cut.contains(&(from, to)) || self.dice.chance(self.loss_percent) {
            return Vec::new();
        }
        let copies = 1 + usize::from(self.dice.chance(self.copy_percent));
        (0..copies).map(|_| self.delay_ns()).collect()
    }

    fn delay_ns(&mut self) -> u64 {
        // Now and then a packet takes much longer, and later ones overtake it.
        let slow = if self.dice.chance(2) { 20 } else { 1 };
        (50 + self.dice.below(self.delay_us_max)) * 1_000 * slow
    }

    pub fn is_cut(&self, from: MemberId, to: MemberId) -> bool {
        self.cut.contains(&(from, to))
    }

    pub fn cut(&mut self, from: MemberId, to: MemberId) {
        self.cut.insert((from, to));
    }

    pub fn heal(&mut self) {
        self.cut.clear();
        self.loss_percent = 0;
        self.copy_percent = 0;
        self.delay_us_max = 400;
    }
}
