//! Hadoop's `ClientProtocol`: what clients ask of the namespace.
//!
//! Each method decodes its request, runs one operation of `namespace` and shapes the answer. Decisions
//! belong below; here is only the meeting of the wire with the machines.

mod acls;
mod answers;
mod append;
mod attributes;
mod blocks;
mod calls;
mod completes;
mod concat;
mod files;
mod leading;
mod policies;
mod quotas;
mod reads;
mod refusals;
mod service;
mod snapshots;
pub mod status;
mod truncate;
mod xattrs;

pub use calls::{decode, hand_over, refuse_in_safe_mode, turn};
pub use completes::Parked;
pub use leading::Leading;
pub use refusals::Refusals;
pub use service::require_superuser;

use crate::core::Core;
use base::FsError;
use rpc::{Call, Replier, RpcError};
use std::sync::Arc;

/// The one question that every member answers about itself: clients look for the active with it.
const OWN_STATE: &str = "getHAServiceState";

/// Answers one call, or hands it to the member that can. Every method of the protocol has its line.
pub fn call(core: &Arc<Core>, call: Call, reply: Replier) {
    if !core.replica.is_serving() && call.method != OWN_STATE {
        return hand_over(core, call, reply);
    }
    match call.method {
        // Looking.
        "getFileInfo" => reads::get_file_info(core, call, reply),
        "getFileLinkInfo" => reads::get_file_link_info(core, call, reply),
        "getLocatedFileInfo" => reads::get_located_file_info(core, call, reply),
        "isFileClosed" => reads::is_file_closed(core, call, reply),
        "getListing" => reads::get_listing(core, call, reply),
        "getBatchedListing" => reads::get_batched_listing(core, call, reply),
        "getPreferredBlockSize" => reads::get_preferred_block_size(core, call, reply),
        "getBlockLocations" => reads::get_block_locations(core, call, reply),
        "getEnclosingRoot" => reads::get_enclosing_root(core, call, reply),

        // Names and files.
        "mkdirs" => files::mkdirs(core, call, reply),
        "create" => files::create(core, call, reply),
        "rename" => files::rename(core, call, reply),
        "rename2" => files::rename2(core, call, reply),
        "delete" => files::delete(core, call, reply),

        // Symbolic links.
        "createSymlink" => later(&call, reply),
        "getLinkTarget" => later(&call, reply),

        // Attributes.
        "setPermission" => attributes::set_permission(core, call, reply),
        "setOwner" => attributes::set_owner(core, call, reply),
        "setTimes" => attributes::set_times(core, call, reply),
        "setReplication" => attributes::set_replication(core, call, reply),

        // Writing.
        "addBlock" => blocks::add_block(core, call, reply),
        "abandonBlock" => blocks::abandon_block(core, call, reply),
        "getAdditionalDatanode" => blocks::get_additional_datanode(core, call, reply),
        "updateBlockForPipeline" => blocks::update_block_for_pipeline(core, call, reply),
        "updatePipeline" => blocks::update_pipeline(core, call, reply),
        "fsync" => blocks::fsync(core, call, reply),
        "complete" => completes::complete(core, call, reply),
        "recoverLease" => files::recover_lease(core, call, reply),
        "renewLease" => files::renew_lease(core, call, reply),

        // Writing on.
        "append" => append::append(core, call, reply),
        "truncate" => truncate::truncate(core, call, reply),
        "concat" => concat::concat(core, call, reply),

        // Access lists.
        "checkAccess" => reads::check_access(core, call, reply),
        "modifyAclEntries" => acls::modify_acl_entries(core, call, reply),
        "removeAclEntries" => acls::remove_acl_entries(core, call, reply),
        "removeDefaultAcl" => acls::remove_default_acl(core, call, reply),
        "removeAcl" => acls::remove_acl(core, call, reply),
        "setAcl" => acls::set_acl(core, call, reply),
        "getAclStatus" => acls::get_acl_status(core, call, reply),

        // Extended attributes.
        "setXAttr" => xattrs::set_xattr(core, call, reply),
        "getXAttrs" => xattrs::get_xattrs(core, call, reply),
        "listXAttrs" => xattrs::list_xattrs(core, call, reply),
        "removeXAttr" => xattrs::remove_xattr(core, call, reply),

        // Quotas and sums.
        "setQuota" => quotas::set_quota(core, call, reply),
        "getContentSummary" => quotas::get_content_summary(core, call, reply),
        "getQuotaUsage" => quotas::get_quota_usage(core, call, reply),

        // Storage policies.
        "setStoragePolicy" => policies::set_storage_policy(core, call, reply),
        "unsetStoragePolicy" => policies::unset_storage_policy(core, call, reply),
        "getStoragePolicy" => policies::get_storage_policy(core, call, reply),
        "getStoragePolicies" => policies::get_storage_policies(core, call, reply),

        // Snapshots.
        "allowSnapshot" => snapshots::allow_snapshot(core, call, reply),
        "disallowSnapshot" => snapshots::disallow_snapshot(core, call, reply),
        "createSnapshot" => snapshots::create_snapshot(core, call, reply),
        "renameSnapshot" => snapshots::rename_snapshot(core, call, reply),
        "deleteSnapshot" => snapshots::delete_snapshot(core, call, reply),
        "getSnapshottableDirListing" => snapshots::get_snapshottable_dir_listing(core, call, reply),
        "getSnapshotListing" => snapshots::get_snapshot_listing(core, call, reply),
        "getSnapshotDiffReport" => snapshots::get_snapshot_diff_report(core, call, reply),
        "getSnapshotDiffReportListing" => snapshots::get_snapshot_diff_report_listing(core, call, reply),

        // The service.
        "getServerDefaults" => service::get_server_defaults(core, call, reply),
        "getFsStats" => service::get_fs_stats(core, call, reply),
        "getFsReplicatedBlockStats" => service::get_fs_replicated_block_stats(core, call, reply),
        "getFsECBlockGroupStats" => service::get_fs_ec_block_group_stats(core, call, reply),
        "getDatanodeReport" => service::get_datanode_report(core, call, reply),
        "getDatanodeStorageReport" => service::get_datanode_storage_report(core, call, reply),
        "getSlowDatanodeReport" => service::get_slow_datanode_report(core, call, reply),
        "reportBadBlocks" => blocks::report_bad_blocks(core, call, reply),
        "listCorruptFileBlocks" => later(&call, reply),
        "listOpenFiles" => later(&call, reply),
        "setSafeMode" => service::set_safe_mode(core, call, reply),
        "saveNamespace" => service::save_namespace(core, call, reply),
        "rollEdits" => later(&call, reply),
        "restoreFailedStorage" => later(&call, reply),
        "refreshNodes" => later(&call, reply),
        "finalizeUpgrade" => later(&call, reply),
        "upgradeStatus" => later(&call, reply),
        "rollingUpgrade" => later(&call, reply),
        "metaSave" => later(&call, reply),
        "setBalancerBandwidth" => later(&call, reply),
        "getCurrentEditLogTxid" => later(&call, reply),
        "getEditsFromTxid" => later(&call, reply),
        "msync" => service::msync(core, call, reply),
        OWN_STATE => service::get_ha_service_state(core, call, reply),

        // Security.
        "getDelegationToken" => service::get_delegation_token(core, call, reply),
        "renewDelegationToken" => later(&call, reply),
        "cancelDelegationToken" => later(&call, reply),
        "getDataEncryptionKey" => service::get_data_encryption_key(core, call, reply),

        // Encryption zones.
        "createEncryptionZone" => later(&call, reply),
        "listEncryptionZones" => later(&call, reply),
        "reencryptEncryptionZone" => later(&call, reply),
        "listReencryptionStatus" => later(&call, reply),
        "getEZForPath" => service::get_ez_for_path(core, call, reply),

        // Erasure coding.
        "setErasureCodingPolicy" => later(&call, reply),
        "unsetErasureCodingPolicy" => later(&call, reply),
        "getErasureCodingPolicy" => service::get_erasure_coding_policy(core, call, reply),
        "getErasureCodingPolicies" => service::get_erasure_coding_policies(core, call, reply),
        "addErasureCodingPolicies" => later(&call, reply),
        "removeErasureCodingPolicy" => later(&call, reply),
        "enableErasureCodingPolicy" => later(&call, reply),
        "disableErasureCodingPolicy" => later(&call, reply),
        "getErasureCodingCodecs" => later(&call, reply),
        "getECTopologyResultForPolicies" => later(&call, reply),

        // Caching.
        "addCacheDirective" => later(&call, reply),
        "modifyCacheDirective" => later(&call, reply),
        "removeCacheDirective" => later(&call, reply),
        "listCacheDirectives" => later(&call, reply),
        "addCachePool" => later(&call, reply),
        "modifyCachePool" => later(&call, reply),
        "removeCachePool" => later(&call, reply),
        "listCachePools" => later(&call, reply),

        // Moving blocks to where their policy wants them.
        "satisfyStoragePolicy" => policies::satisfy_storage_policy(core, call, reply),

        method => reply.error(RpcError::no_such_method(method, call.protocol)),
    }
}

/// What this version does not do yet, and says so.
fn later(call: &Call, reply: Replier) {
    let method = call.method;
    reply.fs_error(&FsError::Unsupported(format!("{method} is not built yet in this version of Clover.")));
}
