//! Hadoop's wire: RPC headers, protocol messages, data-transfer headers, exception names.
//!
//! This is the only crate that knows Java class names and protobuf. It turns bytes into values and values
//! into bytes; it never opens a socket and never decides anything.

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
}
