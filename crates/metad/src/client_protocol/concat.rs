//! `concat`: moves the blocks of files behind those of another.

use super::calls::{self, decode};
use crate::core::Core;
use namespace::ops;
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::sync::Arc;

pub fn concat(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::ConcatRequestProto>(&call, reply) else { return };
    let target = request.trg.clone();
    calls::write_planned(
        core,
        call,
        reply,
        move || format!("Cannot concat {target}"),
        move |namespace, context, _| {
            let request = ops::concat::Request { target: &request.trg, sources: &request.srcs };
            ops::concat::plan(namespace, context, &request)
        },
        |_, _| p::ConcatResponseProto {},
    );
}
