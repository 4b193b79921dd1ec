//! Where a file's bytes lie on the modelled disk: a simple allocator.
//!
//! The free room of the disk is groups of 128 MiB at random places, as on a disk that is half full. The allocator fills one
//! group after the other, in the order in which bytes are written out, whichever file they belong to. So a file whose bytes
//! are written out by turns lies in as many pieces as it had turns, and a file that takes its room at once lies in one piece.

/// As ext4's groups of blocks.
const GROUP_BYTES: u64 = 128 << 20;

/// Bytes of a file that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where they begin in the file, and on the disk.
    pub begin: u64,
    pub at: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug)]
pub struct Ground {
    groups: u64,
    taken: Vec<bool>,
    next: u64,
    end: u64,
    random: u64,
}

impl Ground {
    pub fn new(disk_bytes: u64, seed: u64) -> Self {
        let groups = disk_bytes / GROUP_BYTES;
        let taken = vec![false; groups as usize];
        Self { groups, taken, next: 0, end: 0, random: seed.wrapping_mul(2).wrapping_add(1) }
    }

    /// Places the bytes behind the last of a file's extents.
    pub fn place(&mut self, extents: &mut Vec<Extent>, bytes: u64) {
        let mut left = bytes;
        while left > 0 {
            if self.next == self.end {
                self.next = self.free_group() * GROUP_BYTES;
                self.end = self.next + GROUP_BYTES;
            }
            let count = left.min(self.end - self.next);
            match extents.last_mut() {
                Some(last) if last.at + last.bytes == self.next => last.bytes += count,
                last => {
                    let begin = last.map_or(0, |last| last.begin + last.bytes);
                    extents.push(Extent { begin, at: self.next, bytes: count });
                }
            }
            self.next += count;
            left -= count;
        }
    }

    /// A group of its own for bytes that are placed at once, and are as many as a group has.
    pub fn begin_group(&mut self, bytes: u64) {
        if self.end - self.next < bytes.min(GROUP_BYTES) {
            self.next = self.end;
        }
    }

    fn free_group(&mut self) -> u64 {
        assert!(
            self.taken.iter().any(|taken| !taken),
            "the modelled disk is larger than what is written to it"
        );
        loop {
            self.random =
                self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let group = (self.random >> 20) % self.groups;
            if !std::mem::replace(&mut self.taken[group as usize], true) {
                return group;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_placed_by_turns_lie_in_pieces() {
        let mut ground = Ground::new(100 << 30, 1);
        let (mut one, mut two) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            ground.place(&mut one, 1 << 20);
            ground.place(&mut two, 1 << 20);
        }
        assert_eq!((one.len(), two.len()), (4, 4));
        assert_eq!(one.iter().map(|extent| extent.bytes).sum::<u64>(), 4 << 20);
        assert_eq!(one[3].begin, 3 << 20);
    }

    #[test]
    fn a_file_that_takes_its_room_at_once_lies_in_one() {
        let mut ground = Ground::new(100 << 30, 1);
        let (mut one, mut two) = (Vec::new(), Vec::new());
        ground.place(&mut one, 1 << 20);
        ground.begin_group(GROUP_BYTES);
        ground.place(&mut two, GROUP_BYTES);
        assert_eq!((one.len(), two.len()), (1, 1));
    }
}
