//! A writer that is gone: its file is closed with what the data servers agree on; and files that are opened again, to
//! be written on or cut. The data server is spoken by hand, the clock is set by hand.

mod cluster;

use base::{Moment, Timestamp};
use cluster::{
    Cluster, Plan,
    files::{self, DataServer, create_request},
    refused,
    spoken::STORAGE,
    until,
};
use env::{Clock, Env, SystemClock};
use metad::LastResort;
use proto::hdfs::{self as p, datanode as d};
use rpc::{CallError, Client};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

const WRITER: &str = "DFSClient_writer_1";
const OTHER: &str = "DFSClient_other_1";
const MINUTE_MS: u64 = 60_000;

/// The machine's clock, put forward.
#[derive(Default)]
struct SetClock {
    machine: SystemClock,
    ahead_ms: AtomicU64,
}

impl Clock for SetClock {
    fn timestamp(&self) -> Timestamp {
        self.machine.timestamp()
    }

    fn moment(&self) -> Moment {
        self.machine.moment().plus_ms(self.ahead_ms.load(Ordering::Relaxed))
    }
}

struct Story {
    cluster: Cluster,
    clock: Arc<SetClock>,
    files: Client,
    server: DataServer,
}

impl Story {
    /// With one registered data server, that has reported nothing.
    async fn start() -> Self {
        let clock = Arc::new(SetClock::default());
        let of_server = clock.clone();
        let plan = Plan::alone().adjusted(|_, config| config.complete_wait_ms = 0);
        let plan = plan.in_worlds(move |_| {
            (Env { clock: of_server.clone(), ..Env::production() }, LastResort::default())
        });
        Self::of(plan.start().await, clock).await
    }

    async fn of(cluster: Cluster, clock: Arc<SetClock>) -> Self {
        let (files, server) = (cluster.client(1), DataServer::register(&cluster, 1).await);
        let story = Self { cluster, clock, files, server };
        assert!(story.heartbeat().await.is_empty());
        story
    }

    /// The server ends and starts again, from the same journal and with the same clock.
    async fn restart(self) -> Self {
        let Self { mut cluster, clock, files, .. } = self;
        drop(files);
        cluster.stop(1).await;
        cluster.restart(1).await;
        Self::of(cluster, clock).await
    }

    fn pass(&self, ms: u64) {
        self.clock.ahead_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// The recoveries that the data server is told of.
    async fn heartbeat(&self) -> Vec<p::RecoveringBlockProto> {
        let response = self.server.heartbeat(&self.cluster, 1).await;
        let commands = response.cmds.into_iter();
        let expected = d::datanode_command_proto::Type::BlockRecoveryCommand as i32;
        let recoveries = commands.inspect(|command| assert_eq!(command.cmd_type, expected));
        recoveries.flat_map(|command| command.recovery_cmd.unwrap().blocks).collect()
    }

    /// Heartbeats until a recovery is ordered.
    async fn ordered(&self) -> p::RecoveringBlockProto {
        for _ in 0..100 {
            if let Some(order) = self.heartbeat().await.pop() {
                assert_eq!((order.block.locs.len(), order.block.b.pool_id == self.server.pool), (1, true));
                return order;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("no recovery was ordered");
    }

    async fn create(&self, path: &str, holder: &str) -> Result<p::CreateResponseProto, CallError> {
        self.files.call("create", &create_request(path, holder)).await
    }

    /// A file with a block that is being written.
    async fn open(&self, path: &str) -> p::ExtendedBlockProto {
        self.create(path, WRITER).await.unwrap();
        self.add_block(path, WRITER, None).await.unwrap().block.b
    }

    async fn add_block(
        &self,
        path: &str,
        holder: &str,
        previous: Option<&p::ExtendedBlockProto>,
    ) -> Result<p::AddBlockResponseProto, CallError> {
        let request =
            p::AddBlockRequestProto { previous: previous.cloned(), ..files::add_block_request(path, holder) };
        self.files.call("addBlock", &request).await
    }

    /// What a writer asks for that mends its pipeline.
    async fn new_stamp(
        &self,
        block: &p::ExtendedBlockProto,
    ) -> Result<p::UpdateBlockForPipelineResponseProto, CallError> {
        let request =
            p::UpdateBlockForPipelineRequestProto { block: block.clone(), client_name: WRITER.into() };
        self.files.call("updateBlockForPipeline", &request).await
    }

    async fn renew(&self, holder: &str) {
        let request = p::RenewLeaseRequestProto { client_name: holder.into(), namespaces: Vec::new() };
        let _: p::RenewLeaseResponseProto = self.files.call("renewLease", &request).await.unwrap();
    }

    async fn recover_lease(&self, path: &str) -> bool {
        files::recover_lease(&self.files, path, OTHER).await
    }

    async fn commit(
        &self,
        order: &p::RecoveringBlockProto,
        length: Option<u64>,
    ) -> Result<d::CommitBlockSynchronizationResponseProto, CallError> {
        let (targets, storages) = match length {
            Some(_) => (vec![self.server.with(1).datanode_id.clone()], vec![STORAGE.to_owned()]),
            None => (Vec::new(), Vec::new()),
        };
        let request = d::CommitBlockSynchronizationRequestProto {
            block: order.block.b.clone(),
            new_gen_stamp: order.new_gen_stamp,
            new_length: length.unwrap_or(0),
            close_file: true,
            delete_block: length.is_none(),
            new_taragets: targets,
            new_target_storages: storages,
        };
        files::data(&self.cluster, 1).call("commitBlockSynchronization", &request).await
    }

    async fn located(&self, path: &str) -> p::LocatedBlocksProto {
        files::located(&self.files, path).await
    }

    async fn stop(mut self) {
        drop(self.files);
        self.cluster.stop(1).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovered_lease_closes_the_file_with_the_length_agreed_on() {
    let story = Story::start().await;
    let block = story.open("/file").await;
    assert!(!story.recover_lease("/file").await);
    let order = story.ordered().await;
    assert_eq!(
        (order.block.b.block_id, order.block.b.generation_stamp),
        (block.block_id, block.generation_stamp)
    );
    assert!(order.new_gen_stamp > block.generation_stamp);

    // Asking again disturbs nothing.
    assert!(!story.recover_lease("/file").await);
    assert!(story.heartbeat().await.is_empty());
    let wrong = p::RecoveringBlockProto { new_gen_stamp: order.new_gen_stamp + 1, ..order.clone() };
    let message = refused(story.commit(&wrong, Some(77)).await, "IOException");
    assert!(message.contains("does not match current recovery id"), "{message}");
    let mut foreign = order.clone();
    foreign.block.b.pool_id = "BP-foreign".into();
    refused(story.commit(&foreign, Some(77)).await, "IOException");

    story.commit(&order, Some(77)).await.unwrap();
    assert!(story.recover_lease("/file").await);
    let located = story.located("/file").await;
    assert_eq!((located.file_length, located.under_construction), (77, false));
    assert_eq!(located.blocks[0].b.generation_stamp, order.new_gen_stamp);
    assert_eq!(located.blocks[0].storage_i_ds, [STORAGE], "known before it is reported");
    story.commit(&order, Some(77)).await.expect("a repeated call finds its work done");
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_that_led_to_nothing_is_begun_again_under_a_newer_stamp() {
    let story = Story::start().await;
    story.open("/file").await;
    assert!(!story.recover_lease("/file").await);
    let first = story.ordered().await;
    story.pass(2 * MINUTE_MS);
    // Nobody asks: the server itself goes on.
    let second = story.ordered().await;
    assert!(second.new_gen_stamp > first.new_gen_stamp);
    refused(story.commit(&first, Some(77)).await, "IOException");
    // Nothing was ever written.
    story.commit(&second, None).await.unwrap();
    assert!(story.recover_lease("/file").await);
    let located = story.located("/file").await;
    assert_eq!((located.file_length, located.blocks.len()), (0, 0));
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_taken_from_a_silent_writer_by_who_wants_to_create_it() {
    let story = Story::start().await;
    story.open("/file").await;
    refused(story.create("/file", OTHER).await, "AlreadyBeingCreatedException");
    story.pass(MINUTE_MS + 1);
    refused(story.create("/file", OTHER).await, "RecoveryInProgressException");
    let order = story.ordered().await;
    refused(story.create("/file", OTHER).await, "RecoveryInProgressException");
    story.commit(&order, Some(5)).await.unwrap();
    refused(story.create("/file", OTHER).await, "FileAlreadyExistsException");

    // A file without an unfinished block is closed at once.
    story.create("/empty", WRITER).await.unwrap();
    story.pass(MINUTE_MS + 1);
    refused(story.create("/empty", OTHER).await, "FileAlreadyExistsException");
    assert!(!story.located("/empty").await.under_construction);
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_of_a_writer_silent_for_very_long_are_closed_by_themselves() {
    let story = Story::start().await;
    story.open("/file").await;
    for _ in 0..4 {
        story.pass(5 * MINUTE_MS);
        assert!(story.heartbeat().await.is_empty());
    }
    story.pass(1);
    let order = story.ordered().await;
    story.commit(&order, Some(5)).await.unwrap();
    assert!(!story.located("/file").await.under_construction);
    story.stop().await;
}

/// HDFS: `LeaseManager`'s soft and hard limits count from the last renewal, not from the opening of the file.
#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_says_that_it_lives_keeps_its_file() {
    let story = Story::start().await;
    let block = story.open("/file").await;
    for _ in 0..30 {
        // Within its time.
        story.pass(MINUTE_MS - 5_000);
        refused(story.create("/file", OTHER).await, "AlreadyBeingCreatedException");
        story.renew(WRITER).await;
        assert!(story.heartbeat().await.is_empty());
    }
    assert!(story.located("/file").await.under_construction);
    // Half an hour later it is still the one to write.
    story.new_stamp(&block).await.unwrap();
    // Another client's renewals are nobody else's.
    story.pass(MINUTE_MS);
    story.renew(OTHER).await;
    refused(story.create("/file", OTHER).await, "RecoveryInProgressException");
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_whose_file_was_taken_is_told_so() {
    let story = Story::start().await;
    let block = story.open("/file").await;
    story.pass(MINUTE_MS + 1);
    refused(story.append("/file", OTHER, 4).await, "RecoveryInProgressException");
    // From here on, and not only once the recovery has come to its end.
    for is_closed in [false, true] {
        if is_closed {
            let order = story.ordered().await;
            story.commit(&order, Some(5)).await.unwrap();
        }
        story.renew(WRITER).await;
        refused(story.add_block("/file", WRITER, Some(&block)).await, "LeaseExpiredException");
        let complete = p::CompleteRequestProto {
            src: "/file".into(),
            client_name: WRITER.into(),
            last: Some(block.clone()),
            ..p::CompleteRequestProto::default()
        };
        let completed: Result<p::CompleteResponseProto, _> = story.files.call("complete", &complete).await;
        refused(completed, "LeaseExpiredException");
        let fsync = p::FsyncRequestProto {
            src: "/file".into(),
            client: WRITER.into(),
            last_block_length: Some(3),
            ..p::FsyncRequestProto::default()
        };
        let synced: Result<p::FsyncResponseProto, _> = story.files.call("fsync", &fsync).await;
        refused(synced, "LeaseExpiredException");
        let stamped = story.new_stamp(&block).await;
        refused(stamped, if is_closed { "IOException" } else { "LeaseExpiredException" });
    }
    assert_eq!(story.located("/file").await.file_length, 5);
    story.append("/file", OTHER, 4).await.unwrap();
    story.stop().await;
}

/// Who holds which file is journaled; when holders were last heard of is not, so each has all of its time again.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_anew_gives_every_writer_its_time_again() {
    let story = Story::start().await;
    story.create("/soft", WRITER).await.unwrap();
    story.create("/hard", WRITER).await.unwrap();
    story.pass(MINUTE_MS - 5_000);
    let story = story.restart().await;
    story.pass(MINUTE_MS - 5_000);
    refused(story.create("/soft", OTHER).await, "AlreadyBeingCreatedException");
    story.pass(5_001);
    refused(story.create("/soft", OTHER).await, "FileAlreadyExistsException");
    assert!(!story.located("/soft").await.under_construction, "it was taken and closed");

    // The hard limit counts from there as well: `namespace` tells how long.
    story.pass(15 * MINUTE_MS);
    let story = story.restart().await;
    story.pass(15 * MINUTE_MS);
    assert!(story.located("/hard").await.under_construction);
    story.pass(5 * MINUTE_MS + 1);
    until("the file of a writer that was silent for longer than the hard limit is closed", async || {
        !story.located("/hard").await.under_construction
    })
    .await;
    story.stop().await;
}

impl Story {
    /// A finished file with one block of this length.
    async fn finished(&self, path: &str, length: u64) {
        self.open(path).await;
        assert!(!self.recover_lease(path).await);
        let order = self.ordered().await;
        self.commit(&order, Some(length)).await.unwrap();
    }

    async fn append(&self, path: &str, holder: &str, flag: u32) -> Result<p::AppendResponseProto, CallError> {
        let request =
            p::AppendRequestProto { src: path.into(), client_name: holder.into(), flag: Some(flag) };
        self.files.call("append", &request).await
    }

    async fn truncate(&self, path: &str, length: u64) -> Result<bool, CallError> {
        let request =
            p::TruncateRequestProto { src: path.into(), new_length: length, client_name: OTHER.into() };
        let response: Result<p::TruncateResponseProto, _> = self.files.call("truncate", &request).await;
        response.map(|response| response.result)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_is_told_the_last_block_and_a_silent_writer_loses_it() {
    let story = Story::start().await;
    story.finished("/file", 77).await;
    let appended = story.append("/file", WRITER, 4).await.unwrap();
    let (block, stat) = (appended.block.unwrap(), appended.stat.unwrap());
    assert_eq!((block.b.num_bytes(), block.offset, block.storage_i_ds), (77, 0, vec![STORAGE.to_owned()]));
    assert_eq!(stat.length, 77);
    let located = story.located("/file").await;
    assert_eq!((located.under_construction, located.is_last_block_complete), (true, false));
    assert_eq!(located.last_block.unwrap().storage_i_ds, [STORAGE], "it can be read meanwhile");
    refused(story.append("/file", OTHER, 4).await, "AlreadyBeingCreatedException");
    story.pass(MINUTE_MS + 1);
    // Its replica is as it was told, which may be too long ago: its servers agree first.
    refused(story.append("/file", OTHER, 4).await, "RecoveryInProgressException");
    let order = story.ordered().await;
    assert_eq!(order.block.b.generation_stamp, block.b.generation_stamp);
    story.commit(&order, Some(77)).await.unwrap();
    let appended = story.append("/file", OTHER, 4).await.unwrap();
    assert_eq!(appended.block.unwrap().b.generation_stamp, order.new_gen_stamp);
    refused(story.append("/file", WRITER, 4).await, "AlreadyBeingCreatedException");
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_wants_a_block_of_its_own_is_given_no_places_of_the_last_one() {
    let story = Story::start().await;
    story.finished("/file", 77).await;
    const NEW_BLOCK: u32 = 0x20;
    let appended = story.append("/file", WRITER, 4 | NEW_BLOCK).await.unwrap();
    let block = appended.block.unwrap();
    assert_eq!((block.b.num_bytes(), block.locs.len()), (77, 0));
    assert!(story.located("/file").await.is_last_block_complete);
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_block_is_cut_by_its_data_servers() {
    let story = Story::start().await;
    story.finished("/file", 77).await;
    assert!(!story.truncate("/file", 50).await.unwrap());
    assert!(!story.truncate("/file", 50).await.unwrap(), "it is under way");
    refused(story.truncate("/file", 40).await, "AlreadyBeingCreatedException");
    refused(story.append("/file", WRITER, 4).await, "RecoveryInProgressException");
    let first = story.ordered().await;
    let cut = first.truncate_block.unwrap();
    assert_eq!((cut.block_id, cut.num_bytes()), (first.block.b.block_id, 50));
    assert_eq!((first.block.b.num_bytes(), cut.gen_stamp), (77, first.new_gen_stamp));
    assert!(story.heartbeat().await.is_empty(), "it is ordered once");
    // It led to nothing: the server itself begins it again.
    story.pass(2 * MINUTE_MS);
    let second = story.ordered().await;
    assert!(second.new_gen_stamp > first.new_gen_stamp);
    assert_eq!(second.truncate_block.unwrap().num_bytes(), 50);
    refused(story.commit(&first, Some(50)).await, "IOException");
    refused(story.commit(&second, Some(60)).await, "IOException");
    story.commit(&second, Some(50)).await.unwrap();
    let located = story.located("/file").await;
    assert_eq!((located.file_length, located.under_construction), (50, false));
    assert_eq!(located.blocks[0].storage_i_ds, [STORAGE]);
    assert!(story.truncate("/file", 50).await.unwrap(), "it is that long");
    assert!(story.truncate("/file", 0).await.unwrap());
    assert_eq!(story.located("/file").await.blocks.len(), 0);
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_a_snapshot_shows_is_copied_by_its_data_servers() {
    for names_the_copy in [false, true] {
        a_copied_block_is_told_of(names_the_copy).await;
    }
}

async fn a_copied_block_is_told_of(names_the_copy: bool) {
    let story = Story::start().await;
    story.finished("/file", 77).await;
    let allow = p::AllowSnapshotRequestProto { snapshot_root: "/".into() };
    let _: p::AllowSnapshotResponseProto = story.files.call("allowSnapshot", &allow).await.unwrap();
    let create = p::CreateSnapshotRequestProto { snapshot_root: "/".into(), snapshot_name: Some("s".into()) };
    let _: p::CreateSnapshotResponseProto = story.files.call("createSnapshot", &create).await.unwrap();
    let old = story.located("/file").await.blocks[0].b.clone();
    assert!(!story.truncate("/file", 50).await.unwrap());
    assert!(!story.truncate("/file", 50).await.unwrap(), "it is under way");
    let meanwhile = story.located("/file").await;
    assert_eq!((meanwhile.file_length, meanwhile.under_construction), (77, true));
    assert_eq!((&meanwhile.blocks[0].b, &meanwhile.blocks[0].storage_i_ds[0][..]), (&old, STORAGE));
    let first = story.ordered().await;
    assert_eq!(first.block.b, old);
    assert_eq!(first.block.storage_i_ds, [STORAGE]);
    let copy = first.truncate_block.unwrap();
    assert!(copy.block_id > old.block_id);
    assert_eq!((copy.num_bytes(), copy.gen_stamp), (50, first.new_gen_stamp));
    assert!(story.heartbeat().await.is_empty(), "it is ordered once");
    // It led to nothing: it is begun again, into the same block.
    story.pass(2 * MINUTE_MS);
    let second = story.ordered().await;
    assert!(second.new_gen_stamp > first.new_gen_stamp);
    assert_eq!((&second.block.b, second.truncate_block.as_ref().unwrap().block_id), (&old, copy.block_id));
    // Hadoop's data servers name the block that they have copied; the number of the copy is understood as well.
    let by_copy = |order: &p::RecoveringBlockProto| {
        let mut outcome = order.clone();
        outcome.block.b.block_id = copy.block_id;
        outcome
    };
    for first in [&first, &by_copy(&first)] {
        let message = refused(story.commit(first, Some(50)).await, "IOException");
        assert!(message.contains("does not match current recovery id"), "{message}");
    }
    refused(story.commit(&second, Some(60)).await, "IOException");
    let message = refused(story.commit(&second, None).await, "IOException");
    assert!(message.contains("is copied and cannot be deleted"), "{message}");
    assert!(story.located("/file").await.under_construction);
    let (once, again) =
        if names_the_copy { (by_copy(&second), second) } else { (second.clone(), by_copy(&second)) };
    story.commit(&once, Some(50)).await.unwrap();
    story.commit(&once, Some(50)).await.unwrap();
    story.commit(&again, Some(50)).await.unwrap();
    let located = story.located("/file").await;
    assert_eq!((located.file_length, located.under_construction), (50, false));
    assert_eq!(
        (located.blocks[0].b.block_id, &located.blocks[0].storage_i_ds[0][..]),
        (copy.block_id, STORAGE)
    );
    let past = story.located("/.snapshot/s/file").await;
    assert_eq!((past.file_length, &past.blocks[0].b), (77, &old));
    assert_eq!(past.blocks[0].storage_i_ds, [STORAGE]);
    story.stop().await;
}
