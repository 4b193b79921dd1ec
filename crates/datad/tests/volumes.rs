//! Data directories of a running server come and go, and replicas move between them, by Hadoop's calls.

mod played;

use blockstore::{StorageType, VolumeConfig};
use datad::{DataConfig, DataServer};
use env::Env;
use played::{Metadata, POOL, config, eventually, serve, store_block};
use proto::{
    exception,
    hdfs::{
        CancelPlanRequestProto, CancelPlanResponseProto, DiskBalancerSettingRequestProto,
        DiskBalancerSettingResponseProto, GetReconfigurationStatusRequestProto,
        GetReconfigurationStatusResponseProto, ListReconfigurablePropertiesRequestProto,
        ListReconfigurablePropertiesResponseProto, QueryPlanStatusRequestProto, QueryPlanStatusResponseProto,
        StartReconfigurationRequestProto, StartReconfigurationResponseProto,
        SubmitDiskBalancerPlanRequestProto, SubmitDiskBalancerPlanResponseProto,
        datanode::received_deleted_block_info_proto::BlockStatus,
    },
    protocol::{CLIENT_DATANODE, RECONFIGURATION},
};
use rpc::{CallError, Client, ClientOptions};
use std::{
    path::Path,
    sync::{Arc, Mutex, mpsc},
};

const ID: u64 = 1_073_741_825;

/// A server with two directories, whose configuration a test changes.
struct Server {
    metadata: Arc<Metadata>,
    rpc: Option<rpc::Server>,
    server: DataServer,
    wanted: Arc<Mutex<Result<DataConfig, String>>>,
    root: tempfile::TempDir,
}

impl Server {
    async fn start() -> Self {
        let root = tempfile::tempdir().unwrap();
        let metadata = Metadata::new("CID-one");
        let rpc = serve(&metadata, "127.0.0.1:0");
        let first = DataConfig { transfer_timeout_ms: 1_000, ..config(root.path(), &[&rpc]) };
        let first = with_dirs(&first, root.path(), &["d0", "d1"]);
        let server = DataServer::start(Env::production(), first.clone()).await.unwrap();
        server.wait_registered().await.unwrap();
        let wanted = Arc::new(Mutex::new(Ok(first)));
        let reload = wanted.clone();
        server.state().reconfiguration.set_reload(Box::new(move || reload.lock().unwrap().clone()));
        Self { metadata, rpc: Some(rpc), server, wanted, root }
    }

    fn client_of(&self, user: &str) -> Client {
        Client::connect(self.server.ipc_addr().to_string(), CLIENT_DATANODE, user, ClientOptions::default())
    }

    fn client(&self) -> Client {
        self.client_of(&self.server.state().config.user)
    }

    fn want(&self, change: impl FnOnce(&DataConfig) -> DataConfig) {
        let mut wanted = self.wanted.lock().unwrap();
        *wanted = Ok(change(wanted.as_ref().unwrap()));
    }

    fn want_dirs(&self, names: &[&str]) {
        self.want(|config| with_dirs(config, self.root.path(), names));
    }

    async fn begin(&self) -> Result<(), CallError> {
        let order = StartReconfigurationRequestProto {};
        self.client()
            .call("startReconfiguration", &order)
            .await
            .map(|_: StartReconfigurationResponseProto| ())
    }

    async fn status(&self) -> GetReconfigurationStatusResponseProto {
        self.client()
            .call("getReconfigurationStatus", &GetReconfigurationStatusRequestProto {})
            .await
            .unwrap()
    }

    /// Orders what is wanted, and waits for the end: each property with its old and new value, and why it failed.
    async fn reconfigure(&self) -> Vec<(String, String, String, Option<String>)> {
        self.begin().await.unwrap();
        let status = loop {
            let status = self.status().await;
            if status.end_time.is_some() {
                break status;
            }
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        };
        let changes = status.changes.into_iter();
        changes
            .map(|change| {
                (
                    change.name.clone(),
                    change.old_value.clone(),
                    change.new_value().into(),
                    change.error_message,
                )
            })
            .collect()
    }

    fn dir(&self, name: &str) -> String {
        format!("[DISK]{}", self.root.path().join(name).display())
    }

    fn dirs(&self, names: &[&str]) -> String {
        names.iter().map(|name| self.dir(name)).collect::<Vec<_>>().join(",")
    }

    /// The storage ids of the last heartbeat.
    fn beating(&self) -> Vec<String> {
        let log = self.metadata.log.lock();
        log.heartbeats
            .last()
            .unwrap()
            .reports
            .iter()
            .map(|report| report.storage.as_ref().unwrap().storage_uuid.clone())
            .collect()
    }

    /// The blocks of each storage in the last full report.
    fn reported(&self) -> Vec<u64> {
        let log = self.metadata.log.lock();
        log.full.last().unwrap().reports.iter().map(|report| report.number_of_blocks()).collect()
    }
}

fn with_dirs(config: &DataConfig, root: &Path, names: &[&str]) -> DataConfig {
    let volume = |name: &&str| VolumeConfig { path: root.join(name), storage_type: StorageType::Disk };
    let mut config = config.clone();
    config.store.volumes = names.iter().map(volume).collect();
    config
}

#[allow(clippy::needless_pass_by_value, reason = "what a call has answered ends here")]
fn refusal(error: CallError) -> (String, String) {
    (error.class().unwrap_or_default().to_owned(), error.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_goes_and_comes_back_and_the_metadata_server_is_told() {
    let server = Server::start().await;
    store_block(&server.server, POOL, ID);
    store_block(&server.server, POOL, ID + 1);
    assert_eq!(server.status().await.start_time, 0, "no task was there yet");
    server.want_dirs(&["d0"]);
    let changes = server.reconfigure().await;
    let property = "dfs.datanode.data.dir".to_owned();
    assert_eq!(changes, [(property.clone(), server.dirs(&["d0", "d1"]), server.dirs(&["d0"]), None)]);
    eventually("the replica is told to be gone", || server.metadata.changed(ID + 1, BlockStatus::Deleted))
        .await;
    assert!(!server.metadata.changed(ID, BlockStatus::Deleted));
    eventually("heartbeats name one storage", || server.beating().len() == 1).await;
    eventually("a full report names one storage", || server.reported() == [1]).await;

    server.want_dirs(&["d0", "d1"]);
    assert_eq!(
        server.reconfigure().await,
        [(property, server.dirs(&["d0"]), server.dirs(&["d0", "d1"]), None)]
    );
    eventually("a full report has the replicas of both", || server.reported() == [1, 1]).await;
    eventually("heartbeats name both", || server.beating().len() == 2).await;
    assert!(server.reconfigure().await.is_empty(), "nothing is to be changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_metadata_server_that_is_away_meanwhile_hears_of_it_when_it_is_back() {
    let mut server = Server::start().await;
    store_block(&server.server, POOL, ID);
    store_block(&server.server, POOL, ID + 1);
    eventually("both are reported", || server.metadata.changed(ID + 1, BlockStatus::Received)).await;
    let rpc = server.rpc.take().unwrap();
    let address = rpc.local_addr().to_string();
    rpc.shutdown().await;
    server.want_dirs(&["d1"]);
    assert_eq!(server.reconfigure().await.len(), 1);
    server.metadata.log.lock().full.clear();
    server.rpc = Some(serve(&server.metadata, &address));
    eventually("it has a report", || !server.metadata.log.lock().full.is_empty()).await;
    eventually("the report names the storage that is left", || server.reported() == [1]).await;
    eventually("so does a heartbeat", || server.beating().len() == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_added_is_told_as_hadoop_tells_it() {
    let server = Server::start().await;
    server.want_dirs(&["d0", "d1", "nowhere"]);
    let changes = server.reconfigure().await;
    let error = changes[0].3.clone().unwrap();
    assert!(error.starts_with(&format!("FAILED TO ADD: {}: ", server.dir("nowhere"))), "{error}");
    assert_eq!(server.server.state().volumes.living_volumes().len(), 2);
    std::fs::create_dir(server.root.path().join("nowhere")).unwrap();
    assert_eq!(server.reconfigure().await[0].3, None, "it is tried again");
    server.want(|config| with_dirs(config, Path::new("/nowhere"), &["at", "all"]));
    assert_eq!(server.reconfigure().await[0].3.as_deref(), Some("Attempt to remove all volumes."));
    assert_eq!(server.server.state().volumes.living_volumes().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_task_runs_at_a_time_and_only_its_owner_orders_one() {
    let server = Server::start().await;
    let class = exception::IO.to_owned();
    *server.wanted.lock().unwrap() = Err("data.toml:3: `x` is not a key".into());
    let refused = refusal(server.begin().await.unwrap_err());
    assert!(refused.0 == class && refused.1.contains("data.toml:3"), "{refused:?}");
    let stranger = server.client_of("nobody");
    for (method, answer) in [
        (
            "startReconfiguration",
            stranger
                .call::<_, StartReconfigurationResponseProto>(
                    "startReconfiguration",
                    &StartReconfigurationRequestProto {},
                )
                .await
                .map(drop),
        ),
        (
            "queryDiskBalancerPlan",
            stranger
                .call::<_, QueryPlanStatusResponseProto>(
                    "queryDiskBalancerPlan",
                    &QueryPlanStatusRequestProto {},
                )
                .await
                .map(drop),
        ),
    ] {
        let refused = refusal(answer.unwrap_err());
        assert!(refused.1.contains("Superuser privilege is required"), "{method}: {refused:?}");
    }
    // The calls are served under the other protocol's name as well.
    let user = server.server.state().config.user.clone();
    let other = Client::connect(
        server.server.ipc_addr().to_string(),
        RECONFIGURATION,
        &user,
        ClientOptions::default(),
    );
    let listed: ListReconfigurablePropertiesResponseProto = other
        .call("listReconfigurableProperties", &ListReconfigurablePropertiesRequestProto {})
        .await
        .unwrap();
    assert!(listed.name.contains(&"dfs.datanode.data.dir".to_owned()), "{listed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_task_waits_for_nobody_and_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let rpc = serve(&Metadata::new("CID-one"), "127.0.0.1:0");
    let server = played::start(root.path(), &[&rpc]).await;
    let (go, wait) = mpsc::channel::<()>();
    let (reads, is_reading) = mpsc::channel::<()>();
    let reads = Mutex::new(reads);
    let (wait, config) = (Mutex::new(wait), config(root.path(), &[&rpc]));
    let read = move || {
        reads.lock().unwrap().send(()).unwrap();
        wait.lock().unwrap().recv().unwrap();
        Ok(DataConfig { move_bytes_per_second: 7, move_count_max: 3, ..config.clone() })
    };
    server.state().reconfiguration.set_reload(Box::new(read));
    let first = tokio::spawn({
        let state = server.state().clone();
        async move { datad::reconfigure::start(&state).await }
    });
    is_reading.recv().unwrap();
    let refused = datad::reconfigure::start(server.state()).await.unwrap_err();
    assert_eq!(refused, "Another reconfiguration task is running.");
    go.send(()).unwrap();
    let moves = server.state().moves.clone();
    eventually("the rates are changed", || (moves.rate(), moves.count_max()) == (7, 3)).await;
    first.await.unwrap().unwrap();
}

fn plan_of(server: &Server, uuid: &str, id: char, bytes: u64) -> SubmitDiskBalancerPlanRequestProto {
    let reports = server.server.state().volumes.storage_reports();
    let (from, to) = (&reports[0].storage_id, &reports[1].storage_id);
    let plan = format!(
        r#"{{"volumeSetPlans":[{{"sourceVolume":{{"uuid":"{from}"}},"destinationVolume":{{"uuid":"{to}"}},
            "bytesToMove":{bytes},"bandwidth":1}}],"nodeUUID":"{uuid}","timeStamp":5}}"#
    );
    SubmitDiskBalancerPlanRequestProto {
        plan_id: id.to_string().repeat(40),
        plan,
        plan_version: Some(1),
        ignore_date_check: Some(true),
        plan_file: "a.plan.json".into(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_of_the_disk_balancer_moves_replicas_and_is_told() {
    let server = Server::start().await;
    for id in 0..6 {
        store_block(&server.server, POOL, ID + id);
    }
    let client = server.client();
    let state = server.server.state();
    let submit = async |plan: &SubmitDiskBalancerPlanRequestProto| {
        let answer =
            client.call::<_, SubmitDiskBalancerPlanResponseProto>("submitDiskBalancerPlan", plan).await;
        answer.map(drop).map_err(|error| refusal(error).1)
    };
    let status = async || -> QueryPlanStatusResponseProto {
        client.call("queryDiskBalancerPlan", &QueryPlanStatusRequestProto {}).await.unwrap()
    };
    assert_eq!((status().await.result(), status().await.current_status()), (0, "[]"));
    let good = plan_of(&server, &state.identity.uuid, 'a', 13);
    let bad = |change: fn(&mut SubmitDiskBalancerPlanRequestProto)| {
        let mut plan = good.clone();
        change(&mut plan);
        plan
    };
    for (plan, why) in [
        (plan_of(&server, "another", 'a', 13), "Plan was generated for another node."),
        (bad(|plan| plan.plan_id = "short".into()), "Invalid or mis-matched hash."),
        (bad(|plan| plan.plan_version = Some(9)), "Invalid plan version."),
        (bad(|plan| plan.ignore_date_check = None), "Plan was generated more than 1d ago"),
        (bad(|plan| plan.plan = plan.plan.replace("DS-", "XX-")), "Unable to find volume"),
        (bad(|plan| plan.plan = "{".into()), "Parsing plan failed."),
    ] {
        let refused = submit(&plan).await.unwrap_err();
        assert!(refused.contains(why), "{refused}, and not {why}");
    }
    submit(&good).await.unwrap();
    let end = loop {
        let status = status().await;
        if status.result() != 1 {
            break status;
        }
    };
    assert_eq!((end.result(), end.plan_id(), end.plan_file()), (2, &*"a".repeat(40), "a.plan.json"));
    assert!(end.current_status().contains(r#""blocksCopied":2"#), "{}", end.current_status());
    let pool = state.pool(POOL).unwrap();
    let counts: Vec<_> = pool.store.block_reports().iter().map(|report| report.replicas.len()).collect();
    assert_eq!(counts, [1, 5]);
    let times = |id| {
        let log = server.metadata.log.lock();
        log.changes
            .iter()
            .filter(|(block, status)| block.block_id == id && *status == BlockStatus::Received)
            .count()
    };
    eventually("the metadata server knows where they are", || {
        (0..6).filter(|id| times(ID + id) == 2).count() == 2
    })
    .await;
    let another = CancelPlanRequestProto { plan_id: "x".into() };
    let cancelled = client.call::<_, CancelPlanResponseProto>("cancelDiskBalancerPlan", &another);
    assert!(refusal(cancelled.await.unwrap_err()).1.contains("No such plan."));
    let question = DiskBalancerSettingRequestProto { key: "DiskBalancerVolumeName".into() };
    let names: DiskBalancerSettingResponseProto =
        client.call("getDiskBalancerSetting", &question).await.unwrap();
    assert!(names.value.contains("/d1\""), "{}", names.value);
}
