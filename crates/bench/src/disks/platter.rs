//! A disk with one head, in time of its own: what it costs to go somewhere, and to read or write there.

/// One disk. All times are in nanoseconds since its beginning.
#[derive(Clone, Debug)]
pub struct Platter {
    measures: Measures,
    /// The place behind the last byte that was read or written.
    head: u64,
    /// When it is done with all that it has been given.
    free_at_ns: u64,
    seeks: u64,
}

/// The measures of a disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measures {
    pub bytes: u64,
    pub bytes_per_second: f64,
    /// To the next track, and over a third of the disk, which is the average of two random places.
    pub shortest_seek_ms: f64,
    pub average_seek_ms: f64,
    pub turn_ms: f64,
}

impl Measures {
    /// The disks that Shafer, Rixner and Cox measured with: Seagate's Barracuda 7200.11 of 500 GB by its data sheet, at the rate
    /// that they found on the raw disk.
    pub const BARRACUDA: Self = Self {
        bytes: 500_000_000_000,
        bytes_per_second: 99.9e6,
        shortest_seek_ms: 0.8,
        average_seek_ms: 8.5,
        turn_ms: 60_000.0 / 7_200.0,
    };

    /// The time from one place to another without waiting for the sector: with the square root of the way, as long as the arm
    /// is still gaining speed.
    fn seek_ms(&self, from: u64, to: u64) -> f64 {
        let thirds = 3.0 * from.abs_diff(to) as f64 / self.bytes as f64;
        self.shortest_seek_ms + (self.average_seek_ms - self.shortest_seek_ms) * thirds.sqrt()
    }

    fn track_bytes(&self) -> f64 {
        self.bytes_per_second * self.turn_ms / 1e3
    }
}

impl Platter {
    pub fn new(measures: Measures) -> Self {
        Self { measures, head: 0, free_at_ns: 0, seeks: 0 }
    }

    /// Gives the disk something to do at `now_ns`, behind what it has; answers when that is done.
    pub fn serve(&mut self, now_ns: u64, at: u64, bytes: u64) -> u64 {
        let mut ms = self.free_at_ns.max(now_ns) as f64 / 1e6;
        if at != self.head {
            self.seeks += 1;
            ms += self.measures.seek_ms(self.head, at);
            // The disk goes on turning: the sector comes by when it comes by.
            let turn = self.measures.turn_ms;
            let sector = at as f64 / self.measures.track_bytes() * turn;
            ms += (sector - ms).rem_euclid(turn);
        }
        ms += bytes as f64 / self.measures.bytes_per_second * 1e3;
        self.head = at + bytes;
        self.free_at_ns = (ms * 1e6) as u64;
        self.free_at_ns
    }

    #[cfg(test)]
    pub fn free_at_ns(&self) -> u64 {
        self.free_at_ns
    }

    pub fn seeks(&self) -> u64 {
        self.seeks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_costs_its_length_only() {
        let mut platter = Platter::new(Measures::BARRACUDA);
        let first = platter.serve(0, 0, 99_900_000);
        assert_eq!(first, 1_000_000_000);
        assert_eq!(platter.serve(first, 99_900_000, 99_900_000), 2_000_000_000);
        assert_eq!(platter.seeks(), 0);
    }

    #[test]
    fn random_places_cost_the_data_sheets_seek_and_half_a_turn() {
        let mut platter = Platter::new(Measures::BARRACUDA);
        let (mut random, count) = (7_u64, 20_000);
        for _ in 0..count {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (at, free_at) = (random % Measures::BARRACUDA.bytes, platter.free_at_ns());
            platter.serve(free_at, at, 0);
        }
        let average_ms = platter.free_at_ns() as f64 / 1e6 / f64::from(count);
        // The square root of the way is a little less on average than that of the average way.
        assert!((11.8..12.7).contains(&average_ms), "{average_ms} ms");
    }
}
