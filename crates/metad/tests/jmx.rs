//! `/jmx` shows the beans that a NameNode shows, under the same names and with the same types.

mod cluster;
#[path = "../../../tests/recorded/jmx.rs"]
mod jmx_record;

use cluster::{Plan, page};
use jmx_record::{hadoops, kind_of};
use serde_json::Value;
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
    ("Hadoop:service=NameNode,name=FSNamesystemState", &["BlockDeletionStartTime"]),
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
