//! Quotas, and how much lies below a path.

use super::{
    calls::{asked, decode},
    looking, walks,
};
use crate::{core::Core, partition::turn::Turn};
use ::blocks::StorageType;
use base::{FsError, FsResult};
use namespace::{
    Amounts, ops,
    reads::{
        get_content_summary::{self, ContentSummary},
        get_quota_usage::{self, LimitsAndUsage},
    },
};
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::sync::Arc;

pub fn set_quota(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::SetQuotaRequestProto>(&call, reply) else { return };
    let storage_type = request.storage_type.map(storage_type).transpose();
    // Java's signed numbers travel as unsigned ones.
    let quota = ops::set_quota::Request {
        path: request.path,
        inodes: request.namespace_quota as i64,
        bytes: request.storagespace_quota as i64,
        storage_type: storage_type.clone().unwrap_or(None),
    };
    // HDFS asks for both before anything else, safe mode included.
    let asked = quota.clone();
    let check = move |turn: &Turn<'_>, call: &Call| {
        storage_type.clone()?;
        ops::set_quota::check_privilege(&turn.partition().context(&call.caller, Some(call.origin)), &asked)
    };
    looking::write(core, call, reply, quota.into(), check, |_, _| p::SetQuotaResponseProto {});
}

fn storage_type(number: i32) -> FsResult<StorageType> {
    let known = p::StorageTypeProto::try_from(number).map(StorageType::from);
    known.map_err(|_| FsError::InvalidArgument(format!("Storage type {number} is not known")))
}

/// In slices, so that writers and others get in between.
pub fn get_content_summary(core: &Arc<Core>, call: Call, reply: Replier) {
    let read =
        |message: p::GetContentSummaryRequestProto| get_content_summary::Request { path: message.path };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    walks::read(core, call, reply, read, |_, summary| p::GetContentSummaryResponseProto {
        summary: summary_proto(&summary),
    });
}

pub fn get_quota_usage(core: &Arc<Core>, call: Call, reply: Replier) {
    let read = |message: p::GetQuotaUsageRequestProto| get_quota_usage::Request { path: message.path };
    let Some((read, reply)) = asked(core, &call, reply, read) else { return };
    walks::read(core, call, reply, read, |_, LimitsAndUsage { limits, used }| {
        p::GetQuotaUsageResponseProto {
            usage: p::QuotaUsageProto {
                file_and_directory_count: used.inodes as u64,
                quota: limits.inodes as u64,
                space_consumed: used.bytes as u64,
                space_quota: limits.bytes as u64,
                type_quota_infos: type_infos(&limits, &used),
            },
        }
    });
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
        type_quota_infos: type_infos(limits, &summary.used()),
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
        r#type: Some(p::StorageTypeProto::from(kind) as i32),
        quota: limits.of_type(kind) as u64,
        consumed: used.of_type(kind) as u64,
    };
    Some(p::StorageTypeQuotaInfosProto {
        type_quota_info: StorageType::WITH_QUOTA.into_iter().map(info).collect(),
    })
}
