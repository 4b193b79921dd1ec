//! `truncate`: cuts a file to a shorter length.

use super::{
    answers::boolean,
    calls::{self, decode},
};
use crate::core::Core;
use namespace::ops;
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
        let essentials = calls::run(turn, call, &request)?;
        Ok(p::TruncateResponseProto { result: boolean(essentials) })
    });
}
