//! `truncate`: cuts a file to a shorter length.

use super::{
    answers::boolean,
    calls::{self, decode},
    files,
};
use crate::{core::Core, datanodes, partition::turn::Turn};
use base::{FsError, FsResult};
use namespace::{Reply, ops, reads};
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::sync::Arc;

/// The answer is false while the data servers cut the last block.
pub fn truncate(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::TruncateRequestProto>(&call, reply) else { return };
    let machine = call.origin.address.map(|address| address.to_string()).unwrap_or_default();
    let request = ops::truncate::Request {
        path: request.src,
        // Java's signed numbers travel as unsigned ones.
        length: request.new_length as i64,
        holder: request.client_name,
        client_machine: machine,
    };
    calls::turn(core, call, reply, move |turn, call| {
        ops::truncate::check_length(request.length)?;
        let mut essentials = try_truncate(turn, call, &request);
        if matches!(essentials, Err(FsError::RecoveryInProgress(_)))
            && files::take_over(turn, &request.path, &request.holder)
        {
            turn.partition().refusals.lock().forget(&call.origin);
            essentials = try_truncate(turn, call, &request);
        }
        Ok(p::TruncateResponseProto { result: boolean(essentials?) })
    });
}

fn try_truncate(turn: &mut Turn<'_>, call: &Call, request: &ops::truncate::Request) -> FsResult<Reply> {
    let before = turn.applied();
    let essentials = calls::run(turn, call, request)?;
    if turn.applied() > before && essentials == Reply::Bool(false) {
        // Hadoop: `addLease`, which begins the lease's time anew.
        let partition = turn.partition();
        partition.renewals.lock().renew(&request.holder, partition.moment());
        let inode = turn.plan_own(|namespace, context, _| {
            reads::get_file_info::get(namespace, context, &request.path).map(|found| found.map(|fs| fs.id))
        })?;
        if let Some(inode) = inode {
            datanodes::truncate(turn, inode);
        }
    }
    Ok(essentials)
}
