//! Two groups that hold one namespace are put back from their backups, at one place in the directory log.

mod cluster;

use base::{GroupId, directory_log::Dix};
use blockstore::VolumeConfig;
use client::{Config, CreateOptions, FileSystem};
use cluster::{Cluster, Plan, page, set_safe_mode, two::ELEVENTH, two::SECOND, two::Two, until};
use datad::{DataConfig, DataServer};
use env::Env;
use journal::archive::Backup;
use metad::{
    FormatError, MetaConfig,
    backup::{self, RestoreError, Restored, Until, Wish, places},
};
use proto::{clover::admin as a, hdfs as p, protocol};
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

fn opened(directory: &Path) -> Backup {
    Backup::open(Env::production().disk, directory).unwrap()
}

/// Makes the directory of a group's first member.
fn restore(directory: &Path, until: Until, config: &MetaConfig) -> Result<Restored, RestoreError> {
    restore_as(directory, until, config, None)
}

fn restore_as(
    directory: &Path,
    until: Until,
    config: &MetaConfig,
    new_cluster_id: Option<&str>,
) -> Result<Restored, RestoreError> {
    let backup = opened(directory);
    let rebuilt = backup::rebuild(&backup, until, 7).unwrap();
    let wish = Wish {
        name_directory: &config.name_directory,
        group: &config.group,
        address: config.rpc_address.ip(),
        new_cluster_id: new_cluster_id.map(str::to_owned),
    };
    backup::restore(&Env::production(), backup.manifest(), rebuilt, &wish)
}

/// A group whose first member is made from a backup.
fn restored(plan: Plan, directory: &Path, dix: Dix) -> (Cluster, Restored) {
    let (made, directory) = (Arc::new(Mutex::new(None)), directory.to_owned());
    let made_there = made.clone();
    let plan = plan.made_by(move |config| {
        *made_there.lock().unwrap() = Some(restore(&directory, Until::Place(dix), config).unwrap());
    });
    let cluster = plan.made();
    let made = made.lock().unwrap().take().expect("it was made");
    (cluster, made)
}

async fn data_server(directory: &Path, doors: &[SocketAddr]) -> DataServer {
    let volume: VolumeConfig = directory.to_str().unwrap().parse().unwrap();
    let addresses = doors.iter().map(SocketAddr::to_string).collect();
    let config = DataConfig { heartbeat_interval_ms: 100, ..DataConfig::new(vec![volume], addresses) };
    let server = DataServer::start(Env::production(), config).await.unwrap();
    let all = format!("\"metadata_servers\":\"{0} of {0}\"", doors.len());
    until("all know the data server", async || {
        page(server.http_addr(), "/health").await.unwrap().contains(&all)
    })
    .await;
    server
}

fn doors(groups: [&Cluster; 2]) -> Vec<SocketAddr> {
    let of = |cluster: &Cluster| {
        let running = cluster.running().into_iter();
        running.map(|member| cluster.address(member)).collect::<Vec<_>>()
    };
    groups.map(of).concat()
}

fn file_system(door: SocketAddr) -> FileSystem {
    FileSystem::connect(&format!("hdfs://{door}"), &Config::new()).unwrap()
}

async fn write(fs: &FileSystem, path: &str, text: &str) {
    let options = CreateOptions { replication: Some(1), ..CreateOptions::default() };
    let mut writer = fs.create(path, &options).await.unwrap();
    writer.write(text.as_bytes()).await.unwrap();
    writer.close().await.unwrap();
}

async fn read(fs: &FileSystem, path: &str) -> String {
    let bytes = fs.open(path).await.unwrap().read_at(0, usize::MAX).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What a group's active says of the directory log, and of files that live elsewhere.
async fn log_of(cluster: &Cluster) -> a::GetDirectoryLogResponseProto {
    let active = cluster.wait_for_active(&[]).await;
    let client = cluster.client_as(active, protocol::ADMIN, "anybody");
    client.call("getDirectoryLog", &a::GetDirectoryLogRequestProto {}).await.unwrap()
}

async fn open_to_all(cluster: &Cluster, path: &str) {
    let active = cluster.wait_for_active(&[]).await;
    let permission = p::FsPermissionProto { perm: 0o777 };
    let request = p::SetPermissionRequestProto { src: path.into(), permission };
    let _: p::SetPermissionResponseProto =
        cluster.client(active).call("setPermission", &request).await.unwrap();
}

async fn set_quota(cluster: &Cluster, path: &str, names: u64) {
    let active = cluster.wait_for_active(&[]).await;
    let request = p::SetQuotaRequestProto {
        path: path.into(),
        namespace_quota: names,
        storagespace_quota: u64::MAX >> 1,
        storage_type: None,
    };
    let _: p::SetQuotaResponseProto = cluster.client(active).call("setQuota", &request).await.unwrap();
}

async fn take_snapshot(cluster: &Cluster, name: &str) {
    let client = cluster.client(cluster.wait_for_active(&[]).await);
    let allow = p::AllowSnapshotRequestProto { snapshot_root: "/kept".into() };
    let _: p::AllowSnapshotResponseProto = client.call("allowSnapshot", &allow).await.unwrap();
    let take =
        p::CreateSnapshotRequestProto { snapshot_root: "/kept".into(), snapshot_name: Some(name.into()) };
    let _: p::CreateSnapshotResponseProto = client.call("createSnapshot", &take).await.unwrap();
}

/// Two groups with files that have moved, a quota and a snapshot; and what was there at one place.
struct Story {
    two: Two,
    data: Option<DataServer>,
    data_directory: tempfile::TempDir,
    backups: [PathBuf; 2],
    place: Dix,
    digest: (Dix, u64),
    exported: [Option<u64>; 2],
}

impl Story {
    async fn told() -> Self {
        let two = Two::start(1, "/a").await;
        let (first, second) = (&two.first, &two.second);
        let [here, there] = two.homes.clone();
        let backups = [first.beside("backup-1"), first.beside("backup-2")];
        let data_directory = tempfile::tempdir().unwrap();
        let data = data_server(data_directory.path(), &doors([first, second])).await;
        first.mkdirs(1, "/kept").await;
        for path in [&*here, &*there, "/kept"] {
            open_to_all(first, path).await;
        }
        let by_first = file_system(first.address(1));
        let by_second = file_system(second.address(ELEVENTH));
        write(&by_first, &format!("{here}/stays"), "stays").await;
        write(&by_second, &format!("{here}/goes"), "goes over").await;
        write(&by_first, &format!("{there}/comes"), "comes over").await;
        write(&by_second, "/kept/old", "old").await;
        by_first.rename(&format!("{here}/goes"), &format!("{there}/goes"), false).await.unwrap();
        by_second.rename(&format!("{there}/comes"), &format!("{here}/comes"), false).await.unwrap();
        set_quota(first, "/a", 1_000).await;
        take_snapshot(first, "then").await;
        // Both backups begin before the place.
        first.back_up(&backups[0]).await;
        second.back_up(&backups[1]).await;
        first.mkdirs(1, "/last").await;
        two.wait_until_same().await;
        let logs = [log_of(first).await, log_of(second).await];
        let (place, exported) = (Dix(logs[0].end), logs.map(|log| log.exported));
        let digest = first.server(1).directories_digest();

        // And then it went on: what moved over is gone or moves back, and more comes.
        by_second.delete(&format!("{there}/goes"), false).await.unwrap();
        by_first.rename(&format!("{here}/comes"), &format!("{there}/comes"), false).await.unwrap();
        write(&by_first, &format!("{here}/later"), "later").await;
        by_first.rename(&format!("{here}/later"), &format!("{there}/later"), false).await.unwrap();
        set_quota(first, "/a", 2_000).await;
        first.mkdirs(1, "/a/later").await;
        until("the order about the file is carried out", async || log_of(second).await.messages == Some(0))
            .await;
        first.back_up(&backups[0]).await;
        for number in 0..3 {
            first.mkdirs(1, &format!("/{number}")).await;
        }
        two.wait_until_same().await;
        second.back_up(&backups[1]).await;
        Self { two, data: Some(data), data_directory, backups, place, digest, exported }
    }

    /// The disaster: all names are lost, and the data server has its blocks.
    async fn end(&mut self) {
        self.data.take().expect("it runs").shutdown().await;
        self.two.second.kill_all().await;
        self.two.first.kill_all().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_groups_are_put_back_at_one_place_and_go_on() {
    let mut story = Story::told().await;
    story.end().await;
    let [here, there] = story.two.homes.clone();
    let place = story.place;
    let all = story.backups.each_ref().map(|directory| places::places(&opened(directory)).unwrap());
    let ends = all.each_ref().map(|ranges| ranges.last().unwrap().last.dix);
    assert!(place < ends[0] && ends[0] < ends[1], "{place}, {ends:?}");
    assert_eq!(places::newest_common(&all), Some(ends[0]));

    // It waits for no data server before it takes changes.
    let plan = Plan::group(1).adjusted(|_, config| config.blocks.safe_mode.threshold = 0.0);
    let (mut first, made) = restored(plan, &story.backups[0], place);
    assert_eq!(made.others, [SECOND]);
    let digest = |cluster: &Cluster| cluster.server(cluster.active(&[]).unwrap()).directories_digest();
    first.restart_all().await;
    first.wait_for_active(&[]).await;
    assert_eq!(digest(&first), story.digest);
    // While the other group is not there, directories change all the same; it gets what it lacks.
    first.mkdirs(1, "/alone").await;
    let (mut second, made) = restored(Plan::beside(&first, SECOND, ELEVENTH, 2), &story.backups[1], place);
    assert_eq!(made.others, [GroupId::ROOT]);
    let secrets = [(&first, 1), (&second, ELEVENTH), (&second, ELEVENTH + 1)].map(|(cluster, member)| {
        metad::read_cluster(&Env::production(), &cluster.name_directory(member)).unwrap().secret
    });
    assert!(secrets[0] == secrets[1] && secrets[1] == secrets[2] && secrets[0].is_some());
    second.restart_all().await;
    second.tend_until("its second member has the image", |second| second.is_in_sync(2)).await;

    until("the second group serves", async || log_of(&second).await.is_serving).await;
    let logs = [log_of(&first).await, log_of(&second).await];
    assert_eq!(logs.each_ref().map(|log| log.end), [place.0 + 1, place.0 + 1]);
    assert_eq!(logs.each_ref().map(|log| log.exported), story.exported);
    until("both have the same directories", async || digest(&first) == digest(&second)).await;

    let data = data_server(story.data_directory.path(), &doors([&first, &second])).await;
    // One block is gone, of a few: safe mode does not end by itself.
    for cluster in [&first, &second] {
        let client = cluster.client(cluster.wait_for_active(&[]).await);
        set_safe_mode(&client, p::SafeModeActionProto::SafemodeLeave).await;
    }
    for door in doors([&first, &second]) {
        let fs = file_system(door);
        let known = [
            (format!("{here}/stays"), "stays"),
            (format!("{here}/comes"), "comes over"),
            ("/kept/old".into(), "old"),
            ("/kept/.snapshot/then/old".into(), "old"),
        ];
        for (path, text) in known {
            assert_eq!(read(&fs, &path).await, text, "{path}");
        }
        assert_eq!(
            fs.status(&format!("{there}/goes")).await.unwrap().length,
            9,
            "its block was deleted since"
        );
        for later in [format!("{there}/later"), format!("{there}/comes"), "/a/later".into(), "/0".into()] {
            assert!(fs.status(&later).await.is_err(), "{later}");
        }
    }

    // Life goes on: directories, renames across, and orders to the other group.
    let fs = file_system(first.address(1));
    first.mkdirs(1, "/after").await;
    write(&fs, &format!("{here}/new"), "new").await;
    fs.rename(&format!("{here}/new"), &format!("{there}/new"), false).await.unwrap();
    assert_eq!(read(&fs, &format!("{there}/new")).await, "new");
    for gone in [format!("{there}/new"), format!("{there}/goes"), format!("{here}/comes")] {
        fs.delete(&gone, false).await.unwrap();
    }
    until("no group has a file of the other one", async || {
        let logs = [log_of(&first).await, log_of(&second).await];
        logs.iter().all(|log| (log.exported, log.messages) == (Some(0), Some(0)))
    })
    .await;
    // Those of the files that were just deleted go. That of `later`, which no group knows any more, is held.
    let replicas = || data.state().replica_count();
    until("replicas of the files that are there, and of one that is unknown", async || replicas() == 3).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(replicas(), 3, "an unknown replica is deleted");
    assert_eq!(read(&fs, &format!("{here}/stays")).await, "stays");

    // The root group restarts alone, and everything is as it was.
    first.kill(1).await;
    first.restart(1).await;
    first.wait_for_active(&[]).await;
    until("the second group serves again", async || log_of(&second).await.is_serving).await;
    first.mkdirs(1, "/again").await;
    until("both have it", async || digest(&first) == digest(&second)).await;
    data.shutdown().await;
    second.end().await;
    first.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn groups_that_would_not_fit_together_are_refused_with_a_reason() {
    let mut story = Story::told().await;
    story.end().await;
    let (place, [of_first, of_second]) = (story.place, story.backups.clone());
    let told = |result: Result<Restored, RestoreError>| result.map(|made| made.at).unwrap_err().to_string();
    let before = Dix(place.0 - 1);

    // The end of the backup is no place, and a server alone has nobody to find.
    let root = Plan::group(1).made_by(|_| ()).made();
    let said = told(restore(&of_first, Until::End, &root.config(1)));
    assert!(said.contains("clover meta backup list DIR1 DIR2"), "{said}");
    let alone = Plan::alone().made_by(|_| ()).made();
    let said = told(restore(&of_first, Until::Place(place), &alone.config(1)));
    assert!(said.contains("name one in `coordinator`"), "{said}");
    let missing = backup::rebuild(&opened(&of_first), Until::Place(Dix(9_999)), 7);
    let said = missing.map(|made| made.at).unwrap_err().to_string();
    assert!(said.contains("it can be had at the places") && said.contains("not at 9999"), "{said}");

    // The root group comes first.
    let second = |root: &Cluster| Plan::beside(root, SECOND, ELEVENTH, 1).made_by(|_| ()).made();
    let beside = second(&root);
    let said = told(restore(&of_second, Until::Place(place), &beside.config(ELEVENTH)));
    assert!(said.contains("restore the root group first"), "{said}");
    restore(&of_first, Until::Place(place), &root.config(1)).unwrap();
    let said = told(restore(&of_second, Until::Place(before), &beside.config(ELEVENTH)));
    assert!(said.contains(&format!("say --dix {place}")), "{said}");
    let said = told(restore_as(&of_second, Until::Place(place), &beside.config(ELEVENTH), Some("other")));
    assert!(said.contains("is to be a group of other"), "{said}");
    let mut other = beside.config(ELEVENTH);
    let secret = beside.beside("secret");
    std::fs::write(&secret, "another secret than the one that was drawn").unwrap();
    other.group.secret = Some(secret);
    let said = told(restore(&of_second, Until::Place(place), &other));
    assert!(said.contains("another secret"), "{said}");
    let left: Vec<_> = std::fs::read_dir(beside.name_directory(ELEVENTH)).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");

    // A group that has files is not made anew, and one that is there is not made twice.
    let tree = backup::rebuild(&opened(&of_first), Until::Place(place), 7).unwrap().namespace;
    let config = beside.config(ELEVENTH);
    let anew = metad::found_group(&Env::production(), &config.name_directory, &config.group, &tree);
    let said = anew.map(|made| made.group).unwrap_err().to_string();
    assert!(said.contains("`clover meta restore` puts it back"), "{said}");
    restore(&of_second, Until::Place(place), &config).unwrap();
    let again = second(&root);
    let refused = restore(&of_second, Until::Place(place), &again.config(ELEVENTH)).unwrap_err();
    assert!(
        matches!(refused, RestoreError::Format(FormatError::NoFurtherGroup { group: SECOND, .. })),
        "{refused}"
    );

    // A root group that was made otherwise fits to nothing.
    let (fresh, _) = Cluster::in_sync(1).await;
    let said = told(restore(&of_second, Until::Place(place), &second(&fresh).config(ELEVENTH)));
    assert!(said.contains("was not restored from a backup of several groups"), "{said}");
    fresh.end().await;

    // As another cluster, with other pools and the same names.
    let copy = Plan::group(1).made_by(|_| ()).made();
    restore_as(&of_first, Until::Place(place), &copy.config(1), Some("copy")).unwrap();
    let beside = second(&copy);
    let said = told(restore(&of_second, Until::Place(place), &beside.config(ELEVENTH)));
    assert!(said.contains("say --cluster-id as there"), "{said}");
    restore_as(&of_second, Until::Place(place), &beside.config(ELEVENTH), Some("copy")).unwrap();
}
