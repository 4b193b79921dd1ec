//! Quotas and storage policies as clients meet them on the wire, before and after a restart.

mod cluster;

use cluster::{Cluster, Plan, refusal, try_mkdirs};
use proto::{hdfs as p, protocol};
use rpc::CallError;

const KEEP: i64 = i64::MAX;

async fn set_quota(
    client: &rpc::Client,
    path: &str,
    (names, space): (i64, i64),
    kind: Option<p::StorageTypeProto>,
) -> Result<(), CallError> {
    let request = p::SetQuotaRequestProto {
        path: path.into(),
        namespace_quota: names as u64,
        storagespace_quota: space as u64,
        storage_type: kind.map(|kind| kind as i32),
    };
    client.call("setQuota", &request).await.map(|_: p::SetQuotaResponseProto| ())
}

async fn usage(client: &rpc::Client, path: &str) -> p::QuotaUsageProto {
    let request = p::GetQuotaUsageRequestProto { path: path.into() };
    let response: p::GetQuotaUsageResponseProto = client.call("getQuotaUsage", &request).await.unwrap();
    response.usage
}

async fn summary(client: &rpc::Client, path: &str) -> p::ContentSummaryProto {
    let request = p::GetContentSummaryRequestProto { path: path.into() };
    let response: p::GetContentSummaryResponseProto =
        client.call("getContentSummary", &request).await.unwrap();
    response.summary
}

fn in_hdfs(class: &str) -> String {
    format!("org.apache.hadoop.hdfs.protocol.{class}")
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_are_set_refused_and_remembered() {
    let mut cluster = Cluster::alone().await;
    let client = cluster.client(1);
    try_mkdirs(&client, "/q").await.unwrap();
    set_quota(&client, "/q", (2, 1 << 30), None).await.unwrap();
    set_quota(&client, "/q", (KEEP, 1 << 20), Some(p::StorageTypeProto::Ssd)).await.unwrap();
    try_mkdirs(&client, "/q/a").await.unwrap();
    let (class, message) = refusal(try_mkdirs(&client, "/q/b").await);
    assert_eq!(class, in_hdfs("NSQuotaExceededException"));
    assert_eq!(
        message,
        "The NameSpace quota (directories and files) of directory /q is exceeded: quota=2 file count=3"
    );

    // Nonsense is refused, and the connection lives.
    let (class, message) = refusal(set_quota(&client, "/q", (-5, KEEP), None).await);
    assert_eq!(class, "org.apache.hadoop.HadoopIllegalArgumentException");
    assert_eq!(message, "Illegal value for nsQuota or ssQuota : -5 and 9223372036854775807");
    let types = Some(p::StorageTypeProto::Disk);
    let (class, _) = refusal(set_quota(&client, "/q", (5, 5), types).await);
    assert_eq!(class, "org.apache.hadoop.hdfs.server.namenode.UnsupportedActionException");
    let bob = cluster.client_as(1, protocol::CLIENT_NAMENODE, "bob");
    let (class, message) = refusal(set_quota(&bob, "/q", (-1, KEEP), None).await);
    assert_eq!(class, "org.apache.hadoop.security.AccessControlException");
    assert_eq!(
        message,
        "Access denied for user bob. Superuser privilege is required for operation clearQuota"
    );
    cluster.stop(1).await;
    cluster.restart(1).await;
    let client = cluster.client(1);
    let used = usage(&client, "/q").await;
    assert_eq!((used.file_and_directory_count, used.quota, used.space_quota), (2, 2, 1 << 30));
    let infos = used.type_quota_infos.expect("SSD has a quota").type_quota_info;
    assert_eq!(infos.len(), 5);
    assert_eq!(
        (infos[0].r#type(), infos[0].quota, infos[0].consumed),
        (p::StorageTypeProto::Ssd, 1 << 20, 0)
    );
    assert_eq!(infos[1].quota as i64, -1);
    let found = summary(&client, "/q").await;
    assert_eq!((found.directory_count, found.quota, found.erasure_coding_policy()), (2, 2, ""));
    // A directory without a quota is counted; the root has one that nobody exceeds.
    let counted = usage(&client, "/q/a").await;
    assert_eq!((counted.file_and_directory_count, counted.quota as i64), (1, -1));
    assert_eq!(
        (usage(&client, "/").await.quota, summary(&client, "/").await.quota),
        (KEEP as u64, KEEP as u64)
    );
    cluster.stop(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn storage_policies_are_listed_set_and_shown() {
    let mut cluster = Cluster::alone().await;
    let client = cluster.client(1);
    let request = p::GetStoragePoliciesRequestProto {};
    let known: p::GetStoragePoliciesResponseProto =
        client.call("getStoragePolicies", &request).await.unwrap();
    let names: Vec<_> = known.policies.iter().map(|policy| (policy.policy_id, &*policy.name)).collect();
    assert_eq!(
        names,
        [
            (1, "PROVIDED"),
            (2, "COLD"),
            (5, "WARM"),
            (7, "HOT"),
            (10, "ONE_SSD"),
            (12, "ALL_SSD"),
            (14, "ALL_NVDIMM"),
            (15, "LAZY_PERSIST")
        ]
    );
    try_mkdirs(&client, "/d/below").await.unwrap();
    let set = |policy: &str| p::SetStoragePolicyRequestProto { src: "/d".into(), policy_name: policy.into() };
    let _: p::SetStoragePolicyResponseProto = client.call("setStoragePolicy", &set("cold")).await.unwrap();
    let shown = async |client: &rpc::Client| {
        let request = p::GetFileInfoRequestProto { src: "/d/below".into() };
        let response: p::GetFileInfoResponseProto = client.call("getFileInfo", &request).await.unwrap();
        response.fs.unwrap().storage_policy()
    };
    assert_eq!(shown(&client).await, 2);
    let asked = p::GetStoragePolicyRequestProto { path: "/d/below".into() };
    let policy: p::GetStoragePolicyResponseProto = client.call("getStoragePolicy", &asked).await.unwrap();
    assert_eq!(policy.storage_policy.name, "COLD");
    let answer: Result<p::SetStoragePolicyResponseProto, _> =
        client.call("setStoragePolicy", &set("TEPID")).await;
    assert_eq!(refusal(answer).1, "Cannot find a block policy with the name TEPID");
    cluster.stop(1).await;
    cluster.restart(1).await;
    let client = cluster.client(1);
    assert_eq!(shown(&client).await, 2);
    let unset = p::UnsetStoragePolicyRequestProto { src: "/d".into() };
    let _: p::UnsetStoragePolicyResponseProto = client.call("unsetStoragePolicy", &unset).await.unwrap();
    assert_eq!(shown(&client).await, 0);
    cluster.stop(1).await;
}

/// Both calls go over one connection, so the first is answered first unless it lets others in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_summary_of_a_large_tree_lets_others_in_between() {
    let plan = Plan::alone().adjusted(|_, config| config.limits.content_summary_step = 1);
    let mut cluster = plan.start().await;
    let client = cluster.client(1);
    let (branches, depth) = (50, 400);
    for branch in 0..branches {
        try_mkdirs(&client, &format!("/d/{branch}{}", "/a".repeat(depth))).await.unwrap();
    }
    let (sender, mut answered) = tokio::sync::mpsc::unbounded_channel();
    let tell = |what: &'static str| {
        let sender = sender.clone();
        move || sender.send(what).unwrap()
    };
    let (walked, counted, changed) = (tell("summary"), tell("usage"), tell("change"));
    let summary = async {
        let summary = summary(&client, "/d").await;
        assert_eq!(summary.directory_count, 1 + branches * (depth as u64 + 1));
        walked();
    };
    let usage = async {
        let usage = usage(&client, "/d").await;
        assert_eq!(usage.file_and_directory_count, 1 + branches * (depth as u64 + 1));
        counted();
    };
    let change = async {
        try_mkdirs(&client, "/other").await.unwrap();
        changed();
    };
    // In this order they are sent.
    tokio::join!(biased; summary, usage, change);
    assert_eq!(answered.recv().await, Some("change"), "it had to wait for all of the tree to be counted");
    cluster.stop(1).await;
}

/// Makes a call on a connection, and another one right behind it. True if the second was answered first.
async fn is_overtaken(first: impl Future<Output = ()>, second: impl Future<Output = ()>) -> bool {
    let (sender, mut answered) = tokio::sync::mpsc::unbounded_channel();
    let tell = |what: bool| sender.send(what).unwrap();
    tokio::join!(biased; async { first.await; tell(false) }, async { second.await; tell(true) });
    answered.recv().await.unwrap()
}

/// Each of them rests on every directory below, and has to be right at the moment of its edit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_and_a_deletion_of_a_large_tree_let_other_changes_in_between() {
    let plan = Plan::alone().adjusted(|_, config| config.limits.content_summary_step = 1);
    let mut cluster = plan.start().await;
    let client = cluster.client(1);
    let (branches, depth) = (50, 400);
    for branch in 0..branches {
        try_mkdirs(&client, &format!("/top/d/{branch}{}", "/a".repeat(depth))).await.unwrap();
    }
    let count = 2 + branches * (depth as u64 + 1);
    let limit = async { set_quota(&client, "/top", (count as i64 + 1, KEEP), None).await.unwrap() };
    let change = async { assert!(try_mkdirs(&client, "/other").await.unwrap()) };
    assert!(is_overtaken(limit, change).await, "a change had to wait for all of the tree to be counted");
    assert_eq!(usage(&client, "/top").await.file_and_directory_count, count);
    try_mkdirs(&client, "/top/one-more").await.unwrap();
    refusal(try_mkdirs(&client, "/top/one-too-many").await);

    let deletion = async {
        let request = p::DeleteRequestProto { src: "/top/d".into(), recursive: true };
        let response: p::DeleteResponseProto = client.call("delete", &request).await.unwrap();
        assert!(response.result);
    };
    let change = async { assert!(try_mkdirs(&client, "/another").await.unwrap()) };
    assert!(
        is_overtaken(deletion, change).await,
        "a change had to wait for all that is deleted to be counted"
    );
    assert_eq!(usage(&client, "/top").await.file_and_directory_count, 2);
    cluster.stop(1).await;
}
