//! A replica on its way out: packets filled from block file and meta file on a volume's thread.
//!
//! One buffer is filled while the one before it is being sent. The first ones are small, so that a short read
//! is answered at once; they double while the reader goes on.

use super::{on_disk, refusal::Refusal, request};
use crate::{pool::Pool, reporter::Corrupt, slowness::DiskOp, state::State};
use base::PacketHeader;
use blockstore::{ReadStream, ReplicaReader, ReplicaState, StoreError, VolumeIndex, meta_file};
use env::disk::read_exact_at;
use pipeline::Checksum;
use proto::{
    data_transfer::{delimited, packet},
    hdfs::{BlockOpResponseProto, ReadOpChecksumInfoProto, Status},
};
use rpc::streaming::Outgoing;
use std::{
    future::{Future, poll_fn},
    io,
    sync::Arc,
};

/// Data bytes of a packet, as Hadoop's servers send them. Clients take larger ones, but they hold a packet
/// whole before they use any of it.
const PACKET_DATA_BYTES: usize = 64 * 1024;

/// Data bytes filled in one turn on a volume's thread: the first and the largest.
const FILL_BYTES_FIRST: usize = 128 * 1024;
const FILL_BYTES_MAX: usize = 1 << 20;

/// A reader that asks for this many bytes of a replica has turns on the disk.
const LONG_BYTES: u64 = 2 << 20;

/// Chunks larger than this are cut to it for readers that want no checksums.
const UNSUMMED_CHUNK_BYTES: u32 = 512;

/// A range of bytes of a replica to be sent, and how it is checksummed.
pub struct Outbound {
    pool: Arc<Pool>,
    reader: Arc<ReplicaReader>,
    /// The checksum of the packets: NULL when the reader wants no checksums or the replica has none.
    pub checksum: Checksum,
    /// The offset in the block at which the first chunk begins.
    pub start: u64,
    /// The offset in the block at which the last chunk sent ends: beyond what was asked for, to a chunk's end where
    /// there is one.
    end: u64,
    /// Replaces the last chunk's sum: the meta file may be ahead of what is sent.
    last_sum: Option<[u8; 4]>,
    /// It goes no faster than balancers may move replicas.
    is_balancing: bool,
}

impl Outbound {
    /// Plans to send `length` bytes from `offset` of a replica of `pool`.
    pub fn new(
        pool: &Arc<Pool>,
        reader: ReplicaReader,
        offset: u64,
        length: u64,
        with_checksums: bool,
    ) -> Result<Self, Refusal> {
        let available = reader.block.length;
        let asked_end = offset.checked_add(length).filter(|end| *end <= available).ok_or_else(|| {
            Refusal::error(format!(
                "Offset {offset} and length {length} don't match block {} ( blockLen {available} )",
                reader.block
            ))
        })?;
        let checksum = match with_checksums && reader.meta_file.is_some() {
            true => request::wire_checksum(reader.checksum)?,
            false => Checksum::new(0, UNSUMMED_CHUNK_BYTES).expect("a constant"),
        };
        let chunk = u64::from(checksum.bytes_per_checksum());
        let end = asked_end.div_ceil(chunk).saturating_mul(chunk).min(available);
        let last_sum = reader.last_sum.filter(|_| end == available && checksum.size() > 0);
        let (pool, reader, start) = (pool.clone(), Arc::new(reader), offset - offset % chunk);
        Ok(Self { pool, reader, checksum, start, end, last_sum, is_balancing: false })
    }

    /// The same, for a balancer.
    pub fn at_balancing_rate(self) -> Self {
        Self { is_balancing: true, ..self }
    }

    /// The volume of the replica.
    pub fn volume(&self) -> VolumeIndex {
        self.reader.volume
    }

    /// Sends the answer that says how the bytes are checksummed and where they begin, and then the bytes. The answer goes out in one
    /// piece with the first packets: a short read is answered with one write.
    pub async fn send_with_answer(self, state: &Arc<State>, out: &mut Outgoing) -> io::Result<()> {
        let answer = BlockOpResponseProto {
            status: Status::Success.into(),
            read_op_checksum_info: Some(ReadOpChecksumInfoProto {
                checksum: request::checksum_proto(self.checksum),
                chunk_offset: self.start,
            }),
            ..Default::default()
        };
        self.send(state, delimited::encoded(&answer).to_vec(), out).await
    }

    /// Sends `greeting`, all packets and the empty one that ends them.
    pub async fn send(self, state: &Arc<State>, greeting: Vec<u8>, out: &mut Outgoing) -> io::Result<()> {
        let this = Arc::new(self);
        let mut fills = state.fill_room.begin(PACKET_DATA_BYTES);
        // Readers of one block need not wait for each other.
        let lane = this.reader.block.id.0.wrapping_add(state.number_read());
        let used = greeting.len();
        let mut filled = Fill { bytes: greeting, used, position: this.start, seqno: 0 };
        let mut fill_bytes = fills.grow(FILL_BYTES_FIRST);
        let mut ahead = this.read_stream();
        let mut spare = Vec::new();
        until_ready(&mut ahead, this.start, fill_bytes).await;
        filled = fill(state, lane, &this, filled, fill_bytes).await??;
        loop {
            if this.is_balancing {
                state.moves.pace(&state.env, filled.used).await;
            } else {
                fill_bytes = fills.grow((fill_bytes * 2).min(FILL_BYTES_MAX));
            }
            if filled.position == this.end {
                let last = PacketHeader {
                    offset_in_block: this.end as i64,
                    seqno: filled.seqno,
                    last_in_block: true,
                    ..Default::default()
                };
                let prefix = filled.grow(packet::prefix_bytes(&last));
                packet::encode_prefix(&last, 0, prefix);
                return out.write(&filled.bytes[..filled.used]).await;
            }
            let position = filled.position;
            let bytes = std::mem::take(&mut spare);
            let more = Fill { bytes, used: 0, position, seqno: filled.seqno };
            // Both at once: it is filled while this one is sent.
            let next = async {
                until_ready(&mut ahead, position, fill_bytes).await;
                fill(state, lane, &this, more, fill_bytes).await?
            };
            let ((), next) = tokio::try_join!(out.write(&filled.bytes[..filled.used]), next)?;
            spare = std::mem::replace(&mut filled, next).bytes;
        }
    }

    /// The turns of a reader who asks for much. A balancer's moves have a pace of their own, and no turns.
    fn read_stream(&self) -> Option<ReadStream> {
        let is_long = !self.is_balancing && self.end - self.start >= LONG_BYTES;
        is_long.then(|| self.pool.store.read_stream(&self.reader, self.start, self.end))?
    }

    /// Appends packets to `fill` until it has `data_bytes` more data or the range ends. Blocks.
    fn fill(&self, mut fill: Fill, data_bytes: usize) -> io::Result<Fill> {
        let chunk = self.checksum.bytes_per_checksum() as usize;
        let packet_bytes = (PACKET_DATA_BYTES / chunk).max(1) * chunk;
        let target = self.end.min(fill.position + data_bytes.max(packet_bytes) as u64);
        while fill.position < target {
            // Whole packets, so that every one but the last ends at a chunk's end.
            let count = packet_bytes.min((self.end - fill.position) as usize);
            self.append_packet(&mut fill, count)?;
        }
        Ok(fill)
    }

    fn append_packet(&self, fill: &mut Fill, count: usize) -> io::Result<()> {
        let position = fill.position;
        let header = PacketHeader {
            offset_in_block: fill.position as i64,
            seqno: fill.seqno,
            data_length: count as i32,
            ..Default::default()
        };
        let sums_bytes = self.checksum.sums_bytes(count);
        let prefix_bytes = packet::prefix_bytes(&header);
        let place = fill.grow(prefix_bytes + sums_bytes + count);
        let (prefix, body) = place.split_at_mut(prefix_bytes);
        packet::encode_prefix(&header, sums_bytes, prefix);
        let (sums, data) = body.split_at_mut(sums_bytes);
        if sums_bytes > 0 {
            let meta = self.reader.meta_file.as_ref().expect("there are no sums without a meta file");
            read_exact_at(&**meta, sums, meta_file::sum_offset(self.reader.checksum, position))?;
        }
        read_exact_at(&*self.reader.block_file, data, position)?;
        let end = position + count as u64;
        if let Some(sum) = self.last_sum
            && end == self.end
        {
            sums[sums_bytes - 4..].copy_from_slice(&sum);
        }
        fill.position = end;
        fill.seqno += 1;
        Ok(())
    }
}

struct Fill {
    bytes: Vec<u8>,
    /// Bytes behind it are left from an earlier use.
    used: usize,
    position: u64,
    seqno: i64,
}

impl Fill {
    /// Place for `count` more bytes, with anything in it.
    fn grow(&mut self, count: usize) -> &mut [u8] {
        let start = self.used;
        self.used += count;
        if self.bytes.len() < self.used {
            self.bytes.resize(self.used, 0);
        }
        &mut self.bytes[start..self.used]
    }
}

/// Waits until memory has the next `bytes` from `position` on, where the reader has turns: a thread that reads what is not there
/// would go to the disk beside another stream's run.
async fn until_ready(ahead: &mut Option<ReadStream>, position: u64, bytes: usize) {
    if let Some(ahead) = ahead {
        poll_fn(|context| ahead.poll_ready(context, position, position + bytes as u64)).await;
    }
}

/// Submits a fill at once; the future only waits for it.
fn fill(
    state: &Arc<State>,
    lane: u64,
    outbound: &Arc<Outbound>,
    fill: Fill,
    data_bytes: usize,
) -> impl Future<Output = io::Result<io::Result<Fill>>> + use<> {
    let (sender, result) = tokio::sync::oneshot::channel();
    let (owned, state) = (outbound.clone(), state.clone());
    let volume = outbound.reader.volume;
    state.clone().volumes.threads().submit(volume, lane, move || {
        // Who takes the disk away waits until its readers have gone.
        let filled = match owned.pool.store.is_lost(&owned.reader) {
            true => Err(io::Error::other("the volume of the replica is not used any more")),
            false => {
                let (timer, begun) = (state.slowness.begin(&state.env), fill.seqno);
                let filled = owned.fill(fill, data_bytes);
                if let Ok(filled) = &filled {
                    let packets = (filled.seqno - begun) as u64;
                    state.slowness.end(&timer, &state.env, (volume, DiskOp::Read), packets);
                }
                filled
            }
        };
        match &filled {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                report_damaged(&state, &owned.pool, &owned.reader, "it is shorter than it was");
            }
            // The disk, or want of something: the scanner tells which.
            Err(_) => state.suspect(&owned.pool, volume, owned.reader.block.id),
            Ok(_) => {}
        }
        let _ = sender.send(filled);
    });
    async move { result.await.map_err(|_| io::Error::other("the disk job was lost")) }
}

/// Tells that a finished replica's files are not what they were; unless it was opened again or cut on purpose since it was
/// looked up: then it is another one by now.
pub fn report_damaged(state: &State, pool: &Pool, reader: &ReplicaReader, why: &str) {
    let is_the_same = pool
        .store
        .facts(&pool.id, reader.block.id)
        .is_ok_and(|facts| facts.state == ReplicaState::Finalized && facts.block == reader.block);
    if reader.state == ReplicaState::Finalized && is_the_same {
        tracing::error!(block = %reader.block, why, "a replica is reported as damaged");
        pool.reporter.notify_corrupt(Corrupt {
            block: reader.block,
            node: state.identity.to_info_proto(),
            storage_id: String::new(),
        });
    }
}

/// Opens a replica for reading on a thread that may block.
pub async fn open(
    state: &Arc<State>,
    pool: &Arc<Pool>,
    block: base::ExtendedBlock,
) -> Result<ReplicaReader, Refusal> {
    let (pool, id) = (pool.clone(), block.block.id);
    let open = move |state: &Arc<State>| {
        let timer = state.slowness.begin(&state.env);
        let reader = pool.store.read(&block)?;
        state.slowness.end(&timer, &state.env, (reader.volume, DiskOp::Metadata), 1);
        Ok::<_, StoreError>(reader)
    };
    Ok(on_disk(state, id, open).await??)
}
