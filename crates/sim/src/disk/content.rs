//! The content of one file: as programs see it, and as it is on the medium.

use super::Loss;
use crate::dice::Dice;

const SECTOR_BYTES: usize = 512;

#[derive(Default)]
pub struct Content {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Since the last sync, in order.
    pending: Vec<Change>,
}

enum Change {
    Write { bytes: Vec<u8>, offset: usize },
    Length(usize),
}

impl Content {
    pub fn synced(content: Vec<u8>) -> Self {
        Self { live: content.clone(), durable: content, pending: Vec::new() }
    }

    pub fn live(&self) -> &[u8] {
        &self.live
    }

    pub fn read(&self, buffer: &mut [u8], offset: u64) -> usize {
        let rest = self.live.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        count
    }

    /// The bytes for a reader that goes past the system's cache: those that were synced, and those still to be, which
    /// the system writes out first. Bytes that a failed sync has lost are not there.
    pub fn medium(&self) -> Vec<u8> {
        let mut medium = self.durable.clone();
        for change in &self.pending {
            apply(&mut medium, change);
        }
        medium
    }

    pub fn read_medium(&self, buffer: &mut [u8], offset: u64) -> usize {
        let medium = self.medium();
        let rest = medium.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        count
    }

    pub fn write(&mut self, bytes: &[u8], offset: u64) {
        let change = Change::Write { bytes: bytes.to_vec(), offset: offset as usize };
        apply(&mut self.live, &change);
        self.pending.push(change);
    }

    pub fn set_length(&mut self, length: u64) {
        let change = Change::Length(length as usize);
        apply(&mut self.live, &change);
        self.pending.push(change);
    }

    pub fn sync(&mut self) {
        for change in self.pending.drain(..) {
            apply(&mut self.durable, &change);
        }
    }

    pub fn forget_pending(&mut self) {
        self.pending.clear();
    }

    pub fn flip(&mut self, offset: u64, bit: u8) {
        for content in [&mut self.live, &mut self.durable] {
            if let Some(byte) = content.get_mut(offset as usize) {
                *byte ^= 1 << bit;
            }
        }
    }

    pub fn crash(&mut self, loss: Loss, dice: &mut Dice) {
        if loss == Loss::ProcessOnly {
            return;
        }
        for change in self.pending.drain(..) {
            match loss {
                Loss::All | Loss::ProcessOnly => {}
                Loss::Nothing => apply(&mut self.durable, &change),
                Loss::Random => lose_part(&mut self.durable, &change, dice),
            }
        }
        self.live = self.durable.clone();
    }
}

fn apply(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { bytes, offset } => write(content, bytes, *offset),
        Change::Length(length) => content.resize(*length, 0),
    }
}

fn write(content: &mut Vec<u8>, bytes: &[u8], offset: usize) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}

fn lose_part(content: &mut Vec<u8>, change: &Change, dice: &mut Dice) {
    match change {
        Change::Length(length) => {
            if dice.chance(50) {
                content.resize(*length, 0);
            }
        }
        Change::Write { bytes, offset } => {
            // Often all or nothing; else any of its sectors.
            let keep_percent = *dice.pick(&[0, 20, 50, 80, 100]);
            let mut at = *offset;
            while at < offset + bytes.len() {
                let end = (at / SECTOR_BYTES + 1) * SECTOR_BYTES;
                let end = end.min(offset + bytes.len());
                if dice.chance(keep_percent) {
                    write(content, &bytes[at - offset..end - offset], at);
                }
                at = end;
            }
        }
    }
}
