//! Slow peers and slow disks are told to metadata servers as Hadoop's DataNodes tell them.

mod played;

use base::Moment;
use blockstore::VolumeIndex;
use datad::{
    DataConfig, DataServer, State,
    slowness::{DiskOp, SlownessConfig},
};
use env::Env;
use played::{Metadata, config, eventually, http, register_again, serve};
use proto::hdfs::{DatanodeIdProto, datanode::HeartbeatRequestProto};
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// Packets to the last of these peers have taken a second, to the others no time.
fn send_packets(state: &State) {
    for number in 1..=4 {
        let id = DatanodeIdProto {
            ip_addr: format!("10.0.0.{number}"),
            info_port: 9864,
            ..DatanodeIdProto::default()
        };
        let now = state.env.clock.moment();
        let begun = Moment { ns: now.ns - if number == 4 { 1_000_000_000 } else { 0 } };
        state.slowness.peer(&id, now).unwrap().note(begun, &*state.env.clock);
    }
}

/// The last of three disks takes its time.
fn write(state: &State) {
    for volume in 0..3 {
        let timer = state.slowness.begin(&state.env);
        if volume == 2 {
            std::thread::sleep(Duration::from_millis(200));
        }
        state.slowness.end(&timer, &state.env, (VolumeIndex(volume), DiskOp::Write), 1);
    }
}

fn tells(heartbeat: &&HeartbeatRequestProto) -> bool {
    !heartbeat.slow_peers.is_empty() || !heartbeat.slow_disks.is_empty()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_heartbeat_of_a_session_tells_and_the_next_ones_not_before_the_interval_is_over() {
    let root = tempfile::tempdir().unwrap();
    let metadata = Metadata::new("CID-one");
    let rpc = serve(&metadata, "127.0.0.1:0");
    let mut config: DataConfig = config(root.path(), &[&rpc]);
    config.store.volumes = (0..3)
        .map(|number| {
            let path = root.path().join(format!("disk-{number}"));
            std::fs::create_dir(&path).unwrap();
            path.display().to_string().parse().unwrap()
        })
        .collect();
    config.slowness = SlownessConfig {
        measures_peers: true,
        peer_packets_min: 0,
        peer_count_min: 4,
        disk_percent: 100,
        disk_count_min: 3,
        ..SlownessConfig::default()
    };
    let server = DataServer::start(Env::production(), config).await.unwrap();
    server.wait_registered().await.unwrap();
    let state: Arc<State> = server.state().clone();
    assert!(!metadata.log.lock().heartbeats.iter().any(|heartbeat| tells(&heartbeat)));
    send_packets(&state);
    tokio::task::spawn_blocking({
        let state = state.clone();
        move || write(&state)
    })
    .await
    .unwrap();

    metadata.log.lock().commands.push(register_again());
    let told = || metadata.log.lock().heartbeats.iter().filter(tells).count();
    eventually("a heartbeat of the next session tells", || told() > 0).await;
    let beats = || metadata.log.lock().heartbeats.len();
    let before = beats();
    eventually("heartbeats go on", || beats() > before + 3).await;
    assert_eq!(told(), 1);
    let heartbeat = metadata.log.lock().heartbeats.iter().find(tells).unwrap().clone();
    let [peer] = &heartbeat.slow_peers[..] else { panic!("{:?}", heartbeat.slow_peers) };
    assert_eq!(peer.data_node_id(), "10.0.0.4:9864");
    assert!(peer.aggregate_latency() >= 1_000.0 && peer.upper_limit_latency() < 1_000.0, "{peer:?}");
    let [disk] = &heartbeat.slow_disks[..] else { panic!("{:?}", heartbeat.slow_disks) };
    assert_eq!(disk.base_path(), root.path().join("disk-2").to_str().unwrap());
    assert!(disk.mean_write_io_latency() >= 200.0 && disk.mean_read_io_latency.is_none(), "{disk:?}");

    let page = http(&server, "/jmx?qry=Hadoop:service=DataNode,name=DataNodeInfo").await;
    let answer: Value =
        serde_json::from_str(&page[page.find('{').unwrap()..=page.rfind('}').unwrap()]).unwrap();
    let text = |attribute: &str| -> Value {
        serde_json::from_str(answer["beans"][0][attribute].as_str().unwrap()).unwrap()
    };
    let means = text("SendPacketDownstreamAvgInfo");
    assert_eq!(means.as_object().unwrap().len(), 4, "{means}");
    assert!(means["[10.0.0.4:9864]RollingAvgTime"].as_f64().unwrap() >= 1_000.0, "{means}");
    assert_eq!(text("SlowDisks"), serde_json::json!([root.path().join("disk-2")]));
    server.shutdown().await;
}
