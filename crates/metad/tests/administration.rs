//! The questions and orders of operators in Hadoop's own calls. Some are refused with the answers of an HDFS that lacks
//! the feature.

mod cluster;

use cluster::{Cluster, SUPERUSER, refusal, set_safe_mode};
use prost::{Message, Name};
use proto::{
    common as c,
    exception::{
        ACCESS_CONTROL, AUTHORIZATION, FILE_NOT_FOUND, ILLEGAL_ARGUMENT, INVALID_REQUEST, INVALID_TOKEN, IO,
        JAVA_ILLEGAL_ARGUMENT, NO_EC_POLICY_SET, SAFE_MODE, UNSUPPORTED_OPERATION,
    },
    hdfs as p, protocol,
};
use rpc::Client;

fn connect(cluster: &Cluster, protocol: &str, user: &str) -> Client {
    cluster.client_as(1, protocol, user)
}

async fn ok<A: Message + Default + Name>(client: &Client, method: &str, request: &impl Message) -> A {
    client.call(method, request).await.unwrap_or_else(|error| panic!("{method}: {error}"))
}

/// The class and the text of a refusal.
async fn refused(client: &Client, method: &str, request: &impl Message) -> (String, String) {
    refusal(client.call_encoded(method, &request.encode_to_vec()).await)
}

async fn assert_refused(client: &Client, method: &str, request: &impl Message, class: &str, text: &str) {
    let (found, message) = refused(client, method, request).await;
    assert_eq!((found.as_str(), message.as_str()), (class, text), "{method}");
}

async fn start() -> (Cluster, Client) {
    let (cluster, _) = Cluster::in_sync(1).await;
    let files = cluster.client(1);
    cluster.mkdirs(1, "/d").await;
    let _: p::CreateResponseProto = ok(&files, "create", &create("/d/f")).await;
    (cluster, files)
}

fn create(path: &str) -> p::CreateRequestProto {
    cluster::files::create_request(path, "DFSClient_1")
}

/// Hadoop: `FileSystem.areSymlinksEnabled` is false unless a test says otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn symbolic_links_are_refused_as_hdfs_refuses_them() {
    let (_cluster, files) = start().await;
    let link = p::CreateSymlinkRequestProto {
        target: "/d/f".into(),
        link: "/d/link".into(),
        dir_perm: p::FsPermissionProto { perm: 0o755 },
        create_parent: false,
    };
    assert_refused(&files, "createSymlink", &link, UNSUPPORTED_OPERATION, "Symlinks not supported").await;
    let target = |path: &str| p::GetLinkTargetRequestProto { path: path.into() };
    let text = "Path /d/f is not a symbolic link";
    assert_refused(&files, "getLinkTarget", &target("/d/f"), IO, text).await;
    let text = "File does not exist: /absent";
    assert_refused(&files, "getLinkTarget", &target("/absent"), FILE_NOT_FOUND, text).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_security_no_token_is_given_and_none_is_known() {
    let (_cluster, files) = start().await;
    let request = c::GetDelegationTokenRequestProto { renewer: "anybody".into() };
    let answer: c::GetDelegationTokenResponseProto = ok(&files, "getDelegationToken", &request).await;
    assert_eq!(answer.token, None);
    let token = c::TokenProto::default();
    let (class, _) = refused(
        &files,
        "renewDelegationToken",
        &c::RenewDelegationTokenRequestProto { token: token.clone() },
    )
    .await;
    assert_eq!(class, INVALID_TOKEN);
    let (class, _) =
        refused(&files, "cancelDelegationToken", &c::CancelDelegationTokenRequestProto { token }).await;
    assert_eq!(class, INVALID_TOKEN);
}

#[tokio::test(flavor = "multi_thread")]
async fn encryption_zones_are_answered_as_where_no_key_provider_is() {
    let (cluster, files) = start().await;
    let create = p::CreateEncryptionZoneRequestProto { src: "/d".into(), key_name: Some("key".into()) };
    let text = "Can't create an encryption zone for /d since no key provider is available.";
    assert_refused(&files, "createEncryptionZone", &create, IO, text).await;
    let zones: p::ListEncryptionZonesResponseProto =
        ok(&files, "listEncryptionZones", &p::ListEncryptionZonesRequestProto { id: 0 }).await;
    assert!(zones.zones.is_empty() && !zones.has_more);
    let again = p::ReencryptEncryptionZoneRequestProto {
        action: p::ReencryptActionProto::StartReencrypt as i32,
        zone: "/d".into(),
    };
    let text = "No key provider configured, re-encryption operation is rejected";
    assert_refused(&files, "reencryptEncryptionZone", &again, IO, text).await;
    let found: p::GetEzForPathResponseProto =
        ok(&files, "getEZForPath", &p::GetEzForPathRequestProto { src: "/d/f".into() }).await;
    assert_eq!(found.zone, None);
    // Nothing need be there, unless the path says of itself that there is.
    let of = |src: &str| p::GetEzForPathRequestProto { src: src.into() };
    let found: p::GetEzForPathResponseProto = ok(&files, "getEZForPath", &of("/absent")).await;
    assert_eq!(found.zone, None);
    let text = "File for given inode path does not exist: /.reserved/.inodes/77777";
    assert_refused(&files, "getEZForPath", &of("/.reserved/.inodes/77777"), FILE_NOT_FOUND, text).await;
    let bob = connect(&cluster, protocol::CLIENT_NAMENODE, "bob");
    let text =
        "Access denied for user bob. Superuser privilege is required for operation listEncryptionZones";
    let request = p::ListEncryptionZonesRequestProto { id: 0 };
    assert_refused(&bob, "listEncryptionZones", &request, ACCESS_CONTROL, text).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn erasure_coding_policies_are_known_and_disabled() {
    let (_cluster, files) = start().await;
    let policies: p::GetErasureCodingPoliciesResponseProto =
        ok(&files, "getErasureCodingPolicies", &p::GetErasureCodingPoliciesRequestProto {}).await;
    let disabled = p::ErasureCodingPolicyState::Disabled;
    assert!(policies.ec_policies.iter().all(|policy| policy.state() == disabled));
    let mut ids: Vec<u32> = policies.ec_policies.iter().map(|policy| policy.id).collect();
    ids.sort();
    assert_eq!(ids, [1, 2, 3, 4, 5], "the five that HDFS is born with");

    let set = |path: &str, policy: &str| p::SetErasureCodingPolicyRequestProto {
        src: path.into(),
        ec_policy_name: Some(policy.into()),
    };
    let text = "Policy 'XOR-2-1-1024k' does not match any enabled erasure coding policies: []. An erasure coding \
                policy can be enabled by enableErasureCodingPolicy API.";
    assert_refused(&files, "setErasureCodingPolicy", &set("/d", "XOR-2-1-1024k"), ILLEGAL_ARGUMENT, text)
        .await;
    let _: p::SetErasureCodingPolicyResponseProto =
        ok(&files, "setErasureCodingPolicy", &set("/d", "replication")).await;
    let summary: p::GetContentSummaryResponseProto =
        ok(&files, "getContentSummary", &p::GetContentSummaryRequestProto { path: "/d".into() }).await;
    assert_eq!(summary.summary.erasure_coding_policy.as_deref(), Some("replication"));
    let text = "Attempt to set an erasure coding policy for a file /d/f";
    assert_refused(&files, "setErasureCodingPolicy", &set("/d/f", "replication"), IO, text).await;
    let unset = |path: &str| p::UnsetErasureCodingPolicyRequestProto { src: path.into() };
    let _: p::UnsetErasureCodingPolicyResponseProto =
        ok(&files, "unsetErasureCodingPolicy", &unset("/d")).await;
    let text = "No erasure coding policy explicitly set on /d";
    assert_refused(&files, "unsetErasureCodingPolicy", &unset("/d"), NO_EC_POLICY_SET, text).await;
    let text = "Path not found: /absent";
    assert_refused(&files, "unsetErasureCodingPolicy", &unset("/absent"), FILE_NOT_FOUND, text).await;

    let enable = |name: &str| p::EnableErasureCodingPolicyRequestProto { ec_policy_name: name.into() };
    let (class, _) = refused(&files, "enableErasureCodingPolicy", &enable("RS-6-3-1024k")).await;
    assert_eq!(class, UNSUPPORTED_OPERATION);
    let text = "The policy name nonsense does not exist";
    assert_refused(&files, "enableErasureCodingPolicy", &enable("nonsense"), ILLEGAL_ARGUMENT, text).await;
    let remove = p::RemoveErasureCodingPolicyRequestProto { ec_policy_name: "RS-6-3-1024k".into() };
    let text = "System erasure coding policy RS-6-3-1024k cannot be removed";
    assert_refused(&files, "removeErasureCodingPolicy", &remove, ILLEGAL_ARGUMENT, text).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_no_cache_pools_and_no_directives() {
    let (_cluster, files) = start().await;
    let pools: p::ListCachePoolsResponseProto =
        ok(&files, "listCachePools", &p::ListCachePoolsRequestProto { prev_pool_name: String::new() }).await;
    assert!(pools.entries.is_empty() && !pools.has_more);
    let info = |pool: Option<&str>| p::CacheDirectiveInfoProto {
        path: Some("/d/f".into()),
        pool: pool.map(str::to_owned),
        ..Default::default()
    };
    let add = |pool| p::AddCacheDirectiveRequestProto { info: info(pool), cache_flags: None };
    assert_refused(&files, "addCacheDirective", &add(Some("x")), INVALID_REQUEST, "Unknown pool x").await;
    assert_refused(&files, "addCacheDirective", &add(None), INVALID_REQUEST, "No pool specified.").await;
    let text = "No directive with ID 7 found.";
    let remove = |id| p::RemoveCacheDirectiveRequestProto { id };
    assert_refused(&files, "removeCacheDirective", &remove(7), INVALID_REQUEST, text).await;
    assert_refused(&files, "removeCacheDirective", &remove(-7), INVALID_REQUEST, "Invalid negative ID.")
        .await;
    let remove = p::RemoveCachePoolRequestProto { pool_name: "x".into() };
    let text = "Cannot remove non-existent cache pool x";
    assert_refused(&files, "removeCachePool", &remove, INVALID_REQUEST, text).await;
    let pool = p::CachePoolInfoProto { pool_name: Some("x".into()), ..Default::default() };
    let (class, _) = refused(&files, "addCachePool", &p::AddCachePoolRequestProto { info: pool }).await;
    assert_eq!(class, UNSUPPORTED_OPERATION);
}

#[tokio::test(flavor = "multi_thread")]
async fn open_files_are_listed_for_the_superuser() {
    let (cluster, files) = start().await;
    let _: p::CreateResponseProto = ok(&files, "create", &create("/other")).await;
    let request = |path: &str| p::ListOpenFilesRequestProto {
        id: 0,
        types: vec![p::OpenFilesTypeProto::AllOpenFiles as i32],
        path: Some(path.into()),
    };
    let listed: p::ListOpenFilesResponseProto = ok(&files, "listOpenFiles", &request("/d")).await;
    let listed: Vec<_> = listed.entries.iter().map(|it| (&*it.path, &*it.client_name)).collect();
    assert_eq!(listed, [("/d/f", "DFSClient_1")]);
    let listed: p::ListOpenFilesResponseProto = ok(&files, "listOpenFiles", &request("/")).await;
    assert_eq!(listed.entries.len(), 2);
    let blocking = p::ListOpenFilesRequestProto {
        types: vec![p::OpenFilesTypeProto::BlockingDecommission as i32],
        ..request("/")
    };
    let listed: p::ListOpenFilesResponseProto = ok(&files, "listOpenFiles", &blocking).await;
    assert!(listed.entries.is_empty());
    let bob = connect(&cluster, protocol::CLIENT_NAMENODE, "bob");
    let (class, _) = refused(&bob, "listOpenFiles", &request("/")).await;
    assert_eq!(class, ACCESS_CONTROL);
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_of_dfsadmin() {
    let (cluster, files) = start().await;
    let first: p::RollEditsResponseProto = ok(&files, "rollEdits", &p::RollEditsRequestProto {}).await;
    let _: p::CreateResponseProto = ok(&files, "create", &create("/another")).await;
    let second: p::RollEditsResponseProto = ok(&files, "rollEdits", &p::RollEditsRequestProto {}).await;
    assert!(second.new_segment_tx_id > first.new_segment_tx_id);
    let now: p::GetCurrentEditLogTxidResponseProto =
        ok(&files, "getCurrentEditLogTxid", &p::GetCurrentEditLogTxidRequestProto {}).await;
    assert_eq!(now.txid as u64 + 1, second.new_segment_tx_id);

    let safe_mode = |action: p::SafeModeActionProto| p::SetSafeModeRequestProto {
        action: action as i32,
        checked: Some(false),
    };
    let _: p::SetSafeModeResponseProto =
        ok(&files, "setSafeMode", &safe_mode(p::SafeModeActionProto::SafemodeEnter)).await;
    let (class, message) = refused(&files, "rollEdits", &p::RollEditsRequestProto {}).await;
    assert_eq!(class, SAFE_MODE);
    assert!(message.starts_with("Log not rolled. Name node is in safe mode."), "{message}");
    for request in [
        p::SaveNamespaceRequestProto::default(),
        p::SaveNamespaceRequestProto { time_window: Some(3600), tx_gap: Some(1_000_000) },
    ] {
        let saved: p::SaveNamespaceResponseProto = ok(&files, "saveNamespace", &request).await;
        assert!(saved.saved());
    }
    let _: p::SetSafeModeResponseProto =
        ok(&files, "setSafeMode", &safe_mode(p::SafeModeActionProto::SafemodeLeave)).await;
    let text = "Safe mode should be turned ON in order to create namespace image.";
    assert_refused(&files, "saveNamespace", &p::SaveNamespaceRequestProto::default(), IO, text).await;

    let _: p::FinalizeUpgradeResponseProto =
        ok(&files, "finalizeUpgrade", &p::FinalizeUpgradeRequestProto {}).await;
    let status: p::UpgradeStatusResponseProto =
        ok(&files, "upgradeStatus", &p::UpgradeStatusRequestProto {}).await;
    assert!(status.upgrade_finalized);
    let query = p::RollingUpgradeRequestProto { action: p::RollingUpgradeActionProto::Query as i32 };
    let query: p::RollingUpgradeResponseProto = ok(&files, "rollingUpgrade", &query).await;
    assert_eq!(query.rolling_upgrade_info, None);
    let check: p::RestoreFailedStorageResponseProto =
        ok(&files, "restoreFailedStorage", &p::RestoreFailedStorageRequestProto { arg: "check".into() })
            .await;
    assert!(!check.result);
    let fast = p::SetBalancerBandwidthRequestProto { bandwidth: i64::MAX };
    let text = "Bandwidth should not exceed maximum limit 1099511627776 bytes per second";
    assert_refused(&files, "setBalancerBandwidth", &fast, JAVA_ILLEGAL_ARGUMENT, text).await;
    let bob = connect(&cluster, protocol::CLIENT_NAMENODE, "bob");
    for method in ["rollEdits", "refreshNodes", "finalizeUpgrade", "getCurrentEditLogTxid"] {
        let (class, message) = refused(&bob, method, &p::RollEditsRequestProto {}).await;
        assert_eq!(class, ACCESS_CONTROL, "{method}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_read_again_is_and_the_rest_says_so() {
    let (cluster, _files) = start().await;
    let ask = |protocol| connect(&cluster, protocol, SUPERUSER);
    let text = "Service Level Authorization not enabled!";
    let acl = ask(protocol::REFRESH_AUTHORIZATION_POLICY);
    assert_refused(&acl, "refreshServiceAcl", &c::RefreshServiceAclRequestProto {}, AUTHORIZATION, text)
        .await;
    let _: c::RefreshCallQueueResponseProto =
        ok(&ask(protocol::REFRESH_CALL_QUEUE), "refreshCallQueue", &c::RefreshCallQueueRequestProto {}).await;
    let key = c::GenericRefreshRequestProto { identifier: Some("key".into()), args: Vec::new() };
    // Clients cut the space off that is behind it.
    let text = "Identifier 'key' does not exist in RefreshRegistry. Valid options are:";
    assert_refused(&ask(protocol::GENERIC_REFRESH), "refresh", &key, JAVA_ILLEGAL_ARGUMENT, text).await;
    let reconfigure = ask(protocol::RECONFIGURATION);
    let none: p::ListReconfigurablePropertiesResponseProto =
        ok(&reconfigure, "listReconfigurableProperties", &p::ListReconfigurablePropertiesRequestProto {})
            .await;
    assert!(none.name.is_empty());
    let (class, _) =
        refused(&reconfigure, "startReconfiguration", &p::StartReconfigurationRequestProto {}).await;
    assert_eq!(class, UNSUPPORTED_OPERATION);
    let bob = connect(&cluster, protocol::RECONFIGURATION, "bob");
    let (class, _) = refused(&bob, "startReconfiguration", &p::StartReconfigurationRequestProto {}).await;
    assert_eq!(class, ACCESS_CONTROL);
}

/// Without an answer that has keys in it Hadoop's balancer and mover end in a `NullPointerException`.
#[tokio::test(flavor = "multi_thread")]
async fn a_balancer_is_told_that_block_keys_are_switched_off_and_is_refused_what_makes_no_sense() {
    use p::namenode as n;
    let (cluster, files) = start().await;
    let balancer = connect(&cluster, protocol::NAMENODE, SUPERUSER);
    let answer: n::GetBlockKeysResponseProto =
        ok(&balancer, "getBlockKeys", &n::GetBlockKeysRequestProto {}).await;
    let keys = answer.keys.expect("Hadoop looks into it");
    assert!(!keys.is_block_token_enabled && keys.all_keys.is_empty());
    let blocks = n::GetBlocksRequestProto {
        datanode: p::DatanodeIdProto {
            ip_addr: "10.0.0.1".into(),
            xfer_port: 9866,
            datanode_uuid: "any".into(),
            ..Default::default()
        },
        size: 1 << 20,
        ..Default::default()
    };
    let text = "Datanode 10.0.0.1:9866 not found.";
    assert_refused(&balancer, "getBlocks", &blocks, ILLEGAL_ARGUMENT, text).await;
    let nothing = n::GetBlocksRequestProto { size: 0, ..blocks.clone() };
    let text = "Unexpected not positive size: 0";
    assert_refused(&balancer, "getBlocks", &nothing, JAVA_ILLEGAL_ARGUMENT, text).await;
    let negative = n::GetBlocksRequestProto { min_block_size: Some(u64::MAX), ..blocks.clone() };
    let text = "Unexpected not positive size: -1";
    assert_refused(&balancer, "getBlocks", &negative, JAVA_ILLEGAL_ARGUMENT, text).await;
    set_safe_mode(&files, p::SafeModeActionProto::SafemodeEnter).await;
    let (class, message) = refused(&balancer, "getBlocks", &blocks).await;
    assert_eq!(class, SAFE_MODE);
    assert!(message.starts_with("Cannot execute getBlocks. Name node is in safe mode."), "{message}");
    let bob = connect(&cluster, protocol::NAMENODE, "bob");
    for (class, _) in [
        refused(&bob, "getBlockKeys", &n::GetBlockKeysRequestProto {}).await,
        refused(&bob, "getBlocks", &blocks).await,
    ] {
        assert_eq!(class, ACCESS_CONTROL);
    }
}
