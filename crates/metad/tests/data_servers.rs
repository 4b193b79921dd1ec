//! A data server, spoken by hand: what it is told, what it is refused, and what its lies lead to.

mod cluster;

use bytes::Bytes;
use cluster::{
    Cluster, Plan,
    files::{self, HOLDER, add_block_request, complete_request, create_request},
    refused,
    spoken::{self, STORAGE},
};
use proto::{
    hdfs::{self as p, datanode as d, namenode as n},
    protocol,
};
use rpc::{CallError, Client};

/// A server alone, a client of files, and what a data server has heard of the server.
struct Story {
    cluster: Cluster,
    files: Client,
    data: Client,
    info: p::NamespaceInfoProto,
}

impl Story {
    async fn start() -> Self {
        // Writers wait for reports that are on their way.
        let plan = Plan::alone().adjusted(|_, config| config.complete_wait_ms = 10_000);
        Self::of(plan.start().await).await
    }

    async fn of(cluster: Cluster) -> Self {
        let (files, data) = (cluster.client(1), files::data(&cluster, 1));
        let info = spoken::version(&data).await;
        Self { cluster, files, data, info }
    }

    fn registration(&self, uuid: &str) -> d::DatanodeRegistrationProto {
        spoken::registration(&self.info, uuid)
    }

    async fn register(
        &self,
        registration: d::DatanodeRegistrationProto,
    ) -> Result<d::DatanodeRegistrationProto, CallError> {
        spoken::register(&self.data, registration).await
    }

    async fn registered(&self) -> d::DatanodeRegistrationProto {
        let registration = self.register(self.registration("uuid-1")).await.unwrap();
        assert!(self.heartbeat(&registration).await.unwrap().cmds.is_empty());
        assert!(self.full_report(&registration, &self.pool(), report(&[])).await.unwrap().is_none());
        registration
    }

    fn pool(&self) -> String {
        self.info.block_pool_id.clone()
    }

    async fn heartbeat(
        &self,
        registration: &d::DatanodeRegistrationProto,
    ) -> Result<d::HeartbeatResponseProto, CallError> {
        spoken::heartbeat(&self.data, registration, STORAGE).await
    }

    async fn full_report(
        &self,
        registration: &d::DatanodeRegistrationProto,
        pool: &str,
        report: d::StorageBlockReportProto,
    ) -> Result<Option<d::DatanodeCommandProto>, CallError> {
        let request = d::BlockReportRequestProto {
            registration: registration.clone(),
            block_pool_id: pool.into(),
            reports: vec![report],
            context: None,
        };
        let response: d::BlockReportResponseProto = self.data.call("blockReport", &request).await?;
        Ok(response.cmd)
    }

    async fn received(&self, registration: &d::DatanodeRegistrationProto, block: p::BlockProto) {
        let status = d::received_deleted_block_info_proto::BlockStatus::Received as i32;
        spoken::tell(&self.data, registration, (&self.pool(), STORAGE), block, status).await;
    }

    /// A closed file of one block, whose only replica is reported.
    async fn write(&self, registration: &d::DatanodeRegistrationProto, path: &str) -> p::BlockProto {
        let create = create_request(path, HOLDER);
        let _: p::CreateResponseProto = self.files.call("create", &create).await.unwrap();
        let add = add_block_request(path, HOLDER);
        let added: p::AddBlockResponseProto = self.files.call("addBlock", &add).await.unwrap();
        assert_eq!(added.block.locs.len(), 1);
        assert_eq!(added.block.locs[0].id.ip_addr, "127.0.0.1");
        assert_eq!(added.block.storage_i_ds, [STORAGE]);
        let block = files::replica(&added.block.b);
        let complete = complete_request(path, HOLDER, &added.block.b);
        // The report arrives while the call waits for it.
        let report = async {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            self.received(registration, block).await;
        };
        let (closed, ()) =
            tokio::join!(self.files.call::<_, p::CompleteResponseProto>("complete", &complete), report);
        assert!(closed.unwrap().result);
        block
    }

    async fn locations(&self, path: &str) -> Vec<p::LocatedBlockProto> {
        files::located(&self.files, path).await.blocks
    }

    async fn stop(mut self) {
        drop((self.files, self.data));
        self.cluster.stop(1).await;
    }
}

fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Rows of id, length, stamp, state.
fn report(rows: &[[i64; 4]]) -> d::StorageBlockReportProto {
    let mut bytes = Vec::new();
    for [id, length, stamp, state] in rows {
        put_varint((id << 1 ^ id >> 63) as u64, &mut bytes);
        for number in [length, stamp, state] {
            put_varint(*number as u64, &mut bytes);
        }
    }
    d::StorageBlockReportProto {
        storage: spoken::storage(STORAGE),
        blocks: Vec::new(),
        number_of_blocks: Some(rows.len() as u64),
        blocks_buffers: vec![Bytes::from(bytes)],
    }
}

fn row(block: p::BlockProto) -> [i64; 4] {
    [block.block_id as i64, block.num_bytes.unwrap() as i64, block.gen_stamp as i64, 0]
}

fn is_register(command: &d::DatanodeCommandProto) -> bool {
    command.cmd_type == d::datanode_command_proto::Type::RegisterCommand as i32
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_written_closed_read_and_deleted_through_a_data_server() {
    let story = Story::start().await;
    let server = story.registered().await;
    assert_eq!(server.datanode_id.ip_addr, "127.0.0.1", "it is known by the address it speaks from");
    let response = story.heartbeat(&server).await.unwrap();
    assert_eq!(response.ha_status.state, p::nnha_status_heartbeat_proto::State::Active as i32);
    assert_ne!(response.full_block_report_lease_id, Some(0));

    let block = story.write(&server, "/file").await;
    let located = story.locations("/file").await;
    assert_eq!((located[0].b.block_id, located[0].locs.len()), (block.block_id, 1));

    let delete = p::DeleteRequestProto { src: "/file".into(), recursive: false };
    let _: p::DeleteResponseProto = story.files.call("delete", &delete).await.unwrap();
    let commands = story.heartbeat(&server).await.unwrap().cmds;
    let orders = commands[0].blk_cmd.as_ref().unwrap();
    assert_eq!(orders.action, d::block_command_proto::Action::Invalidate as i32);
    assert_eq!(orders.block_pool_id, story.pool());
    assert_eq!((orders.blocks[0].block_id, orders.blocks[0].gen_stamp), (block.block_id, block.gen_stamp));
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_refused_with_hadoops_errors() {
    let story = Story::start().await;
    let refuse = async |change: fn(&mut d::DatanodeRegistrationProto), class| {
        let mut registration = story.registration("uuid-1");
        change(&mut registration);
        refused(story.register(registration.clone()).await, class)
    };
    let another_cluster = |it: &mut d::DatanodeRegistrationProto| it.storage_info.cluster_id = "CID-x".into();
    let message = refuse(another_cluster, "UnregisteredNodeException").await;
    assert!(message.starts_with("Unregistered server: DatanodeRegistration("), "{message}");
    refuse(|it| it.storage_info.namespce_id ^= 1, "UnregisteredNodeException").await;
    refuse(|it| it.storage_info.layout_version = -58i32 as u32, "IncorrectVersionException").await;
    refuse(|it| it.software_version = "2.7.0".into(), "IncorrectVersionException").await;
    refuse(|it| it.datanode_id.xfer_port = 1 << 20, "HadoopIllegalArgumentException").await;
    refuse(|it| it.datanode_id.datanode_uuid.clear(), "IOException").await;

    // A data server that is not registered is told to register. One that comes with another's uuid is sent away.
    let stranger = story.registration("uuid-1");
    assert!(is_register(&story.heartbeat(&stranger).await.unwrap().cmds[0]));
    let answer = story.full_report(&stranger, &story.pool(), report(&[])).await.unwrap();
    assert!(is_register(&answer.unwrap()));
    story.registered().await;
    let mut impostor = story.registration("uuid-1");
    impostor.datanode_id.ip_addr = "10.9.9.9".into();
    let message = refused(story.heartbeat(&impostor).await, "UnregisteredNodeException");
    assert!(message.contains("Node 127.0.0.1:9866 is expected to serve this storage."), "{message}");
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lying_reports_are_dropped_and_cost_the_namespace_nothing() {
    let story = Story::start().await;
    let server = story.registered().await;
    let block = story.write(&server, "/file").await;
    let [id, length, stamp, state] = row(block);
    let nonsense = [
        report(&[
            [id, -1, stamp, state],
            [-id, length, stamp, state],
            [id, length, -5, state],
            [id, length, stamp, 14],
        ]),
        report(&[[id, length, stamp, 0], [id, length, stamp, 0], [id, length + 1, stamp, 0]]),
        report(&[[id, length, stamp, 0], [id + 1_000, 5, stamp + 1_000, 0], [i64::MAX, 5, i64::MAX, 0]]),
    ];
    for report in nonsense {
        assert!(story.full_report(&server, &story.pool(), report).await.unwrap().is_none());
    }
    let foreign = report(&[[id, length + 1, stamp, 0]]);
    assert!(story.full_report(&server, "BP-foreign", foreign).await.unwrap().is_none());
    let absurd =
        d::StorageBlockReportProto { number_of_blocks: Some(1_000_000_000), ..report(&[row(block)]) };
    let message = refused(story.full_report(&server, &story.pool(), absurd).await, "IOException");
    assert!(message.contains("ends after 1 of 1000000000 replicas"), "{message}");

    assert!(story.heartbeat(&server).await.unwrap().cmds.is_empty(), "nothing is to be deleted");
    assert!(story.full_report(&server, &story.pool(), report(&[row(block)])).await.unwrap().is_none());
    let located = story.locations("/file").await;
    assert_eq!((located[0].locs.len(), located[0].corrupt, located[0].b.num_bytes), (1, false, Some(77)));
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_gives_up_is_no_longer_offered() {
    let story = Story::start().await;
    let server = story.registered().await;
    story.write(&server, "/file").await;
    let request = d::ErrorReportRequestProto {
        registartion: server.clone(),
        error_code: d::error_report_request_proto::ErrorCode::FatalDiskError as u32,
        msg: "all volumes are gone".into(),
    };
    let _: d::ErrorReportResponseProto = story.data.call("errorReport", &request).await.unwrap();
    assert!(story.locations("/file").await[0].locs.is_empty());
    assert!(is_register(&story.heartbeat(&server).await.unwrap().cmds[0]));
    story.stop().await;
}

/// The data server has given a call up, made another connection, and told there that its replica is gone.
#[tokio::test(flavor = "multi_thread")]
async fn what_arrives_on_a_connection_of_before_brings_no_replica_back() {
    let mut story = Story::start().await;
    let server = story.registered().await;
    let block = story.write(&server, "/file").await;
    let before = std::mem::replace(&mut story.data, files::data(&story.cluster, 1));
    let deleted = d::received_deleted_block_info_proto::BlockStatus::Deleted as i32;
    spoken::tell(&story.data, &server, (&story.pool(), STORAGE), block, deleted).await;
    let after = std::mem::replace(&mut story.data, before);
    let late = story.full_report(&server, &story.pool(), report(&[row(block)])).await.unwrap_err();
    assert!(late.to_string().contains("on a later connection"), "{late}");
    assert!(story.locations("/file").await[0].locs.is_empty());
    story.data = after;
    assert!(story.full_report(&server, &story.pool(), report(&[row(block)])).await.unwrap().is_none());
    assert_eq!(story.locations("/file").await[0].locs.len(), 1, "it says so on its latest connection");
    story.stop().await;
}

/// `dfs.hosts` of HDFS: who is not named is refused, and who is named no longer is lost with its next heartbeat.
#[tokio::test(flavor = "multi_thread")]
async fn only_data_servers_that_the_list_names_take_part() {
    let mut cluster = Plan::alone().made();
    let list = cluster.beside("hosts");
    std::fs::write(
        &list,
        "localhost:9866 # by its name, which is resolved
",
    )
    .unwrap();
    let known = list.clone();
    cluster.adjust(move |_, config| config.data_servers_file = Some(known.clone()));
    cluster.restart(1).await;
    let story = Story::of(cluster).await;
    let server = story.registered().await;
    let mut stranger = story.registration("uuid-2");
    // The name and the port that a data server claims do not count.
    stranger.datanode_id.host_name = "localhost:9866".into();
    stranger.datanode_id.xfer_port = 9867;
    let message = refused(story.register(stranger.clone()).await, "DisallowedDatanodeException");
    let words =
        "Datanode denied communication with namenode because the host is not in the include-list: Datanode";
    assert!(message.starts_with(words), "{message}");

    // Nothing happens before the list is read again, which is for the superuser to order.
    std::fs::write(&list, "localhost:9867\n").unwrap();
    story.heartbeat(&server).await.unwrap();
    let refresh = p::RefreshNodesRequestProto {};
    let bob = story.cluster.client_as(1, protocol::CLIENT_NAMENODE, "bob");
    refused(
        bob.call::<_, p::RefreshNodesResponseProto>("refreshNodes", &refresh).await,
        "AccessControlException",
    );
    story.heartbeat(&server).await.unwrap();
    let _: p::RefreshNodesResponseProto = story.files.call("refreshNodes", &refresh).await.unwrap();
    refused(story.heartbeat(&server).await, "DisallowedDatanodeException");
    assert_eq!(story.cluster.server(1).live_data_servers(), 0);
    story.register(stranger).await.unwrap();
    assert_eq!(story.cluster.server(1).live_data_servers(), 1);

    // A list that cannot be read changes nothing.
    std::fs::remove_file(&list).unwrap();
    let answer = story.files.call::<_, p::RefreshNodesResponseProto>("refreshNodes", &refresh).await;
    let message = refused(answer, "IOException");
    assert!(message.contains(&list.display().to_string()), "{message}");
    refused(story.heartbeat(&server).await, "DisallowedDatanodeException");
    story.stop().await;
}

/// The addresses in a report of data servers, in order.
async fn told(story: &Story, kind: p::DatanodeReportTypeProto) -> Vec<String> {
    let request = p::GetDatanodeReportRequestProto { r#type: kind as i32 };
    let answer: p::GetDatanodeReportResponseProto =
        story.files.call("getDatanodeReport", &request).await.unwrap();
    let mut names: Vec<_> =
        answer.di.iter().map(|it| format!("{}:{}", it.id.ip_addr, it.id.xfer_port)).collect();
    names.sort();
    names
}

/// Servers that the list names and that do not run are told among the dead ones, with their names.
#[tokio::test(flavor = "multi_thread")]
async fn listed_data_servers_that_were_not_heard_of_are_dead() {
    let mut cluster = Plan::alone().made();
    let list = cluster.beside("hosts");
    std::fs::write(&list, "127.0.0.1:9866 127.0.30.1 127.0.30.2:7\n").unwrap();
    let known = list.clone();
    cluster.adjust(move |_, config| config.data_servers_file = Some(list.clone()));
    cluster.restart(1).await;
    let story = Story::of(cluster).await;
    story.registered().await;
    let (live, dead) = (p::DatanodeReportTypeProto::Live, p::DatanodeReportTypeProto::Dead);
    let (all, leaving) = (p::DatanodeReportTypeProto::All, p::DatanodeReportTypeProto::Decommissioning);
    let missing = ["127.0.30.1:9866", "127.0.30.2:7"];
    assert_eq!(told(&story, live).await, ["127.0.0.1:9866"]);
    assert_eq!(told(&story, dead).await, missing);
    assert_eq!(told(&story, all).await, ["127.0.0.1:9866", missing[0], missing[1]]);
    assert!(told(&story, leaving).await.is_empty());

    // A data server that the operator takes off the list disappears from the reports.
    std::fs::write(&known, "127.0.30.1\n").unwrap();
    let _: p::RefreshNodesResponseProto =
        story.files.call("refreshNodes", &p::RefreshNodesRequestProto {}).await.unwrap();
    assert!(told(&story, live).await.is_empty());
    assert_eq!(told(&story, all).await, ["127.0.30.1:9866"]);
    story.stop().await;
}

/// The lines of `dfsadmin -metasave`, with the address of the one data server and its times taken out.
async fn meta_saved(story: &Story, name: &str) -> Vec<String> {
    let request = p::MetaSaveRequestProto { filename: name.into() };
    let _: p::MetaSaveResponseProto = story.files.call("metaSave", &request).await.unwrap();
    let path = story.cluster.name_directory(1).join("metasave").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_copying_or_deletion_is_written_down_as_hdfs_does() {
    let story = Story::start().await;
    let registration = story.registered().await;
    let address = format!("{}:{}", registration.datanode_id.ip_addr, registration.datanode_id.xfer_port);
    let few = story.write(&registration, "/few").await;
    let bad = story.write(&registration, "/bad").await;
    let gone = story.write(&registration, "/gone").await;
    let raise = p::SetReplicationRequestProto { src: "/few".into(), replication: 3 };
    let _: p::SetReplicationResponseProto = story.files.call("setReplication", &raise).await.unwrap();
    let mut located = story.locations("/bad").await;
    let _: p::ReportBadBlocksResponseProto = story
        .files
        .call("reportBadBlocks", &p::ReportBadBlocksRequestProto { blocks: vec![located.remove(0)] })
        .await
        .unwrap();
    let delete = p::DeleteRequestProto { src: "/gone".into(), recursive: false };
    let _: p::DeleteResponseProto = story.files.call("delete", &delete).await.unwrap();

    let name = |block: &p::BlockProto| format!("blk_{}_{}", block.block_id, block.gen_stamp);
    let mut lines = meta_saved(&story, "out.txt").await;
    let server = lines.pop().unwrap();
    let counts = |live: u8, corrupt: u8| {
        format!(
            "(replicas: live: {live} decommissioning and decommissioned: 0 corrupt: {corrupt} in excess: 0 \
             maintenance mode: 0)  {address}"
        )
    };
    let expected = [
        "3 files and directories, 2 blocks = 5 total filesystem objects".to_owned(),
        "Live Datanodes: 1".into(),
        "Dead Datanodes: 0".into(),
        "Metasave: Blocks waiting for reconstruction: 1".into(),
        format!("/few: {} {} : ", name(&few), counts(1, 0)),
        "Metasave: Blocks currently missing: 1".into(),
        format!("/bad: {} MISSING {}(corrupt) : ", name(&bad), counts(0, 1)),
        "Mis-replicated blocks that have been postponed:".into(),
        "Metasave: Blocks being reconstructed: 0".into(),
        "Metasave: Blocks 1 waiting deletion from 1 datanodes.".into(),
        address.clone(),
        name(&gone),
        "Corrupt Blocks:".into(),
        format!(
            "Block={}\tSize={}\tNode={address}\tStorageID={STORAGE}\tStorageState=NORMAL\tTotalReplicas=1\t\
             Reason=CORRUPTION_REPORTED",
            name(&bad),
            bad.num_bytes()
        ),
        "Metasave: Number of datanodes: 1".into(),
    ];
    assert_eq!(lines, expected);
    assert!(server.starts_with(&format!("{address} IN ")) && !server.contains("NaN"), "{server}");

    // The next one takes its place. Nothing is written elsewhere, and not for everybody.
    let again = meta_saved(&story, "out.txt").await;
    assert_eq!(again.len(), expected.len() + 1);
    for name in ["", "..", "../out", "a/b", "/etc/out"] {
        let request = p::MetaSaveRequestProto { filename: name.into() };
        let refused: Result<p::MetaSaveResponseProto, _> = story.files.call("metaSave", &request).await;
        let class = refused.unwrap_err().class().unwrap().to_owned();
        assert_eq!(class, proto::exception::ILLEGAL_ARGUMENT, "{name}");
    }
    let bob = story.cluster.client_as(1, protocol::CLIENT_NAMENODE, "bob");
    let request = p::MetaSaveRequestProto { filename: "bob".into() };
    let refused: Result<p::MetaSaveResponseProto, _> = bob.call("metaSave", &request).await;
    assert_eq!(refused.unwrap_err().class().unwrap(), proto::exception::ACCESS_CONTROL);
    assert!(!story.cluster.name_directory(1).join("metasave/bob").exists());
    story.stop().await;
}

/// What a balancer asks of the metadata server about the data server `uuid-1`.
fn blocks_to_move(size: u64, bytes_min: u64) -> n::GetBlocksRequestProto {
    n::GetBlocksRequestProto {
        datanode: p::DatanodeIdProto { datanode_uuid: "uuid-1".into(), ..Default::default() },
        size,
        min_block_size: Some(bytes_min),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_balancer_hears_which_blocks_a_data_server_has_and_those_in_use_last() {
    let story = Story::start().await;
    let registration = story.registered().await;
    let mut written = Vec::new();
    for name in 0..12 {
        written.push(story.write(&registration, &format!("/f{name}")).await);
    }
    let balancer = story.cluster.client_as(1, protocol::NAMENODE, cluster::SUPERUSER);
    let ask = async |request: n::GetBlocksRequestProto| {
        let answer: n::GetBlocksResponseProto = balancer.call("getBlocks", &request).await.unwrap();
        let mut blocks = answer.blocks.blocks;
        for block in &blocks {
            assert_eq!(block.datanode_uuids, ["uuid-1"]);
            assert_eq!(block.storage_uuids, [STORAGE]);
            assert_eq!(block.storage_types, [p::StorageTypeProto::Disk as i32]);
        }
        blocks.sort_by_key(|block| block.block.block_id);
        blocks.iter().map(|block| block.block).collect::<Vec<_>>()
    };
    assert_eq!(ask(blocks_to_move(1 << 40, 0)).await, written);
    let length = written[0].num_bytes();
    assert_eq!(ask(blocks_to_move(1 << 40, length + 1)).await, [], "all are smaller than the minimum");
    assert_eq!(ask(blocks_to_move(3 * length, 0)).await.len(), 3, "no more than was asked for");
    let of_an_hour =
        n::GetBlocksRequestProto { time_interval: Some(3_600_000), ..blocks_to_move(1 << 40, 0) };
    assert_eq!(ask(of_an_hour.clone()).await, written, "files in use are told if there are no others");
    for name in 3..12 {
        let long_ago = p::SetTimesRequestProto { src: format!("/f{name}"), mtime: 1_000, atime: 1_000 };
        let _: p::SetTimesResponseProto = story.files.call("setTimes", &long_ago).await.unwrap();
    }
    let nine = n::GetBlocksRequestProto { size: 9 * length, ..of_an_hour };
    assert_eq!(ask(nine.clone()).await, written[3..], "files in use are not told while there are others");
    let ten = n::GetBlocksRequestProto { size: 10 * length, ..nine };
    assert_eq!(ask(ten).await.len(), 10, "one of them is told where the others are too few");
    let archived = n::GetBlocksRequestProto {
        storage_type: Some(p::StorageTypeProto::Archive as i32),
        ..blocks_to_move(1 << 40, 0)
    };
    assert_eq!(ask(archived).await, []);
}
