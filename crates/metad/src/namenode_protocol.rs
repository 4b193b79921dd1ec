//! The small protocols beside the large ones: `NamenodeProtocol`, user mappings, refreshes.

mod get_blocks;

use crate::{
    client_protocol::{decode, hand_over, require_superuser},
    core::Core,
    datanodes::wire,
};
use base::FsError;
use namespace::Privileged;
use proto::{common, hdfs, hdfs::namenode as p};
use rpc::{Call, Replier};
use std::sync::Arc;

/// The questions of balancers and secondary servers.
pub fn call(core: &Arc<Core>, call: Call, reply: Replier) {
    if !core.partition.member.is_serving() {
        return hand_over(core, call, reply);
    }
    if let Some(operation) = Privileged::named(call.method)
        && let Err(error) = require_superuser(core, &call, operation)
    {
        return reply.fs_error(&error);
    }
    match call.method {
        "versionRequest" => {
            let Some((_, reply)) = decode::<hdfs::VersionRequestProto>(&call, reply) else { return };
            reply.ok(&hdfs::VersionResponseProto {
                info: wire::namespace_info(&core.cluster, core.partition.member.standing().is_serving()),
            });
        }
        "getTransactionId" => {
            let Some((_, reply)) = decode::<p::GetTransactionIdRequestProto>(&call, reply) else { return };
            reply.ok(&p::GetTransactionIdResponseProto { tx_id: core.partition.commit.committed().0 });
        }
        "getBlocks" => get_blocks::call(core, &call, reply),
        "getBlockKeys" => {
            let Some((_, reply)) = decode::<p::GetBlockKeysRequestProto>(&call, reply) else { return };
            reply.ok(&p::GetBlockKeysResponseProto { keys: Some(no_block_keys()) });
        }
        "isUpgradeFinalized" => {
            let Some((_, reply)) = decode::<p::IsUpgradeFinalizedRequestProto>(&call, reply) else { return };
            reply.ok(&p::IsUpgradeFinalizedResponseProto { is_upgrade_finalized: true });
        }
        "isRollingUpgrade" => {
            let Some((_, reply)) = decode::<p::IsRollingUpgradeRequestProto>(&call, reply) else { return };
            reply.ok(&p::IsRollingUpgradeResponseProto { is_rolling_upgrade: false });
        }
        // Hadoop's satisfier outside is told that there is nothing to do: the server itself does it.
        "getNextSPSPath" => {
            let Some((_, reply)) = decode::<p::GetNextSpsPathRequestProto>(&call, reply) else { return };
            match core.config.satisfies_policies {
                true => reply.ok(&p::GetNextSpsPathResponseProto { sps_path: None }),
                false => reply.fs_error(&FsError::Io(
                    "SPS service mode is NONE, so external SPS service is not allowed to fetch the path Ids"
                        .into(),
                )),
            }
        }
        method => reply
            .fs_error(&FsError::Unsupported(format!("{method} is not built yet in this version of Clover."))),
    }
}

/// Block tokens are not in use. Hadoop says it with keys that are switched off, and its balancer looks into the answer.
fn no_block_keys() -> hdfs::ExportedBlockKeysProto {
    let no_key = hdfs::BlockKeyProto { key_id: 0, expiry_date: 0, key_bytes: Some(Vec::new().into()) };
    hdfs::ExportedBlockKeysProto {
        is_block_token_enabled: false,
        key_update_interval: 0,
        token_life_time: 0,
        current_key: no_key,
        all_keys: Vec::new(),
    }
}

/// `hdfs groups`.
pub fn call_user_mappings(core: &Arc<Core>, call: Call, reply: Replier) {
    if !core.partition.member.is_serving() {
        // The active's view of groups is the one that counts.
        return hand_over(core, call, reply);
    }
    let Some((request, reply)) = decode::<common::GetGroupsForUserRequestProto>(&call, reply) else { return };
    let core = core.clone();
    // The look-up may run a command: not on the thread that serves others.
    std::thread::spawn(move || {
        let groups = core.user_groups.groups(&request.user, core.moment());
        reply.ok(&common::GetGroupsForUserResponseProto {
            groups: groups.iter().map(|group| group.to_string()).collect(),
        });
    });
}

/// `dfsadmin -refreshUserToGroupsMappings`, `-refreshSuperUserGroupsConfiguration`.
pub fn call_refresh_user_mappings(core: &Arc<Core>, call: Call, reply: Replier) {
    core.user_groups.refresh();
    match call.method {
        "refreshUserToGroupsMappings" => {
            reply.ok(&common::RefreshUserToGroupsMappingsResponseProto {});
        }
        _ => reply.ok(&common::RefreshSuperUserGroupsConfigurationResponseProto {}),
    }
}

#[cfg(test)]
mod tests {
    use namespace::Privileged;
    use proto::protocol;

    #[test]
    fn only_the_version_is_told_to_everybody() {
        let open = protocol::methods(protocol::NAMENODE)
            .iter()
            .filter(|method| Privileged::named(method).is_none())
            .collect::<Vec<_>>();
        assert_eq!(open, [&"versionRequest"]);
    }
}
