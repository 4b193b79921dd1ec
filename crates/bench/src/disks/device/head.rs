//! The order in which a disk with one head serves what it has been given, and how long each request takes.

use crate::disks::platter::Platter;

/// In what order the requests that wait are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// As Linux gives them to a disk that seeks, with its elevator `mq-deadline`.
    Deadline,
    /// As they come.
    Arrival,
}

/// Requests in ascending order that are served before it is looked at whether others wait too long.
const BATCH: u32 = 16;
/// Batches of reads that go before writes.
const READ_BATCHES: u32 = 2;
/// A request that has waited so long begins the next batch.
const READ_EXPIRES_NS: u64 = 500_000_000;
const WRITE_EXPIRES_NS: u64 = 5_000_000_000;

/// A request that waits for the head.
#[derive(Debug)]
pub struct Request<A> {
    pub is_read: bool,
    pub at: u64,
    pub bytes: u64,
    /// When it came, in nanoseconds since the disk's beginning.
    pub came_ns: u64,
    /// Answers it.
    pub answer: A,
}

/// One head and its queue.
#[derive(Debug)]
pub struct Head<A> {
    platter: Platter,
    order: Order,
    /// As they came.
    waiting: Vec<Request<A>>,
    /// The place behind the last byte that was written and that was read, by which each goes on.
    places: [u64; 2],
    /// When the disk is done with all that it has served.
    done_ns: u64,
    batch_is_read: bool,
    batched: u32,
    /// Batches of reads since there were writes that waited.
    read_batches: u32,
}

impl<A> Head<A> {
    pub fn new(platter: Platter, order: Order) -> Self {
        Self {
            platter,
            order,
            waiting: Vec::new(),
            places: [0; 2],
            done_ns: 0,
            batch_is_read: true,
            batched: BATCH,
            read_batches: 0,
        }
    }

    pub fn take_in(&mut self, request: Request<A>) {
        self.waiting.push(request);
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub fn seeks(&self) -> u64 {
        self.platter.seeks()
    }

    /// The next request, and when the disk is done with it. The disk works on from the moment at which it was done with the one
    /// before, even if the program that serves it comes late.
    pub fn serve(&mut self) -> Option<(Request<A>, u64)> {
        let index = match self.order {
            Order::Arrival => (!self.waiting.is_empty()).then_some(0),
            Order::Deadline => self.next_by_deadline(),
        }?;
        let request = self.waiting.remove(index);
        self.done_ns = self.platter.serve(request.came_ns, request.at, request.bytes);
        self.places[usize::from(request.is_read)] = request.at + request.bytes;
        Some((request, self.done_ns))
    }

    fn next_by_deadline(&mut self) -> Option<usize> {
        if self.batched < BATCH
            && let Some(index) = self.next_above(self.batch_is_read)
        {
            self.batched += 1;
            return Some(index);
        }
        let has = |is_read| self.waiting.iter().any(|request| request.is_read == is_read);
        let (has_reads, has_writes) = (has(true), has(false));
        let is_read = has_reads && (!has_writes || self.read_batches < READ_BATCHES);
        self.read_batches = if is_read && has_writes { self.read_batches + 1 } else { 0 };
        (self.batch_is_read, self.batched) = (is_read, 1);
        let oldest = self.waiting.iter().position(|request| request.is_read == is_read)?;
        let patience_ns = if is_read { READ_EXPIRES_NS } else { WRITE_EXPIRES_NS };
        let has_expired = self.waiting[oldest].came_ns + patience_ns <= self.done_ns;
        match self.next_above(is_read).filter(|_| !has_expired) {
            None => Some(oldest),
            next => next,
        }
    }

    /// The request of this kind that lies next above the last one.
    fn next_above(&self, is_read: bool) -> Option<usize> {
        let place = self.places[usize::from(is_read)];
        let above = self.waiting.iter().enumerate();
        let above = above.filter(|(_, request)| request.is_read == is_read && request.at >= place);
        above.min_by_key(|(_, request)| request.at).map(|(index, _)| index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disks::platter::Measures;

    const MB: u64 = 999_000;

    fn head(order: Order) -> Head<()> {
        Head::new(Platter::new(Measures::BARRACUDA), order)
    }

    fn take_in(head: &mut Head<()>, is_read: bool, at: u64) {
        head.take_in(Request { is_read, at, bytes: MB, came_ns: 0, answer: () });
    }

    fn rest(head: &mut Head<()>) -> Vec<u64> {
        std::iter::from_fn(|| head.serve()).map(|(request, _)| request.at / MB).collect()
    }

    #[test]
    fn what_lies_above_comes_next_and_then_the_oldest() {
        let mut head = head(Order::Deadline);
        for at in [500, 40, 501, 0] {
            take_in(&mut head, true, at * MB);
        }
        assert_eq!(rest(&mut head), [0, 40, 500, 501]);
        for at in [30, 20, 600] {
            take_in(&mut head, true, at * MB);
        }
        assert_eq!(rest(&mut head), [600, 30, 20]);
    }

    #[test]
    fn who_waits_too_long_has_the_next_batch() {
        let mut head = head(Order::Deadline);
        take_in(&mut head, true, 900 * MB);
        // Sixty requests of 10 ms each before it, and each batch has sixteen.
        (0..64).for_each(|at| take_in(&mut head, true, at * MB));
        let place = rest(&mut head).iter().position(|at| *at == 900);
        assert_eq!(place, Some(64), "a batch ends at 480 ms, and the next one at 640");
        let mut head = self::head(Order::Deadline);
        take_in(&mut head, true, 900 * MB);
        (0..128).for_each(|at| take_in(&mut head, true, at * MB));
        assert_eq!(rest(&mut head).iter().position(|at| *at == 900), Some(64));
    }

    #[test]
    fn reads_go_first_and_writes_do_not_starve() {
        let mut head = head(Order::Deadline);
        (0..8).for_each(|at| take_in(&mut head, false, (1_000 + at) * MB));
        (0..64).for_each(|at| take_in(&mut head, true, at * MB));
        let served = rest(&mut head);
        assert_eq!(served.iter().position(|at| *at >= 1_000), Some(32));
        assert_eq!(served[32..40], [1_000, 1_001, 1_002, 1_003, 1_004, 1_005, 1_006, 1_007]);
    }

    #[test]
    fn without_an_elevator_they_are_served_as_they_come() {
        let mut head = head(Order::Arrival);
        for at in [500, 40, 510, 0] {
            take_in(&mut head, at > 100, at * MB);
        }
        assert_eq!(rest(&mut head), [500, 40, 510, 0]);
    }

    #[test]
    fn a_late_program_does_not_slow_the_disk() {
        let mut head = head(Order::Deadline);
        let mut serve = |at: u64, came_ns| {
            head.take_in(Request { is_read: true, at: at * 100 * MB, bytes: 100 * MB, came_ns, answer: () });
            head.serve().map(|(_, done_ns)| done_ns / 1_000_000)
        };
        assert_eq!(serve(0, 0), Some(1_000));
        assert_eq!(serve(1, 5), Some(2_000));
        assert_eq!(serve(2, 7_000_000_000), Some(8_000), "it was idle until the request came");
    }
}
