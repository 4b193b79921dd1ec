//! The small pages of a DataNode: `/`, `/prom` and `/stacks`, and the attributes that tools read at `/jmx`.

#[path = "../../../tests/recorded/jmx.rs"]
mod jmx_record;
#[path = "../../../tests/recorded/monitors.rs"]
mod monitors;
mod played;
#[path = "../../../tests/recorded/prom.rs"]
mod prom_record;

use datad::DataServer;
use monitors::questions;
use played::{Metadata, POOL, http, serve, start, store_block};
use proto::{hdfs as p, protocol::CLIENT_DATANODE};
use rpc::{Client, ClientOptions};

/// Metrics of Hadoop that are left out whole, by how their names begin, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("http_server", "the threads of Java's HTTP server"),
    ("metrics_system", "the machinery that collects Java's metrics"),
    ("ugi_metrics", "logins by Kerberos, and Java's look-ups of groups"),
    ("jvm_metrics_gc_", "Java's collectors by name"),
    ("fs_volume_", "operations on files by kind; slow disks are found otherwise"),
];

/// Of these records the numbers are shown that Clover counts. `/jmx` leaves out the same attributes.
const IN_PART: [&str; 2] = ["datanode_", "rpc_"];

/// Of the volumes' record these are left out: Clover does not know them.
const SINGLE: [&str; 1] = [
    "org_apache_hadoop_hdfs_server_datanode_fsdataset_impl_fs_dataset_impl_last_directory_scanner_finish_time",
];

/// A server with one block, and the played metadata server that has registered it.
async fn registered(root: &std::path::Path) -> (DataServer, rpc::Server) {
    let metadata = Metadata::new("CID-one");
    let rpc = serve(&metadata, "127.0.0.1:0");
    let server = start(root, &[&rpc]).await;
    server.wait_registered().await.unwrap();
    store_block(&server, POOL, 1);
    (server, rpc)
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_have_hadoops_names_types_and_labels() {
    let root = tempfile::tempdir().unwrap();
    let (server, _rpc) = registered(root.path()).await;
    let answer = http(&server, "/prom").await;
    let lacking = prom_record::lacking(body(&answer), "DataNode");
    let lacking: Vec<_> = lacking
        .iter()
        .filter(|name| !LEFT_OUT.iter().any(|(start, _)| name.starts_with(start)))
        .filter(|name| !IN_PART.iter().any(|start| name.starts_with(start)))
        .collect();
    assert_eq!(lacking, SINGLE);
    for wanted in ["datanode_bytes_written{", "jvm_metrics_mem_heap_used_m{"] {
        assert!(body(&answer).lines().any(|line| line.starts_with(wanted)), "{wanted}");
    }
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_the_rpc_port_are_counted_and_timed() {
    let root = tempfile::tempdir().unwrap();
    let (server, _rpc) = registered(root.path()).await;
    let address = server.ipc_addr().to_string();
    let client = Client::connect(address, CLIENT_DATANODE, "ann", ClientOptions::default());
    for _ in 0..3 {
        let _: p::GetDatanodeInfoResponseProto =
            client.call("getDatanodeInfo", &p::GetDatanodeInfoRequestProto {}).await.unwrap();
    }
    let unknown = p::GetReplicaVisibleLengthRequestProto {
        block: p::ExtendedBlockProto { pool_id: POOL.into(), block_id: 77, ..Default::default() },
    };
    let refused: Result<p::GetReplicaVisibleLengthResponseProto, _> =
        client.call("getReplicaVisibleLength", &unknown).await;
    refused.unwrap_err();
    let metrics = http(&server, "/metrics").await;
    for line in [
        "clover_data_rpc_call_seconds_count{protocol=\"ClientDatanodeProtocol\",method=\"getDatanodeInfo\",stage=\"total\"} 3",
        "clover_data_rpc_calls_refused_total{protocol=\"ClientDatanodeProtocol\",method=\"getReplicaVisibleLength\"} 1",
    ] {
        assert!(metrics.lines().any(|it| it == line), "{line}: {metrics}");
    }
    let port = server.ipc_addr().port();
    let bean =
        http(&server, &format!("/jmx?qry=Hadoop:service=DataNode,name=RpcActivityForPort{port}")).await;
    for attribute in
        ["\"RpcProcessingTimeNumOps\" : 4,", "\"RpcCallSuccesses\" : 3,", "\"NumOpenConnections\" : 1,"]
    {
        assert!(bean.contains(attribute), "{attribute}: {bean}");
    }
    assert!(http(&server, "/prom").await.lines().any(|line| line.starts_with("rpc_rpc_queue_time_num_ops{")));
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_find_each_attribute_that_they_read() {
    let root = tempfile::tempdir().unwrap();
    let (server, _rpc) = registered(root.path()).await;
    let asked = questions("DataNode");
    assert!(asked.len() > 5);
    for question in asked {
        question.check(&http(&server, &format!("/jmx?{}", question.query)).await);
    }
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_are_shown_and_pages_of_a_name_node_are_not_here() {
    let root = tempfile::tempdir().unwrap();
    let (server, _rpc) = registered(root.path()).await;
    let threads = http(&server, "/stacks").await;
    assert!(threads.contains(" active threads\nThread "), "{threads}");
    for page in ["/isActive", "/topology", "/startupProgress"] {
        assert!(http(&server, page).await.starts_with("HTTP/1.1 404"), "{page}");
    }
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_page_names_the_server_and_its_volumes_and_old_addresses_lead_there() {
    let root = tempfile::tempdir().unwrap();
    let (server, rpc) = registered(root.path()).await;
    let page = http(&server, "/").await;
    let (head, text) = page.split_once("\r\n\r\n").unwrap();
    let head = head.to_lowercase();
    assert!(head.starts_with("http/1.1 200") && head.contains("content-type: text/html"), "{head}");
    assert!(head.contains("content-security-policy: default-src 'none'"), "{head}");
    let directory = root.path().join("data");
    let address = server.transfer_addr().to_string();
    let metadata_server = server.state().config.metadata_servers[0].clone();
    let wanted = [
        format!("<h1>Data server {address}</h1>"),
        server.state().identity.uuid.to_string(),
        format!("<td><code>{}</code></td><td>DISK</td><td>1</td>", directory.display()),
        format!("<code>{metadata_server}</code>: has this server and its report"),
    ];
    for part in wanted {
        assert!(text.contains(&part), "{part}: {text}");
    }
    // Those that every program adds are in `crates/cli`.
    for link in ["/health", "/ready", "/metrics", "/prom", "/jmx", "/stacks"] {
        assert!(text.contains(&format!("<a href=\"{link}\">")), "{link}: {text}");
        assert!(http(&server, link).await.starts_with("HTTP/1.1 200"), "{link}");
    }
    for old in ["/index.html", "/datanode.html", "/dfshealth.html", "/explorer.html", "/logs/"] {
        let answer = http(&server, old).await.to_lowercase();
        assert!(answer.starts_with("http/1.1 303") && answer.contains("location: /\r\n"), "{old}: {answer}");
    }
    server.shutdown().await;
    rpc.shutdown().await;
}
