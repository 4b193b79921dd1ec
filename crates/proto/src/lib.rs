//! Hadoop's wire: RPC headers, protocol messages, data-transfer headers, exception names.
//!
//! This is the only crate that knows Java class names and protobuf. It turns bytes into values and values
//! into bytes; it never opens a socket and never decides anything.
//!
//! Start with [`rpc_frame`] for the bytes around a call, [`decode`] for the messages inside, [`answers`] for the most
//! frequent answers, [`exception`] for the names of refusals, and [`bean`] for those of monitoring pages.

mod admin_state;
pub mod answers;
pub mod audit;
pub mod bean;
pub mod block_rows;
pub mod data_transfer;
pub mod decode_error;
pub mod exception;
mod fields;
pub mod fsimage;
mod group_words;
pub mod methods;
pub mod protocol;
pub mod required;
mod role;
pub mod rpc_frame;
pub mod snapshot_diff;
mod storage_type;
pub mod subject;
pub mod wire;

pub use decode_error::DecodeError;
pub use group_words::SyncState;
pub use required::decode;

/// The compiled protocol definitions: a `google.protobuf.FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// `hadoop.common`: RPC headers, tokens, HA service state.
#[allow(clippy::all)]
pub mod common {
    include!(concat!(env!("OUT_DIR"), "/hadoop.common.rs"));
}

/// `hadoop.hdfs`: the messages of the client and data protocols.
#[allow(clippy::all)]
pub mod hdfs {
    include!(concat!(env!("OUT_DIR"), "/hadoop.hdfs.rs"));

    /// Data server to metadata server.
    pub mod datanode {
        include!(concat!(env!("OUT_DIR"), "/hadoop.hdfs.datanode.rs"));
    }
    pub mod datanodelifeline {
        include!(concat!(env!("OUT_DIR"), "/hadoop.hdfs.datanodelifeline.rs"));
    }
    /// Balancer and secondary servers to metadata server.
    pub mod namenode {
        include!(concat!(env!("OUT_DIR"), "/hadoop.hdfs.namenode.rs"));
    }
    /// The messages in a NameNode's image.
    pub mod fsimage {
        include!(concat!(env!("OUT_DIR"), "/hadoop.hdfs.fsimage.rs"));
    }
}

/// Clover's own protocols, which stock clients never speak.
pub mod clover {
    /// The questions and orders of an operator to a replica group.
    pub mod admin {
        include!(concat!(env!("OUT_DIR"), "/clover.admin.rs"));
    }
    /// Calls handed on between members.
    pub mod forward {
        include!(concat!(env!("OUT_DIR"), "/clover.forward.rs"));
    }
    /// Images handed from member to member.
    pub mod pool {
        include!(concat!(env!("OUT_DIR"), "/clover.pool.rs"));
    }
}

/// A call `getReplicas` of the operators' protocol asks for so many blocks at most.
pub const REPLICAS_BLOCKS_MAX: usize = 500;
