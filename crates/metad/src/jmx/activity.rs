//! `NameNodeActivity`, the two beans of an RPC port, and the busiest users.

use super::{Look, SERVICE};
use measures::{Figures, WINDOWS};
use proto::methods;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use web::jmx::{Beans, Counters, Record, RpcPort, mean_ms, put_rpc_methods, put_rpc_port};

/// How many users are shown for an operation (`dfs.namenode.top.num.users`).
const USERS_MAX: usize = 10;

/// How many pairs of a user and a method the list of the busiest is made from.
const PAIRS_MAX: usize = 1_000;

/// The record of metrics that `NameNodeActivity` is made from.
const NAME_NODE: Record = Record {
    name: "namenode",
    counters: Counters::AllBut(&["TotalFileOps", "FsImageLoadTime", "SafeModeTime"]),
};
pub fn put(look: &Look<'_>, beans: &mut Beans<'_>) {
    let own = "NameNodeActivity";
    beans.put_record(look.name(own), NAME_NODE, own, || name_node(look));
    let port = || {
        let load = look.core.load.get();
        let (received_bytes, sent_bytes) = load.map_or((0, 0), rpc::Load::traffic);
        RpcPort {
            port: look.port,
            server_name: "ClientNamenodeProtocol",
            host_name: &look.process().host_name,
            methods: look.methods(),
            connections: load.map_or(0, rpc::Load::connections),
            received_bytes,
            sent_bytes,
            dropped: look.core.env.descriptors.refused(),
        }
    };
    put_rpc_port(beans, SERVICE, look.port, port);
    put_rpc_methods(beans, SERVICE, look.port, port);
}

/// How often these methods were called.
fn calls(look: &Look<'_>, names: &[&str]) -> u64 {
    look.methods().iter().filter(|of| names.contains(&of.method)).map(|of| of.stages[0].count()).sum()
}

/// How often these methods were called and did what they were asked for.
fn done(look: &Look<'_>, names: &[&str]) -> u64 {
    let of_name = look.methods().iter().filter(|of| names.contains(&of.method));
    of_name.map(|of| of.stages[0].count().saturating_sub(of.refused)).sum()
}

fn name_node(look: &Look<'_>) -> Value {
    let syncs = look.core.partition.member.flush_times();
    let start = &look.core.partition.start;
    // 0 while it lasts, as in Hadoop.
    let safe_mode_ended = look.core.partition.blocks.lock().safe_mode_progress().ended;
    let safe_mode_ms = safe_mode_ended.map_or(0, |at| at.ms_since(start.loaded));
    let reports = look.methods().iter().find(|of| of.method == "blockReport").map(|of| &of.stages[1]);
    let counted = [
        ("AddBlockOps", calls(look, &["addBlock"])),
        ("AllowSnapshotOps", calls(look, &["allowSnapshot"])),
        ("BlockReceivedAndDeletedOps", calls(look, &["blockReceivedAndDeleted"])),
        ("CreateFileOps", calls(look, &["create"])),
        ("CreateSnapshotOps", calls(look, &["createSnapshot"])),
        ("CreateSymlinkOps", calls(look, &["createSymlink"])),
        ("DeleteFileOps", calls(look, &["delete"])),
        ("DeleteSnapshotOps", calls(look, &["deleteSnapshot"])),
        ("DisallowSnapshotOps", calls(look, &["disallowSnapshot"])),
        (
            "FileInfoOps",
            calls(look, &["getFileInfo", "getFileLinkInfo", "getLocatedFileInfo", "isFileClosed"]),
        ),
        ("FilesAppended", done(look, &["append"])),
        ("FilesCreated", done(look, &["create", "mkdirs"])),
        ("FilesDeleted", done(look, &["delete"])),
        ("FilesRenamed", done(look, &["rename", "rename2"])),
        ("FilesTruncated", done(look, &["truncate"])),
        ("GetAdditionalDatanodeOps", calls(look, &["getAdditionalDatanode"])),
        ("GetBlockLocations", calls(look, &["getBlockLocations"])),
        ("GetLinkTargetOps", calls(look, &["getLinkTarget"])),
        ("GetListingOps", calls(look, &["getListing", "getBatchedListing"])),
        ("ListSnapshotOps", calls(look, &["getSnapshotListing"])),
        ("ListSnapshottableDirOps", calls(look, &["getSnapshottableDirListing"])),
        ("RenameSnapshotOps", calls(look, &["renameSnapshot"])),
        ("SnapshotDiffReportOps", calls(look, &["getSnapshotDiffReport", "getSnapshotDiffReportListing"])),
        ("StorageBlockReportNumOps", reports.map_or(0, Figures::count)),
        ("SyncsNumOps", syncs.count()),
        ("TransactionsNumOps", look.core.partition.commit.committed().0),
    ];
    const FILE_OPERATIONS: [&str; 13] = [
        "AddBlockOps",
        "CreateFileOps",
        "CreateSnapshotOps",
        "CreateSymlinkOps",
        "DeleteFileOps",
        "DeleteSnapshotOps",
        "FileInfoOps",
        "FilesAppended",
        "FilesRenamed",
        "FilesTruncated",
        "GetBlockLocations",
        "GetListingOps",
        "GetAdditionalDatanodeOps",
    ];
    let total: u64 =
        counted.iter().filter(|(name, _)| FILE_OPERATIONS.contains(name)).map(|(_, count)| count).sum();
    let mut attributes: Map<String, Value> =
        counted.into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect();
    let Value::Object(others) = json!({
        "tag.ProcessName": "NameNode",
        "tag.SessionId": null,
        "tag.Context": "dfs",
        "tag.Hostname": look.process().host_name,
        "TotalFileOps": total,
        "FsImageLoadTime": start.image_ms(),
        "SafeModeTime": safe_mode_ms,
        "SyncsAvgTime": mean_ms(&syncs),
        "StorageBlockReportAvgTime": reports.map_or(0.0, mean_ms),
    }) else {
        unreachable!("it is written as an object")
    };
    attributes.extend(others);
    Value::Object(attributes)
}

/// The busiest users in each window, in the shape of HDFS's nntop: by the commands of the audit log, so what servers say to each other is not in it.
pub fn top_users(look: &Look<'_>) -> Value {
    let now = look.core.moment();
    let windows = WINDOWS.map(|window_s| {
        let pairs = look.core.calls.top_users(window_s, now, PAIRS_MAX);
        let mut operations: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
        for pair in pairs {
            let logged = methods::method(pair.method).and_then(|method| method.logged.as_ref());
            let Some(command) = logged.map(|logged| logged.command) else { continue };
            for operation in ["*", command] {
                *operations.entry(operation).or_default().entry(pair.user.clone()).or_default() += pair.calls;
            }
        }
        let mut shown: Vec<(u64, Value)> =
            operations.into_iter().map(|(name, users)| operation(name, users)).collect();
        shown.sort_by_key(|(total, _)| std::cmp::Reverse(*total));
        let ops: Vec<Value> = shown.into_iter().map(|(_, shown)| shown).collect();
        json!({ "windowLenMs": window_s * 1_000, "ops": ops })
    });
    let now =
        jiff::Timestamp::from_millisecond(look.core.env.clock.timestamp().ms as i64).unwrap_or_default();
    json!({ "timestamp": now.strftime("%Y-%m-%dT%H:%M:%S+0000").to_string(), "windows": windows })
}

fn operation(name: &str, users: BTreeMap<String, u64>) -> (u64, Value) {
    let total = users.values().sum();
    let mut users: Vec<(String, u64)> = users.into_iter().collect();
    users.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
    let shown: Vec<Value> =
        users.iter().map(|(user, count)| json!({ "user": user, "count": count })).collect();
    let top = &shown[..shown.len().min(USERS_MAX)];
    (total, json!({ "opType": name, "totalCount": total, "topUsers": top, "allUsers": shown }))
}
