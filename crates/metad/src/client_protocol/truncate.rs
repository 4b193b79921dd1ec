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
    calls::turn(core, call, reply, move |turn, call| {
        ops::truncate::check_length(request.new_length as i64)?;
        let mut essentials = try_truncate(turn, call, &request, &machine);
        if matches!(essentials, Err(FsError::RecoveryInProgress(_)))
            && files::take_over(turn, &request.src, &request.client_name)
        {
            turn.partition().refusals.lock().forget(&call.origin);
            essentials = try_truncate(turn, call, &request, &machine);
        }
        Ok(p::TruncateResponseProto { result: boolean(essentials?) })
    });
}

fn try_truncate(
    turn: &mut Turn<'_>,
    call: &Call,
    request: &p::TruncateRequestProto,
    machine: &str,
) -> FsResult<Reply> {
    let before = turn.applied();
    let what = || format!("Cannot truncate for {}", request.src);
    let essentials = calls::run_planned(turn, call, what, |namespace, context, _| {
        let request = ops::truncate::Request {
            path: &request.src,
            length: request.new_length as i64,
            holder: &request.client_name,
            client_machine: machine,
        };
        ops::truncate::plan(namespace, context, &request)
    })?;
    if turn.applied() > before && essentials == Reply::Bool(false) {
        // Hadoop: `addLease`, which begins the lease's time anew.
        let partition = turn.partition();
        partition.renewals.lock().renew(&request.client_name, partition.moment());
        let inode = turn.plan_own(|namespace, context, _| {
            reads::get_file_info::get(namespace, context, &request.src).map(|found| found.map(|fs| fs.id))
        })?;
        if let Some(inode) = inode {
            datanodes::truncate(turn, inode);
        }
    }
    Ok(essentials)
}
