//! Images in a group: made by a standby, copied by the others, and put in the place of a log that is too far
//! behind. Three members in one process, each started again as often as it asks for it.

use coord::Coordinator;
use env::Env;
use journal::Look;
use metad::{CoordinatorConfig, GroupConfig, MetaConfig, Replica};
use namespace::{AccessPolicy, Limits};
use parking_lot::Mutex;
use proto::hdfs as p;
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::oneshot, task::JoinHandle};

const SUPERUSER: &str = "alice";
const EDITS_PER_IMAGE: u64 = 40;

struct Cluster {
    directory: tempfile::TempDir,
    coordinator: coord::Embedded,
    members: BTreeMap<u32, Member>,
    scrub_period_ms: u64,
}

struct Member {
    seen: Arc<Mutex<Seen>>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), metad::RunError>>,
}

/// The server of a member at the moment.
#[derive(Default)]
struct Seen {
    starts: u32,
    replica: Option<Replica>,
    rpc_address: Option<SocketAddr>,
}

impl Cluster {
    async fn start() -> Self {
        Self::start_with(GroupConfig::default().scrub_period_ms).await
    }

    async fn start_with(scrub_period_ms: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let env = Env::production();
        let coordinator = coord::Embedded::open(&env, &directory.path().join("coordinator")).unwrap();
        let mut cluster = Self { directory, coordinator, members: BTreeMap::new(), scrub_period_ms };
        let first = cluster.config(1);
        metad::format(&env, &first.name_directory, None, "127.0.0.1".parse().unwrap(), &first.group).unwrap();
        for member in 2..=3 {
            cluster.join(member);
        }
        for member in 1..=3 {
            cluster.run(member).await;
        }
        cluster
    }

    fn config(&self, member: u32) -> MetaConfig {
        let any = "127.0.0.1:0".parse().unwrap();
        let access = AccessPolicy { superuser: SUPERUSER.into(), ..AccessPolicy::default() };
        MetaConfig {
            name_directory: self.name_directory(member),
            rpc_address: any,
            http_address: None,
            limits: Limits { access, ..Limits::default() },
            defaults: Default::default(),
            blocks: blocks::Config {
                safe_mode: blocks::SafeModeConfig { extension_ms: 0, ..Default::default() },
                ..Default::default()
            },
            complete_wait_ms: 200,
            edits_per_image: EDITS_PER_IMAGE,
            image_period_ms: 3_600_000,
            journal_bytes_per_image: 64 << 20,
            call_queue: Default::default(),
            racks: Vec::new(),
            data_servers_file: None,
            groups: metad::GroupsConfig::default(),
            audit_log: None,
            group: GroupConfig {
                member: base::MemberId(member),
                members: (1..=3).map(base::MemberId).collect(),
                peer_address: Some(any),
                coordinator: CoordinatorConfig::Shared(
                    Arc::new(self.coordinator.session()) as Arc<dyn Coordinator>
                ),
                // Small segments, so that a purge finds some; no window, so that the log is read from the disk.
                journal: journal::Settings { segment_bytes: 16 << 10, ..Default::default() },
                timing: group::Settings { window_bytes: 4 << 10, ..Default::default() },
                scrub_period_ms: self.scrub_period_ms,
                ..GroupConfig::default()
            },
        }
    }

    fn name_directory(&self, member: u32) -> PathBuf {
        self.directory.path().join(format!("name-{member}"))
    }

    fn join(&self, member: u32) {
        let config = self.config(member);
        metad::join(&Env::production(), &config.name_directory, &config.group).unwrap();
    }

    async fn run(&mut self, member: u32) {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (stop, stopped) = oneshot::channel::<()>();
        let (config, noted) = (self.config(member), seen.clone());
        let task = tokio::spawn(metad::run(
            Env::production(),
            config,
            async move { drop(stopped.await) },
            move |server| {
                let mut seen = noted.lock();
                seen.starts += 1;
                seen.replica = Some(server.replica().clone());
                seen.rpc_address = Some(server.rpc_address());
                // Whoever keeps a replica keeps its store from being opened again.
                let (mut ended, noted) = (server.replica().ended(), noted.clone());
                tokio::spawn(async move {
                    let _ = ended.wait_for(Option::is_some).await;
                    noted.lock().replica = None;
                });
            },
        ));
        self.members.insert(member, Member { seen, stop, task });
        self.until("it runs", || self.starts(member) > 0).await;
    }

    async fn stop(&mut self, member: u32) {
        let Member { seen, stop, task } = self.members.remove(&member).unwrap();
        *seen.lock() = Seen::default();
        stop.send(()).unwrap();
        task.await.unwrap().unwrap();
    }

    fn starts(&self, member: u32) -> u32 {
        self.members[&member].seen.lock().starts
    }

    /// `None` while it starts again.
    fn look_at(&self, member: u32) -> Option<Replica> {
        self.members[&member].seen.lock().replica.clone()
    }

    fn replica(&self, member: u32) -> Replica {
        self.look_at(member).expect("it runs")
    }

    fn active(&self) -> Option<u32> {
        let is_active = |member: &u32| {
            self.look_at(*member).is_some_and(|replica| replica.is_serving() && replica.may_answer())
        };
        self.members.keys().copied().find(is_active)
    }

    async fn wait_for_active(&self) -> u32 {
        self.until("a member serves", || self.active().is_some()).await;
        self.active().unwrap()
    }

    async fn wait_in_sync(&self, count: usize) {
        let in_sync = || {
            let status = self.replica(self.active()?).status();
            Some(status.view?.0.in_sync.len())
        };
        self.until("enough are in sync", || in_sync() == Some(count)).await;
    }

    async fn until(&self, what: &str, look: impl Fn() -> bool) {
        let began = Instant::now();
        while !look() {
            if began.elapsed() > Duration::from_secs(60) {
                for (number, member) in &self.members {
                    let replica = member.seen.lock().replica.clone();
                    eprintln!("{number}: {:#?}", replica.map(|replica| replica.status()));
                }
                panic!("not within a minute: {what}");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn client(&self, member: u32) -> rpc::Client {
        let address = self.members[&member].seen.lock().rpc_address.unwrap();
        let options = rpc::ClientOptions::default();
        rpc::Client::connect(address, proto::protocol::CLIENT_NAMENODE, SUPERUSER, options)
    }

    async fn mkdirs(&self, directory: &str, count: u32) {
        let client = self.client(self.wait_for_active().await);
        for number in 0..count {
            let request = p::MkdirsRequestProto {
                // Long names, so that segments fill.
                src: format!("{directory}/{number}-{}", "x".repeat(200)),
                masked: p::FsPermissionProto { perm: 0o755 },
                create_parent: true,
                unmasked: None,
            };
            let response: p::MkdirsResponseProto = client.call("mkdirs", &request).await.unwrap();
            assert!(response.result);
        }
    }

    async fn count_names(&self, member: u32, path: &str) -> usize {
        let request = p::GetListingRequestProto {
            src: path.into(),
            start_after: bytes::Bytes::new(),
            need_location: false,
        };
        let response: p::GetListingResponseProto =
            self.client(member).call("getListing", &request).await.unwrap();
        response.dir_list.unwrap().partial_listing.len()
    }

    /// The images that a start of this member would begin with: their serial numbers.
    fn images(&self, member: u32) -> Vec<u64> {
        self.replica(member).journal().images().iter().map(|image| image.at.id.sn.0).collect()
    }

    async fn end(mut self) {
        for member in self.members.keys().copied().collect::<Vec<_>>() {
            self.stop(member).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_standby_makes_the_image_and_every_member_gets_it() {
    let cluster = Cluster::start().await;
    let active = cluster.wait_for_active().await;
    cluster.wait_in_sync(3).await;
    cluster.mkdirs("/d", EDITS_PER_IMAGE as u32 + 20).await;
    cluster.until("all have an image", || (1..=3).all(|member| cluster.images(member).len() == 1)).await;
    assert_eq!(cluster.images(1), cluster.images(2));
    assert_eq!(cluster.images(2), cluster.images(3));

    let maker = (1..=3).find(|member| *member != active).unwrap();
    let uuid = cluster.replica(maker).journal().state().store_uuid;
    for member in 1..=3 {
        let name = cluster.replica(member).journal().images()[0].file_name();
        let file = std::fs::read(cluster.name_directory(member).join("group-1/images").join(name)).unwrap();
        assert_eq!(file[48..64], uuid, "the standby with the lowest number has made it");
    }

    // It is a whole image: a member that starts from it is a standby again at once.
    let mut cluster = cluster;
    cluster.stop(maker).await;
    cluster.run(maker).await;
    cluster.wait_in_sync(3).await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_member_with_a_new_disk_starts_from_the_image_of_another() {
    let mut cluster = Cluster::start().await;
    let active = cluster.wait_for_active().await;
    cluster.wait_in_sync(3).await;
    let lost = (1..=3).rev().find(|member| *member != active).unwrap();
    cluster.stop(lost).await;
    cluster.wait_in_sync(2).await;
    for round in 1..=2 {
        cluster.mkdirs(&format!("/round-{round}"), 2 * EDITS_PER_IMAGE as u32).await;
        // On a busy machine there may be two in the first round.
        let has_all = |member: &u32| cluster.images(*member).len() >= round;
        cluster.until("the images are usable", || cluster.members.keys().all(has_all)).await;
    }
    // An image is usable a moment before what it replaces goes.
    let first = |member| cluster.replica(member).journal().read(base::Sn(0), base::Sn(1), 1);
    let is_gone = || matches!(first(active), Err(journal::ReadLogError::Gone { .. }));
    cluster.until("the log begins later", is_gone).await;

    std::fs::remove_dir_all(cluster.name_directory(lost)).unwrap();
    cluster.join(lost);
    cluster.run(lost).await;
    cluster.until("it starts again from the image", || cluster.starts(lost) == 2).await;
    cluster.wait_in_sync(3).await;
    assert!(!cluster.images(lost).is_empty());

    // It has everything: the group is handed over to it.
    let (sender, answer) = oneshot::channel();
    let order = group::Order::HandOver { to: Some(base::MemberId(lost)) };
    cluster.replica(active).order(order, Box::new(move |answer| drop(sender.send(answer))));
    answer.await.unwrap().unwrap();
    cluster.until("it serves", || cluster.active() == Some(lost)).await;
    for round in 1..=2 {
        let names = cluster.count_names(lost, &format!("/round-{round}")).await;
        assert_eq!(names, 2 * EDITS_PER_IMAGE as usize);
    }
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_rots_on_one_disk_is_mended_with_what_another_has() {
    let mut cluster = Cluster::start_with(300).await;
    let active = cluster.wait_for_active().await;
    cluster.wait_in_sync(3).await;
    cluster.mkdirs("/d", EDITS_PER_IMAGE as u32 + 20).await;
    cluster.until("all have an image", || (1..=3).all(|member| cluster.images(member).len() == 1)).await;
    let standby = (1..=3).find(|member| *member != active).unwrap();
    for member in [active, standby] {
        let journal = cluster.replica(member).journal().clone();
        let store = cluster.name_directory(member).join("group-1");
        let (image, sealed) = (journal.images()[0], journal.sealed()[1]);
        let segment = format!("log/{:010}-{:020}", sealed.epoch.0, sealed.start.0);
        let files = [store.join("images").join(image.file_name()), store.join(segment)];
        let whole: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
        for (file, bytes) in files.iter().zip(&whole) {
            let mut bytes = bytes.clone();
            // Behind the first header of either.
            let at = if bytes.len() > 8_192 { 4_096 + 100 } else { bytes.len() / 2 };
            bytes[at] ^= 1;
            std::fs::write(file, bytes).unwrap();
        }
        let is_mended = || {
            journal.look_at_image(&image, &mut |_| true) == Look::Sound
                && journal.look_at_segment(sealed, &mut |_| true) == Look::Sound
        };
        assert!(!is_mended());
        cluster.until("both are mended", is_mended).await;
        assert_eq!(std::fs::read(&files[0]).unwrap(), whole[0], "an image is the same on all members");
        let (_, entries) = journal.read(base::Sn(0), base::Sn(u64::MAX), 64 << 20).unwrap();
        assert_eq!(entries.len() as u64, journal.durable().0);
    }
    // A start finds nothing wrong.
    cluster.stop(standby).await;
    cluster.run(standby).await;
    cluster.wait_in_sync(3).await;
    assert_eq!(cluster.replica(standby).me().generation, 0, "it is the same store");
    cluster.end().await;
}
