//! `concat`: moves the blocks of files behind those of another.

use super::calls::{self, decode};
use crate::core::Core;
use namespace::ops;
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::sync::Arc;

pub fn concat(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::ConcatRequestProto>(&call, reply) else { return };
    let request = ops::concat::Request { target: request.trg, sources: request.srcs };
    calls::write(core, call, reply, request, |_, _| p::ConcatResponseProto {});
}
