//! The randomness that services are given: dice behind the face that they know.

use crate::dice::Dice;
use env::Random;
use parking_lot::Mutex;

/// Dice behind the face that services know.
pub struct SimRandom(Mutex<Dice>);

impl SimRandom {
    pub fn new(dice: Dice) -> Self {
        Self(Mutex::new(dice))
    }
}

impl Random for SimRandom {
    fn fill(&self, bytes: &mut [u8]) {
        let mut dice = self.0.lock();
        for chunk in bytes.chunks_mut(8) {
            let number = dice.roll().to_le_bytes();
            chunk.copy_from_slice(&number[..chunk.len()]);
        }
    }
}
