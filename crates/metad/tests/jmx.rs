//! `/jmx` shows the beans that a NameNode shows, under the same names and with the same types.

mod cluster;
#[path = "../../../tests/recorded/jmx.rs"]
mod jmx_record;

use cluster::{
    Cluster, Plan,
    files::{DataServer, data},
    page, set_safe_mode,
    spoken::STORAGE,
};
use jmx_record::{hadoops, kind_of};
use proto::hdfs::{self as p, datanode as d};
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Duration};

/// The attributes that Clover leaves out, by bean, because they describe no part of it: a heap with generations, class paths, edits that are read
/// from JournalNodes, delegation tokens, erasure coding, caches; or because Clover does not measure them: bytes of a directory.
const LEFT_OUT: &[(&str, &[&str])] = &[
    (
        "java.lang:type=Runtime",
        &[
            "BootClassPathSupported",
            "ClassPath",
            "InputArguments",
            "LibraryPath",
            "ManagementSpecVersion",
            "SystemProperties",
        ],
    ),
    ("java.lang:type=OperatingSystem", &["ProcessCpuLoad"]),
    ("Hadoop:service=NameNode,name=NameNodeInfo", &["NameDirSize"]),
    (
        "Hadoop:service=NameNode,name=FSNamesystem",
        &[
            "BlockCapacity",
            "ExpiredHeartbeats",
            "LockQueueLength",
            "MillisSinceLastLoadedEdits",
            "NumActiveClients",
            "NumTimedOutPendingReconstructions",
            "ReadLockLongHoldCount",
            "WriteLockLongHoldCount",
        ],
    ),
];

/// Of these beans a part is shown: what is counted.
const IN_PART: [&str; 3] = [
    "Hadoop:service=NameNode,name=NameNodeActivity",
    "Hadoop:service=NameNode,name=RpcActivityForPort*",
    "Hadoop:service=NameNode,name=RpcDetailedActivityForPort*",
];

fn shown(answer: &str) -> Vec<Value> {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("200 OK") && head.to_lowercase().contains("application/json"), "{head}");
    let answer: Value =
        serde_json::from_str(&body[body.find('{').unwrap()..=body.rfind('}').unwrap()]).unwrap();
    answer["beans"].as_array().expect("a list of beans").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_beans_of_a_name_node_have_hadoops_names_and_types() {
    let plan =
        Plan::group(1).adjusted(|_, config| config.http_address = Some("127.0.0.1:0".parse().unwrap()));
    let (mut cluster, _) = plan.in_sync().await;
    cluster.mkdirs(1, "/a").await;
    let (pages, rpc) = (cluster.server(1).http_address().unwrap(), cluster.server(1).rpc_address());
    let beans = shown(&page(pages, "/jmx").await.unwrap());

    let port = format!("ForPort{}", rpc.port());
    let expected = hadoops(|bean| !bean.contains("DataNode,"));
    let mut seen = BTreeSet::new();
    for bean in &beans {
        let name = bean["name"].as_str().unwrap().replace(&port, "ForPort*");
        let known = expected.get(&*name).unwrap_or_else(|| panic!("Hadoop has no bean {name}"));
        let attributes = bean
            .as_object()
            .unwrap()
            .iter()
            .filter(|(key, _)| !["name", "modelerType"].contains(&key.as_str()));
        let mut own = BTreeSet::new();
        for (attribute, value) in attributes {
            let kind = known
                .get(attribute.as_str())
                .unwrap_or_else(|| panic!("{name} has no {attribute} in Hadoop"));
            assert_eq!(kind_of(value), *kind, "{name} {attribute}: {value}");
            own.insert(attribute.as_str());
        }
        if !IN_PART.contains(&&*name) {
            let left_out =
                LEFT_OUT.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, left_out)| left_out);
            let lacks: Vec<_> = known.keys().copied().filter(|it| !own.contains(it)).collect();
            assert_eq!(lacks, sorted(left_out), "{name}");
        }
        seen.insert(name);
    }
    let all: BTreeSet<String> = expected.into_keys().map(str::to_owned).collect();
    assert_eq!(seen, all);
    cluster.stop(1).await;
}

/// A data server that has lost a volume says so in each heartbeat.
async fn tell_of_a_lost_volume(
    cluster: &Cluster,
    server: &DataServer,
    failures: d::VolumeFailureSummaryProto,
) {
    #[allow(deprecated)]
    let report = |name: &str, used| p::StorageReportProto {
        storage_uuid: name.into(),
        capacity: Some(1_000),
        block_pool_used: Some(used),
        storage: Some(p::DatanodeStorageProto { storage_uuid: name.into(), ..Default::default() }),
        ..Default::default()
    };
    let heartbeat = d::HeartbeatRequestProto {
        registration: server.with(1).clone(),
        reports: vec![report(STORAGE, 100), report("DS-2", 300)],
        failed_volumes: Some(failures.failed_storage_locations.len() as u32),
        volume_failure_summary: Some(failures),
        ..Default::default()
    };
    let _: d::HeartbeatResponseProto = data(cluster, 1).call("sendHeartbeat", &heartbeat).await.unwrap();
}

/// The attributes that the scripts of Hadoop's own pages read, where their values are more than a number of a counter.
#[tokio::test(flavor = "multi_thread")]
async fn hadoops_own_pages_find_what_they_show() {
    let plan =
        Plan::group(1).adjusted(|_, config| config.http_address = Some("127.0.0.1:0".parse().unwrap()));
    let (mut cluster, _) = plan.in_sync().await;
    let pages = cluster.server(1).http_address().unwrap();
    let ask = async |bean: &str| {
        let question = format!("/jmx?qry=Hadoop:service=NameNode,name={bean}");
        shown(&page(pages, &question).await.unwrap()).remove(0)
    };
    // The first question is for a bean that none of the others has prepared.
    assert_eq!(ask("BlockStats").await["StorageTypeStats"], json!([]));
    let info = ask("NameNodeInfo").await;
    let (made, by) = info["CompileInfo"].as_str().unwrap().split_once(" by ").unwrap();
    made.replace('Z', ":00Z").parse::<jiff::Timestamp>().unwrap();
    assert!(by.starts_with("Clover "), "{by}");
    let state = ask("FSNamesystemState").await;
    let started = [&info["NNStartedTimeInMillis"], &state["BlockDeletionStartTime"]];
    let [started, deleting] = started.map(|at| at.as_u64().unwrap());
    // Each is reckoned from the time of its own question.
    assert!(started.abs_diff(deleting) < 1_000, "{started} {deleting}");

    cluster.mkdirs(1, "/kept").await;
    let client = cluster.client(1);
    let allow = p::AllowSnapshotRequestProto { snapshot_root: "/kept".into() };
    let _: p::AllowSnapshotResponseProto = client.call("allowSnapshot", &allow).await.unwrap();
    for name in ["one", "two"] {
        let create =
            p::CreateSnapshotRequestProto { snapshot_root: "/kept".into(), snapshot_name: Some(name.into()) };
        let _: p::CreateSnapshotResponseProto = client.call("createSnapshot", &create).await.unwrap();
    }
    let snapshots = ask("SnapshotInfo").await;
    assert_eq!(snapshots["SnapshottableDirectories"][0]["snapshotNumber"], 2);
    let taken = snapshots["Snapshots"].as_array().unwrap();
    let paths: Vec<_> = taken.iter().map(|one| one["snapshotDirectory"].as_str().unwrap()).collect();
    assert_eq!(paths, ["/kept/.snapshot/one", "/kept/.snapshot/two"]);
    assert_ne!(taken[0]["snapshotID"], taken[1]["snapshotID"]);
    for one in taken {
        assert!(
            one["modificationTime"].as_u64().unwrap() + 60_000 > started && one["status"] == "ACTIVE",
            "{one}"
        );
    }

    let server = DataServer::register(&cluster, 1).await;
    let live = async || {
        let told: Value =
            serde_json::from_str(ask("NameNodeInfo").await["LiveNodes"].as_str().unwrap()).unwrap();
        told.as_object().unwrap().values().next().unwrap().clone()
    };
    let well = live().await;
    assert!(well.get("failedStorageIDs").is_none() && well["volfails"] == 0, "{well}");
    let long = "/".repeat(1 << 20);
    tell_of_a_lost_volume(
        &cluster,
        &server,
        d::VolumeFailureSummaryProto {
            failed_storage_locations: vec!["/data/7".into(), long],
            last_volume_failure_date: 1_700_000_000_000,
            estimated_capacity_lost_total: 4_711,
        },
    )
    .await;
    let lost = live().await;
    assert_eq!(lost["failedStorageIDs"], json!(["/data/7"]), "a name of a mebibyte is none");
    assert_eq!(
        (&lost["lastVolumeFailureDate"], &lost["volfails"]),
        (&json!(1_700_000_000_000_u64), &json!(2))
    );
    assert_eq!(lost["estimatedCapacityLostTotal"], 4_711);
    // The volumes are full to 10 and 30 percent.
    assert_eq!(lost["blockPoolUsedPercentStdDev"], 10.0);
    for bean in ["FSNamesystem", "FSNamesystemState"] {
        assert_eq!(ask(bean).await["EstimatedCapacityLostTotal"], 4_711, "{bean}");
    }

    assert_eq!(info["Safemode"], "");
    set_safe_mode(&client, p::SafeModeActionProto::SafemodeEnter).await;
    let on = ask("NameNodeInfo").await["Safemode"].as_str().unwrap().to_owned();
    assert!(on.starts_with("Safe mode is ON. It was turned on manually."), "{on}");
    let stay: Value =
        serde_json::from_str(ask("NameNodeInfo").await["DecomNodes"].as_str().unwrap()).unwrap();
    assert_eq!(stay, json!({}));
    cluster.stop(1).await;
}

/// Each bean is made from what it needs alone: a question for one bean is answered as a question for all.
#[tokio::test(flavor = "multi_thread")]
async fn each_bean_is_made_alone() {
    let plan =
        Plan::group(1).adjusted(|_, config| config.http_address = Some("127.0.0.1:0".parse().unwrap()));
    let (mut cluster, _) = plan.in_sync().await;
    let pages = cluster.server(1).http_address().unwrap();
    let beans = shown(&page(pages, "/jmx").await.unwrap());
    assert!(beans.len() > 10, "{beans:?}");
    for bean in &beans {
        let name = bean["name"].as_str().unwrap();
        let asked = async { page(pages, &format!("/jmx?qry={name}")).await.unwrap() };
        let answer = tokio::time::timeout(Duration::from_secs(20), asked).await;
        let alone = shown(&answer.unwrap_or_else(|_| panic!("{name} is never answered")));
        let keys = |of: &Value| of.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!((alone.len(), keys(&alone[0])), (1, keys(bean)), "{name}");
    }
    cluster.stop(1).await;
}

fn sorted<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}

/// The questions of tools that watch an HDFS.
#[tokio::test(flavor = "multi_thread")]
async fn tools_find_what_they_ask_for() {
    let plan =
        Plan::group(1).adjusted(|_, config| config.http_address = Some("127.0.0.1:0".parse().unwrap()));
    let (mut cluster, _) = plan.in_sync().await;
    for number in 0..5 {
        cluster.mkdirs(1, &format!("/{number}")).await;
    }
    let (pages, rpc) = (cluster.server(1).http_address().unwrap(), cluster.server(1).rpc_address());
    let ask = async |question: &str| shown(&page(pages, &format!("/jmx?{question}")).await.unwrap());

    let status = ask("qry=Hadoop:service=NameNode,name=NameNodeStatus").await;
    assert_eq!((status.len(), &status[0]["State"]), (1, &"active".into()));
    let state = ask("get=Hadoop:service=NameNode,name=FSNamesystem::tag.HAState").await;
    assert_eq!(state[0]["tag.HAState"], "active");
    let files = ask("qry=Hadoop:service=NameNode,name=FSNamesystem").await;
    assert_eq!(files[0]["FilesTotal"], 6);
    let java = ask("qry=java.lang:type=*").await;
    assert_eq!(java.len(), 3);
    let process = ask("qry=Hadoop:service=NameNode,name=JvmMetrics").await;
    assert_eq!(process[0]["tag.ProcessName"], "NameNode");
    let calls =
        ask(&format!("qry=Hadoop:service=NameNode,name=RpcDetailedActivityForPort{}", rpc.port())).await;
    assert_eq!(calls[0]["MkdirsNumOps"], 5);
    let top = ask("get=Hadoop:service=NameNode,name=FSNamesystemState::TopUserOpCounts").await;
    let top: Value = serde_json::from_str(top[0]["TopUserOpCounts"].as_str().unwrap()).unwrap();
    let mkdirs =
        top["windows"][0]["ops"].as_array().unwrap().iter().find(|of| of["opType"] == "mkdirs").unwrap();
    assert_eq!(mkdirs["totalCount"], 5);
    assert!(ask("qry=Hadoop:service=DataNode,*").await.is_empty());
    cluster.stop(1).await;
}
