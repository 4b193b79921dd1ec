//! Quotas, and how much lies below a path.

use super::calls::{self, Sight, decode};
use crate::{core::Core, datanodes::wire};
use ::blocks::StorageType;
use base::{FsError, FsResult};
use namespace::{
    Amounts, ops,
    reads::{
        get_content_summary::{ContentSummary, Walk},
        get_quota_usage::{self, Usage},
    },
};
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::sync::Arc;

pub fn set_quota(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::SetQuotaRequestProto>(&call, reply) else { return };
    calls::turn(core, call, reply, move |turn, call| {
        // Java's signed numbers travel as unsigned ones.
        let quota = ops::set_quota::Request {
            path: &request.path,
            inodes: request.namespace_quota as i64,
            bytes: request.storagespace_quota as i64,
            storage_type: request.storage_type.map(storage_type).transpose()?,
        };
        ops::set_quota::check_privilege(&turn.core().context(&call.caller, Some(call.origin)), &quota)?;
        let what = || format!("Cannot set quota on {}", quota.path);
        calls::run(turn, call, what, |namespace, context, _| {
            ops::set_quota::plan(namespace, context, &quota)
        })?;
        Ok(p::SetQuotaResponseProto {})
    });
}

fn storage_type(number: i32) -> FsResult<StorageType> {
    let known = StorageType::ALL.into_iter().find(|kind| wire::storage_type(*kind) as i32 == number);
    known.ok_or_else(|| FsError::InvalidArgument(format!("Storage type {number} is not known")))
}

/// In steps, so that writers and others get in between.
pub fn get_content_summary(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetContentSummaryRequestProto>(&call, reply) else { return };
    let walk = {
        let tree = core.tree();
        let context = core.context(&call.caller, Some(call.origin));
        Walk::start(&tree.namespace, &context, &request.path)
    };
    let summary = walk.and_then(|walk| finish(core, &call, walk));
    calls::read(core, &call, reply, Sight::Everything, |_, _| {
        summary.map(|summary| p::GetContentSummaryResponseProto { summary: summary_proto(&summary) })
    });
}

pub fn get_quota_usage(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetQuotaUsageRequestProto>(&call, reply) else { return };
    let usage = {
        let tree = core.tree();
        let context = core.context(&call.caller, Some(call.origin));
        get_quota_usage::get(&tree.namespace, &context, &request.path)
    };
    let usage = usage.and_then(|usage| match usage {
        Usage::Known(quota) => Ok((quota.limits, quota.used)),
        Usage::Counted(walk) => finish(core, &call, walk).map(|summary| (summary.limits, used(&summary))),
    });
    calls::read(core, &call, reply, Sight::Everything, |_, _| {
        usage.map(|(limits, used)| p::GetQuotaUsageResponseProto {
            usage: p::QuotaUsageProto {
                file_and_directory_count: used.inodes as u64,
                quota: limits.inodes as u64,
                space_consumed: used.bytes as u64,
                space_quota: limits.bytes as u64,
                type_quota_infos: type_infos(&limits, &used),
            },
        })
    });
}

fn finish(core: &Arc<Core>, call: &Call, mut walk: Walk) -> FsResult<ContentSummary> {
    loop {
        let tree = core.tree();
        let context = core.context(&call.caller, Some(call.origin));
        if let Some(summary) = walk.step(&tree.namespace, &context)? {
            return Ok(summary);
        }
        drop(tree);
        std::thread::yield_now();
    }
}

fn used(summary: &ContentSummary) -> Amounts {
    Amounts {
        inodes: (summary.file_count + summary.directory_count) as i64,
        bytes: summary.space_consumed as i64,
        by_type: summary.type_consumed.map(|bytes| bytes as i64),
    }
}

fn summary_proto(summary: &ContentSummary) -> p::ContentSummaryProto {
    let ContentSummary { limits, snapshot, .. } = summary;
    p::ContentSummaryProto {
        length: summary.length,
        file_count: summary.file_count,
        directory_count: summary.directory_count,
        quota: limits.inodes as u64,
        space_consumed: summary.space_consumed,
        space_quota: limits.bytes as u64,
        type_quota_infos: type_infos(limits, &used(summary)),
        snapshot_length: Some(snapshot.length),
        snapshot_file_count: Some(snapshot.file_count),
        snapshot_directory_count: Some(snapshot.directory_count),
        snapshot_space_consumed: Some(snapshot.space_consumed),
        erasure_coding_policy: Some(summary.erasure_coding.into()),
    }
}

/// HDFS sends them where a type's quota or what is used of it is above 0.
fn type_infos(limits: &Amounts, used: &Amounts) -> Option<p::StorageTypeQuotaInfosProto> {
    if limits.by_type.iter().chain(&used.by_type).all(|bytes| *bytes <= 0) {
        return None;
    }
    let info = |kind: StorageType| p::StorageTypeQuotaInfoProto {
        r#type: Some(wire::storage_type(kind) as i32),
        quota: limits.of_type(kind) as u64,
        consumed: used.of_type(kind) as u64,
    };
    Some(p::StorageTypeQuotaInfosProto {
        type_quota_info: StorageType::WITH_QUOTA.into_iter().map(info).collect(),
    })
}
