//! Data servers that say that others are slow, spoken by hand.

mod cluster;

use cluster::{
    Cluster, Plan, SUPERUSER,
    files::{HOLDER, add_block_request, complete_request, create_request, located, replica},
    page,
    spoken::{self, STORAGE},
};
use proto::{
    hdfs::{
        self as p,
        datanode::{self as d, received_deleted_block_info_proto::BlockStatus::Received},
    },
    protocol,
};
use rpc::{Client, ClientOptions};
use serde_json::{Value, json};
use std::net::Ipv4Addr;

struct Spoken {
    data: Client,
    info: p::NamespaceInfoProto,
    registration: d::DatanodeRegistrationProto,
}

impl Spoken {
    /// A data server at an address of its own, which has reported that it stores nothing.
    async fn start(cluster: &Cluster, host: u8) -> Self {
        let way = cluster.address_from(Ipv4Addr::new(127, 0, 0, host), 1).await;
        let data = Client::connect(way, protocol::DATANODE, SUPERUSER, ClientOptions::default());
        let info = spoken::version(&data).await;
        let mut registration = spoken::registration(&info, &format!("uuid-{host}"));
        registration.datanode_id.host_name = format!("host-{host}");
        let registration = spoken::register(&data, registration).await.unwrap();
        spoken::heartbeat(&data, &registration, STORAGE).await.unwrap();
        let report = d::BlockReportRequestProto {
            registration: registration.clone(),
            block_pool_id: info.block_pool_id.clone(),
            reports: vec![d::StorageBlockReportProto {
                storage: spoken::storage(STORAGE),
                number_of_blocks: Some(0),
                ..d::StorageBlockReportProto::default()
            }],
            context: None,
        };
        let _: d::BlockReportResponseProto = data.call("blockReport", &report).await.unwrap();
        Self { data, info, registration }
    }

    /// A heartbeat that accuses peers and disks. Whether the answer says that this server is slow itself.
    async fn accuse(
        &self,
        slow_peers: Vec<d::SlowPeerReportProto>,
        slow_disks: Vec<d::SlowDiskReportProto>,
    ) -> bool {
        let request = d::HeartbeatRequestProto {
            registration: self.registration.clone(),
            slow_peers,
            slow_disks,
            ..d::HeartbeatRequestProto::default()
        };
        let answer: d::HeartbeatResponseProto = self.data.call("sendHeartbeat", &request).await.unwrap();
        answer.is_slownode()
    }
}

struct Story {
    cluster: Cluster,
    files: Client,
    servers: [Spoken; 2],
}

impl Story {
    async fn start(avoids: bool) -> Self {
        let mut cluster = Plan::alone().made();
        cluster.adjust(move |_, config| {
            config.http_address = Some("127.0.0.1:0".parse().unwrap());
            (config.blocks.exclude_slow, config.blocks.read_slow_last) = (avoids, avoids);
        });
        cluster.restart(1).await;
        let files = cluster.client(1);
        let servers = [Spoken::start(&cluster, 2).await, Spoken::start(&cluster, 3).await];
        Self { cluster, files, servers }
    }

    /// A new file with a block; the uuids of the servers on which it is to be.
    async fn place(&self, path: &str, replication: u32) -> (Vec<String>, p::ExtendedBlockProto) {
        let create = p::CreateRequestProto { replication, ..create_request(path, HOLDER) };
        let _: p::CreateResponseProto = self.files.call("create", &create).await.unwrap();
        let add = add_block_request(path, HOLDER);
        let added: p::AddBlockResponseProto = self.files.call("addBlock", &add).await.unwrap();
        (added.block.locs.iter().map(|place| place.id.datanode_uuid.clone()).collect(), added.block.b)
    }

    /// A closed file on both servers, which have so shown that they store something.
    async fn write(&self, path: &str) {
        let (places, block) = self.place(path, 2).await;
        assert_eq!(places.len(), 2);
        for server in &self.servers {
            let pool = (&*server.info.block_pool_id, STORAGE);
            spoken::tell(&server.data, &server.registration, pool, replica(&block), Received as i32).await;
        }
        let complete = complete_request(path, HOLDER, &block);
        let closed: p::CompleteResponseProto = self.files.call("complete", &complete).await.unwrap();
        assert!(closed.result);
    }

    /// What any user is told by `hdfs dfsadmin -report -slownodes`.
    async fn slow(&self) -> Vec<String> {
        let client = self.cluster.client_as(1, protocol::CLIENT_NAMENODE, "anybody");
        let request = p::GetSlowDatanodeReportRequestProto {};
        let told: p::GetSlowDatanodeReportResponseProto =
            client.call("getSlowDatanodeReport", &request).await.unwrap();
        told.datanode_info_proto.into_iter().map(|server| server.id.datanode_uuid).collect()
    }

    /// The slow servers and disks as `/jmx` has them.
    async fn slow_in_beans(&self) -> (Value, Value) {
        let pages = self.cluster.server(1).http_address().unwrap();
        let answer = page(pages, "/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus").await.unwrap();
        let json = &answer[answer.find('{').unwrap()..=answer.rfind('}').unwrap()];
        let answer: Value = serde_json::from_str(json).unwrap();
        let of = |attribute: &str| match &answer["beans"][0][attribute] {
            Value::String(text) => serde_json::from_str(text).unwrap(),
            other => other.clone(),
        };
        (of("SlowPeersReport"), of("SlowDisksReport"))
    }

    async fn stop(mut self) {
        drop((self.files, self.servers));
        self.cluster.stop(1).await;
    }
}

fn peer(name: &str, aggregate_latency: Option<f64>) -> d::SlowPeerReportProto {
    d::SlowPeerReportProto {
        data_node_id: Some(name.into()),
        aggregate_latency,
        ..d::SlowPeerReportProto::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_data_server_is_told_gets_no_new_blocks_and_is_read_last() {
    let story = Story::start(true).await;
    let [one, other] = &story.servers;
    story.write("/f").await;
    assert!(story.slow().await.is_empty());
    // Hadoop's DataNodes name the port of the web pages. Those before 3.4 tell only the latency.
    assert!(!one.accuse(vec![peer("127.0.0.3:9864", Some(80.5))], vec![]).await);
    assert_eq!(story.slow().await, ["uuid-3"]);
    assert!(other.accuse(vec![], vec![]).await, "it is told that it is slow, as a NameNode would");
    for number in 0..10 {
        assert_eq!(story.place(&format!("/new-{number}"), 1).await.0, ["uuid-2"]);
        let places = &located(&story.files, "/f").await.blocks[0].locs;
        assert_eq!(places[1].id.datanode_uuid, "uuid-3");
    }
    let group = story.cluster.group(1).await;
    let [slow] = &group.slow_servers[..] else { panic!("{:?}", group.slow_servers) };
    assert_eq!((&*slow.uuid, slow.reporters, slow.latency_ms), ("uuid-3", 1, 80.5));
    assert!(slow.is_excluded && slow.is_read_last);
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_servers_and_disks_are_told_where_nothing_is_to_follow() {
    let story = Story::start(false).await;
    let [one, _] = &story.servers;
    assert_eq!(story.slow_in_beans().await, (Value::Null, Value::Null));
    let disk = d::SlowDiskReportProto {
        base_path: Some("/data/1".into()),
        mean_read_io_latency: Some(91.0),
        ..d::SlowDiskReportProto::default()
    };
    one.accuse(vec![peer("127.0.0.3:9864", Some(80.5))], vec![disk]).await;
    assert_eq!(story.slow().await, ["uuid-3"]);
    let group = story.cluster.group(1).await;
    assert!(!group.slow_servers[0].is_excluded && !group.slow_servers[0].is_read_last);
    let [disk] = &group.slow_disks[..] else { panic!("{:?}", group.slow_disks) };
    assert_eq!(
        (&*disk.uuid, &*disk.path, disk.read_ms, disk.write_ms),
        ("uuid-2", "/data/1", Some(91.0), None)
    );
    let (peers, disks) = story.slow_in_beans().await;
    let reporter = format!("127.0.0.2:{}", one.registration.datanode_id.ipc_port);
    let expected = json!([{
        "SlowNode": "127.0.0.3:9864",
        "SlowPeerLatencyWithReportingNodes": [{
            "ReportingNode": reporter,
            "ReportedLatency": 80.5,
            "MedianLatency": 0.0,
            "MadLatency": 0.0,
            "UpperLimitLatency": 0.0,
        }],
    }]);
    assert_eq!(peers, expected);
    let expected = json!([{ "SlowDiskID": format!("{reporter}:/data/1"), "Latencies": { "READ": 91.0 } }]);
    assert_eq!(disks, expected);
    let mut chosen = std::collections::BTreeSet::new();
    for number in 0..60 {
        chosen.extend(story.place(&format!("/new-{number}"), 1).await.0);
    }
    assert_eq!(chosen.len(), 2);
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_make_no_sense_change_nothing() {
    let story = Story::start(true).await;
    let [one, _] = &story.servers;
    story.write("/f").await;
    let good = "127.0.0.3:9864";
    let mut rows: Vec<_> =
        [None, Some(f64::NAN), Some(f64::INFINITY), Some(-1.0)].map(|latency| peer(good, latency)).into();
    rows.push(d::SlowPeerReportProto::default());
    rows.push(d::SlowPeerReportProto { median: Some(f64::NAN), ..peer(good, Some(1.0)) });
    rows.extend(["", "nobody:1", &"9".repeat(100_000)].map(|name| peer(name, Some(9.0))));
    // Itself, by one of its ports.
    rows.push(peer("127.0.0.2:9866", Some(9.0)));
    let disks = vec![d::SlowDiskReportProto::default(); 2];
    assert!(!one.accuse(rows, disks).await);
    assert!(story.slow().await.is_empty());
    let many = (0..100_000).map(|port| peer(&format!("10.0.0.1:{port}"), Some(9.0))).collect();
    assert!(!one.accuse(many, vec![d::SlowDiskReportProto::default(); 100_000]).await);
    assert!(story.slow().await.is_empty());
    assert!(story.cluster.group(1).await.slow_disks.is_empty());
    story.stop().await;
}
