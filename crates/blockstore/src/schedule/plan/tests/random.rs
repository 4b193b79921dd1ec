//! Events in random order: whatever happens, the queue's bound holds, bytes go out in order and once, and everybody gets a turn.

use super::*;

/// The measures are small, so that all of them are met often.
const SMALL: Limits =
    Limits { run_bytes: 64 * KIB, piece_bytes: 16 * KIB, queue_bytes: 256 * KIB, linger_ms: 1_000 };

/// Turns of others that a ripe stream may have to wait for, beyond two for each stream there is: its own kind before it, and
/// as many of the other kind between.
const TURNS_SPARE: usize = 4;

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Life {
    Open,
    Closed,
    Gone,
}

struct Told {
    id: StreamId,
    kind: Kind,
    life: Life,
    /// Bytes that were written to the page cache, or wanted, up to here.
    end: u64,
    /// Bytes of the file up to here have been granted or synced.
    out: u64,
    had_piece: bool,
    /// It has asked for its first bytes, out of turn.
    is_beginner: bool,
    /// Turns that others began while this stream was ripe.
    passed_over: usize,
    /// How many that may be.
    bound: usize,
    admitted: u64,
    is_refused: bool,
}

struct World {
    plan: Plan,
    dice: Dice,
    is_slow: bool,
    now_ms: u64,
    streams: Vec<Told>,
    under_way: usize,
    /// Urgent work that waits, with the pieces that began since it asked.
    urgent: Vec<(Ticket, usize)>,
    running: Vec<Ticket>,
    last: Option<StreamId>,
    pieces: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            plan: Plan::new(SMALL),
            dice: Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            is_slow: seed % 2 == 1,
            now_ms: 0,
            streams: Vec::new(),
            under_way: 0,
            urgent: Vec::new(),
            running: Vec::new(),
            last: None,
            pieces: 0,
        }
    }

    fn pick(&mut self, kind: Kind) -> Option<usize> {
        let open: Vec<usize> = (0..self.streams.len())
            .filter(|at| self.streams[*at].life == Life::Open && self.streams[*at].kind == kind)
            .collect();
        (!open.is_empty()).then(|| open[self.dice.below(open.len() as u64) as usize])
    }

    fn happen(&mut self) {
        match self.dice.below(22) {
            0 => self.open(),
            1..=9 => self.packet(),
            10 => self.end_one(),
            11 => self.sync(),
            12 | 13 => self.read(),
            14 => self.urgent.push((self.plan.ask_urgent(), 0)),
            15 => drop(self.running.pop().map(|ticket| self.plan.urgent_done(ticket))),
            16 => self.now_ms += self.dice.below(700),
            // On every other disk little gets done, and all queues are full.
            _ if self.is_slow && self.dice.below(4) > 0 => {}
            _ => drop(self.step()),
        }
        let bound = SMALL.queue_bytes;
        assert!(self.plan.queued_bytes() <= bound, "{} bytes are queued", self.plan.queued_bytes());
    }

    fn open(&mut self) {
        if self.streams.iter().filter(|told| told.life == Life::Open).count() > 12 {
            return;
        }
        let kind = if self.dice.below(3) == 0 { Kind::Read } else { Kind::Write };
        self.streams.push(Told {
            id: self.plan.open(kind),
            kind,
            life: Life::Open,
            end: 0,
            out: 0,
            had_piece: false,
            is_beginner: false,
            passed_over: 0,
            bound: 0,
            admitted: 0,
            is_refused: false,
        });
    }

    /// A packet arrives, or one that was admitted is written, or turns out to be worth nothing.
    fn packet(&mut self) {
        let Some(at) = self.pick(Kind::Write) else { return };
        let (now, dice) = (at_ms(self.now_ms), self.dice.below(10));
        let told = &mut self.streams[at];
        if told.admitted == 0 {
            let bytes = 1 + self.dice.below(24 * KIB);
            told.is_refused = !self.plan.admit(told.id, bytes);
            told.admitted = if told.is_refused { 0 } else { bytes };
        } else if dice == 0 {
            self.plan.give_back(told.id, std::mem::take(&mut told.admitted));
        } else {
            // Now and then the end of the last chunk is written again.
            let again = if dice == 1 { told.end.min(100).min(told.admitted) } else { 0 };
            let begin = told.end - again;
            told.end = told.end.max(begin + told.admitted);
            told.out = told.out.min(begin);
            let admitted = std::mem::take(&mut told.admitted);
            self.plan.wrote(told.id, (begin, begin + admitted), admitted, now);
        }
    }

    fn end_one(&mut self) {
        let kind = if self.dice.below(4) == 0 { Kind::Read } else { Kind::Write };
        let Some(at) = self.pick(kind) else { return };
        let is_gone = self.dice.below(2) == 0;
        let told = &mut self.streams[at];
        told.life = if is_gone { Life::Gone } else { Life::Closed };
        told.is_refused = false;
        if is_gone {
            self.plan.forget(told.id);
        } else {
            self.plan.close(told.id, at_ms(self.now_ms));
            if told.kind == Kind::Read || (!told.had_piece && told.end - told.out < SMALL.piece_bytes) {
                told.out = told.end;
            }
        }
    }

    fn sync(&mut self) {
        let Some(at) = self.pick(Kind::Write) else { return };
        let told = &mut self.streams[at];
        told.out = told.end;
        self.plan.synced(told.id, told.end);
    }

    fn read(&mut self) {
        let Some(at) = self.pick(Kind::Read) else { return };
        let bytes = 1 + self.dice.below(SMALL.run_bytes);
        let told = &mut self.streams[at];
        if told.end == 0 && bytes.is_multiple_of(2) {
            told.is_beginner = true;
            told.end = self.plan.want_first(told.id, 0, bytes);
        } else if told.out == told.end {
            told.end = self.plan.want(told.id, told.out, told.end + bytes);
        }
    }

    /// Does what the plan says; `false` if there is nothing to do.
    fn step(&mut self) -> bool {
        match self.plan.next(at_ms(self.now_ms)) {
            Step::Begin(piece) => self.begin(piece),
            Step::Finish => {
                assert!(self.plan.done().is_some());
                self.under_way -= 1;
            }
            Step::Urgent(tickets) => {
                assert_eq!(self.under_way, 0, "urgent work has the disk alone");
                assert!(!tickets.is_empty());
                self.urgent.retain(|(ticket, _)| !tickets.contains(ticket));
                self.running.extend(tickets);
            }
            Step::Wait { .. } => return false,
        }
        true
    }

    fn begin(&mut self, piece: Piece) {
        assert!(self.running.is_empty(), "urgent work has the disk alone");
        self.under_way += 1;
        self.pieces += 1;
        assert!(
            self.under_way <= PIECES_UNDER_WAY_MAX && piece.bytes() <= SMALL.piece_bytes && piece.bytes() > 0
        );
        for (_, pieces) in &mut self.urgent {
            *pieces += 1;
            assert!(*pieces <= 1, "urgent work waits for one piece more than is under way");
        }
        let told =
            self.streams.iter_mut().find(|told| told.id == piece.stream).expect("a stream that was opened");
        assert!(told.life != Life::Gone, "a stream that is gone has no turn");
        assert_eq!(piece.begin, told.out, "bytes go out in order, and once");
        assert!(piece.end <= told.end, "nothing goes out that nobody has written");
        assert_eq!(piece.is_first, !told.had_piece);
        (told.out, told.had_piece, told.passed_over) = (piece.end, true, 0);
        if !std::mem::take(&mut told.is_beginner) && self.last.replace(piece.stream) != Some(piece.stream) {
            let is_there =
                |told: &&Told| told.life == Life::Open || (told.life == Life::Closed && told.out < told.end);
            let bound = 2 * self.streams.iter().filter(is_there).count() + TURNS_SPARE;
            for told in
                self.streams.iter_mut().filter(|told| told.id != piece.stream && told.life != Life::Gone)
            {
                let waiting = told.end - told.out;
                let is_ripe =
                    told.life == Life::Closed || told.kind == Kind::Read || waiting >= SMALL.run_bytes;
                told.passed_over = if is_ripe && waiting > 0 { told.passed_over + 1 } else { 0 };
                if told.passed_over == 1 {
                    told.bound = bound;
                }
                assert!(
                    told.passed_over <= told.bound,
                    "{:?} {:?} {} of {}: does not get its turn",
                    told.kind,
                    told.id,
                    told.passed_over,
                    told.bound
                );
            }
        }
    }

    /// Nothing new comes; all that waits has to go out in time.
    fn settle(&mut self) {
        for ticket in std::mem::take(&mut self.running) {
            self.plan.urgent_done(ticket);
        }
        for round in 0.. {
            assert!(round < 10_000, "the plan does not come to an end");
            let did = self.step();
            for ticket in std::mem::take(&mut self.running) {
                self.plan.urgent_done(ticket);
            }
            let mut is_admitted = false;
            for told in self.streams.iter_mut().filter(|told| told.life == Life::Open) {
                self.plan.give_back(told.id, std::mem::take(&mut told.admitted));
                if told.is_refused && self.plan.admit(told.id, KIB) {
                    (told.is_refused, told.admitted, is_admitted) = (false, KIB, true);
                }
            }
            if !did && !is_admitted {
                if self.now_ms > 10_000_000 {
                    break;
                }
                self.now_ms += 4_000_000;
            }
        }
        assert!(self.urgent.is_empty(), "urgent work got the disk");
        assert_eq!((self.plan.queued_bytes(), self.under_way, self.plan.line_length()), (0, 0, 0));
        for told in &self.streams {
            assert!(
                told.life == Life::Gone || told.out == told.end,
                "{:?} {:?} has bytes {} to {} that nobody writes",
                told.kind,
                told.id,
                told.out,
                told.end
            );
            assert!(!told.is_refused, "{:?} waits for room in an empty queue", told.id);
        }
        let open = self.streams.iter().filter(|told| told.life == Life::Open).count();
        assert_eq!(self.plan.stream_count(), open, "a stream that is over is forgotten");
    }
}

fn at_ms(ms: u64) -> Moment {
    at(ms)
}

#[test]
fn no_order_of_events_starves_a_stream_or_overfills_the_queue() {
    let mut pieces = 0;
    for seed in 0..1_000 {
        let mut world = World::new(seed);
        for _ in 0..1_500 {
            world.happen();
        }
        world.settle();
        pieces += world.pieces;
    }
    assert!(pieces > 20_000, "the search has seen {pieces} pieces");
}
