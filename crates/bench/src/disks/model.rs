//! Streams on a disk that seeks, in its time: as the data server schedules them, and as they come.
//!
//! In turns, the shipped machine (`blockstore::schedule::plan`) says what is next, and the shipped code does it to the files
//! (`StreamFile`). Without them there is a system's flusher for writes, which goes round the dirty files and writes a stretch of each;
//! and reads in the order in which they are asked for. As many bytes are moved with one stream as with eight, in blocks of 128 MiB.

use super::{
    ground::Ground,
    platter::{Measures, Platter},
    seeking_file::{SeekingDisk, SeekingFile},
};
use anyhow::ensure;
use base::Moment;
use blockstore::schedule::{
    plan::{Kind, Limits, Plan, Step, StreamId},
    stream_file::StreamFile,
};
use env::File;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

const BLOCK_BYTES: u64 = 128 << 20;
const PACKET_BYTES: u64 = 64 << 10;
/// More than the disk takes, so that the disk is what all wait for.
const NETWORK_BYTES_PER_SECOND: f64 = 250e6;
/// Dirty bytes at which the flusher begins, and at which writers wait: Linux's tenth and fifth of 4 GiB of memory.
const DIRTY_BYTES_BEGIN: u64 = 400 << 20;
const DIRTY_BYTES_MAX: u64 = 800 << 20;

/// How streams share the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    Turns(Limits),
    /// So many bytes of each file or reader at a time.
    Stretches {
        bytes: u64,
        lying: Lying,
    },
}

/// Where the file system puts what a flusher writes. Real ones are between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lying {
    /// Each file has a place of its own: the head goes back and forth.
    Apart,
    /// One behind the other, as they are written: the files lie in pieces.
    InOrder,
}

/// The outcome of one run of the model.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub bytes_per_second: f64,
    /// Of a block, on average.
    pub extents: f64,
    /// The longest time that a packet waited for room, or a reader for its next bytes, in ms.
    pub longest_wait_ms: f64,
    pub seeks: u64,
}

/// Writes `total` bytes by so many streams, and reads them again; both outcomes.
pub fn run(
    sharing: Sharing,
    read_sharing: Sharing,
    streams: u64,
    total: u64,
) -> anyhow::Result<[Outcome; 2]> {
    ensure!(total / streams >= BLOCK_BYTES, "each stream needs a block at least");
    let measures = Measures::BARRACUDA;
    let disk = SeekingDisk::new(Platter::new(measures), Ground::new(measures.bytes, 7));
    let mut writing = Writing::new(&disk, streams, total / streams / BLOCK_BYTES);
    match sharing {
        Sharing::Turns(limits) => writing.in_turns(limits)?,
        Sharing::Stretches { bytes, lying } => writing.by_flusher(bytes, lying)?,
    }
    let files = writing.files();
    let extents = files.iter().flatten().map(|file| file.extent_count()).sum::<usize>() as f64
        / files.iter().flatten().count() as f64;
    let bytes = files.iter().flatten().count() as f64 * BLOCK_BYTES as f64;
    let outcome = |begun_ns: u64, wait_ns: u64, seeks: u64| {
        let world = disk.world();
        Outcome {
            bytes_per_second: bytes / ((world.now_ns - begun_ns) as f64 / 1e9),
            extents,
            longest_wait_ms: wait_ns as f64 / 1e6,
            seeks: world.platter.seeks() - seeks,
        }
    };
    let written = outcome(0, writing.longest_wait_ns, 0);
    let seeks = written.seeks;
    let begun_ns = disk.now_ns();
    let wait_ns = match read_sharing {
        Sharing::Turns(limits) => read_in_turns(&disk, &files, limits)?,
        Sharing::Stretches { bytes, .. } => read_as_they_come(&disk, &files, bytes)?,
    };
    Ok([written, outcome(begun_ns, wait_ns, seeks)])
}

/// A client that sends one block after the other.
struct Sender {
    files: Vec<Arc<SeekingFile>>,
    block_count: u64,
    /// What it has sent of its last block.
    sent: u64,
    next_at_ns: u64,
    is_refused: bool,
    /// Since when its packet waits for room.
    waits_since_ns: Option<u64>,
    stream: Option<StreamId>,
}

struct Writing {
    disk: Arc<SeekingDisk>,
    senders: Vec<Sender>,
    interval_ns: u64,
    longest_wait_ns: u64,
}

impl Writing {
    fn new(disk: &Arc<SeekingDisk>, streams: u64, block_count: u64) -> Self {
        let sender = |number: u64| Sender {
            files: Vec::new(),
            block_count,
            sent: 0,
            // They do not all begin in the same moment.
            next_at_ns: number * 50_000_000,
            is_refused: false,
            waits_since_ns: None,
            stream: None,
        };
        let interval_ns = PACKET_BYTES as f64 * 1e9 * streams as f64 / NETWORK_BYTES_PER_SECOND;
        Self {
            disk: disk.clone(),
            senders: (0..streams).map(sender).collect(),
            interval_ns: interval_ns as u64,
            longest_wait_ns: 0,
        }
    }

    fn files(&self) -> Vec<Vec<Arc<SeekingFile>>> {
        self.senders.iter().map(|sender| sender.files.clone()).collect()
    }

    /// The next sender whose packet has come by now.
    fn due(&self, now_ns: u64) -> Option<usize> {
        let waiting = self.senders.iter().enumerate();
        let due = waiting
            .filter(|(_, sender)| !sender.is_done() && !sender.is_refused && sender.next_at_ns <= now_ns);
        due.min_by_key(|(_, sender)| sender.next_at_ns).map(|(at, _)| at)
    }

    fn next_arrival_ns(&self) -> Option<u64> {
        let coming = self.senders.iter().filter(|sender| !sender.is_done() && !sender.is_refused);
        coming.map(|sender| sender.next_at_ns).min()
    }

    /// A packet has been taken; answers the file and where it stands there.
    fn take(&mut self, at: usize, now_ns: u64) -> anyhow::Result<(Arc<SeekingFile>, u64)> {
        let sender = &mut self.senders[at];
        if let Some(since_ns) = sender.waits_since_ns.take() {
            self.longest_wait_ns = self.longest_wait_ns.max(now_ns - since_ns);
            // What it could not send meanwhile does not come all at once.
            sender.next_at_ns = now_ns;
        }
        let begin = sender.sent;
        let file = sender.files.last().expect("it has a block").clone();
        file.write_at(&[0; PACKET_BYTES as usize], begin)?;
        sender.sent += PACKET_BYTES;
        sender.next_at_ns += self.interval_ns;
        Ok((file, begin))
    }

    fn in_turns(&mut self, limits: Limits) -> anyhow::Result<()> {
        let mut plan = Plan::new(limits);
        let mut files: BTreeMap<StreamId, StreamFile> = BTreeMap::new();
        let mut under_way = VecDeque::new();
        loop {
            let now_ns = self.disk.now_ns();
            let now = Moment { ns: now_ns };
            while let Some(at) = self.due(now_ns) {
                let stream = match self.senders[at].stream {
                    Some(stream) => stream,
                    None => {
                        let id = plan.open(Kind::Write);
                        let file = SeekingFile::new(&self.disk);
                        let stream_file = StreamFile::new(BLOCK_BYTES, false);
                        stream_file.set_file(&(file.clone() as Arc<dyn File>));
                        files.insert(id, stream_file);
                        self.senders[at].begin_block(file);
                        *self.senders[at].stream.insert(id)
                    }
                };
                if !plan.admit(stream, PACKET_BYTES) {
                    self.senders[at].refuse(now_ns);
                    continue;
                }
                let (_, begin) = self.take(at, now_ns)?;
                plan.wrote(stream, (begin, begin + PACKET_BYTES), PACKET_BYTES, now);
                if self.senders[at].sent == BLOCK_BYTES {
                    plan.close(stream, now);
                    self.senders[at].stream = None;
                }
            }
            match plan.next(now) {
                Step::Begin(piece) => {
                    files[&piece.stream].begin(&piece);
                    under_way.push_back(piece);
                }
                Step::Finish => {
                    let piece = under_way.pop_front().expect("a piece is under way");
                    files[&piece.stream].finish(&piece);
                    plan.done();
                    self.ask_again();
                }
                Step::Urgent(tickets) => tickets.into_iter().for_each(|ticket| plan.urgent_done(ticket)),
                Step::Wait { until } => {
                    let until_ns = until.map(|until| until.ns);
                    let Some(next_ns) = self.next_arrival_ns().into_iter().chain(until_ns).min() else {
                        return Ok(());
                    };
                    self.disk.wait_until(next_ns);
                }
            }
        }
    }

    /// The senders that were refused room ask once more.
    fn ask_again(&mut self) {
        self.senders.iter_mut().for_each(|sender| sender.is_refused = false);
    }

    fn by_flusher(&mut self, stretch_bytes: u64, lying: Lying) -> anyhow::Result<()> {
        // Files with dirty bytes, in the order in which they have their turn: file, written out, dirty up to.
        let mut dirty: VecDeque<(Arc<SeekingFile>, u64, u64)> = VecDeque::new();
        let mut dirty_bytes = 0;
        loop {
            let now_ns = self.disk.now_ns();
            while let Some(at) = self.due(now_ns) {
                if dirty_bytes + PACKET_BYTES > DIRTY_BYTES_MAX {
                    self.senders[at].refuse(now_ns);
                    continue;
                }
                if self.senders[at].needs_block() {
                    let file = SeekingFile::new(&self.disk);
                    if lying == Lying::Apart {
                        file.reserve(BLOCK_BYTES)?;
                    }
                    self.senders[at].begin_block(file);
                }
                let (file, begin) = self.take(at, now_ns)?;
                dirty_bytes += PACKET_BYTES;
                match dirty.iter_mut().find(|entry| Arc::ptr_eq(&entry.0, &file)) {
                    Some(entry) => entry.2 = begin + PACKET_BYTES,
                    None => dirty.push_back((file, begin, begin + PACKET_BYTES)),
                }
            }
            let is_ending = self.senders.iter().all(Sender::is_done);
            if dirty_bytes >= DIRTY_BYTES_BEGIN || (is_ending && dirty_bytes > 0) {
                let (file, begin, end) = dirty.pop_front().expect("bytes are dirty");
                let count = stretch_bytes.min(end - begin);
                file.begin_write_out(begin, count)?;
                file.await_write_out(begin, count)?;
                dirty_bytes -= count;
                if begin + count < end {
                    dirty.push_back((file, begin + count, end));
                }
                self.ask_again();
            } else {
                let Some(next_ns) = self.next_arrival_ns() else { return Ok(()) };
                self.disk.wait_until(next_ns);
            }
        }
    }
}

impl Sender {
    fn is_done(&self) -> bool {
        self.files.len() as u64 == self.block_count && self.sent == BLOCK_BYTES
    }

    fn refuse(&mut self, now_ns: u64) {
        self.is_refused = true;
        self.waits_since_ns.get_or_insert(now_ns);
    }

    fn needs_block(&self) -> bool {
        self.files.is_empty() || self.sent == BLOCK_BYTES
    }

    fn begin_block(&mut self, file: Arc<SeekingFile>) {
        self.files.push(file);
        self.sent = 0;
    }
}

/// A client that reads one block after the other.
struct Reader<'a> {
    files: &'a [Arc<SeekingFile>],
    block: usize,
    read: u64,
}

impl Reader<'_> {
    fn is_done(&self) -> bool {
        self.block == self.files.len()
    }

    fn advance(&mut self, bytes: u64) {
        self.read += bytes;
        if self.read == BLOCK_BYTES {
            (self.block, self.read) = (self.block + 1, 0);
        }
    }
}

fn readers(files: &[Vec<Arc<SeekingFile>>]) -> Vec<Reader<'_>> {
    files.iter().map(|files| Reader { files, block: 0, read: 0 }).collect()
}

/// Each reader wants its next run as soon as it has the one before.
fn read_in_turns(
    disk: &Arc<SeekingDisk>,
    files: &[Vec<Arc<SeekingFile>>],
    limits: Limits,
) -> anyhow::Result<u64> {
    let mut plan = Plan::new(limits);
    let mut readers = readers(files);
    let ids: Vec<StreamId> = readers.iter().map(|_| plan.open(Kind::Read)).collect();
    let (mut asked_ns, mut longest_ns) = (vec![disk.now_ns(); ids.len()], 0);
    let mut under_way = VecDeque::new();
    let mut wanted: Vec<u64> = ids.iter().map(|id| plan.want(*id, 0, BLOCK_BYTES)).collect();
    loop {
        let now_ns = disk.now_ns();
        match plan.next(Moment { ns: now_ns }) {
            Step::Begin(piece) => {
                let at = ids.iter().position(|id| *id == piece.stream).expect("a reader's stream");
                let file: Arc<dyn File> = readers[at].files[readers[at].block].clone();
                let stream_file = StreamFile::of_reader(&file, None);
                stream_file.begin(&piece);
                under_way.push_back((at, piece, stream_file));
            }
            Step::Finish => {
                let (at, piece, stream_file) = under_way.pop_front().expect("a piece is under way");
                stream_file.finish(&piece);
                plan.done();
                let now_ns = disk.now_ns();
                longest_ns = longest_ns.max(now_ns - std::mem::replace(&mut asked_ns[at], now_ns));
                let reader = &mut readers[at];
                reader.advance(piece.bytes());
                if wanted[at] == piece.end && !reader.is_done() {
                    wanted[at] = plan.want(ids[at], reader.read, BLOCK_BYTES);
                }
            }
            Step::Urgent(tickets) => tickets.into_iter().for_each(|ticket| plan.urgent_done(ticket)),
            Step::Wait { .. } => {
                ensure!(readers.iter().all(Reader::is_done), "the readers come to an end");
                return Ok(longest_ns);
            }
        }
    }
}

/// One stretch of each reader after the other.
fn read_as_they_come(
    disk: &Arc<SeekingDisk>,
    files: &[Vec<Arc<SeekingFile>>],
    stretch_bytes: u64,
) -> anyhow::Result<u64> {
    let mut readers = readers(files);
    let (mut asked_ns, mut longest_ns) = (vec![disk.now_ns(); readers.len()], 0);
    while readers.iter().any(|reader| !reader.is_done()) {
        for (at, reader) in readers.iter_mut().enumerate().filter(|(_, reader)| !reader.is_done()) {
            let count = stretch_bytes.min(BLOCK_BYTES - reader.read);
            let file = &reader.files[reader.block];
            file.begin_read_ahead(reader.read, count)?;
            file.await_read_ahead(reader.read, count)?;
            reader.advance(count);
            let now_ns = disk.now_ns();
            longest_ns = longest_ns.max(now_ns - std::mem::replace(&mut asked_ns[at], now_ns));
        }
    }
    Ok(longest_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOTAL: u64 = 8 << 30;

    /// Of the raw disk's rate, writing and reading by eight streams.
    fn parts(sharing: Sharing) -> [f64; 2] {
        let outcomes = run(sharing, sharing, 8, TOTAL).unwrap();
        outcomes.map(|outcome| outcome.bytes_per_second / Measures::BARRACUDA.bytes_per_second)
    }

    #[test]
    fn eight_streams_in_turns_lose_no_more_than_a_twentieth() {
        let [written, read] = parts(Sharing::Turns(Limits::default()));
        assert!(written >= 0.95 && read >= 0.95, "{written} and {read} of the raw disk's rate");
    }

    #[test]
    fn eight_streams_that_fight_over_the_head_lose_much() {
        let [written, read] = parts(Sharing::Stretches { bytes: 1 << 20, lying: Lying::Apart });
        assert!(written < 0.6 && read < 0.6, "{written} and {read} of the raw disk's rate");
    }

    #[test]
    fn a_block_that_takes_its_room_lies_in_one_piece() {
        let turns = Sharing::Turns(Limits::default());
        assert_eq!(run(turns, turns, 8, TOTAL).unwrap()[0].extents, 1.0);
        let in_order = Sharing::Stretches { bytes: 4 << 20, lying: Lying::InOrder };
        assert!(run(in_order, turns, 8, TOTAL).unwrap()[0].extents > 8.0);
    }
}
