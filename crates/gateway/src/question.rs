//! Answers questions about the tree and about the servers.

use crate::{
    answers::{blocks, named, policies, quotas, snapshots, status, xattrs},
    error::{Refusal, Result},
    operation::Question,
};
use bytes::Bytes;
use client::FileSystem;
use prost::{Message, Name};
use proto::hdfs as p;
use serde_json::{Value, json};

/// The directory of users' own directories, and of their trash below.
const HOMES: &str = "/user";
const TRASH: &str = ".Trash";
/// Users whose trash is looked for at once.
const TRASH_ROOTS_MAX: usize = 10_000;

/// The JSON that answers a question; `None` for an answer without a body. [`Question::List`] is answered by [`crate::listing`].
///
/// # Errors
/// The file system refuses, or does not answer.
pub async fn answer(fs: &FileSystem, path: &str, question: &Question) -> Result<Option<Value>> {
    let src = || path.to_owned();
    let value = match question {
        Question::FileStatus => {
            let answer: p::GetFileInfoResponseProto =
                fs.call("getFileInfo", &p::GetFileInfoRequestProto { src: src() }).await?;
            named("FileStatus", status::file_status(&answer.fs.ok_or_else(|| missing(path))?))
        }
        Question::LinkStatus => {
            let answer: p::GetFileLinkInfoResponseProto =
                fs.call("getFileLinkInfo", &p::GetFileLinkInfoRequestProto { src: src() }).await?;
            named("FileStatus", status::file_status(&answer.fs.ok_or_else(|| missing(path))?))
        }
        Question::LinkTarget => {
            let answer: p::GetLinkTargetResponseProto =
                fs.call("getLinkTarget", &p::GetLinkTargetRequestProto { path: src() }).await?;
            json!({ "Path": answer.target_path })
        }
        Question::List => return Err(Refusal::unsupported("LISTSTATUS is streamed")),
        Question::ListBatch { start_after } => {
            let page = page(fs, path, Bytes::from(start_after.clone().into_bytes())).await?;
            status::directory_listing(&page)
        }
        Question::ContentSummary => {
            let answer: p::GetContentSummaryResponseProto =
                fs.call("getContentSummary", &p::GetContentSummaryRequestProto { path: src() }).await?;
            quotas::content_summary(&answer.summary)
        }
        Question::QuotaUsage => {
            let answer: p::GetQuotaUsageResponseProto =
                fs.call("getQuotaUsage", &p::GetQuotaUsageRequestProto { path: src() }).await?;
            quotas::quota_usage(&answer.usage)
        }
        Question::HomeDirectory => json!({ "Path": home(fs.user()) }),
        Question::TrashRoot => json!({ "Path": format!("{}/{TRASH}", home(fs.user())) }),
        Question::TrashRoots { of_all_users } => trash_roots(fs, *of_all_users).await?,
        Question::LocatedBlocks { offset, length } => {
            blocks::located_blocks(&fs.block_locations(path, *offset, *length).await?)
        }
        Question::BlockLocations { offset, length } => {
            blocks::block_locations(&fs.block_locations(path, *offset, *length).await?)
        }
        Question::AclStatus => status::acl_status(&fs.acl_status(path).await?),
        Question::Xattrs { names, encoding } => {
            let x_attrs =
                names.iter().map(|name| client::xattr::to_wire(name, None)).collect::<client::Result<_>>()?;
            let answer: p::GetXAttrsResponseProto =
                fs.call("getXAttrs", &p::GetXAttrsRequestProto { src: src(), x_attrs }).await?;
            xattrs::xattrs(&answer.x_attrs, *encoding)
        }
        Question::XattrNames => {
            let answer: p::ListXAttrsResponseProto =
                fs.call("listXAttrs", &p::ListXAttrsRequestProto { src: src() }).await?;
            xattrs::xattr_names(&answer.x_attrs)
        }
        Question::CheckAccess(action) => {
            fs.check_access(path, *action).await?;
            return Ok(None);
        }
        Question::StoragePolicies => {
            let answer: p::GetStoragePoliciesResponseProto =
                fs.call("getStoragePolicies", &p::GetStoragePoliciesRequestProto {}).await?;
            let all: Vec<_> = answer.policies.iter().map(policies::storage_policy).collect();
            json!({ "BlockStoragePolicies": { "BlockStoragePolicy": all } })
        }
        Question::StoragePolicy => {
            let answer: p::GetStoragePolicyResponseProto =
                fs.call("getStoragePolicy", &p::GetStoragePolicyRequestProto { path: src() }).await?;
            named("BlockStoragePolicy", policies::storage_policy(&answer.storage_policy))
        }
        Question::ErasureCodingPolicy => {
            let answer: p::GetErasureCodingPolicyResponseProto = fs
                .call("getErasureCodingPolicy", &p::GetErasureCodingPolicyRequestProto { src: src() })
                .await?;
            answer.ec_policy.as_ref().map_or(Value::Null, policies::erasure_coding)
        }
        Question::ErasureCodingPolicies => {
            let answer: p::GetErasureCodingPoliciesResponseProto =
                fs.call("getErasureCodingPolicies", &p::GetErasureCodingPoliciesRequestProto {}).await?;
            policies::erasure_coding_policies(&answer.ec_policies)
        }
        Question::ErasureCodingCodecs => {
            let answer: p::GetErasureCodingCodecsResponseProto =
                fs.call("getErasureCodingCodecs", &p::GetErasureCodingCodecsRequestProto {}).await?;
            policies::erasure_coding_codecs(&answer.codec)
        }
        Question::ServerDefaults => {
            let answer: p::GetServerDefaultsResponseProto =
                fs.call("getServerDefaults", &p::GetServerDefaultsRequestProto {}).await?;
            policies::server_defaults(&answer.server_defaults)
        }
        Question::FsStatus => {
            let answer: p::GetFsStatsResponseProto =
                fs.call("getFsStats", &p::GetFsStatusRequestProto {}).await?;
            policies::fs_status(&answer)
        }
        Question::SnapshotDiff { from, to } => {
            let request = p::GetSnapshotDiffReportRequestProto {
                snapshot_root: src(),
                from_snapshot: from.clone(),
                to_snapshot: to.clone(),
            };
            let answer: p::GetSnapshotDiffReportResponseProto =
                fs.call("getSnapshotDiffReport", &request).await?;
            snapshots::diff(&answer.diff_report)?
        }
        Question::SnapshotDiffPage { from, to, start_path, index } => {
            let cursor = p::SnapshotDiffReportCursorProto {
                start_path: Bytes::from(start_path.clone().into_bytes()),
                index: *index,
            };
            let request = p::GetSnapshotDiffReportListingRequestProto {
                snapshot_root: src(),
                from_snapshot: from.clone(),
                to_snapshot: to.clone(),
                cursor: Some(cursor),
            };
            let answer: p::GetSnapshotDiffReportListingResponseProto =
                fs.call("getSnapshotDiffReportListing", &request).await?;
            snapshots::diff_page(&answer.diff_report)
        }
        Question::SnapshottableDirectories => {
            let request = p::GetSnapshottableDirListingRequestProto {};
            let answer: p::GetSnapshottableDirListingResponseProto =
                fs.call("getSnapshottableDirListing", &request).await?;
            let list = answer.snapshottable_dir_list.unwrap_or_default();
            snapshots::directories(&list.snapshottable_dir_listing)
        }
        Question::Snapshots => {
            let request = p::GetSnapshotListingRequestProto { snapshot_root: src() };
            let answer: p::GetSnapshotListingResponseProto = fs.call("getSnapshotListing", &request).await?;
            snapshots::list(&answer.snapshot_list.unwrap_or_default().snapshot_listing)
        }
        // Clients are not authenticated: as in Hadoop, there is no token then.
        Question::DelegationToken { .. } => json!({ "Token": null }),
    };
    Ok(Some(value))
}

/// One page of a directory from behind a name; empty: from the beginning.
pub async fn page(fs: &FileSystem, path: &str, start_after: Bytes) -> Result<p::DirectoryListingProto> {
    let request = p::GetListingRequestProto { src: path.to_owned(), start_after, need_location: false };
    let answer: p::GetListingResponseProto = fs.call("getListing", &request).await?;
    answer.dir_list.ok_or_else(|| Refusal::not_found(format!("File {path} does not exist.")))
}

pub fn missing(path: &str) -> Refusal {
    Refusal::not_found(format!("File does not exist: {path}"))
}

pub fn home(user: &str) -> String {
    format!("{HOMES}/{user}")
}

/// The directories of trash that are there: that of this user, or of all.
async fn trash_roots(fs: &FileSystem, of_all_users: bool) -> Result<Value> {
    let mut homes = vec![fs.user().to_owned()];
    if of_all_users {
        homes.clear();
        let mut start_after = Bytes::new();
        loop {
            let page = match page(fs, HOMES, start_after).await {
                Ok(page) => page,
                Err(refusal) if refusal.status == axum::http::StatusCode::NOT_FOUND => break,
                Err(refusal) => return Err(refusal),
            };
            homes.extend(
                page.partial_listing.iter().map(|one| String::from_utf8_lossy(&one.path).into_owned()),
            );
            if homes.len() > TRASH_ROOTS_MAX {
                return Err(Refusal::io(format!("{HOMES} has more than {TRASH_ROOTS_MAX} entries")));
            }
            match page.partial_listing.last() {
                Some(last) if page.remaining_entries > 0 => start_after = last.path.clone(),
                _ => break,
            }
        }
    }
    let mut roots = Vec::new();
    for home in homes {
        let path = format!("{HOMES}/{home}/{TRASH}");
        let request = p::GetFileInfoRequestProto { src: path.clone() };
        let answer: client::Result<p::GetFileInfoResponseProto> = fs.call("getFileInfo", &request).await;
        match answer {
            Ok(answer) => {
                let uri = format!("{}{path}", fs.uri());
                roots.extend(answer.fs.map(|status| status::java_file_status(&uri, &status)));
            }
            // The trash of others is theirs.
            Err(error) if error.is_access_denied() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(named("Paths", if roots.is_empty() { Value::Null } else { json!(roots) }))
}

/// Sends a call whose answer has no fields.
pub async fn done<Q, A>(fs: &FileSystem, method: &str, request: &Q) -> Result<()>
where
    Q: Message + Name,
    A: Message + Default + Name,
{
    let _: A = fs.call(method, request).await?;
    Ok(())
}
