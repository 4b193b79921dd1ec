//! Calls that concern all groups: each answers for itself, and one server puts the answers together.
//!
//! What names no path any door takes apart. A sum over a directory the root group's active takes apart: it alone knows all directories, and all
//! groups that hold files. Its door may be late.

use super::{
    decide::Looked,
    diffs,
    lists::{self, Parts},
    send::send_on,
    servers,
};
use crate::{
    client_protocol::hand_over,
    core::Core,
    forward::{self, Fate},
};
use base::{FsError, GroupId};
use bytes::Bytes;
use namespace::Namespace;
use parking_lot::Mutex;
use prost::Message;
use proto::hdfs as p;
use rpc::{Answer, Call, NoResponse, Replier, RpcError};
use std::sync::Arc;

/// How answers are put together.
#[derive(Clone, Copy)]
enum Merge {
    Parts(fn(Parts) -> Result<Bytes, prost::DecodeError>),
    /// The answer has something of the request in it.
    Asked(fn(&[u8], Parts) -> Result<Bytes, prost::DecodeError>),
}

/// How the answers of all groups become one. `None`: the root group alone answers the method.
fn merge_of(method: &str) -> Option<Merge> {
    if method == "getSnapshotDiffReport" {
        return Some(Merge::Asked(diffs::report));
    }
    match method {
        "getDatanodeReport" => return Some(Merge::Asked(servers::report)),
        "getDatanodeStorageReport" => return Some(Merge::Asked(servers::storage_report)),
        _ => {}
    }
    Some(Merge::Parts(match method {
        "getSnapshotDiffReportListing" => diffs::listing,
        "getContentSummary" => content_summary,
        "getQuotaUsage" => quota_usage,
        "getFsStats" => fs_stats,
        "getFsReplicatedBlockStats" => replicated_block_stats,
        // In safe mode if any group is, after an order as after a question.
        "setSafeMode" => safe_mode,
        "getSlowDatanodeReport" => servers::slow_report,
        "listOpenFiles" => lists::open_files,
        "listCorruptFileBlocks" => lists::corrupt_files,
        "saveNamespace"
        | "rollEdits"
        | "restoreFailedStorage"
        | "finalizeUpgrade"
        | "metaSave"
        | "setBalancerBandwidth"
        | "renewLease" => of_root,
        _ => return None,
    }))
}

/// Whether a server with this tree takes a call apart.
pub fn is_apart(looked: &Looked, tree: &Namespace) -> bool {
    merge_of(looked.method.name).is_some()
        && !looked.is_part
        && tree.has_homes()
        && (looked.home_call.paths.is_empty()
            || tree.group() == GroupId::ROOT && !looked.is_about_no_directory(tree))
}

/// Asks all groups that hold files, if the call concerns all of them and this server takes it apart. Gives the call back otherwise.
pub fn gather(core: &Arc<Core>, looked: &Looked, call: Call, reply: Replier) -> Option<(Call, Replier)> {
    let Some(merge) = merge_of(call.method) else { return Some((call, reply)) };
    // The tree of a member that does not lead may be late.
    let is_certain = looked.home_call.paths.is_empty() || core.partition.member.is_serving();
    let groups = {
        let tree = core.partition.tree();
        match is_certain && is_apart(looked, &tree.namespace) {
            true => tree.namespace.homes(),
            // Its home alone knows the file, or the root group everything.
            false => return Some((call, reply)),
        }
    };
    // Each group is told that it is asked for its part.
    let method = match call.method {
        // Each group is asked with the method that tells pages, and tells all of them in one. The first fields of both requests are the same.
        "getSnapshotDiffReport" => "getSnapshotDiffReportListing",
        method => method,
    };
    let call = Call { method, is_part: true, is_forwarded: false, ..call };
    let request = call.request.clone();
    let part = match call.method {
        "getDatanodeReport" | "getDatanodeStorageReport" => servers::part_of(&request),
        _ => request.clone(),
    };
    let call = Call { request: part, ..call };
    let merge = move |parts| match merge {
        Merge::Parts(merge) => merge(parts),
        Merge::Asked(merge) => merge(&request, parts),
    };
    let merge = move |parts| merge(parts).map_err(|error| error.to_string());
    let gathering = Gathering::new(groups.len(), Box::new(merge), reply);
    for group in groups {
        let gathering = gathering.clone();
        let take = move |answer| gathering.lock().take(group, answer);
        ask(core, group, call.clone(), Replier::captured(take));
    }
    None
}

fn ask(core: &Arc<Core>, group: GroupId, part: Call, reply: Replier) {
    if group != core.cluster.group {
        return send_on(core, group, part, reply);
    }
    match core.partition.member.is_serving() || core.partition.forwarder.is_alone() {
        true => answer_own(core, part, reply),
        false => pass_to_own(core, part, reply, Fate::NotBegun),
    }
}

/// The part of this group, by the member that leads it.
fn pass_to_own(core: &Arc<Core>, part: Call, reply: Replier, fate: Fate) {
    let serving = core.clone();
    let serve = move |part: Call, reply: Replier| answer_own(&serving, part, reply);
    core.partition.forwarder.take(part, reply, fate, Box::new(serve));
}

/// The part of this group, by this member. It may stop leading meanwhile, and then another one is asked.
fn answer_own(core: &Arc<Core>, part: Call, reply: Replier) {
    let (asking, again) = (core.clone(), part.clone());
    let take = move |answer: Answer| match answer.result {
        Ok(response) => reply.ok_encoded(response.len(), |out| out.extend_from_slice(&response)),
        Err(NoResponse::Refused(error)) if !forward::is_elsewhere(&error) => reply.error(error),
        Err(NoResponse::Refused(_)) if asking.partition.forwarder.is_alone() => {
            hand_over(&asking, again, reply)
        }
        Err(NoResponse::Refused(error)) => {
            let fate = if forward::was_begun(&error) { Fate::Unknown } else { Fate::NotBegun };
            pass_to_own(&asking, again, reply, fate);
        }
        Err(NoResponse::GivenUp) => drop(reply),
    };
    // As a call that another server has passed on: what this member cannot answer comes back here.
    (core.answer)(core, Call { is_forwarded: true, ..part }, Replier::captured(take));
}

/// The parts of one call, until all groups have answered.
pub(super) struct Gathering {
    waiting: usize,
    parts: Parts,
    /// The refusal of the first group that has refused; that may be the root group.
    refusal: Option<(GroupId, RpcError)>,
    /// Taken with the last part.
    end: Option<(Merging, Replier)>,
}

/// Puts the answers to one call together, or says why that is not possible.
pub(super) type Merging = Box<dyn FnOnce(Parts) -> Result<Bytes, String> + Send>;

impl Gathering {
    /// Waits for so many groups. Each of them writes down what it answers.
    pub fn new(groups: usize, merge: Merging, reply: Replier) -> Arc<Mutex<Self>> {
        let end = Some((merge, reply.unwatched()));
        Arc::new(Mutex::new(Self { waiting: groups, parts: Parts::new(), refusal: None, end }))
    }

    pub fn take(&mut self, group: GroupId, answer: Answer) {
        match answer.result {
            Ok(part) => _ = self.parts.insert(group, part),
            Err(no_response) => {
                let refusal = match no_response {
                    NoResponse::Refused(error) => error,
                    NoResponse::GivenUp => RpcError::from(&FsError::Retry(format!(
                        "Group {group} has not answered; try again in a moment."
                    ))),
                };
                if self.refusal.as_ref().is_none_or(|(of, _)| group < *of) {
                    self.refusal = Some((group, refusal));
                }
            }
        }
        self.waiting -= 1;
        if let Some((merge, reply)) = self.end.take_if(|_| self.waiting == 0) {
            match self.refusal.take() {
                Some((_, refusal)) => reply.error(refusal),
                None => Self::answer_with(merge, std::mem::take(&mut self.parts), reply),
            }
        }
    }

    /// Answers a call of which these are all parts.
    pub fn answer_with(merge: Merging, parts: Parts, reply: Replier) {
        match merge(parts) {
            Ok(answer) => reply.ok_encoded(answer.len(), |out| out.extend_from_slice(&answer)),
            Err(error) => reply.fs_error(&FsError::Io(format!("A group's answer cannot be read: {error}"))),
        }
    }
}

/// All have done it, and the root group's answer is the client's.
fn of_root(mut parts: Parts) -> Result<Bytes, prost::DecodeError> {
    Ok(parts.remove(&GroupId::ROOT).unwrap_or_default())
}

fn safe_mode(parts: Parts) -> Result<Bytes, prost::DecodeError> {
    let mut result = false;
    for part in parts.into_values() {
        result |= p::SetSafeModeResponseProto::decode(part)?.result;
    }
    Ok(p::SetSafeModeResponseProto { result }.encode_to_vec().into())
}

/// All groups have all directories, so these count once; each group has its own files.
fn summed(parts: Parts) -> Result<p::ContentSummaryProto, prost::DecodeError> {
    let mut sum: Option<p::ContentSummaryProto> = None;
    for part in parts.into_values() {
        let part = p::GetContentSummaryResponseProto::decode(part)?.summary;
        let Some(sum) = &mut sum else {
            sum = Some(part);
            continue;
        };
        sum.length += part.length;
        sum.file_count += part.file_count;
        sum.space_consumed += part.space_consumed;
        for (total, more) in [
            (&mut sum.snapshot_length, part.snapshot_length),
            (&mut sum.snapshot_file_count, part.snapshot_file_count),
            (&mut sum.snapshot_space_consumed, part.snapshot_space_consumed),
        ] {
            add_told(total, more);
        }
        add_types(&mut sum.type_quota_infos, part.type_quota_infos);
    }
    Ok(sum.unwrap_or_default())
}

/// Adds a number that a group may not tell.
fn add_told(total: &mut Option<u64>, more: Option<u64>) {
    *total = total.zip(more).map(|(total, more)| total + more).or(*total).or(more);
}

/// Adds what is used on each medium. The limits are the same in all groups.
fn add_types(sum: &mut Option<p::StorageTypeQuotaInfosProto>, part: Option<p::StorageTypeQuotaInfosProto>) {
    let Some(part) = part.filter(|part| !part.type_quota_info.is_empty()) else { return };
    let Some(sum) = sum else {
        *sum = Some(part);
        return;
    };
    for info in part.type_quota_info {
        match sum.type_quota_info.iter_mut().find(|known| known.r#type == info.r#type) {
            Some(known) => known.consumed += info.consumed,
            None => sum.type_quota_info.push(info),
        }
    }
}

fn content_summary(parts: Parts) -> Result<Bytes, prost::DecodeError> {
    Ok(p::GetContentSummaryResponseProto { summary: summed(parts)? }.encode_to_vec().into())
}

/// The root group has counted the directories, and each group its files.
fn quota_usage(parts: Parts) -> Result<Bytes, prost::DecodeError> {
    let mut sum: Option<p::QuotaUsageProto> = None;
    for part in parts.into_values() {
        let part = p::GetQuotaUsageResponseProto::decode(part)?.usage;
        let Some(sum) = &mut sum else {
            sum = Some(part);
            continue;
        };
        sum.file_and_directory_count += part.file_and_directory_count;
        sum.space_consumed += part.space_consumed;
        add_types(&mut sum.type_quota_infos, part.type_quota_infos);
    }
    Ok(p::GetQuotaUsageResponseProto { usage: sum.unwrap_or_default() }.encode_to_vec().into())
}

/// All groups have the same data servers, whose capacity counts once; each has its own blocks.
fn fs_stats(parts: Parts) -> Result<Bytes, prost::DecodeError> {
    let mut sum: Option<p::GetFsStatsResponseProto> = None;
    for part in parts.into_values() {
        let part = p::GetFsStatsResponseProto::decode(part)?;
        let Some(sum) = &mut sum else {
            sum = Some(part);
            continue;
        };
        sum.under_replicated += part.under_replicated;
        sum.corrupt_blocks += part.corrupt_blocks;
        sum.missing_blocks += part.missing_blocks;
        for (total, more) in [
            (&mut sum.missing_repl_one_blocks, part.missing_repl_one_blocks),
            (&mut sum.blocks_in_future, part.blocks_in_future),
            (&mut sum.pending_deletion_blocks, part.pending_deletion_blocks),
        ] {
            add_told(total, more);
        }
    }
    Ok(sum.unwrap_or_default().encode_to_vec().into())
}

fn replicated_block_stats(parts: Parts) -> Result<Bytes, prost::DecodeError> {
    let mut sum = p::GetFsReplicatedBlockStatsResponseProto::default();
    for part in parts.into_values() {
        let part = p::GetFsReplicatedBlockStatsResponseProto::decode(part)?;
        sum.low_redundancy += part.low_redundancy;
        sum.corrupt_blocks += part.corrupt_blocks;
        sum.missing_blocks += part.missing_blocks;
        sum.missing_repl_one_blocks += part.missing_repl_one_blocks;
        sum.blocks_in_future += part.blocks_in_future;
        sum.pending_deletion_blocks += part.pending_deletion_blocks;
        for (total, more) in [
            (&mut sum.highest_prio_low_redundancy_blocks, part.highest_prio_low_redundancy_blocks),
            (&mut sum.badly_distributed_blocks, part.badly_distributed_blocks),
        ] {
            add_told(total, more);
        }
    }
    Ok(sum.encode_to_vec().into())
}
