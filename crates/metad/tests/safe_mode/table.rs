//! Calls in safe mode and the words in which HDFS 3.5.0 refuses them, call by call, for a superuser and for somebody else.

use crate::cluster::files;
use prost::Message;
use proto::{
    common as c,
    exception::{ACCESS_CONTROL, ILLEGAL_ARGUMENT, INVALID_PATH, IO, SAFE_MODE, UNSUPPORTED_OPERATION},
    hdfs as p,
};

const TIP: &str = "It was turned on manually. Use \"hdfs dfsadmin -safemode leave\" to turn safe mode off. NamenodeHostName:localhost";
const F: &str = "/d/f";

/// A call and what a superuser, and somebody else, are told.
pub struct Row {
    pub method: &'static str,
    pub request: Vec<u8>,
    pub superuser: Told,
    pub other: Told,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// An answer.
    Something,
    /// "WHAT. Name node is in safe mode."
    SafeMode(&'static str),
    Other(&'static str, String),
}

use Told::{SafeMode, Something};

impl Told {
    /// The class and the text of the refusal; empty where there is an answer.
    pub fn words(&self) -> (String, String) {
        match self {
            Something => Default::default(),
            SafeMode(what) => (SAFE_MODE.to_owned(), format!("{what}. Name node is in safe mode.\n{TIP}")),
            Told::Other(class, text) => ((*class).to_owned(), text.clone()),
        }
    }
}

/// All calls that change something, or may seem to.
pub fn rows() -> impl Iterator<Item = Row> {
    [names(), writing(), attributes(), snapshots(), secrets(), service()].into_iter().flatten()
}

/// Both are refused alike.
fn row(method: &'static str, request: impl Message, what: &'static str) -> Row {
    same(method, request, SafeMode(what))
}

fn same(method: &'static str, request: impl Message, told: Told) -> Row {
    Row { method, request: request.encode_to_vec(), superuser: told.clone(), other: told }
}

/// The right comes before safe mode.
fn privileged(method: &'static str, request: impl Message, superuser: Told, operation: &str) -> Row {
    let denied =
        format!("Access denied for user bob. Superuser privilege is required for operation {operation}");
    Row { method, request: request.encode_to_vec(), superuser, other: Told::Other(ACCESS_CONTROL, denied) }
}

fn permission() -> p::FsPermissionProto {
    p::FsPermissionProto { perm: 0o755 }
}

fn block() -> p::ExtendedBlockProto {
    p::ExtendedBlockProto {
        pool_id: "BP-1".into(),
        block_id: 1_073_741_825,
        generation_stamp: 1001,
        num_bytes: Some(10),
    }
}

fn create(path: &str) -> p::CreateRequestProto {
    files::create_request(path, "me")
}

fn names() -> Vec<Row> {
    let mkdirs =
        p::MkdirsRequestProto { src: F.into(), masked: permission(), create_parent: true, unmasked: None };
    let rename = p::RenameRequestProto { src: F.into(), dst: "/d/g".into() };
    let rename2 = p::Rename2RequestProto {
        src: F.into(),
        dst: "/d/g".into(),
        overwrite_dest: true,
        move_to_trash: None,
    };
    let link = p::CreateSymlinkRequestProto {
        target: "/x".into(),
        link: F.into(),
        dir_perm: permission(),
        create_parent: true,
    };
    let unsupported = Told::Other(UNSUPPORTED_OPERATION, "Symlinks not supported".into());
    vec![
        row("mkdirs", mkdirs, "Cannot create directory /d/f"),
        row("rename", rename, "Cannot rename /d/f"),
        row("rename2", rename2, "Cannot rename /d/f"),
        row("delete", p::DeleteRequestProto { src: F.into(), recursive: true }, "Cannot delete /d/f"),
        same("createSymlink", link, unsupported),
        // HDFS, too, puts nothing between "file" and its name.
        row("create", create(F), "Cannot create file/d/f"),
        same("create", create("relative"), Told::Other(INVALID_PATH, "Invalid path name relative".into())),
    ]
}

fn writing() -> Vec<Row> {
    let append = p::AppendRequestProto { src: F.into(), client_name: "me".into(), flag: None };
    let abandon =
        p::AbandonBlockRequestProto { b: block(), src: F.into(), holder: "me".into(), file_id: None };
    let additional = p::GetAdditionalDatanodeRequestProto {
        src: F.into(),
        blk: block(),
        num_additional_nodes: 1,
        client_name: "me".into(),
        ..Default::default()
    };
    let complete =
        p::CompleteRequestProto { src: F.into(), client_name: "me".into(), last: None, file_id: None };
    let truncate = |new_length: i64| p::TruncateRequestProto {
        src: F.into(),
        new_length: new_length as u64,
        client_name: "me".into(),
    };
    let stamp = p::UpdateBlockForPipelineRequestProto { block: block(), client_name: "me".into() };
    let update = p::UpdatePipelineRequestProto {
        client_name: "me".into(),
        old_block: block(),
        new_block: block(),
        ..Default::default()
    };
    let fsync =
        p::FsyncRequestProto { src: F.into(), client: "me".into(), last_block_length: None, file_id: None };
    let recover = p::RecoverLeaseRequestProto { src: F.into(), client_name: "me".into() };
    let concat = p::ConcatRequestProto { trg: F.into(), srcs: vec!["/d/h".into()] };
    let negative = Told::Other(ILLEGAL_ARGUMENT, "Cannot truncate to a negative file size: -1.".into());
    vec![
        row("append", append, "Cannot append to file/d/f"),
        row("addBlock", files::add_block_request(F, "me"), "Cannot add block to /d/f"),
        row("abandonBlock", abandon, "Cannot abandon block BP-1:blk_1073741825_1001 for file/d/f"),
        row(
            "getAdditionalDatanode",
            additional,
            "Cannot add datanode; src=/d/f, blk=BP-1:blk_1073741825_1001",
        ),
        row("complete", complete, "Cannot complete file /d/f"),
        row("truncate", truncate(0), "Cannot truncate for /d/f"),
        same("truncate", truncate(-1), negative),
        row(
            "updateBlockForPipeline",
            stamp,
            "Cannot get a new generation stamp and an access token for block BP-1:blk_1073741825_1001",
        ),
        row("updatePipeline", update, "Pipeline not updated"),
        row("fsync", fsync, "Cannot fsync file /d/f"),
        row("recoverLease", recover, "Cannot recover the lease of /d/f"),
        row("concat", concat, "Cannot concat /d/f"),
    ]
}

fn attributes() -> Vec<Row> {
    let quota = |storagespace_quota: i64| p::SetQuotaRequestProto {
        path: F.into(),
        namespace_quota: 1,
        storagespace_quota: storagespace_quota as u64,
        storage_type: None,
    };
    let xattr = || p::XAttrProto {
        namespace: p::x_attr_proto::XAttrNamespaceProto::User as i32,
        name: "a".into(),
        value: None,
    };
    let policy = |name: &str| p::SetStoragePolicyRequestProto { src: F.into(), policy_name: name.into() };
    vec![
        row(
            "setPermission",
            p::SetPermissionRequestProto { src: F.into(), permission: permission() },
            "Cannot set permission for /d/f",
        ),
        row(
            "setOwner",
            p::SetOwnerRequestProto { src: F.into(), username: Some("x".into()), groupname: None },
            "Cannot set owner for /d/f",
        ),
        row(
            "setTimes",
            p::SetTimesRequestProto { src: F.into(), mtime: 1, atime: 1 },
            "Cannot set times /d/f",
        ),
        row(
            "setReplication",
            p::SetReplicationRequestProto { src: F.into(), replication: 2 },
            "Cannot set replication for /d/f",
        ),
        privileged("setQuota", quota(1), SafeMode("Cannot set quota on /d/f"), "setSpaceQuota"),
        privileged("setQuota", quota(-5), SafeMode("Cannot set quota on /d/f"), "setSpaceQuota"),
        row("setStoragePolicy", policy("HOT"), "Cannot set storage policy for /d/f"),
        row("setStoragePolicy", policy("NOPE"), "Cannot set storage policy for /d/f"),
        row(
            "unsetStoragePolicy",
            p::UnsetStoragePolicyRequestProto { src: F.into() },
            "Cannot unset storage policy for /d/f",
        ),
        row(
            "satisfyStoragePolicy",
            p::SatisfyStoragePolicyRequestProto { src: F.into() },
            "Cannot satisfy storage policy for /d/f",
        ),
        row(
            "modifyAclEntries",
            p::ModifyAclEntriesRequestProto { src: F.into(), acl_spec: Vec::new() },
            "Cannot modify ACL entries on /d/f",
        ),
        row(
            "removeAclEntries",
            p::RemoveAclEntriesRequestProto { src: F.into(), acl_spec: Vec::new() },
            "Cannot remove ACL entries on /d/f",
        ),
        row(
            "removeDefaultAcl",
            p::RemoveDefaultAclRequestProto { src: F.into() },
            "Cannot remove default ACL entries on /d/f",
        ),
        row("removeAcl", p::RemoveAclRequestProto { src: F.into() }, "Cannot remove ACL on /d/f"),
        row(
            "setAcl",
            p::SetAclRequestProto { src: F.into(), acl_spec: Vec::new() },
            "Cannot set ACL on /d/f",
        ),
        row(
            "setXAttr",
            p::SetXAttrRequestProto { src: F.into(), x_attr: Some(xattr()), flag: Some(1) },
            "Cannot set XAttr on /d/f",
        ),
        row(
            "removeXAttr",
            p::RemoveXAttrRequestProto { src: F.into(), x_attr: Some(xattr()) },
            "Cannot remove XAttr entry on /d/f",
        ),
    ]
}

fn snapshots() -> Vec<Row> {
    let create = p::CreateSnapshotRequestProto { snapshot_root: F.into(), snapshot_name: Some("s".into()) };
    let delete = p::DeleteSnapshotRequestProto { snapshot_root: F.into(), snapshot_name: "s".into() };
    let rename = p::RenameSnapshotRequestProto {
        snapshot_root: F.into(),
        snapshot_old_name: "s".into(),
        snapshot_new_name: "t".into(),
    };
    vec![
        row("createSnapshot", create, "Cannot create snapshot for /d/f"),
        row("deleteSnapshot", delete, "Cannot delete snapshot for /d/f"),
        row("renameSnapshot", rename, "Cannot rename snapshot for /d/f"),
        privileged(
            "allowSnapshot",
            p::AllowSnapshotRequestProto { snapshot_root: F.into() },
            SafeMode("Cannot allow snapshot for /d/f"),
            "allowSnapshot",
        ),
        privileged(
            "disallowSnapshot",
            p::DisallowSnapshotRequestProto { snapshot_root: F.into() },
            SafeMode("Cannot disallow snapshot for /d/f"),
            "disallowSnapshot",
        ),
    ]
}

fn secrets() -> Vec<Row> {
    let token = c::TokenProto {
        identifier: Default::default(),
        password: Default::default(),
        kind: String::new(),
        service: String::new(),
    };
    let no_keys = "Can't create an encryption zone for /d/f since no key provider is available.";
    vec![
        row(
            "getDelegationToken",
            c::GetDelegationTokenRequestProto { renewer: "me".into() },
            "Cannot issue delegation token",
        ),
        row(
            "renewDelegationToken",
            c::RenewDelegationTokenRequestProto { token: token.clone() },
            "Cannot renew delegation token",
        ),
        row(
            "cancelDelegationToken",
            c::CancelDelegationTokenRequestProto { token },
            "Cannot cancel delegation token",
        ),
        privileged(
            "createEncryptionZone",
            p::CreateEncryptionZoneRequestProto { src: F.into(), key_name: Some("k".into()) },
            Told::Other(IO, no_keys.into()),
            "createEncryptionZone",
        ),
        privileged(
            "reencryptEncryptionZone",
            p::ReencryptEncryptionZoneRequestProto {
                action: p::ReencryptActionProto::StartReencrypt as i32,
                zone: F.into(),
            },
            SafeMode("NameNode in safemode, cannot START re-encryption on zone /d/f"),
            "reencryptEncryptionZone",
        ),
    ]
}

fn service() -> Vec<Row> {
    let rolling = p::RollingUpgradeRequestProto { action: p::RollingUpgradeActionProto::Query as i32 };
    vec![
        privileged("rollEdits", p::RollEditsRequestProto {}, SafeMode("Log not rolled"), "rollEditLog"),
        privileged("refreshNodes", p::RefreshNodesRequestProto {}, Something, "refreshNodes"),
        privileged("rollingUpgrade", rolling, Something, "queryRollingUpgrade"),
        same("reportBadBlocks", p::ReportBadBlocksRequestProto { blocks: Vec::new() }, Something),
        same("msync", p::MsyncRequestProto {}, Something),
        // HDFS refuses this one: "Cannot renew lease for me". Here a writer keeps its file over safe mode.
        same(
            "renewLease",
            p::RenewLeaseRequestProto { client_name: "me".into(), namespaces: Vec::new() },
            Something,
        ),
    ]
}
