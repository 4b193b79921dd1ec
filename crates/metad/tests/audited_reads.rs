//! Each read of the namespace is written down as the table of methods says, although nobody looks into its message for that.

mod cluster;

use cluster::Plan;
use prost::{Message, Name};
use proto::{
    audit,
    hdfs::{self as p, acl_entry_proto::FsActionProto},
    protocol,
};

/// Makes a call, and notes what its bytes promise for the audit log. The call may fail.
async fn ask<Q: Message + Name, A: Message + Name + Default>(
    client: &rpc::Client,
    promised: &mut Vec<String>,
    method: &'static str,
    request: Q,
) -> bool {
    for line in audit::lines(method, &request.encode_to_vec()) {
        let path = |path: Option<String>| path.unwrap_or_else(|| "null".into());
        promised.push(format!(
            "cmd={}\tsrc={}\tdst={}",
            line.command,
            path(line.source),
            path(line.destination)
        ));
    }
    let answer: Result<A, _> = client.call(method, &request).await;
    answer.is_ok()
}

/// All reads about this path, which is a directory with a snapshot `s`. Those that are not logged are among them.
async fn ask_everything(client: &rpc::Client, path: &str, file: &str) -> (Vec<String>, Vec<&'static str>) {
    let (mut promised, mut refused) = (Vec::new(), Vec::new());
    let (path, file) = (path.to_owned(), file.to_owned());
    macro_rules! ask {
        ($method:literal, $request:ident { $($fields:tt)* } => $response:ident) => {
            if !ask::<_, p::$response>(client, &mut promised, $method, p::$request { $($fields)* }).await {
                refused.push($method);
            }
        };
    }
    ask!("getFileInfo", GetFileInfoRequestProto { src: path.clone() } => GetFileInfoResponseProto);
    ask!("getFileLinkInfo", GetFileLinkInfoRequestProto { src: path.clone() } => GetFileLinkInfoResponseProto);
    ask!("getLocatedFileInfo", GetLocatedFileInfoRequestProto { src: Some(path.clone()), need_block_token: Some(false) } =>
        GetLocatedFileInfoResponseProto);
    ask!("isFileClosed", IsFileClosedRequestProto { src: file.clone() } => IsFileClosedResponseProto);
    ask!("getPreferredBlockSize", GetPreferredBlockSizeRequestProto { filename: file.clone() } =>
        GetPreferredBlockSizeResponseProto);
    ask!("getBlockLocations", GetBlockLocationsRequestProto { src: file.clone(), offset: 0, length: 1 } =>
        GetBlockLocationsResponseProto);
    let start_after = Default::default();
    ask!("getListing", GetListingRequestProto { src: path.clone(), start_after, need_location: true } =>
        GetListingResponseProto);
    let (paths, start_after) = (vec![path.clone(), "/".into(), "/none".into()], Default::default());
    ask!("getBatchedListing", GetBatchedListingRequestProto { paths, start_after, need_location: false } =>
        GetBatchedListingResponseProto);
    ask!("getEnclosingRoot", GetEnclosingRootRequestProto { filename: Some(path.clone()) } =>
        GetEnclosingRootResponseProto);
    ask!("checkAccess", CheckAccessRequestProto { path: path.clone(), mode: FsActionProto::Read as i32 } =>
        CheckAccessResponseProto);
    ask!("getAclStatus", GetAclStatusRequestProto { src: path.clone() } => GetAclStatusResponseProto);
    ask!("getXAttrs", GetXAttrsRequestProto { src: path.clone(), x_attrs: Vec::new() } => GetXAttrsResponseProto);
    ask!("listXAttrs", ListXAttrsRequestProto { src: path.clone() } => ListXAttrsResponseProto);
    ask!("getContentSummary", GetContentSummaryRequestProto { path: path.clone() } => GetContentSummaryResponseProto);
    ask!("getQuotaUsage", GetQuotaUsageRequestProto { path: path.clone() } => GetQuotaUsageResponseProto);
    ask!("getStoragePolicy", GetStoragePolicyRequestProto { path: path.clone() } => GetStoragePolicyResponseProto);
    ask!("getSnapshottableDirListing", GetSnapshottableDirListingRequestProto {} =>
        GetSnapshottableDirListingResponseProto);
    ask!("getSnapshotListing", GetSnapshotListingRequestProto { snapshot_root: path.clone() } =>
        GetSnapshotListingResponseProto);
    let (root, from, to) = (path.clone(), "s".to_owned(), String::new());
    ask!("getSnapshotDiffReport", GetSnapshotDiffReportRequestProto {
        snapshot_root: root.clone(), from_snapshot: from.clone(), to_snapshot: to.clone()
    } => GetSnapshotDiffReportResponseProto);
    ask!("getSnapshotDiffReportListing", GetSnapshotDiffReportListingRequestProto {
        snapshot_root: root, from_snapshot: to, to_snapshot: from, cursor: None
    } => GetSnapshotDiffReportListingResponseProto);
    ask!("listOpenFiles", ListOpenFilesRequestProto { id: 0, types: Vec::new(), path: Some(path.clone()) } =>
        ListOpenFilesResponseProto);
    ask!("getEZForPath", GetEzForPathRequestProto { src: path.clone() } => GetEzForPathResponseProto);
    ask!("getErasureCodingPolicy", GetErasureCodingPolicyRequestProto { src: path } =>
        GetErasureCodingPolicyResponseProto);
    (promised, refused)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_read_leaves_the_lines_that_the_table_promises() {
    let plan = Plan::alone().adjusted(|_, config| {
        config.audit_log = Some(config.name_directory.with_file_name("logs").join("audit.log"));
    });
    let mut cluster = plan.start().await;
    let (alice, bob) = (cluster.client(1), cluster.client_as(1, protocol::CLIENT_NAMENODE, "bob"));
    cluster.mkdirs(1, "/d/below").await;
    let created: Result<p::CreateResponseProto, _> =
        alice.call("create", &cluster::files::create_request("/d/f", "writer")).await;
    assert!(created.is_ok());
    let root = "/d".to_owned();
    let allow = p::AllowSnapshotRequestProto { snapshot_root: root.clone() };
    let _: p::AllowSnapshotResponseProto = alice.call("allowSnapshot", &allow).await.unwrap();
    let name = Some("s".to_owned());
    let create = p::CreateSnapshotRequestProto { snapshot_root: root, snapshot_name: name };
    let _: p::CreateSnapshotResponseProto = alice.call("createSnapshot", &create).await.unwrap();

    let (promised, refused) = ask_everything(&alice, "/d", "/d/f").await;
    assert_eq!(refused, [""; 0]);
    assert!(promised.contains(&"cmd=computeSnapshotDiff\tsrc=/d/.snapshot/s\tdst=/d".into()));
    assert!(promised.contains(&"cmd=computeSnapshotDiff\tsrc=/d\tdst=/d/.snapshot/s".into()));
    // A refusal is written down, too, of a call that is refused before anything is looked at as well.
    let closed =
        p::SetPermissionRequestProto { src: "/d".into(), permission: p::FsPermissionProto { perm: 0o700 } };
    let _: p::SetPermissionResponseProto = alice.call("setPermission", &closed).await.unwrap();
    let (_, denied) = ask_everything(&bob, "/d", "/d/f").await;
    assert!(denied.contains(&"listOpenFiles") && denied.contains(&"getContentSummary"), "{denied:?}");

    drop((alice, bob));
    cluster.stop(1).await;
    let log = std::fs::read_to_string(cluster.beside("logs/audit.log")).unwrap();
    let mut lines = log.lines().map(|line| {
        let line = line.split_once("audit: ").unwrap().1;
        let (allowed, about) = (line.starts_with("allowed=true"), &line[line.find("cmd=").unwrap()..]);
        (allowed, about.split_once("\tperm=").unwrap().0.to_owned())
    });
    assert!(lines.any(|(_, about)| about.starts_with("cmd=createSnapshot")));
    for promised in promised {
        assert_eq!(lines.next(), Some((true, promised)));
    }
    let refused: Vec<String> = lines.filter(|(allowed, _)| !allowed).map(|(_, about)| about).collect();
    let expected = ["cmd=contentSummary\tsrc=/d\tdst=null", "cmd=listOpenFiles\tsrc=null\tdst=null"];
    assert!(expected.iter().all(|line| refused.iter().any(|told| told == line)), "{refused:?}");
}
