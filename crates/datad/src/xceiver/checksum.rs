//! BLOCK_CHECKSUM: one sum over a replica's stored checksums, so that files can be compared without being read.

use super::{next::Next, on_disk, refusal::Refusal, request};
use crate::state::State;
use blockstore::{ReplicaReader, meta_file};
use env::disk::read_exact_at;
use md5::{Digest, Md5};
use pipeline::{Checksum, Composer};
use proto::hdfs::{
    BlockChecksumOptionsProto, BlockChecksumTypeProto, BlockOpResponseProto, OpBlockChecksumProto,
    OpBlockChecksumResponseProto, Status,
};
use rpc::streaming::Outgoing;
use std::{io, sync::Arc};

/// Meta file bytes read at once.
const READ_BYTES: usize = 64 * 1024;

pub async fn block_checksum(
    state: &Arc<State>,
    op: OpBlockChecksumProto,
    out: &mut Outgoing,
) -> Result<Next, Refusal> {
    let block = request::block(&op.header.block);
    let options = op.block_checksum_options.unwrap_or_default();
    let pool = state.pool(&block.pool)?.clone();
    let sum = on_disk(state, block.block.id, move |_| {
        let reader = pool.store.read(&block)?;
        summarize(&reader, block.block.length, &options)
    })
    .await??;
    out.message(&BlockOpResponseProto {
        status: Status::Success.into(),
        checksum_response: Some(sum),
        ..Default::default()
    })
    .await?;
    Ok(Next::Operation)
}

/// Sums up the first `length` bytes of the replica, or all where it is shorter.
fn summarize(
    reader: &ReplicaReader,
    length: u64,
    options: &BlockChecksumOptionsProto,
) -> Result<OpBlockChecksumResponseProto, Refusal> {
    let checksum = request::wire_checksum(reader.checksum)?;
    let length = length.min(reader.visible_length);
    let bytes = match options.block_checksum_type() {
        BlockChecksumTypeProto::Md5crc => {
            let mut md5 = Md5::new();
            each_sum(reader, checksum, length, |sum, _| md5.update(sum.to_be_bytes()))?;
            md5.finalize().to_vec()
        }
        BlockChecksumTypeProto::CompositeCrc => composite(reader, checksum, length, options)?,
    };
    Ok(OpBlockChecksumResponseProto {
        bytes_per_crc: checksum.bytes_per_checksum(),
        crc_per_block: match checksum.size() {
            0 => 0,
            _ => length.div_ceil(checksum.bytes_per_checksum().into()),
        },
        block_checksum: bytes.into(),
        crc_type: Some(checksum.kind() as i32),
        block_checksum_options: Some(*options),
    })
}

/// The CRC of the data itself, or one for each stripe of it.
fn composite(
    reader: &ReplicaReader,
    checksum: Checksum,
    length: u64,
    options: &BlockChecksumOptionsProto,
) -> Result<Vec<u8>, Refusal> {
    let fresh = Composer::new(checksum.kind())
        .ok_or_else(|| Refusal::error("the replica has no checksums to compose"))?;
    let stripe = match options.stripe_length() {
        0 => length,
        stripe => stripe.min(length),
    };
    let mut composer = fresh.clone();
    let mut in_stripe = 0;
    let mut bytes = Vec::new();
    each_sum(reader, checksum, length, |sum, chunk| {
        composer.append(sum, chunk);
        in_stripe += chunk;
        if in_stripe >= stripe {
            bytes.extend_from_slice(&composer.sum().to_be_bytes());
            composer = fresh.clone();
            in_stripe = 0;
        }
    })?;
    if in_stripe > 0 {
        bytes.extend_from_slice(&composer.sum().to_be_bytes());
    }
    Ok(bytes)
}

/// Calls `each` with the sum and the length of every chunk of the first `length` bytes.
fn each_sum(
    reader: &ReplicaReader,
    checksum: Checksum,
    length: u64,
    mut each: impl FnMut(u32, u64),
) -> Result<(), Refusal> {
    let Some(meta) = reader.meta_file.as_ref().filter(|_| checksum.size() > 0) else { return Ok(()) };
    let failed = |error: io::Error| Refusal::error(format!("the checksums of {}: {error}", reader.block));
    let chunk = u64::from(checksum.bytes_per_checksum());
    let whole_chunks = length / chunk;
    let mut buffer = [0; READ_BYTES];
    let mut done = 0;
    while done < whole_chunks {
        let count = (whole_chunks - done).min(READ_BYTES as u64 / 4);
        let sums = &mut buffer[..count as usize * 4];
        read_exact_at(&**meta, sums, meta_file::sum_offset(reader.checksum, done * chunk)).map_err(failed)?;
        for sum in sums.as_chunks::<4>().0 {
            each(u32::from_be_bytes(*sum), chunk);
        }
        done += count;
    }
    let rest = length % chunk;
    if rest > 0 {
        each(last_sum(reader, checksum, length, rest).map_err(failed)?, rest);
    }
    Ok(())
}

/// The sum of a last, partial chunk: the stored one where the replica ends with it, or made from the data.
fn last_sum(reader: &ReplicaReader, checksum: Checksum, length: u64, rest: u64) -> io::Result<u32> {
    let start = length - rest;
    if length == reader.block.length {
        if let Some(sum) = reader.last_sum {
            return Ok(u32::from_be_bytes(sum));
        }
        let mut sum = [0; 4];
        let meta = reader.meta_file.as_ref().expect("there are sums");
        read_exact_at(&**meta, &mut sum, meta_file::sum_offset(reader.checksum, start))?;
        return Ok(u32::from_be_bytes(sum));
    }
    let mut data = vec![0; rest as usize];
    read_exact_at(&*reader.block_file, &mut data, start)?;
    Ok(checksum.append(0, &data))
}
