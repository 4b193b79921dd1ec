//! One connection that keeps its calls in flight.
//!
//! Written against the socket and not over `rpc::Client`: a load generator shares the machine with the server
//! that it measures, and should take as little of it as can be.

use super::workload::Calls;
use anyhow::{Context, bail};
use base::ClientId;
use bytes::{Buf, BytesMut};
use hdrhistogram::Histogram;
use proto::{
    exception::without_stack_trace,
    protocol,
    rpc_frame::{
        AuthProtocol, CallHeader, Status, frame_length, parse_reply, put_connection_context, put_preamble,
        put_request,
    },
    wire::Cursor,
};
use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::net::TcpStream;

/// A server that says nothing for so long has failed.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The end of a reply that is no: a message of two bytes, a field that is false.
const NO: [u8; 3] = [2, 8, 0];

/// Longest reply taken.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// The results of the operations.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Nanoseconds from the first call of an operation to its last reply.
    pub latency: Histogram<u64>,
    /// The refusals of servers, each with its number.
    pub errors: BTreeMap<String, u64>,
}

impl Default for Outcome {
    fn default() -> Self {
        let latency = Histogram::new(3).expect("3 significant digits are allowed");
        Self { latency, errors: BTreeMap::new() }
    }
}

impl Outcome {
    pub fn add(&mut self, other: Outcome) {
        self.latency.add(other.latency).expect("histograms that resize add up");
        for (error, count) in other.errors {
            *self.errors.entry(error).or_default() += count;
        }
    }
}

/// When a lane begins its operations, however long they take: one each `interval` from `start` on.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub start: Instant,
    pub interval: Duration,
}

/// The place of a lane in its pace: when its next call is due.
struct Schedule {
    /// When the next operation begins.
    due: Instant,
    /// A call that could not be sent when it was due counts from that time on, not from when there was a place for
    /// it.
    is_late: bool,
}

/// A place for one operation at a time. Its call ids are its own number modulo the number of places.
#[derive(Clone, Copy)]
struct Slot {
    operation: u64,
    step: u32,
    next_call_id: i32,
    begun: Instant,
}

pub struct Lane {
    stream: TcpStream,
    work: Arc<dyn Calls>,
    client_id: ClientId,
    client_name: String,
    slots: Vec<Slot>,
    free: Vec<usize>,
    outbox: BytesMut,
    inbox: BytesMut,
    body: BytesMut,
    outcome: Outcome,
}

impl Lane {
    pub async fn open(
        address: SocketAddr,
        user: &str,
        number: u32,
        in_flight: u32,
        work: Arc<dyn Calls>,
    ) -> anyhow::Result<Lane> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("connecting to {address}"))?;
        stream.set_nodelay(true)?;
        let client_id = ClientId(*uuid::Uuid::new_v4().as_bytes());
        let mut outbox = BytesMut::new();
        put_preamble(&mut outbox, AuthProtocol::None);
        put_connection_context(&mut outbox, client_id, user, None, protocol::CLIENT_NAMENODE);
        let slot = |index| Slot { operation: 0, step: 0, next_call_id: index as i32, begun: Instant::now() };
        Ok(Lane {
            stream,
            work,
            client_id,
            client_name: format!("clover-bench-{number}"),
            slots: (0..in_flight).map(slot).collect(),
            free: (0..in_flight as usize).rev().collect(),
            outbox,
            inbox: BytesMut::new(),
            body: BytesMut::new(),
            outcome: Outcome::default(),
        })
    }

    /// Takes operations from `next` until `end`, and returns when all of its own are answered.
    pub async fn run(mut self, next: &AtomicU64, end: u64) -> anyhow::Result<Outcome> {
        loop {
            while let Some(index) = self.free.pop() {
                let operation = next.fetch_add(1, Ordering::Relaxed);
                if operation >= end {
                    self.free.push(index);
                    break;
                }
                let slot = &mut self.slots[index];
                (slot.operation, slot.step, slot.begun) = (operation, 0, Instant::now());
                self.put_step(index);
            }
            self.write()?;
            if self.free.len() == self.slots.len() {
                return Ok(self.outcome);
            }
            let writing = !self.outbox.is_empty();
            tokio::select! {
                biased;
                ready = self.stream.readable() => { ready?; self.read()?; }
                ready = self.stream.writable(), if writing => ready?,
                () = tokio::time::sleep(SILENCE_MAX) => bail!("no reply within {SILENCE_MAX:?}"),
            }
        }
    }

    /// Takes operations from `next` until a moment, or until there are none below `bound`: at a pace, or whenever a
    /// place is free.
    pub async fn run_until(
        mut self,
        next: &AtomicU64,
        bound: u64,
        mut end: Instant,
        pace: Option<Pace>,
    ) -> anyhow::Result<Outcome> {
        let mut schedule =
            Schedule { due: pace.map_or_else(Instant::now, |pace| pace.start), is_late: false };
        loop {
            let now = Instant::now();
            let wake = match now < end {
                true => self.begin_due(next, bound, now, pace, &mut schedule),
                false => None,
            };
            if wake.is_none() {
                end = end.min(now);
            }
            let wake = wake.unwrap_or(now + SILENCE_MAX);
            self.write()?;
            let is_idle = self.free.len() == self.slots.len();
            if is_idle && now >= end {
                return Ok(self.outcome);
            }
            let writing = !self.outbox.is_empty();
            tokio::select! {
                biased;
                ready = self.stream.readable() => { ready?; self.read()?; }
                ready = self.stream.writable(), if writing => ready?,
                () = tokio::time::sleep_until(wake.into()) => {
                    if !is_idle && Instant::now() > now + SILENCE_MAX {
                        bail!("no reply within {SILENCE_MAX:?}");
                    }
                }
            }
        }
    }

    /// Begins the operations that are due, as far as fewer than allowed are in flight. Returns when the next operation is due; `None` if none is left
    /// to begin.
    fn begin_due(
        &mut self,
        next: &AtomicU64,
        bound: u64,
        now: Instant,
        pace: Option<Pace>,
        schedule: &mut Schedule,
    ) -> Option<Instant> {
        while pace.is_none() || schedule.due <= now {
            let Some(index) = self.free.pop() else {
                schedule.is_late = true;
                return Some(now + SILENCE_MAX);
            };
            let operation = next.fetch_add(1, Ordering::Relaxed);
            if operation >= bound {
                self.free.push(index);
                return None;
            }
            let slot = &mut self.slots[index];
            (slot.operation, slot.step) = (operation, 0);
            slot.begun = if pace.is_some() && schedule.is_late { schedule.due } else { now };
            self.put_step(index);
            if let Some(pace) = pace {
                schedule.due += pace.interval;
            }
        }
        schedule.is_late = false;
        Some(schedule.due)
    }

    /// Sends the slot's next call. False if its operation has none left.
    fn put_step(&mut self, index: usize) -> bool {
        let places = self.slots.len() as i32;
        let slot = &mut self.slots[index];
        self.body.clear();
        let Some(method) = self.work.put(&mut self.body, slot.operation, slot.step, &self.client_name) else {
            return false;
        };
        let call_id = slot.next_call_id;
        slot.step += 1;
        slot.next_call_id = call_id.checked_add(places).unwrap_or(index as i32);
        let call = CallHeader { method, protocol: protocol::CLIENT_NAMENODE, version: protocol::VERSION };
        let body = &self.body;
        put_request(&mut self.outbox, call_id, self.client_id, 0, None, call, body.len(), |out| {
            out.extend_from_slice(body);
        });
        true
    }

    fn write(&mut self) -> io::Result<()> {
        while !self.outbox.is_empty() {
            match self.stream.try_write(&self.outbox) {
                Ok(count) => self.outbox.advance(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn read(&mut self) -> anyhow::Result<()> {
        const READ_BYTES: usize = 64 << 10;
        self.inbox.reserve(READ_BYTES);
        match self.stream.try_read_buf(&mut self.inbox) {
            Ok(0) => bail!("the server closed the connection"),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        while let Some(length) = frame_length(&self.inbox, REPLY_BYTES_MAX)?
            && self.inbox.len() - 4 >= length
        {
            self.inbox.advance(4);
            let frame = self.inbox.split_to(length);
            self.on_reply(&frame)?;
        }
        Ok(())
    }

    fn on_reply(&mut self, frame: &[u8]) -> anyhow::Result<()> {
        let header = parse_reply(&mut Cursor::new(frame))?;
        if header.status != Status::Success {
            let message = without_stack_trace(header.message.unwrap_or_default());
            let error = format!("{}: {message}", header.exception.unwrap_or("an unnamed exception"));
            if header.status == Status::Fatal {
                bail!("{error}");
            }
            // Each refusal names its own path: keep one of each class.
            let class = header.exception.unwrap_or_default();
            let known = self.outcome.errors.keys().find(|known| known.starts_with(class)).cloned();
            *self.outcome.errors.entry(known.unwrap_or(error)).or_default() += 1;
        }
        let index = header.call_id as usize % self.slots.len();
        let is_no = || self.work.asks_for_yes(self.slots[index].operation) && frame.ends_with(&NO);
        if header.status == Status::Success && is_no() {
            *self.outcome.errors.entry("the answer is no".to_owned()).or_default() += 1;
        }
        if header.status == Status::Success && self.put_step(index) {
            return Ok(());
        }
        let latency = self.slots[index].begun.elapsed();
        self.outcome.latency.record(latency.as_nanos() as u64)?;
        self.free.push(index);
        Ok(())
    }
}
