//! Changing good bytes into bad ones.

use sim::Dice;

/// Numbers that parsers stumble over.
const EDGES: [u64; 14] = [
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFF,
    1 << 40,
    1 << 60,
    i64::MAX as u64,
    u64::MAX,
];

pub struct Mutator {
    dice: Dice,
    samples: Vec<Vec<u8>>,
}

impl Mutator {
    pub fn new(dice: Dice, samples: Vec<Vec<u8>>) -> Self {
        Self { dice, samples }
    }

    /// A sample with a few changes, or sometimes noise.
    pub fn next_input(&mut self) -> Vec<u8> {
        let dice = &mut self.dice;
        if self.samples.is_empty() || dice.chance(3) {
            let length = dice.below(200);
            return (0..length).map(|_| dice.roll() as u8).collect();
        }
        let mut bytes = dice.pick(&self.samples).clone();
        for _ in 0..1 + dice.below(4) {
            let other = dice.pick(&self.samples);
            change(dice, &mut bytes, other);
        }
        bytes
    }
}

fn change(dice: &mut Dice, bytes: &mut Vec<u8>, other: &[u8]) {
    let length = bytes.len() as u64;
    let at = dice.below(length + 1) as usize;
    match dice.below(9) {
        0 => bytes.truncate(at),
        1 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
        2 if at < bytes.len() => bytes[at] = dice.roll() as u8,
        // A number of 1 to 8 bytes, either way round.
        3 | 4 => {
            let edge = *dice.pick(&EDGES);
            let width = *dice.pick(&[1, 2, 4, 8]);
            let number = if dice.chance(50) {
                edge.to_le_bytes()[..width].to_vec()
            } else {
                edge.to_be_bytes()[8 - width..].to_vec()
            };
            for (place, byte) in bytes.iter_mut().skip(at).zip(number) {
                *place = byte;
            }
        }
        // A varint, in place of a byte.
        5 if at < bytes.len() => {
            let mut left = *dice.pick(&EDGES);
            let mut varint = Vec::new();
            while left >= 0x80 {
                varint.push(left as u8 | 0x80);
                left >>= 7;
            }
            varint.push(left as u8);
            bytes.splice(at..at + 1, varint);
        }
        6 => {
            let end = at + dice.below(1 + (bytes.len() - at) as u64) as usize;
            bytes.drain(at..end);
        }
        7 => {
            let end = at + dice.below(1 + (bytes.len() - at).min(64) as u64) as usize;
            let copied = bytes[at..end].to_vec();
            bytes.splice(at..at, copied);
        }
        _ if !other.is_empty() => {
            let from = dice.below(other.len() as u64) as usize;
            let piece = &other[from..other.len().min(from + 64)];
            bytes.splice(at..at, piece.iter().copied());
        }
        _ => {}
    }
}
