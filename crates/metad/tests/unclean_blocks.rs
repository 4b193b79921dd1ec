//! An unclean election gives up what only the others knew. What is on the data servers stays until somebody has looked.

mod cluster;

use cluster::{
    Cluster,
    files::{
        DataServer, HOLDER, add_block_request, complete_request, create_request, data, files, located,
        numbered, replica,
    },
    spoken::{self, STORAGE},
};
use proto::{
    clover::admin as a,
    hdfs::{self as p, datanode as d},
    protocol,
};
use std::time::Duration;

/// A file with one block of 77 bytes, of which these members hear. Answers the replica.
async fn write(
    cluster: &Cluster,
    server: &DataServer,
    members: &[u32],
    path: &str,
    call: i32,
) -> p::BlockProto {
    let writer = files(cluster, members[0]);
    let create = create_request(path, HOLDER);
    let _: p::CreateResponseProto = writer.call_as(numbered(call), "create", &create).await.unwrap();
    let add = add_block_request(path, HOLDER);
    let added: p::AddBlockResponseProto = writer.call_as(numbered(call + 1), "addBlock", &add).await.unwrap();
    server.received(cluster, members, replica(&added.block.b)).await;
    let complete = complete_request(path, HOLDER, &added.block.b);
    let closed: p::CompleteResponseProto =
        writer.call_as(numbered(call + 2), "complete", &complete).await.unwrap();
    assert!(closed.result);
    replica(&added.block.b)
}

/// Registers at a member, hears whom to obey, and says all that is on its disk.
async fn report(cluster: &Cluster, server: &mut DataServer, member: u32, replicas: &[p::BlockProto]) {
    let data = data(cluster, member);
    server.register_again(cluster, member).await;
    // Twice: the first answer may be a command to register.
    for _ in 0..2 {
        spoken::heartbeat(&data, server.with(member), STORAGE).await.unwrap();
    }
    #[allow(deprecated)]
    let report = d::StorageBlockReportProto {
        storage: spoken::storage(STORAGE),
        // The older form: finalized ones, none of the others, then three numbers each.
        blocks: [replicas.len() as u64, 0]
            .into_iter()
            .chain(replicas.iter().flat_map(|block| [block.block_id, block.num_bytes(), block.gen_stamp]))
            .chain([u64::MAX; 3])
            .collect(),
        number_of_blocks: None,
        blocks_buffers: Vec::new(),
    };
    let request = d::BlockReportRequestProto {
        registration: server.with(member).clone(),
        block_pool_id: server.pool.clone(),
        reports: vec![report],
        context: None,
    };
    let _: d::BlockReportResponseProto = data.call("blockReport", &request).await.unwrap();
}

/// The ids of the blocks that a member orders to be deleted within ten heartbeats.
async fn deleted(cluster: &Cluster, server: &DataServer, member: u32) -> Vec<u64> {
    let mut ids = Vec::new();
    for _ in 0..10 {
        let commands = server.heartbeat(cluster, member).await.cmds;
        let blocks = commands.into_iter().filter_map(|command| command.blk_cmd);
        let invalidate = d::block_command_proto::Action::Invalidate as i32;
        ids.extend(
            blocks.filter(|it| it.action == invalidate).flat_map(|it| it.blocks).map(|it| it.block_id),
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ids.sort_unstable();
    ids
}

struct Loss {
    cluster: Cluster,
    server: DataServer,
    /// The one that was elected, and one that has joined it.
    elected: u32,
    /// The blocks on the data server's disk: of a file that is known, of one that was deleted, and of files that are
    /// lost.
    known: p::BlockProto,
    gone: p::BlockProto,
    lost: Vec<p::BlockProto>,
}

impl Loss {
    fn replicas(&self) -> Vec<p::BlockProto> {
        [self.known, self.gone].into_iter().chain(self.lost.iter().copied()).collect()
    }

    /// Two members of three write on without the third, and are lost with their disks. The third goes on by order.
    async fn happens() -> Self {
        let (mut cluster, first) = Cluster::in_sync(3).await;
        let server = DataServer::register(&cluster, 3).await;
        let others = cluster.others(first);
        let (second, elected) = (others[0], others[1]);
        let known = write(&cluster, &server, &[first, second, elected], "/known", 10).await;
        let gone = write(&cluster, &server, &[first, second, elected], "/gone", 20).await;
        let delete = p::DeleteRequestProto { src: "/gone".into(), ..p::DeleteRequestProto::default() };
        let _: p::DeleteResponseProto =
            files(&cluster, first).call_as(numbered(30), "delete", &delete).await.unwrap();
        cluster.wait_until_equal().await;
        cluster.stop(elected).await;
        cluster.wait_in_sync(first, 2).await;
        let mut lost = Vec::new();
        for number in 0..20 {
            let path = format!("/lost-{number}");
            lost.push(write(&cluster, &server, &[first, second], &path, 100 + number * 10).await);
        }
        for member in [first, second] {
            cluster.kill(member).await;
            cluster.lose(member);
        }
        cluster.restart(elected).await;
        cluster.elect_without(elected, &[first, second]).await;
        cluster.wait_for_reading(elected).await;
        cluster.join(second);
        cluster.restart(second).await;
        assert_eq!(cluster.wait_for_active(&[]).await, elected);
        Self { cluster, server, elected, known, gone, lost }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn after_an_unclean_election_a_full_report_deletes_nothing() {
    let mut loss = Loss::happens().await;
    let replicas = loss.replicas();
    let (cluster, server, elected) = (&loss.cluster, &mut loss.server, loss.elected);
    // The second time nothing has begun a moment ago, and nothing is in safe mode.
    for _ in 0..2 {
        report(cluster, server, elected, &replicas).await;
        assert_eq!(deleted(cluster, server, elected).await, Vec::<u64>::new());
    }
    assert_eq!(located(&files(cluster, elected), "/known").await.blocks.len(), 1, "what is known is there");
    loss.cluster.end().await;
}

async fn allow(
    cluster: &Cluster,
    member: u32,
    request: a::AllowDeletionsRequestProto,
) -> a::AllowDeletionsResponseProto {
    cluster.order(member, "allowDeletions", &request).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_held_back_goes_when_an_operator_has_seen_it_and_what_is_lost_stays() {
    let mut loss = Loss::happens().await;
    let replicas = loss.replicas();
    let gone = loss.gone.block_id;
    let (cluster, server, elected) = (&mut loss.cluster, &mut loss.server, loss.elected);
    for _ in 0..2 {
        report(cluster, server, elected, &replicas).await;
        deleted(cluster, server, elected).await;
    }
    // Asked at the other member, it is the active that answers.
    let other = cluster.running().into_iter().find(|member| *member != elected).unwrap();
    let held = allow(cluster, other, a::AllowDeletionsRequestProto::default()).await;
    assert_eq!((held.replicas(), held.bytes(), held.is_done()), (1, 77, false), "{held:?}");
    assert_eq!((held.skipped_replicas(), held.skipped_bytes()), (20, 20 * 77), "{held:?}");
    let since = held.held_since.expect("an unclean election holds them back");

    // Nobody has looked, or at something else.
    for wrong in [None, Some(since + 1)] {
        let request = a::AllowDeletionsRequestProto { is_confirmed: Some(true), held_since: wrong };
        let refused: Result<a::AllowDeletionsResponseProto, _> =
            cluster.order(elected, "allowDeletions", &request).await;
        assert!(refused.unwrap_err().to_string().contains("look"));
    }
    let stranger = cluster.client_as(elected, protocol::ADMIN, "bob");
    let refused: Result<a::AllowDeletionsResponseProto, _> =
        stranger.call("allowDeletions", &a::AllowDeletionsRequestProto::default()).await;
    assert!(refused.unwrap_err().to_string().contains("proof of the cluster's secret"));
    assert_eq!(deleted(cluster, server, elected).await, Vec::<u64>::new());

    let request = a::AllowDeletionsRequestProto { is_confirmed: Some(true), held_since: Some(since) };
    assert!(allow(cluster, elected, request).await.is_done());
    assert_eq!(deleted(cluster, server, elected).await, [gone]);
    let held = allow(cluster, elected, a::AllowDeletionsRequestProto::default()).await;
    assert_eq!((held.replicas(), held.held_since), (0, None), "{held:?}");

    // The order is in the log: the other member knows of it when it leads.
    cluster.wait_until_equal().await;
    let to_other = a::HandOverRequestProto { to: Some(other) };
    let _: a::HandOverResponseProto = cluster.order(elected, "handOver", &to_other).await.unwrap();
    assert_eq!(cluster.wait_for_active(&[elected]).await, other);
    let held = allow(cluster, other, a::AllowDeletionsRequestProto::default()).await;
    assert_eq!(held.held_since, None, "{held:?}");
    loss.cluster.end().await;
}
