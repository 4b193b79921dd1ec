//! `/jmx` of a data server shows the beans of a DataNode, under the same names and with the same types.

#[path = "../../../tests/recorded/jmx.rs"]
mod jmx_record;
mod played;

use jmx_record::{hadoops, kind_of};
use played::{Metadata, POOL, http, serve, start, store_block};
use serde_json::Value;
use std::collections::BTreeMap;

/// The attributes that Clover leaves out: it does not know them, or they describe no part of it.
const LEFT_OUT: &[(&str, &[&str])] = &[
    ("Hadoop:service=DataNode,name=DataNodeInfo", &["DiskBalancerStatus"]),
    (
        "Hadoop:service=DataNode,name=FSDatasetState",
        &["LastDirectoryScannerFinishTime", "LastVolumeFailureDate"],
    ),
    ("Hadoop:service=DataNode,name=FSDatasetState-*", &["LastDirScannerFinishTime", "LastVolumeFailureDate"]),
];

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
    let mut seen = Vec::new();
    for bean in beans["beans"].as_array().unwrap() {
        let name = bean["name"].as_str().unwrap();
        let Some(of_service) = name.strip_prefix("Hadoop:service=DataNode,name=") else { continue };
        let kind = of_service.split_once('-').map_or(of_service.to_owned(), |(kind, _)| format!("{kind}-*"));
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
        // Hadoop's DataNodeActivity counts more events than Clover does, so Clover's bean may lack attributes.
        if kind != "DataNodeActivity-*" {
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
        ["DataNodeActivity-*", "DataNodeInfo", "FSDatasetState", "FSDatasetState-*", "JvmMetrics"]
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
