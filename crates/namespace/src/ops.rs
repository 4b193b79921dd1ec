//! The operations that change the tree, one file each: what it promises, `Request`, the edit, `plan` and
//! `apply`.

pub mod abandon_block;
pub mod add_block;
pub mod allow_deletions;
pub mod allow_snapshot;
pub mod append;
pub mod cleanup;
pub mod commit_block_synchronization;
pub mod complete;
pub mod concat;
pub mod create;
pub mod create_snapshot;
pub mod delete;
pub mod delete_snapshot;
pub mod fsync;
pub mod mkdirs;
pub mod raise_level;
pub mod recover_lease;
pub mod release_lease;
pub mod rename;
pub mod rename2;
pub mod rename_snapshot;
pub mod set_acl;
pub mod set_erasure_coding;
pub mod set_owner;
pub mod set_permission;
pub mod set_quota;
pub mod set_replication;
pub mod set_storage_policy;
pub mod set_times;
pub mod set_xattrs;
pub mod sweep;
pub mod truncate;
pub mod truncate_copy;
pub mod update_block_for_pipeline;
pub mod update_pipeline;
