//! Hadoop's `ClientProtocol`: what clients ask of the namespace.
//!
//! Each method decodes its request, runs one operation of `namespace` and shapes the answer. Decisions
//! belong below; here is only the meeting of the wire with the machines.

mod acls;
mod administration;
mod answers;
mod append;
mod attributes;
pub mod batch;
mod blocks;
mod caching;
pub mod calls;
pub mod completes;
mod concat;
mod corrupt_files;
mod elsewhere;
mod encryption_zones;
mod erasure_coding;
mod events;
mod files;
mod leading;
mod looking;
pub mod meta_save;
mod open_files;
mod places;
mod policies;
mod quotas;
mod reads;
mod safe_mode;
mod security;
mod service;
mod snapshots;
mod status;
mod steps;
mod symlinks;
mod truncate;
mod turns;
mod walks;
mod xattrs;

pub use answers::{Answer, Encoded, send};
pub use calls::{decode, hand_over, refuse_in_safe_mode};
pub use erasure_coding::policy_proto;
pub use leading::is_proved;
pub use service::{ha_state, require_superuser};
pub use walks::run as run_walks;

use crate::{audit::lines, core::Core, standby_reads};
use proto::methods::{self, Kind};
use rpc::{Call, Replier, RpcError};
use serving::admission::{CallKind, Lead, Way};
use std::sync::Arc;

fn kind_of(method: &str) -> CallKind {
    match methods::method(method).map(|method| method.kind) {
        // Clients look for the active with one of these, and another is about a file beside the member.
        Some(Kind::Own) => CallKind::Own,
        Some(Kind::Look) => CallKind::Look,
        _ => CallKind::Other,
    }
}

/// Answers one call, or hands it to the member that can. Every method of the protocol has its line, here or in [`other_call`]. The
/// audit log takes note of the reads that stand here by their values, and of the other calls by their bytes.
pub fn call(core: &Arc<Core>, call: Call, reply: Replier) {
    if !core.partition.member.is_serving() {
        let lead = if core.partition.member.is_reading() { Lead::Reading } else { Lead::None };
        let kind = kind_of(call.method);
        match Way::of(kind, lead) {
            Way::Here => {}
            // It has waited for its read point.
            Way::Elsewhere if call.read_point.is_some() => {}
            Way::Elsewhere if kind == CallKind::Look => return standby_reads::take(core, call, reply),
            Way::Elsewhere => return hand_over(core, call, reply),
            Way::Nowhere => return reply.fs_error(&core.partition.group_facts().too_few()),
        }
    }
    core.racks.note(call.origin.address, || core.moment());
    let caller = core.user_groups.renewed(call.caller, || core.moment());
    let call = Call { caller, ..call };
    match call.method {
        "getFileInfo" => reads::get_file_info(core, call, reply),
        "getFileLinkInfo" => reads::get_file_link_info(core, call, reply),
        "getLocatedFileInfo" => reads::get_located_file_info(core, call, reply),
        "isFileClosed" => reads::is_file_closed(core, call, reply),
        "getListing" => reads::get_listing(core, call, reply),
        "getBatchedListing" => reads::get_batched_listing(core, call, reply),
        "getPreferredBlockSize" => reads::get_preferred_block_size(core, call, reply),
        "getBlockLocations" => reads::get_block_locations(core, call, reply),
        "getEnclosingRoot" => reads::get_enclosing_root(core, call, reply),
        "getLinkTarget" => symlinks::get_link_target(core, call, reply),
        "checkAccess" => reads::check_access(core, call, reply),
        "getAclStatus" => acls::get_acl_status(core, call, reply),
        "getXAttrs" => xattrs::get_xattrs(core, call, reply),
        "listXAttrs" => xattrs::list_xattrs(core, call, reply),
        "getContentSummary" => quotas::get_content_summary(core, call, reply),
        "getQuotaUsage" => quotas::get_quota_usage(core, call, reply),
        "getStoragePolicy" => policies::get_storage_policy(core, call, reply),
        "getSnapshottableDirListing" => snapshots::get_snapshottable_dir_listing(core, call, reply),
        "getSnapshotListing" => snapshots::get_snapshot_listing(core, call, reply),
        "getSnapshotDiffReport" => snapshots::get_snapshot_diff_report(core, call, reply),
        "getSnapshotDiffReportListing" => snapshots::get_snapshot_diff_report_listing(core, call, reply),
        "listOpenFiles" => open_files::list_open_files(core, call, reply),
        "getEZForPath" => encryption_zones::get_ez_for_path(core, call, reply),
        "getErasureCodingPolicy" => erasure_coding::get_erasure_coding_policy(core, call, reply),
        _ => {
            let reply = lines::watch(core, &call, reply);
            other_call(core, call, reply);
        }
    }
}

/// Answers a call that is no read of the namespace.
fn other_call(core: &Arc<Core>, call: Call, reply: Replier) {
    match call.method {
        // Names and files.
        "mkdirs" => files::mkdirs(core, call, reply),
        "create" => files::create(core, call, reply),
        "rename" => files::rename(core, call, reply),
        "rename2" => files::rename2(core, call, reply),
        "delete" => files::delete(core, call, reply),

        // Symbolic links.
        "createSymlink" => symlinks::create_symlink(core, call, reply),

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
        "modifyAclEntries" => acls::modify_acl_entries(core, call, reply),
        "removeAclEntries" => acls::remove_acl_entries(core, call, reply),
        "removeDefaultAcl" => acls::remove_default_acl(core, call, reply),
        "removeAcl" => acls::remove_acl(core, call, reply),
        "setAcl" => acls::set_acl(core, call, reply),

        // Extended attributes.
        "setXAttr" => xattrs::set_xattr(core, call, reply),
        "removeXAttr" => xattrs::remove_xattr(core, call, reply),

        // Quotas and sums.
        "setQuota" => quotas::set_quota(core, call, reply),

        // Storage policies.
        "setStoragePolicy" => policies::set_storage_policy(core, call, reply),
        "unsetStoragePolicy" => policies::unset_storage_policy(core, call, reply),
        "getStoragePolicies" => policies::get_storage_policies(core, call, reply),

        // Snapshots.
        "allowSnapshot" => snapshots::allow_snapshot(core, call, reply),
        "disallowSnapshot" => snapshots::disallow_snapshot(core, call, reply),
        "createSnapshot" => snapshots::create_snapshot(core, call, reply),
        "renameSnapshot" => snapshots::rename_snapshot(core, call, reply),
        "deleteSnapshot" => snapshots::delete_snapshot(core, call, reply),

        // The service.
        "getServerDefaults" => service::get_server_defaults(core, call, reply),
        "getFsStats" => service::get_fs_stats(core, call, reply),
        "getFsReplicatedBlockStats" => service::get_fs_replicated_block_stats(core, call, reply),
        "getFsECBlockGroupStats" => service::get_fs_ec_block_group_stats(core, call, reply),
        "getDatanodeReport" => service::get_datanode_report(core, call, reply),
        "getDatanodeStorageReport" => service::get_datanode_storage_report(core, call, reply),
        "getSlowDatanodeReport" => service::get_slow_datanode_report(core, call, reply),
        "reportBadBlocks" => blocks::report_bad_blocks(core, call, reply),
        "listCorruptFileBlocks" => corrupt_files::list_corrupt_file_blocks(core, call, reply),
        "setSafeMode" => administration::set_safe_mode(core, call, reply),
        "saveNamespace" => administration::save_namespace(core, call, reply),
        "rollEdits" => administration::roll_edits(core, call, reply),
        "restoreFailedStorage" => administration::restore_failed_storage(core, call, reply),
        "refreshNodes" => administration::refresh_nodes(core, call, reply),
        "finalizeUpgrade" => administration::finalize_upgrade(core, call, reply),
        "upgradeStatus" => administration::upgrade_status(core, call, reply),
        "rollingUpgrade" => administration::rolling_upgrade(core, call, reply),
        "metaSave" => meta_save::meta_save(core, call, reply),
        "setBalancerBandwidth" => administration::set_balancer_bandwidth(core, call, reply),
        "getCurrentEditLogTxid" => events::get_current_edit_log_txid(core, call, reply),
        "getEditsFromTxid" => events::get_edits_from_txid(core, call, reply),
        "msync" => service::msync(core, call, reply),
        "getHAServiceState" => service::get_ha_service_state(core, call, reply),

        // Security.
        "getDelegationToken" => security::get_delegation_token(core, call, reply),
        "renewDelegationToken" => security::renew_delegation_token(core, call, reply),
        "cancelDelegationToken" => security::cancel_delegation_token(core, call, reply),
        "getDataEncryptionKey" => security::get_data_encryption_key(core, call, reply),

        // Encryption zones.
        "createEncryptionZone" => encryption_zones::create_encryption_zone(core, call, reply),
        "listEncryptionZones" => encryption_zones::list_encryption_zones(core, call, reply),
        "reencryptEncryptionZone" => encryption_zones::reencrypt_encryption_zone(core, call, reply),
        "listReencryptionStatus" => encryption_zones::list_reencryption_status(core, call, reply),

        // Erasure coding.
        "setErasureCodingPolicy" => erasure_coding::set_erasure_coding_policy(core, call, reply),
        "unsetErasureCodingPolicy" => erasure_coding::unset_erasure_coding_policy(core, call, reply),
        "getErasureCodingPolicies" => erasure_coding::get_erasure_coding_policies(core, call, reply),
        "addErasureCodingPolicies" => erasure_coding::add_erasure_coding_policies(core, call, reply),
        "removeErasureCodingPolicy" => erasure_coding::remove_erasure_coding_policy(core, call, reply),
        "enableErasureCodingPolicy" => erasure_coding::enable_erasure_coding_policy(core, call, reply),
        "disableErasureCodingPolicy" => erasure_coding::disable_erasure_coding_policy(core, call, reply),
        "getErasureCodingCodecs" => erasure_coding::get_erasure_coding_codecs(core, call, reply),
        "getECTopologyResultForPolicies" => {
            erasure_coding::get_ec_topology_result_for_policies(core, call, reply)
        }

        // Caching.
        "addCacheDirective" => caching::add_cache_directive(core, call, reply),
        "modifyCacheDirective" => caching::modify_cache_directive(core, call, reply),
        "removeCacheDirective" => caching::remove_cache_directive(core, call, reply),
        "listCacheDirectives" => caching::list_cache_directives(core, call, reply),
        "addCachePool" => caching::add_cache_pool(core, call, reply),
        "modifyCachePool" => caching::modify_cache_pool(core, call, reply),
        "removeCachePool" => caching::remove_cache_pool(core, call, reply),
        "listCachePools" => caching::list_cache_pools(core, call, reply),

        // Moving blocks to where their policy wants them.
        "satisfyStoragePolicy" => policies::satisfy_storage_policy(core, call, reply),

        method => reply.error(RpcError::no_such_method(method, call.protocol)),
    }
}
