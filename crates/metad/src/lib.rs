//! The metadata service: drives `namespace`, `blocks` and `group` over `journal`, `coord` and `rpc`.
//!
//! It is thin on purpose: a decision made here belongs below. Reads are answered by the thread that decoded
//! them; writes queue for one writer, which plans and applies them in short turns and has them appended;
//! a reply waits for the commit of everything it may rest on.
//!
//! Start with [`MetaServer::start`], then `core.rs`, `partition/mod.rs` and `partition/turn.rs`.

mod admin_protocol;
mod allowances;
mod audit;
mod background;
pub mod backup;
mod block_recovery;
mod checkpoint;
mod chronicle;
mod client_protocol;
mod clocks;
mod cluster;
mod commit;
pub mod config;
mod coordinator;
mod core;
pub mod datanodes;
mod directories;
mod doors;
mod ended;
mod exchange;
mod fatal;
pub mod format;
mod forward;
mod fsimage;
mod ha_protocol;
mod image_reading;
mod jmx;
mod lately;
mod loading;
mod make_group;
mod member;
mod metrics;
mod namenode_protocol;
mod neighbours;
mod older_answers;
mod outlook;
mod pages;
mod partition;
pub mod peers;
mod points;
mod post;
mod protocols;
mod racks;
mod recover;
mod refresh_protocols;
mod renew;
mod repair;
mod run;
mod satisfier;
mod scrub;
mod server;
mod settle;
mod standby_reads;
mod start;
pub mod user_groups;
mod waiting_room;
mod walks;
mod watch;
mod watchers;

pub use admin_protocol::prove as prove_order;
pub use cluster::Cluster;
pub use config::{Advertised, CallLimits, CoordinatorConfig, FileDefaults, GroupConfig, MetaConfig};
pub use ended::Ended;
pub use fatal::note_request_in_hand;
pub use format::{ClusterError, FormatError, ONE_COPY, format, found_group, join, read_cluster};
pub use fsimage::write_image;
pub use group::EpochStart;
pub use make_group::{BEFORE as COORDINATOR_BEFORE, MakeGroupError, make_group};
pub use member::{GroupMember, Standing};
pub use outlook::Outlook;
pub use partition::standby_reads::Numbers as StandbyReadNumbers;
pub use racks::RackScript;
pub use recover::RecoverError;
pub use run::{RunError, run};
pub use server::{MetaServer, StartError};
pub use user_groups::UserGroupsConfig;
pub use watch::LastResort;

/// Parsers of foreign bytes that no other crate needs, made public for the fuzz targets.
#[doc(hidden)]
pub mod foreign {
    pub use crate::{
        chronicle::file::{decode as decode_takeovers, encode as encode_takeovers},
        fatal::notes::Notes as FatalRequests,
        forward::envelope::{Opened, Seal, close, open},
    };
}
