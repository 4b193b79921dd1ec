//! Quotas, and how much lies below a path.

use super::{
    calls::{self, decode},
    walks::{self, Slice},
};
use crate::{core::Core, datanodes::wire};
use ::blocks::StorageType;
use base::{FsError, FsResult};
use namespace::{
    Amounts, ops,
    reads::{
        get_content_summary::{ContentSummary, Walk},
        get_quota_usage::{self, Look, Usage},
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
            path: request.path,
            inodes: request.namespace_quota as i64,
            bytes: request.storagespace_quota as i64,
            storage_type: request.storage_type.map(storage_type).transpose()?,
        };
        ops::set_quota::check_privilege(&turn.partition().context(&call.caller, Some(call.origin)), &quota)?;
        calls::run(turn, call, &quota)?;
        Ok(p::SetQuotaResponseProto {})
    });
}

fn storage_type(number: i32) -> FsResult<StorageType> {
    let known = StorageType::ALL.into_iter().find(|kind| wire::storage_type(*kind) as i32 == number);
    known.ok_or_else(|| FsError::InvalidArgument(format!("Storage type {number} is not known")))
}

/// In slices, so that writers and others get in between.
pub fn get_content_summary(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetContentSummaryRequestProto>(&call, reply) else { return };
    let mut walk = None;
    walks::read(core, call, reply, move |tree, context| {
        let walk = match &mut walk {
            Some(walk) => walk,
            None => walk.insert(Walk::start(&tree.namespace, context, &request.path)?),
        };
        let summary = walk.step(&tree.namespace, context)?;
        Ok(summary.map_or(Slice::More, |summary| {
            Slice::Answer(p::GetContentSummaryResponseProto { summary: summary_proto(&summary) })
        }))
    });
}

/// How far a look at what a directory may hold has come.
enum Looking {
    NotBegun,
    Checking(Look),
    Counting(Walk),
}

pub fn get_quota_usage(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetQuotaUsageRequestProto>(&call, reply) else { return };
    let mut looking = Looking::NotBegun;
    walks::read(core, call, reply, move |tree, context| {
        let namespace = &tree.namespace;
        if let Looking::NotBegun = looking {
            looking = Looking::Checking(get_quota_usage::start(namespace, context, &request.path)?);
        }
        let mut known = None;
        if let Looking::Checking(look) = &mut looking {
            match look.step(namespace, context)? {
                None => return Ok(Slice::More),
                Some(Usage::Known(quota)) => known = Some((quota.limits, quota.used)),
                Some(Usage::Counted(walk)) => looking = Looking::Counting(walk),
            }
        }
        if let Looking::Counting(walk) = &mut looking {
            known = walk.step(namespace, context)?.map(|summary| (summary.limits, used(&summary)));
        }
        let Some((limits, used)) = known else { return Ok(Slice::More) };
        Ok(Slice::Answer(p::GetQuotaUsageResponseProto {
            usage: p::QuotaUsageProto {
                file_and_directory_count: used.inodes as u64,
                quota: limits.inodes as u64,
                space_consumed: used.bytes as u64,
                space_quota: limits.bytes as u64,
                type_quota_infos: type_infos(&limits, &used),
            },
        }))
    });
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
