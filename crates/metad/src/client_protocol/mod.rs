//! Hadoop's `ClientProtocol`: what clients ask of the namespace.
//!
//! Each method decodes its request, runs one operation of `namespace` and shapes the answer. Decisions
//! belong below; here is only the meeting of the wire with the machines.

mod answers;
mod attributes;
mod blocks;
mod calls;
mod completes;
mod files;
mod leading;
mod reads;
mod refusals;
mod service;
pub mod status;

pub use calls::{decode, hand_over, refuse_in_safe_mode, turn};
pub use completes::Parked;
pub use leading::Leading;
pub use refusals::Refusals;
pub use service::require_superuser;

use crate::core::Core;
use base::FsError;
use rpc::{Call, Replier};
use std::sync::Arc;

/// The one question that every member answers about itself: clients look for the active with it.
const OWN_STATE: &str = "getHAServiceState";

/// Answers one call, or hands it to the member that can.
pub fn call(core: &Arc<Core>, call: Call, reply: Replier) {
    if !core.replica.is_serving() && call.method != OWN_STATE {
        return hand_over(core, call, reply);
    }
    match call.method {
        "getFileInfo" => reads::get_file_info(core, call, reply),
        "getFileLinkInfo" => reads::get_file_link_info(core, call, reply),
        "getLocatedFileInfo" => reads::get_located_file_info(core, call, reply),
        "isFileClosed" => reads::is_file_closed(core, call, reply),
        "getListing" => reads::get_listing(core, call, reply),
        "getBatchedListing" => reads::get_batched_listing(core, call, reply),
        "getContentSummary" => reads::get_content_summary(core, call, reply),
        "getQuotaUsage" => reads::get_quota_usage(core, call, reply),
        "getPreferredBlockSize" => reads::get_preferred_block_size(core, call, reply),
        "checkAccess" => reads::check_access(core, call, reply),
        "getBlockLocations" => reads::get_block_locations(core, call, reply),
        "getEnclosingRoot" => reads::get_enclosing_root(core, call, reply),

        "mkdirs" => files::mkdirs(core, call, reply),
        "create" => files::create(core, call, reply),
        "rename" => files::rename(core, call, reply),
        "rename2" => files::rename2(core, call, reply),
        "delete" => files::delete(core, call, reply),
        "recoverLease" => files::recover_lease(core, call, reply),
        "renewLease" => files::renew_lease(core, call, reply),

        "setPermission" => attributes::set_permission(core, call, reply),
        "setOwner" => attributes::set_owner(core, call, reply),
        "setTimes" => attributes::set_times(core, call, reply),
        "setReplication" => attributes::set_replication(core, call, reply),

        "addBlock" => blocks::add_block(core, call, reply),
        "abandonBlock" => blocks::abandon_block(core, call, reply),
        "getAdditionalDatanode" => blocks::get_additional_datanode(core, call, reply),
        "updateBlockForPipeline" => blocks::update_block_for_pipeline(core, call, reply),
        "updatePipeline" => blocks::update_pipeline(core, call, reply),
        "fsync" => blocks::fsync(core, call, reply),
        "reportBadBlocks" => blocks::report_bad_blocks(core, call, reply),
        "complete" => completes::complete(core, call, reply),

        "getServerDefaults" => service::get_server_defaults(core, call, reply),
        "getFsStats" => service::get_fs_stats(core, call, reply),
        "getFsReplicatedBlockStats" => service::get_fs_replicated_block_stats(core, call, reply),
        "getFsECBlockGroupStats" => service::get_fs_ec_block_group_stats(core, call, reply),
        "getDatanodeReport" => service::get_datanode_report(core, call, reply),
        "getDatanodeStorageReport" => service::get_datanode_storage_report(core, call, reply),
        "setSafeMode" => service::set_safe_mode(core, call, reply),
        "saveNamespace" => service::save_namespace(core, call, reply),
        "msync" => service::msync(core, call, reply),
        OWN_STATE => service::get_ha_service_state(core, call, reply),
        "getDelegationToken" => service::get_delegation_token(core, call, reply),
        "getDataEncryptionKey" => service::get_data_encryption_key(core, call, reply),
        "getErasureCodingPolicy" => service::get_erasure_coding_policy(core, call, reply),
        "getErasureCodingPolicies" => service::get_erasure_coding_policies(core, call, reply),
        "getEZForPath" => service::get_ez_for_path(core, call, reply),
        "getStoragePolicies" => service::get_storage_policies(core, call, reply),
        "getSlowDatanodeReport" => service::get_slow_datanode_report(core, call, reply),

        method => reply
            .fs_error(&FsError::Unsupported(format!("{method} is not built yet in this version of Clover."))),
    }
}
