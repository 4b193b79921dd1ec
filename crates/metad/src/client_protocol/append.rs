//! `append`: opens a finished file to be written on.

use super::{
    answers::Encoded,
    calls::{self, decode},
    reads, status,
};
use crate::{core::Core, datanodes::wire, partition::turn::Turn};
use ::blocks::Reader;
use base::{FsError, FsResult, InodeId};
use namespace::{Reply, ops};
use proto::{answers::Appended, hdfs as p};
use rpc::{Call, Replier};
use std::sync::Arc;

/// The offset that Hadoop sends if it does not tell where a block begins: -1.
const OFFSET_UNKNOWN: u64 = u64::MAX;

pub fn append(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::AppendRequestProto>(&call, reply) else { return };
    let machine = call.origin.address.map(|address| address.to_string()).unwrap_or_default();
    core.partition.renewals.lock().renew(&request.client_name, core.moment());
    let request = ops::append::Request {
        path: request.src,
        holder: request.client_name,
        client_machine: machine,
        new_block: request.flag.unwrap_or(0) & ops::create::flag::NEW_BLOCK != 0,
    };
    calls::turn(core, call, reply, move |turn, call| match calls::run(turn, call, &request)? {
        Reply::Appended(inode) => answer(turn, call, &request, inode),
        _ => Err(FsError::Io("The call was answered before, but not with a file.".into())),
    });
}

/// The file, and the block that is written on with its places. A block that stays as it is comes without places if
/// the client wants another one, and not at all if it is full.
fn answer(turn: &Turn<'_>, call: &Call, request: &ops::append::Request, inode: InodeId) -> FsResult<Encoded> {
    let (partition, namespace) = (turn.partition(), turn.namespace());
    let pool = &partition.cluster.block_pool;
    // A call that is repeated so late that others have deleted its file. Stock clients ask for the status that an
    // answer lacks, by the path, and stumble over there being none.
    let Some(fs) = namespace::reads::get_file_info::by_id(namespace, inode) else {
        return Err(FsError::NotFound(format!("File does not exist: {}", request.path)));
    };
    let last = namespace::reads::get_block_locations::by_id(namespace, inode).and_then(|blocks| blocks.last);
    // Nobody writes on a block of another group's pool: the client is to ask for a new one.
    let last = last.filter(|last| !namespace.is_foreign(last.block.id));
    let (mut located, mut place) = (None, None);
    match last {
        Some(last) if request.new_block => place = Some((last.block, OFFSET_UNKNOWN)),
        Some(last) if !last.committed => {
            let host = reads::host(call);
            let chance = partition.env.random.next_u64();
            let reader = Reader { host: Some(&host) };
            located = partition.blocks.lock().locations(last.block.id, reader, chance, turn.moment);
            place = Some((last.block, last.offset));
        }
        _ => {}
    }
    let block = place.map(|(block, offset)| wire::found(pool, block, offset, located.as_ref()));
    Ok(Encoded::of(Appended { block, status: status::view(&fs, status::Name::Empty) }))
}
