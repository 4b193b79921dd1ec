//! A script of the operator that tells the racks of data servers.

mod cluster;

use cluster::{
    Cluster, Plan, files,
    spoken::{self, STORAGE},
};
use metad::RackScript;
use proto::hdfs as p;
use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, time::Duration};

struct Story {
    cluster: Cluster,
    script: PathBuf,
}

impl Story {
    /// A metadata server that asks a script with these lines.
    async fn start(lines: &str, racks: &[(&str, &str)]) -> Self {
        Self::start_with(Duration::from_secs(60), lines, racks).await
    }

    async fn start_with(limit: Duration, lines: &str, racks: &[(&str, &str)]) -> Self {
        let mut cluster = Plan::alone().made();
        let script = cluster.beside("racks.sh");
        let program = script.display().to_string();
        let racks: Vec<_> = racks.iter().map(|(host, rack)| ((*host).into(), (*rack).into())).collect();
        cluster.adjust(move |_, config| {
            config.rack_script = Some(RackScript { program: program.clone(), args_max: 100, limit });
            config.racks = racks.clone();
        });
        let mut story = Self { cluster, script };
        story.say(lines);
        story.cluster.restart(1).await;
        story
    }

    /// From now on the script has these lines.
    fn say(&self, lines: &str) {
        let next = self.script.with_extension("next");
        fs::write(&next, format!("#!/bin/sh\n{lines}\n")).unwrap();
        fs::set_permissions(&next, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(&next, &self.script).unwrap();
    }

    async fn register(&self) {
        let data = files::data(&self.cluster, 1);
        let info = spoken::version(&data).await;
        let server = spoken::register(&data, spoken::registration(&info, "uuid-1")).await.unwrap();
        spoken::heartbeat(&data, &server, STORAGE).await.unwrap();
    }

    async fn rack(&self) -> String {
        let request = p::GetDatanodeReportRequestProto { r#type: p::DatanodeReportTypeProto::All as i32 };
        let told: p::GetDatanodeReportResponseProto =
            self.cluster.client(1).call("getDatanodeReport", &request).await.unwrap();
        told.di[0].location().to_owned()
    }

    async fn wait_for_rack(&self, rack: &str) {
        for _ in 0..600 {
            if self.rack().await == rack {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it is on {}, and never came to {rack}", self.rack().await);
    }

    async fn refresh(&self) {
        let request = p::RefreshNodesRequestProto {};
        let _: p::RefreshNodesResponseProto =
            self.cluster.client(1).call("refreshNodes", &request).await.unwrap();
    }

    async fn stop(mut self) {
        self.cluster.stop(1).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_server_is_on_the_rack_that_the_script_tells() {
    let story = Story::start("for host; do echo /dc/of-$host; done", &[]).await;
    story.register().await;
    assert_eq!(story.rack().await, "/dc/of-127.0.0.1", "it is known when the server is");

    // The machine is carried away, and its data server starts there.
    story.say("for host; do echo /b/; done");
    story.register().await;
    assert_eq!(story.rack().await, "/b");

    story.say("for host; do echo /c; done");
    story.refresh().await;
    story.wait_for_rack("/c").await;
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_fails_leaves_a_data_server_where_it_was() {
    let story = Story::start("exit 1", &[]).await;
    story.register().await;
    assert_eq!(story.rack().await, "/default-rack");
    story.say("echo /a");
    story.register().await;
    assert_eq!(story.rack().await, "/a");
    story.say("echo nonsense");
    story.register().await;
    assert_eq!(story.rack().await, "/a");
    fs::remove_file(&story.script).unwrap();
    story.register().await;
    assert_eq!(story.rack().await, "/a");
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_goes_before_the_script() {
    let story = Story::start("echo /of-the-script", &[("127.0.0.1", "/of-the-table")]).await;
    story.register().await;
    assert_eq!(story.rack().await, "/of-the-table");
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_server_registers_though_the_script_hangs() {
    let story = Story::start_with(Duration::from_millis(200), "sleep 3600", &[]).await;
    story.register().await;
    assert_eq!(story.rack().await, "/default-rack");
    story.stop().await;
}
