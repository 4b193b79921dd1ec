//! The orders of operators: `hdfs dfsadmin`.

use super::{decode, refuse_in_safe_mode, require_superuser};
use crate::{
    core::Core,
    datanodes::orders,
    partition::{Partition, upgrade},
};
use base::{FsError, Level};
use namespace::Privileged;
use proto::{exception::JAVA_ILLEGAL_ARGUMENT, hdfs as p};
use rpc::{Call, Replier, RpcError};
use serving::admission;
use std::sync::Arc;

pub fn set_safe_mode(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::SetSafeModeRequestProto>(&call, reply) else { return };
    let action = request.action();
    let operation = match action {
        p::SafeModeActionProto::SafemodeGet => None,
        p::SafeModeActionProto::SafemodeEnter => Some(Privileged::EnterSafeMode),
        p::SafeModeActionProto::SafemodeLeave => Some(Privileged::LeaveSafeMode),
        p::SafeModeActionProto::SafemodeForceExit => Some(Privileged::ForceSafeModeExit),
    };
    if let Some(operation) = operation
        && let Err(error) = require_superuser(core, &call, operation)
    {
        return reply.fs_error(&error);
    }
    let now = core.moment();
    let mut map = core.partition.blocks.lock();
    match action {
        p::SafeModeActionProto::SafemodeGet => {}
        p::SafeModeActionProto::SafemodeEnter => map.enter_safe_mode(),
        p::SafeModeActionProto::SafemodeLeave => {
            map.leave_safe_mode(false, now);
        }
        p::SafeModeActionProto::SafemodeForceExit => {
            map.leave_safe_mode(true, now);
        }
    }
    let result = map.in_safe_mode();
    drop(map);
    if action != p::SafeModeActionProto::SafemodeGet {
        tracing::info!(user = %call.caller, ?action, safe_mode = result, "safe mode set");
    }
    reply.ok(&p::SetSafeModeResponseProto { result });
}

/// With a window or a gap (`-beforeShutdown`) nothing is written where an image of everything is there already.
pub fn save_namespace(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::SaveNamespaceRequestProto>(&call, reply) else { return };
    if let Err(error) = require_superuser(core, &call, Privileged::SaveNamespace) {
        return reply.fs_error(&error);
    }
    if !core.partition.blocks.lock().in_safe_mode() {
        return reply.fs_error(&admission::image_needs_safe_mode());
    }
    let may_skip = request.time_window() > 0 || request.tx_gap() > 0;
    if may_skip && crate::checkpoint::is_current(&core.partition) {
        return reply.ok(&p::SaveNamespaceResponseProto { saved: Some(true) });
    }
    core.partition.checkpoint.request(Box::new(move |written| match written {
        Ok(()) => reply.ok(&p::SaveNamespaceResponseProto { saved: Some(true) }),
        Err(reason) => reply.fs_error(&FsError::Io(format!("The image could not be written: {reason}"))),
    }));
}

/// The journal begins a new segment with its next entry; the answer is that entry's number. Each member has its own
/// segments here, and nothing waits for one to end: this is for scripts that copy segments away.
pub fn roll_edits(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::RollEditsRequestProto>(&call, reply) else { return };
    let allowed = require_superuser(core, &call, Privileged::RollEditLog)
        .and_then(|()| refuse_in_safe_mode(&core.partition, || "Log not rolled".into()));
    if let Err(error) = allowed {
        return reply.fs_error(&error);
    }
    let next = core.partition.member.journal().begin_segment_with_next();
    reply.ok(&p::RollEditsResponseProto { new_segment_tx_id: next.0 });
}

/// Storage that failed stays out of use here until the server starts again, so there is nothing to switch.
pub fn restore_failed_storage(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::RestoreFailedStorageRequestProto>(&call, reply) else { return };
    let operation = match &*request.arg {
        "check" => Privileged::CheckRestoreFailedStorage,
        "true" => Privileged::EnableRestoreFailedStorage,
        _ => Privileged::DisableRestoreFailedStorage,
    };
    if let Err(error) = require_superuser(core, &call, operation) {
        return reply.fs_error(&error);
    }
    if request.arg == "true" {
        return reply.fs_error(&FsError::Unsupported(
            "A metadata server has one directory, and does not go on with one that has failed: the other \
             members of the group do."
                .into(),
        ));
    }
    reply.ok(&p::RestoreFailedStorageResponseProto { result: false });
}

/// Reads again which data servers may take part, and which are to leave service, and asks anew for their racks. Every member has a list of its own.
pub fn refresh_nodes(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::RefreshNodesRequestProto>(&call, reply) else { return };
    if let Err(error) = require_superuser(core, &call, Privileged::RefreshNodes) {
        return reply.fs_error(&error);
    }
    let core = core.clone();
    // Reads a file: not on the thread that serves others.
    std::thread::spawn(move || match core.admission.reread(&*core.env.disk) {
        Ok(()) => {
            orders::give_all(&core);
            orders::ask_for_racks(&core);
            tracing::info!(user = %call.caller, "the lists of data servers were read again");
            reply.ok(&p::RefreshNodesResponseProto {});
        }
        Err(error) => reply.fs_error(&error),
    });
}

/// Where the group is at the newest level nothing is under way, so there is nothing to make final: the same as in HDFS. Otherwise
/// the caller is told what makes it final: a user's name proves nothing.
fn level_of(partition: &Partition) -> Level {
    partition.tree().namespace.group_level().level
}

pub fn finalize_upgrade(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::FinalizeUpgradeRequestProto>(&call, reply) else { return };
    match require_superuser(core, &call, Privileged::FinalizeUpgrade) {
        Ok(()) => match upgrade::unfinished(level_of(&core.partition)) {
            None => reply.ok(&p::FinalizeUpgradeResponseProto {}),
            Some(sentence) => reply.fs_error(&FsError::Unsupported(sentence)),
        },
        Err(error) => reply.fs_error(&error),
    }
}

pub fn upgrade_status(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::UpgradeStatusRequestProto>(&call, reply) else { return };
    let upgrade_finalized = upgrade::unfinished(level_of(&core.partition)).is_none();
    reply.ok(&p::UpgradeStatusResponseProto { upgrade_finalized });
}

/// Members are replaced by a newer release one after the other, which needs no preparation. Until the new level is final,
/// Hadoop's tools hear that a rolling upgrade goes on.
pub fn rolling_upgrade(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::RollingUpgradeRequestProto>(&call, reply) else { return };
    let operation = match request.action() {
        p::RollingUpgradeActionProto::Query => Privileged::QueryRollingUpgrade,
        p::RollingUpgradeActionProto::Start => Privileged::StartRollingUpgrade,
        p::RollingUpgradeActionProto::Finalize => Privileged::FinalizeRollingUpgrade,
    };
    if let Err(error) = require_superuser(core, &call, operation) {
        return reply.fs_error(&error);
    }
    match request.action() {
        p::RollingUpgradeActionProto::Query => {
            let rolling_upgrade_info = upgrade::unfinished(level_of(&core.partition)).map(|_| p::RollingUpgradeInfoProto {
                status: p::RollingUpgradeStatusProto {
                    block_pool_id: core.cluster.block_pool.to_string(),
                    finalized: Some(false),
                },
                start_time: core.partition.upgrade.began.ms,
                finalize_time: 0,
                // Nothing has to be made before members may go back.
                created_rollback_images: true,
            });
            reply.ok(&p::RollingUpgradeResponseProto { rolling_upgrade_info });
        }
        p::RollingUpgradeActionProto::Finalize => match upgrade::unfinished(level_of(&core.partition)) {
            None => reply.ok(&p::RollingUpgradeResponseProto { rolling_upgrade_info: None }),
            Some(sentence) => reply.fs_error(&FsError::Unsupported(sentence)),
        },
        p::RollingUpgradeActionProto::Start => reply.fs_error(&FsError::Unsupported(
            "A rolling upgrade needs no preparation here: replace the members of the group one after the other. Each can go back \
             until `clover admin upgrade finalize`."
                .into(),
        )),
    }
}

/// `HdfsServerConstants.MAX_BANDWIDTH_PER_DATANODE`.
const BANDWIDTH_MAX: i64 = 1 << 40;

pub fn set_balancer_bandwidth(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::SetBalancerBandwidthRequestProto>(&call, reply) else { return };
    if request.bandwidth > BANDWIDTH_MAX {
        return reply.error(RpcError::application(
            JAVA_ILLEGAL_ARGUMENT,
            format!("Bandwidth should not exceed maximum limit {BANDWIDTH_MAX} bytes per second"),
        ));
    }
    if let Err(error) = require_superuser(core, &call, Privileged::SetBalancerBandwidth) {
        return reply.fs_error(&error);
    }
    // Data servers take no notice of a number that is not above 0.
    if let Ok(rate @ 1..) = u64::try_from(request.bandwidth) {
        core.partition.blocks.lock().set_balancing_rate(rate);
    }
    reply.ok(&p::SetBalancerBandwidthResponseProto {});
}
