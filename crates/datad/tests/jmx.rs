//! `/jmx` of a data server shows the beans of a DataNode, under the same names and with the same types.

#[path = "../../../tests/recorded/jmx.rs"]
mod jmx_record;
mod played;

use blockstore::{StorageType, VolumeConfig};
use datad::DataServer;
use env::Env;
use jmx_record::{hadoops, kind_of};
use played::{Metadata, POOL, config, http, serve, start, store_block};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The attributes that Clover leaves out: it does not know them, or they describe no part of it.
const LEFT_OUT: &[(&str, &[&str])] = &[
    ("Hadoop:service=DataNode,name=DataNodeInfo", &["DiskBalancerStatus"]),
    ("Hadoop:service=DataNode,name=FSDatasetState", &["LastDirectoryScannerFinishTime"]),
    ("Hadoop:service=DataNode,name=FSDatasetState-*", &["LastDirScannerFinishTime"]),
];

/// Clover shows only some attributes of these beans: the events that it counts.
const IN_PART: [&str; 2] = ["DataNodeActivity-*", "RpcActivityForPort*"];

#[tokio::test(flavor = "multi_thread")]
async fn the_beans_of_a_data_node_have_hadoops_names_and_types() {
    let root = tempfile::tempdir().unwrap();
    let metadata = Metadata::new("CID-one");
    let rpc = serve(&metadata, "127.0.0.1:0");
    let server = start(root.path(), &[&rpc]).await;
    server.wait_registered().await.unwrap();
    store_block(&server, POOL, 1);

    let page = http(&server, "/jmx").await;
    let beans: Value =
        serde_json::from_str(&page[page.find('{').unwrap()..=page.rfind('}').unwrap()]).unwrap();
    let expected = hadoops(|bean| bean.contains("service=DataNode,"));
    let port = format!("ForPort{}", server.ipc_addr().port());
    let mut seen = Vec::new();
    for bean in beans["beans"].as_array().unwrap() {
        let name = bean["name"].as_str().unwrap();
        let Some(of_service) = name.strip_prefix("Hadoop:service=DataNode,name=") else { continue };
        let kind = of_service.split_once('-').map_or(of_service.to_owned(), |(kind, _)| format!("{kind}-*"));
        let kind = kind.replace(&port, "ForPort*");
        let key = format!("Hadoop:service=DataNode,name={kind}");
        let known = expected.get(&*key).unwrap_or_else(|| panic!("Hadoop has no bean {name}"));
        let own: BTreeMap<&str, &Value> = bean
            .as_object()
            .unwrap()
            .iter()
            .filter(|(key, _)| !["name", "modelerType"].contains(&key.as_str()))
            .map(|(key, value)| (key.as_str(), value))
            .collect();
        for (attribute, value) in &own {
            let kind = known.get(attribute).unwrap_or_else(|| panic!("{name} has no {attribute} in Hadoop"));
            assert_eq!(kind_of(value), *kind, "{name} {attribute}: {value}");
        }
        // Hadoop counts more events than Clover does, so these beans may lack attributes.
        if !IN_PART.contains(&&*kind) {
            let left_out =
                LEFT_OUT.iter().find(|(of, _)| *of == key).map_or(&[][..], |(_, left_out)| left_out);
            let lacks: Vec<_> = known.keys().copied().filter(|it| !own.contains_key(it)).collect();
            assert_eq!(lacks, left_out, "{name}");
        }
        seen.push(kind);
    }
    seen.sort();
    assert_eq!(
        seen,
        [
            "DataNodeActivity-*",
            "DataNodeInfo",
            "FSDatasetState",
            "FSDatasetState-*",
            "JvmMetrics",
            "RpcActivityForPort*"
        ]
    );

    let info =
        &beans["beans"].as_array().unwrap().iter().find(|bean| bean["VolumeInfo"].is_string()).unwrap();
    let volumes: Value = serde_json::from_str(info["VolumeInfo"].as_str().unwrap()).unwrap();
    let blocks: u64 =
        volumes.as_object().unwrap().values().map(|volume| volume["numBlocks"].as_u64().unwrap()).sum();
    assert_eq!(blocks, 1);
    assert_eq!(info["ClusterId"], "CID-one");
    server.shutdown().await;
}

async fn ask(server: &DataServer, bean: &str) -> Value {
    let page = http(server, &format!("/jmx?qry=Hadoop:service=DataNode,name={bean}")).await;
    let beans: Value =
        serde_json::from_str(&page[page.find('{').unwrap()..=page.rfind('}').unwrap()]).unwrap();
    beans["beans"][0].clone()
}

/// What the script of Hadoop's own `datanode.html` reads.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_last_with_each_metadata_server_is_told() {
    let root = tempfile::tempdir().unwrap();
    let metadata = Metadata::new("CID-one");
    let rpc = serve(&metadata, "127.0.0.1:0");
    let away = serve(&metadata, "127.0.0.1:0");
    let away_at = away.local_addr().to_string();
    away.shutdown().await;
    let mut config = config(root.path(), &[&rpc]);
    config.metadata_servers.push(away_at.clone());
    let server = DataServer::start(Env::production(), config).await.unwrap();
    server.wait_registered().await.unwrap();
    let info = ask(&server, "DataNodeInfo").await;
    let told: Value = serde_json::from_str(info["BPServiceActorInfo"].as_str().unwrap()).unwrap();
    let here = &told[0];
    assert_eq!(here["NamenodeAddress"], rpc.local_addr().to_string());
    assert_eq!((&here["ActorState"], &here["NamenodeHaState"]), (&json!("RUNNING"), &json!("active")));
    assert_eq!(here["BlockPoolID"], POOL);
    for seconds in ["LastHeartbeat", "LastHeartbeatResponseTime", "LastBlockReport"] {
        assert!(here[seconds].as_str().unwrap().parse::<u64>().unwrap() < 60, "{seconds}: {here}");
    }
    let bytes = |name: &str| here[name].as_str().unwrap().parse::<u64>().unwrap();
    assert!(bytes("maxBlockReportSize") > 0 && bytes("maxDataLength") == 128 << 20, "{here}");
    // Nothing was said to the other, so nothing is told of it.
    let expected = json!({
        "NamenodeAddress": away_at,
        "ActorState": "CONNECTING",
        "isSlownode": "false",
        "maxBlockReportSize": "0",
        "maxDataLength": "134217728",
    });
    assert_eq!(told[1], expected);
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_volume_is_told_with_its_time_and_room() {
    let root = tempfile::tempdir().unwrap();
    let metadata = Metadata::new("CID-one");
    let rpc = serve(&metadata, "127.0.0.1:0");
    let mut config = config(root.path(), &[&rpc]);
    config
        .store
        .volumes
        .push(VolumeConfig { path: root.path().join("other"), storage_type: StorageType::Disk });
    config.store.failed_volumes_tolerated = 1;
    let server = DataServer::start(Env::production(), config).await.unwrap();
    server.wait_registered().await.unwrap();
    let before = ask(&server, "FSDatasetState").await;
    assert_eq!(
        (&before["LastVolumeFailureDate"], &before["EstimatedCapacityLostTotal"]),
        (&json!(0), &json!(0))
    );
    let volumes = &server.state().volumes;
    let lost = volumes.storage_reports().remove(1);
    volumes.fail_volume(lost.volume, "it is broken");
    for bean in ["FSDatasetState", "FSDatasetState-*"] {
        let after = ask(&server, bean).await;
        assert_eq!(after["EstimatedCapacityLostTotal"], lost.capacity_bytes, "{after}");
        assert!(after["LastVolumeFailureDate"].as_u64().unwrap() > 1_700_000_000_000, "{after}");
    }
    let summary = loop {
        let told = metadata.log.lock().heartbeats.last().and_then(|last| last.volume_failure_summary.clone());
        match told {
            Some(told) => break told,
            None => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
        }
    };
    assert_eq!(summary.failed_storage_locations, [lost.directory.display().to_string()]);
    assert_eq!(summary.estimated_capacity_lost_total, lost.capacity_bytes);
    assert!(summary.last_volume_failure_date > 1_700_000_000_000);
    server.shutdown().await;
}
