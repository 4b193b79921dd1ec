//! Data servers that an operator's lists take out of service, spoken by hand.

mod cluster;

use cluster::{
    Cluster, Plan, files, refused,
    spoken::{self, STORAGE},
};
use proto::hdfs::{
    self as p, DatanodeReportTypeProto as Kind, datanode as d, datanode_info_proto::AdminState,
};
use rpc::Client;
use std::{path::PathBuf, time::Duration};

struct Story {
    cluster: Cluster,
    files: Client,
    data: Client,
    server: d::DatanodeRegistrationProto,
    listed: PathBuf,
    excluded: PathBuf,
}

impl Story {
    /// A metadata server with two lists that name nobody, and a data server without blocks.
    async fn start() -> Self {
        let mut cluster = Plan::alone().made();
        let (listed, excluded) = (cluster.beside("hosts"), cluster.beside("excluded"));
        for list in [&listed, &excluded] {
            std::fs::write(list, "").unwrap();
        }
        let lists = (listed.clone(), excluded.clone());
        cluster.adjust(move |_, config| {
            (config.data_servers_file, config.excluded_data_servers_file) =
                (Some(lists.0.clone()), Some(lists.1.clone()));
        });
        cluster.restart(1).await;
        let (files, data) = (cluster.client(1), files::data(&cluster, 1));
        let info = spoken::version(&data).await;
        let server = spoken::register(&data, spoken::registration(&info, "uuid-1")).await.unwrap();
        spoken::heartbeat(&data, &server, STORAGE).await.unwrap();
        let report = d::BlockReportRequestProto {
            registration: server.clone(),
            block_pool_id: info.block_pool_id.clone(),
            reports: vec![d::StorageBlockReportProto {
                storage: p::DatanodeStorageProto {
                    storage_uuid: STORAGE.into(),
                    ..p::DatanodeStorageProto::default()
                },
                blocks: Vec::new(),
                number_of_blocks: Some(0),
                blocks_buffers: vec![],
            }],
            context: None,
        };
        let _: d::BlockReportResponseProto = data.call("blockReport", &report).await.unwrap();
        Self { cluster, files, data, server, listed, excluded }
    }

    async fn refresh(&self) {
        let request = p::RefreshNodesRequestProto {};
        let _: p::RefreshNodesResponseProto = self.files.call("refreshNodes", &request).await.unwrap();
    }

    async fn told(&self, kind: Kind) -> Vec<AdminState> {
        let request = p::GetDatanodeReportRequestProto { r#type: kind as i32 };
        let told: p::GetDatanodeReportResponseProto =
            self.files.call("getDatanodeReport", &request).await.unwrap();
        told.di.iter().map(p::DatanodeInfoProto::admin_state).collect()
    }

    async fn wait_for(&self, state: AdminState) {
        for _ in 0..600 {
            if self.told(Kind::Live).await == [state] {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it is {:?}, and never became {state:?}", self.told(Kind::Live).await);
    }

    async fn stop(mut self) {
        drop((self.files, self.data));
        self.cluster.stop(1).await;
    }
}

/// `dfs.hosts.exclude` of HDFS.
#[tokio::test(flavor = "multi_thread")]
async fn a_data_server_that_the_second_list_names_is_decommissioned_and_comes_back() {
    let story = Story::start().await;
    assert_eq!(story.told(Kind::All).await, [AdminState::Normal]);
    std::fs::write(&story.excluded, "127.0.0.1 # the old one\n").unwrap();
    assert_eq!(
        story.told(Kind::Decommissioning).await,
        [],
        "nothing happens before the lists are read again"
    );
    story.refresh().await;
    assert_eq!(story.told(Kind::InMaintenance).await, []);
    // It has no blocks, so none needs it.
    story.wait_for(AdminState::Decommissioned).await;
    spoken::heartbeat(&story.data, &story.server, STORAGE).await.unwrap();
    assert_eq!(story.told(Kind::Decommissioning).await, []);

    // Nothing is placed there, though there is no other.
    let create = files::create_request("/f", files::HOLDER);
    let _: p::CreateResponseProto = story.files.call("create", &create).await.unwrap();
    let add = files::add_block_request("/f", files::HOLDER);
    let placed = story.files.call::<_, p::AddBlockResponseProto>("addBlock", &add).await;
    let message = refused(placed, "IOException");
    assert!(message.contains("could only be written to 0 of the 1 minReplication nodes"), "{message}");

    std::fs::write(&story.excluded, "").unwrap();
    story.refresh().await;
    assert_eq!(story.told(Kind::Live).await, [AdminState::Normal]);
    let _: p::AddBlockResponseProto = story.files.call("addBlock", &add).await.unwrap();
    story.stop().await;
}

/// The list of Hadoop's `CombinedHostFileManager`.
#[tokio::test(flavor = "multi_thread")]
async fn a_maintenance_that_a_list_in_json_orders_ends_at_its_time() {
    let story = Story::start().await;
    let port = story.server.datanode_id.xfer_port;
    let list = |until: &str| {
        format!(r#"[{{"hostName": "127.0.0.1", "port": {port}, "adminState": "IN_MAINTENANCE"{until}}}]"#)
    };
    std::fs::write(&story.listed, list("")).unwrap();
    story.refresh().await;
    story.wait_for(AdminState::InMaintenance).await;
    assert_eq!(story.told(Kind::InMaintenance).await.len(), 1);
    // It ended in 1970.
    std::fs::write(&story.listed, list(r#", "maintenanceExpireTimeInMS": 1"#)).unwrap();
    story.refresh().await;
    story.wait_for(AdminState::Normal).await;

    // A list that is not understood changes nothing, and is said.
    std::fs::write(&story.listed, "[{\"hostName\"").unwrap();
    let request = p::RefreshNodesRequestProto {};
    let answer = story.files.call::<_, p::RefreshNodesResponseProto>("refreshNodes", &request).await;
    let message = refused(answer, "IOException");
    assert!(message.contains("its JSON is not understood"), "{message}");
    assert_eq!(story.told(Kind::Live).await, [AdminState::Normal]);
    story.stop().await;
}

/// `hdfs dfsadmin -listOpenFiles -blockingDecommission`. Its client stops at a page without files.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_keeps_a_data_server_is_found_behind_a_page_of_others() {
    let story = Story::start().await;
    for number in 0..=1_000 {
        let create = files::create_request(&format!("/f{number}"), files::HOLDER);
        let _: p::CreateResponseProto = story.files.call("create", &create).await.unwrap();
    }
    let add = files::add_block_request("/f1000", files::HOLDER);
    let _: p::AddBlockResponseProto = story.files.call("addBlock", &add).await.unwrap();
    std::fs::write(&story.excluded, "127.0.0.1").unwrap();
    story.refresh().await;
    let request = p::ListOpenFilesRequestProto {
        id: 0,
        types: vec![p::OpenFilesTypeProto::BlockingDecommission as i32],
        path: Some("/".into()),
    };
    let told: p::ListOpenFilesResponseProto = story.files.call("listOpenFiles", &request).await.unwrap();
    let paths: Vec<&str> = told.entries.iter().map(|entry| &*entry.path).collect();
    assert_eq!((paths, told.has_more), (vec!["/f1000"], false));
    assert_eq!(story.told(Kind::Decommissioning).await.len(), 1, "the file keeps it");
    story.stop().await;
}
