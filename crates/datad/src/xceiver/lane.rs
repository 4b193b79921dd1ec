//! The disk side of one write: packets wait here for a thread of their volume.
//!
//! The connection's task only queues; a job on the volume's thread takes all that waits, verifies, writes, and
//! tells the task. Under load one job so carries many packets, and an idle stream costs no thread.

use crate::{
    pool::Pool,
    slowness::{DiskOp, Timer},
    state::State,
};
use blockstore::{Gate, ReplicaWriter, StoreError, StoreResult, VolumeIndex};
use bytes::Bytes;
use parking_lot::Mutex;
use pipeline::{Checksum, Duty, Status};
use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, atomic::Ordering},
};
use tokio::sync::{Semaphore, mpsc};

/// Bytes of packets that may wait for the disk in one write; then the sender is left to wait.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// Packets in one turn on the volume's thread, before others get theirs.
const TURN_PACKETS: usize = 64;

/// How the replica ends when all is received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Finalised and reported.
    Finalize,
    /// Finalised for a pipeline that will append to it; reported then.
    FinalizeQuietly,
    /// Finalised durably, and reported together with the uuid of the server whose replica may go in return. It must have
    /// exactly so many bytes; 0: any number.
    FinalizeMoved { length: u64, hint: Arc<str> },
    /// Taken up by a client's pipeline, which must find at least these many bytes.
    KeepOpen { length_min: u64 },
}

/// Tidings from the disk, in the order of the packets.
#[derive(Debug)]
pub enum Tidings {
    /// The oldest packet that was not done is done.
    Done(Status),
    /// The replica has ended as it should.
    Ended,
    /// The write failed, and nothing more is written.
    Failed(String),
}

struct Work {
    duty: Duty,
    sums: Bytes,
    data: Bytes,
    permits: u32,
}

pub struct Lane {
    inner: Arc<Inner>,
}

struct Inner {
    state: Arc<State>,
    pool: Arc<Pool>,
    volume: VolumeIndex,
    lane: u64,
    queue: Mutex<Queue>,
    desk: Mutex<Desk>,
    budget: Arc<Semaphore>,
    /// Where room in the disk's queue is asked for.
    gate: Option<Gate>,
    tidings: mpsc::UnboundedSender<Tidings>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Work>,
    is_scheduled: bool,
    is_abandoned: bool,
}

struct Desk {
    /// Gone when the replica has ended or failed.
    writer: Option<ReplicaWriter>,
    /// The checksums that packets carry.
    wire: Checksum,
    ending: Ending,
}

impl Lane {
    pub fn new(
        (state, pool): (Arc<State>, Arc<Pool>),
        writer: ReplicaWriter,
        wire: Checksum,
        ending: Ending,
    ) -> (Self, mpsc::UnboundedReceiver<Tidings>) {
        let (tidings, receiver) = mpsc::unbounded_channel();
        let inner = Inner {
            volume: writer.volume(),
            lane: writer.block().id.0,
            gate: writer.gate(),
            state,
            pool,
            queue: Mutex::default(),
            desk: Mutex::new(Desk { writer: Some(writer), wire, ending }),
            budget: Arc::new(Semaphore::new(WAITING_BYTES_MAX)),
            tidings,
        };
        (Self { inner: Arc::new(inner) }, receiver)
    }

    /// Queues what a packet asks for; waits only while too much is queued, for this replica or for its disk.
    pub async fn push(&self, duty: Duty, sums: Bytes, data: Bytes) {
        let permits = data.len().min(WAITING_BYTES_MAX) as u32;
        if let Some(gate) = &self.inner.gate
            && permits > 0
        {
            poll_fn(|context| gate.poll_admit(context, data.len() as u64)).await;
        }
        if permits > 0 {
            let permit = self.inner.budget.acquire_many(permits).await;
            permit.expect("the budget is never closed").forget();
        }
        let mut queue = self.inner.queue.lock();
        queue.waiting.push_back(Work { duty, sums, data, permits });
        if !std::mem::replace(&mut queue.is_scheduled, true) {
            drop(queue);
            Inner::schedule(&self.inner);
        }
    }
}

impl Drop for Lane {
    /// Packets that still wait are not written. The writer is dropped on a thread that may block.
    fn drop(&mut self) {
        let mut queue = self.inner.queue.lock();
        queue.is_abandoned = true;
        queue.waiting.clear();
        if !std::mem::replace(&mut queue.is_scheduled, true) {
            drop(queue);
            Inner::schedule(&self.inner);
        }
    }
}

impl Inner {
    fn schedule(this: &Arc<Self>) {
        let job = this.clone();
        this.state.volumes.threads().submit(this.volume, this.lane, move || Self::run(&job));
    }

    fn run(this: &Arc<Self>) {
        let mut desk = this.desk.lock();
        for _ in 0..TURN_PACKETS {
            let work = {
                let mut queue = this.queue.lock();
                if queue.is_abandoned {
                    drop(queue);
                    desk.writer = None;
                    return;
                }
                match queue.waiting.pop_front() {
                    Some(work) => work,
                    None => {
                        queue.is_scheduled = false;
                        return;
                    }
                }
            };
            let tidings = this.carry_out(&mut desk, &work);
            this.budget.add_permits(work.permits as usize);
            // Nothing follows bad news: least of all the end of a replica that lacks a packet.
            if !matches!(tidings, Tidings::Done(Status::Success)) {
                desk.writer = None;
            }
            let _ = this.tidings.send(tidings);
        }
        drop(desk);
        Self::schedule(this);
    }

    fn carry_out(&self, desk: &mut Desk, work: &Work) -> Tidings {
        let Some(writer) = &mut desk.writer else {
            return Tidings::Failed("the replica is not written any more".into());
        };
        match work.duty {
            Duty::Heartbeat => Tidings::Done(Status::Success),
            Duty::Write { offset, verify, compute, sync } => {
                if verify && let Err(mismatch) = desk.wire.verify(&work.data, &work.sums) {
                    tracing::warn!(block = %writer.block(), offset, %mismatch, "a packet arrived corrupt");
                    return Tidings::Done(Status::ErrorChecksum);
                }
                let timer = self.state.slowness.begin(&self.state.env);
                match write(writer, desk.wire, offset, work, compute, sync) {
                    Ok(()) => {
                        self.note(&timer, DiskOp::Write);
                        let written = &self.state.counters.bytes_written;
                        written.fetch_add(work.data.len() as u64, Ordering::Relaxed);
                        Tidings::Done(Status::Success)
                    }
                    Err(error) => Tidings::Failed(error.to_string()),
                }
            }
            Duty::End { sync } => {
                let sync = sync || self.state.config.sync_on_close;
                let writer = desk.writer.take().expect("looked at above");
                let timer = self.state.slowness.begin(&self.state.env);
                match self.end(writer, &desk.ending, sync) {
                    Ok(()) => {
                        self.note(&timer, DiskOp::Metadata);
                        self.state.counters.blocks_written.fetch_add(1, Ordering::Relaxed);
                        Tidings::Ended
                    }
                    Err(error) => Tidings::Failed(error.to_string()),
                }
            }
        }
    }

    fn note(&self, timer: &Timer, op: DiskOp) {
        self.state.slowness.end(timer, &self.state.env, (self.volume, op), 1);
    }

    fn end(&self, writer: ReplicaWriter, ending: &Ending, sync: bool) -> StoreResult<()> {
        match ending {
            Ending::Finalize => {
                let storage_id = writer.storage_id().clone();
                let block = writer.finalize(sync)?;
                // The report is sent at once, and before the writer hears of the end: a client that closes a file waits
                // for it.
                self.pool.reporter.notify_received(&storage_id, block, None);
                Ok(())
            }
            Ending::FinalizeMoved { length, hint } => {
                let found = writer.block().length;
                if *length > 0 && found != *length {
                    return Err(StoreError::Range(format!(
                        "{found} bytes have come, and {length} were expected"
                    )));
                }
                let storage_id = writer.storage_id().clone();
                // Another replica is deleted for this one.
                let block = writer.finalize(true)?;
                self.state.moves.received_bytes.fetch_add(block.length, Ordering::Relaxed);
                self.pool.reporter.notify_received(&storage_id, block, Some(hint.to_string()));
                Ok(())
            }
            Ending::FinalizeQuietly => writer.finalize(sync).map(drop),
            Ending::KeepOpen { length_min } => {
                self.pool.store.convert_temporary_to_rbw(writer, *length_min).map(drop)
            }
        }
    }
}

fn write(
    writer: &mut ReplicaWriter,
    wire: Checksum,
    offset: u64,
    work: &Work,
    compute: bool,
    sync: bool,
) -> StoreResult<()> {
    let disk = writer.checksum();
    let is_same =
        disk.kind as i32 == wire.kind() as i32 && disk.bytes_per_checksum == wire.bytes_per_checksum();
    if is_same && !compute {
        writer.write_admitted(offset, &work.data, &work.sums, work.data.len() as u64)?;
    } else {
        write_with_own_sums(writer, offset, &work.data)?;
    }
    if sync { writer.sync() } else { Ok(()) }
}

/// Writes packets without checksums, or with other checksums than the replica began with.
fn write_with_own_sums(writer: &mut ReplicaWriter, mut offset: u64, mut data: &[u8]) -> StoreResult<()> {
    let disk = writer.checksum();
    let checksum = Checksum::new(disk.kind as i32, disk.bytes_per_checksum)
        .map_err(|error| StoreError::Checksum(error.to_string()))?;
    while !data.is_empty() {
        let within = offset % u64::from(disk.bytes_per_checksum);
        let count = match within {
            0 => data.len(),
            within => data.len().min((u64::from(disk.bytes_per_checksum) - within) as usize),
        };
        let (piece, rest) = data.split_at(count);
        let mut sums = Vec::with_capacity(checksum.sums_bytes(count));
        checksum.compute(piece, &mut sums);
        writer.write_admitted(offset, piece, &sums, count as u64)?;
        offset += count as u64;
        data = rest;
    }
    Ok(())
}
