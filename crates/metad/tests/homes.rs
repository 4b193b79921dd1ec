//! Files in two groups: each directory has a home, which has its files, and clients see one tree, by whichever server they ask.

mod cluster;

use base::{ClientId, GroupId};
use blockstore::VolumeConfig;
use client::{Config, CreateOptions, FileSystem};
use cluster::{
    Cluster, Plan, be_patient,
    files::{client_at, create_request, insist, numbered, repeated},
    mkdirs_request, page, refused, until,
};
use datad::{DataConfig, DataServer};
use env::Env;
use prost::{Message, Name};
use proto::{exception, hdfs as p, protocol};
use rpc::{CallError, Client};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

const SECOND: GroupId = GroupId(2);
/// The first member of the second group.
const ELEVENTH: u32 = 11;

/// Two groups that hold files, and a directory of each home: their paths.
struct Two {
    first: Cluster,
    second: Cluster,
    /// By group: directories whose files it has.
    directories: BTreeMap<u32, Vec<String>>,
}

impl Two {
    async fn start(of_first: u32, of_second: u32) -> Self {
        let (first, active) = Cluster::in_sync(of_first).await;
        let (second, _) = Plan::further_group(&first, SECOND, ELEVENTH, of_second).await.in_sync().await;
        assert_eq!(first.give_slots(active, SECOND).await, 64);
        let mut two = Self { first, second, directories: BTreeMap::new() };
        for number in 0.. {
            let path = format!("/d{number}");
            two.first.mkdirs(active, &path).await;
            two.directories.entry(two.home(&path)).or_default().push(path);
            if two.directories.len() == 2 && two.directories.values().all(|paths| paths.len() >= 3) {
                break;
            }
        }
        two
    }

    /// The home of a directory that the first group has.
    fn home(&self, path: &str) -> u32 {
        let active = self.first.active(&[]).expect("it leads");
        self.first.server(active).home_of(path).expect("the directory is there").0
    }

    fn of(&self, group: u32, index: usize) -> &str {
        &self.directories[&group][index]
    }

    /// A client at each server.
    fn clients(&self) -> Vec<Client> {
        let clients = |cluster: &Cluster| -> Vec<Client> {
            cluster.running().into_iter().map(|member| cluster.client(member)).collect()
        };
        [clients(&self.first), clients(&self.second)].concat()
    }

    async fn end(self) {
        self.second.end().await;
        self.first.end().await;
    }
}

/// As a stock client calls: it asks again while too few members are in sync, which they are for a moment on a busy machine.
async fn call<Q: Message, A: Message + Default + Name>(
    client: &Client,
    method: &str,
    request: &Q,
) -> Result<A, CallError> {
    let began = Instant::now();
    loop {
        match client.call(method, request).await {
            Err(error) if error.to_string().contains("RetriableException") => be_patient(error, began).await,
            answer => return answer,
        }
    }
}

async fn create(client: &Client, path: &str) -> Result<p::CreateResponseProto, CallError> {
    call(client, "create", &create_request(path, "DFSClient_homes_1")).await
}

async fn close(client: &Client, path: &str, file: u64) -> Result<bool, CallError> {
    let request = p::CompleteRequestProto {
        src: path.into(),
        client_name: "DFSClient_homes_1".into(),
        last: None,
        file_id: Some(file),
    };
    call::<_, p::CompleteResponseProto>(client, "complete", &request).await.map(|answer| answer.result)
}

async fn mkdirs(client: &Client, path: &str) -> Result<bool, CallError> {
    call::<_, p::MkdirsResponseProto>(client, "mkdirs", &mkdirs_request(path))
        .await
        .map(|answer| answer.result)
}

async fn delete(client: &Client, path: &str, recursive: bool) -> Result<bool, CallError> {
    let request = p::DeleteRequestProto { src: path.into(), recursive };
    call::<_, p::DeleteResponseProto>(client, "delete", &request).await.map(|answer| answer.result)
}

async fn rename(client: &Client, from: &str, to: &str) -> Result<bool, CallError> {
    let request = p::RenameRequestProto { src: from.into(), dst: to.into() };
    call::<_, p::RenameResponseProto>(client, "rename", &request).await.map(|answer| answer.result)
}

async fn status(client: &Client, path: &str) -> Option<p::HdfsFileStatusProto> {
    let request = p::GetFileInfoRequestProto { src: path.into() };
    client.call::<_, p::GetFileInfoResponseProto>("getFileInfo", &request).await.unwrap().fs
}

async fn names(client: &Client, path: &str) -> Vec<String> {
    let listing = listing(client, path).await;
    listing.into_iter().map(|status| String::from_utf8(status.path.to_vec()).unwrap()).collect()
}

async fn listing(client: &Client, path: &str) -> Vec<p::HdfsFileStatusProto> {
    let request = p::GetListingRequestProto {
        src: path.into(),
        start_after: b"".to_vec().into(),
        need_location: false,
    };
    let answer: p::GetListingResponseProto = client.call("getListing", &request).await.unwrap();
    answer.dir_list.expect("the directory is there").partial_listing
}

/// A file that is empty and closed.
async fn file(client: &Client, path: &str) -> u64 {
    let made = create(client, path).await.unwrap_or_else(|error| panic!("{path}: {error}"));
    let file = made.fs.and_then(|fs| fs.file_id).expect("it is told");
    assert!(close(client, path, file).await.unwrap());
    file
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_door_shows_one_tree_with_the_files_of_both_groups() {
    let two = Two::start(2, 2).await;
    let clients = two.clients();
    for group in [1, 2] {
        let directory = two.of(group, 0);
        for (number, client) in clients.iter().enumerate() {
            let id = file(client, &format!("{directory}/f{number}")).await;
            assert_eq!(id >> 40, u64::from(group) - 1, "the home has made it");
        }
    }
    for client in &clients {
        for group in [1, 2] {
            let directory = two.of(group, 0);
            assert_eq!(names(client, directory).await, ["f0", "f1", "f2", "f3"]);
            assert!(status(client, &format!("{directory}/f2")).await.is_some());
            assert!(status(client, &format!("{directory}/none")).await.is_none());
            let taken = create(client, &format!("{directory}/f0")).await;
            refused(taken, exception::FILE_ALREADY_EXISTS);
        }
    }
    // Deletes and renames within a home are its own.
    for (group, client) in [(1, &clients[3]), (2, &clients[0])] {
        let (directory, other) = (two.of(group, 0), two.of(group, 1));
        assert!(delete(client, &format!("{directory}/f0"), false).await.unwrap());
        assert!(rename(client, &format!("{directory}/f1"), &format!("{other}/moved")).await.unwrap());
        assert_eq!(names(&clients[1], directory).await, ["f2", "f3"]);
        assert_eq!(names(&clients[2], other).await, ["moved"]);
    }
    // Renames between homes are the root group's.
    for (door, (of, to)) in [(1, 2), (2, 1)].into_iter().enumerate() {
        let client = &clients[3 * door];
        let (from, to) = (two.of(of, 0), two.of(to, 1));
        let before = status(client, &format!("{from}/f2")).await.unwrap();
        assert!(rename(client, &format!("{from}/f2"), to).await.unwrap());
        let after = status(client, &format!("{to}/f2")).await.unwrap();
        assert_eq!(before, after, "it is the same file");
        for client in &clients {
            assert_eq!(names(client, from).await, ["f3"]);
            assert_eq!(names(client, to).await, ["f2", "moved"]);
        }
        assert!(!rename(client, &format!("{from}/f3"), &format!("{to}/moved")).await.unwrap());
        let open = create(client, &format!("{from}/open")).await.unwrap().fs.and_then(|fs| fs.file_id);
        let moved = rename(client, &format!("{from}/open"), &format!("{to}/open")).await;
        let said = refused(moved, exception::UNSUPPORTED_OPERATION);
        assert!(said.contains("is being written"), "{said}");
        assert!(close(client, &format!("{from}/open"), open.unwrap()).await.unwrap());
        assert!(delete(client, &format!("{from}/open"), false).await.unwrap());
    }
    two.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_of_directories_heed_the_files_of_other_homes() {
    let two = Two::start(2, 2).await;
    let clients = two.clients();
    let client = &clients[2];
    for group in [1, 2] {
        let directory = two.of(group, 0);
        file(client, &format!("{directory}/f")).await;
        let said = refused(mkdirs(client, &format!("{directory}/f")).await, exception::FILE_ALREADY_EXISTS);
        assert!(said.contains("Path is not a directory"), "{said}");
        let said =
            refused(mkdirs(client, &format!("{directory}/f/x/y")).await, exception::PARENT_NOT_DIRECTORY);
        assert!(said.contains(&format!("{directory}/f (is not a directory)")), "{said}");
        refused(create(client, &format!("{directory}/f/x/y")).await, exception::PARENT_NOT_DIRECTORY);
        let said = refused(delete(client, directory, false).await, exception::PATH_IS_NOT_EMPTY_DIRECTORY);
        assert!(said.contains("is non empty"), "{said}");
        // A directory is not moved onto a file, nor into one.
        let moved = two.of(3 - group, 1);
        assert!(!rename(client, moved, &format!("{directory}/f")).await.unwrap());
        let over = p::Rename2RequestProto {
            src: moved.into(),
            dst: format!("{directory}/f"),
            overwrite_dest: true,
            move_to_trash: None,
        };
        let answer: Result<p::Rename2ResponseProto, CallError> = call(client, "rename2", &over).await;
        assert!(answer.unwrap_err().to_string().contains("must both be directories"));
        let onto = p::Rename2RequestProto { dst: directory.into(), ..over };
        let answer: Result<p::Rename2ResponseProto, CallError> = call(client, "rename2", &onto).await;
        assert!(answer.unwrap_err().to_string().contains("is not empty"));
        // Nothing is below a file, whoever has it.
        for other in [group, 3 - group] {
            let moved = rename(client, &format!("{directory}/f/x"), &format!("{}/x", two.of(other, 1))).await;
            let said = refused(moved, exception::ACCESS_CONTROL);
            assert!(said.contains(&format!("{directory}/f (is not a directory)")), "{said}");
        }
        // What is free of files is free.
        assert!(mkdirs(client, &format!("{directory}/x/y")).await.unwrap());
        file(client, &format!("{directory}/new/parents/f")).await;
        assert_eq!(names(client, &format!("{directory}/new/parents")).await, ["f"]);
        let (source, target) = (two.of(group, 2), format!("{directory}/moved"));
        file(client, &format!("{source}/g")).await;
        assert!(rename(client, source, &target).await.unwrap());
        for client in &clients {
            assert_eq!(names(client, &target).await, ["g"], "files go with their directory");
            assert_eq!(names(client, directory).await, ["f", "moved", "new", "x"]);
        }
        assert!(delete(client, directory, true).await.unwrap());
        for client in &clients {
            assert!(status(client, &format!("{directory}/f")).await.is_none());
        }
        assert!(mkdirs(client, directory).await.unwrap());
        assert!(names(client, directory).await.is_empty(), "what was below is gone in all groups");
    }
    two.end().await;
}

/// Both groups have the same directories still, and follow each other.
async fn assert_same_directories(two: &Two) {
    let active = two.first.wait_for_active(&[]).await;
    two.first.mkdirs(active, "/the-log-goes-on").await;
    until("both groups have the same directories", async || {
        let digest = |cluster: &Cluster| {
            let active = cluster.active(&[])?;
            Some(cluster.server(active).directories_digest())
        };
        digest(&two.first).is_some() && digest(&two.first) == digest(&two.second)
    })
    .await;
}

/// Of a field that stands twice in a request the last one counts, for the choice of the group as for what is carried out. Else a home would delete a
/// directory, which is the root group's to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_request_with_two_paths_is_for_the_group_of_the_path_that_counts() {
    let two = Two::start(1, 1).await;
    let client = two.second.client(ELEVENTH);
    let directory = two.of(2, 0);
    let below = format!("{directory}/below");
    assert!(mkdirs(&client, &below).await.unwrap());
    let delete = |path: &str| p::DeleteRequestProto { src: path.into(), recursive: true }.encode_to_vec();
    let bytes = [delete(&format!("{directory}/none")), delete(&below)].concat();
    client.call_encoded("delete", &bytes).await.unwrap();
    assert!(status(&client, &below).await.is_none());
    assert_same_directories(&two).await;
    two.end().await;
}

/// Any number but 0 is a yes. Else a home would make the directories above a file, which are the root group's to make.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_request_with_an_odd_yes_makes_directories_in_all_groups() {
    let two = Two::start(1, 1).await;
    let client = two.second.client(ELEVENTH);
    let path = format!("{}/new/f", two.of(2, 0));
    let create = p::CreateRequestProto { create_parent: false, ..create_request(&path, "DFSClient_homes_1") };
    // Field 5, the number 2.
    let bytes = [create.encode_to_vec(), vec![5 << 3, 2]].concat();
    client.call_encoded("create", &bytes).await.unwrap();
    assert!(status(&client, &path).await.is_some());
    assert_same_directories(&two).await;
    two.end().await;
}

/// Whether a user may delete a directory rests on each one below that denies everything: it must be empty, in its home as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_directory_with_thousands_below_that_homes_are_asked_about_is_deleted() {
    const BELOW: usize = 2_300;
    let two = Two::start(1, 1).await;
    let client = two.first.client(1);
    let open = p::FsPermissionProto { perm: 0o777 };
    let request = p::MkdirsRequestProto { masked: open, ..mkdirs_request("/open/top") };
    let _: p::MkdirsResponseProto = call(&client, "mkdirs", &request).await.unwrap();
    let request = p::SetPermissionRequestProto { src: "/open".into(), permission: open };
    let _: p::SetPermissionResponseProto = call(&client, "setPermission", &request).await.unwrap();
    let makers: Vec<_> = (0..10)
        .map(|maker| {
            let client = two.first.client(1);
            tokio::spawn(async move {
                for number in (maker..BELOW).step_by(10) {
                    let closed = p::FsPermissionProto { perm: 0o700 };
                    let path = format!("/open/top/d{number}");
                    let request = p::MkdirsRequestProto { masked: closed, ..mkdirs_request(&path) };
                    let _: p::MkdirsResponseProto = call(&client, "mkdirs", &request).await.unwrap();
                }
            })
        })
        .collect();
    for maker in makers {
        maker.await.unwrap();
    }
    let bob = two.second.client_as(ELEVENTH, protocol::CLIENT_NAMENODE, "bob");
    assert!(delete(&bob, "/open/top", true).await.unwrap());
    two.end().await;
}

/// A client that repeats a change of directories for which homes were asked gets the first answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_repeated_change_of_directories_has_one_effect() {
    let two = Two::start(2, 2).await;
    let name = ClientId(*b"one and the same");
    let doors = [two.first.address(1), two.second.address(ELEVENTH)];
    let path = format!("{}/x", two.of(2, 0));
    let request = mkdirs_request(&path);
    let delete = p::DeleteRequestProto { src: path.clone(), recursive: false };
    let made: p::MkdirsResponseProto =
        client_at(doors[1], name).call_as(numbered(1), "mkdirs", &request).await.unwrap();
    assert!(made.result);
    let gone: p::DeleteResponseProto =
        client_at(doors[0], name).call_as(numbered(2), "delete", &delete).await.unwrap();
    assert!(gone.result);
    for door in doors {
        let again: p::MkdirsResponseProto =
            client_at(door, name).call_as(repeated(1), "mkdirs", &request).await.unwrap();
        let gone: p::DeleteResponseProto =
            client_at(door, name).call_as(repeated(2), "delete", &delete).await.unwrap();
        assert!(again.result && gone.result);
    }
    assert!(status(&two.first.client(1), &path).await.is_none());
    two.end().await;
}

/// The home's active is killed, then the root group's: calls wait, and all that was acknowledged is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn files_outlive_the_actives_of_both_groups() {
    let mut two = Two::start(3, 3).await;
    let directories = [two.of(1, 0).to_owned(), two.of(2, 0).to_owned()];
    let mut made = 0;
    for round in 0..4 {
        let victim = match round % 2 {
            0 => &mut two.second,
            _ => &mut two.first,
        };
        let active = victim.wait_for_active(&[]).await;
        victim.kill(active).await;
        let clients = two.clients();
        for number in 0..6 {
            for directory in &directories {
                let client = &clients[(number + round) % clients.len()];
                file(client, &format!("{directory}/{round}-{number}")).await;
                assert!(mkdirs(client, &format!("{directory}/{round}-{number}-dir")).await.unwrap());
            }
            made += 1;
        }
        let (cluster, from) = match round % 2 {
            0 => (&mut two.second, active),
            _ => (&mut two.first, active),
        };
        cluster.restart(from).await;
        let active = cluster.wait_for_active(&[]).await;
        cluster.wait_in_sync(active, 3).await;
    }
    for client in two.clients() {
        for directory in &directories {
            assert_eq!(names(&client, directory).await.len(), 2 * made);
        }
    }
    two.first.wait_until_equal().await;
    two.second.wait_until_equal().await;
    until("both groups have the same directories", async || {
        let digest = |cluster: &Cluster| {
            let active = cluster.active(&[])?;
            Some(cluster.server(active).directories_digest())
        };
        digest(&two.first).is_some() && digest(&two.first) == digest(&two.second)
    })
    .await;
    two.end().await;
}

/// A data server has both groups' pools. Files with blocks are written, read, appended to and deleted by a client that knows of one nameservice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn files_with_blocks_are_in_the_pool_of_their_home() {
    let two = Two::start(2, 2).await;
    let directory = tempfile::tempdir().unwrap();
    let volume: VolumeConfig = directory.path().to_str().unwrap().parse().unwrap();
    let addresses = [&two.first, &two.second]
        .into_iter()
        .flat_map(|cluster| cluster.running().into_iter().map(|member| cluster.address(member).to_string()));
    let config =
        DataConfig { heartbeat_interval_ms: 100, ..DataConfig::new(vec![volume], addresses.collect()) };
    let server = DataServer::start(Env::production(), config).await.unwrap();
    until("both groups know the data server", async || {
        page(server.http_addr(), "/health").await.unwrap().contains("\"metadata_servers\":\"4 of 4\"")
    })
    .await;
    for group in [1, 2] {
        let open = p::SetPermissionRequestProto {
            src: two.of(group, 0).into(),
            permission: p::FsPermissionProto { perm: 0o777 },
        };
        let _: p::SetPermissionResponseProto =
            two.first.client(1).call("setPermission", &open).await.unwrap();
    }
    let doors =
        [two.first.address(1), two.first.address(2), two.second.address(ELEVENTH), two.second.address(12)];
    for (number, door) in doors.into_iter().enumerate() {
        let fs = FileSystem::connect(&format!("hdfs://{door}"), &Config::new()).unwrap();
        for group in [1, 2] {
            let path = format!("{}/f{number}", two.of(group, 0));
            let bytes: Vec<u8> = (0..300_000).map(|at| (at / 7 + number + group as usize) as u8).collect();
            let options =
                CreateOptions { replication: Some(1), block_size: Some(1 << 20), ..CreateOptions::default() };
            let mut writer = fs.create(&path, &options).await.unwrap();
            writer.write(&bytes).await.unwrap();
            writer.close().await.unwrap();
            let mut writer = fs.append(&path, false).await.unwrap();
            writer.write(b"and more").await.unwrap();
            writer.close().await.unwrap();
            let read = fs.open(&path).await.unwrap().read_at(0, usize::MAX).await.unwrap();
            assert!(read == [&bytes[..], b"and more"].concat());
            let block = fs.block_locations(&path, 0, 1).await.unwrap().blocks.remove(0).b;
            let home = if group == 1 { &two.first } else { &two.second };
            assert_eq!(block.pool_id, &*home.server(home.running()[0]).cluster().block_pool);
        }
        let (from, to) = (format!("{}/f{number}", two.of(2, 0)), format!("{}/g{number}", two.of(2, 0)));
        fs.rename(&from, &to, false).await.unwrap();
        assert!(fs.delete(&to, false).await.unwrap());
        assert_eq!(fs.open(&format!("{}/f{number}", two.of(1, 0))).await.unwrap().length(), 300_008);
    }
    until("the deleted files' replicas are gone", async || server.state().replica_count() == doors.len())
        .await;
    server.shutdown().await;
    two.end().await;
}

/// Clients that make, remove and rename files in both homes and between them, and directories beside them, while the actives of both groups are killed and started, one
/// after the other and both at once. What was acknowledged is there, once, by every door; what was removed is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn clients_go_on_while_actives_of_both_groups_are_killed() {
    let mut two = Two::start(3, 3).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let progress: [Arc<AtomicUsize>; 4] = Default::default();
    let mut writers = Vec::new();
    for (number, group) in [1, 2, 1, 2].into_iter().enumerate() {
        let (first, second) = (two.first.addresses(), two.second.addresses());
        let (base, is_over) = (two.of(group, number / 2).to_owned(), is_over.clone());
        let other_base = two.of(3 - group, 2).to_owned();
        let made = progress[number].clone();
        writers.push(tokio::spawn(async move {
            let door = move |at: usize| {
                let mut doors: Vec<_> = first.lock().unwrap().values().copied().collect();
                doors.extend(second.lock().unwrap().values().copied());
                doors[at % doors.len()]
            };
            work_in([&base, &other_base], number, door, &is_over, &made).await
        }));
    }
    let has_enough = || progress.iter().all(|made| made.load(Ordering::Acquire) >= ENOUGH);
    let mut round = 0;
    // A busy machine needs more rounds.
    while round < 6 || (round < 30 && !has_enough()) {
        let victims = [vec![1], vec![2], vec![1, 2]][round % 3].clone();
        let mut killed = Vec::new();
        for group in victims {
            let cluster = if group == 1 { &mut two.first } else { &mut two.second };
            let active = cluster.wait_for_active(&[]).await;
            cluster.kill(active).await;
            killed.push((group, active));
        }
        tokio::time::sleep(Duration::from_millis(700)).await;
        for (group, member) in killed {
            let cluster = if group == 1 { &mut two.first } else { &mut two.second };
            cluster.restart(member).await;
            let active = cluster.wait_for_active(&[]).await;
            cluster.wait_in_sync(active, 3).await;
        }
        round += 1;
    }
    is_over.store(true, Ordering::Release);
    let mut expected: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for writer in writers {
        for (base, names) in writer.await.unwrap() {
            assert!(names.len() >= ENOUGH, "{base}: only {} were acknowledged", names.len());
            expected.entry(base).or_default().extend(names);
        }
    }
    for client in two.clients() {
        for (base, expected) in &expected {
            let seen: Vec<String> = all_names(&client, base).await;
            let once: BTreeSet<String> = seen.iter().cloned().collect();
            assert_eq!(once.len(), seen.len(), "a name is there twice in {base}");
            assert_eq!(&once, expected, "in {base}");
        }
    }
    two.first.wait_until_equal().await;
    two.second.wait_until_equal().await;
    two.end().await;
}

/// The names that each writer has to have made in each of its directories, so that the story tells something.
const ENOUGH: usize = 6;

/// Works in a directory until it is over, and moves files to another one, which has another home. `made`: the names so far, in the directory with fewer. Each call goes to another door, and is repeated under its
/// name until it is answered. Returns the names that have to be there in the two directories.
async fn work_in(
    [base, other_base]: [&str; 2],
    number: usize,
    door: impl Fn(usize) -> SocketAddr,
    is_over: &AtomicBool,
    made: &AtomicUsize,
) -> [(String, BTreeSet<String>); 2] {
    let name = ClientId([number as u8 + 1; 16]);
    let mut at = number;
    let mut calls = 0;
    let mut names = BTreeSet::new();
    let mut names_elsewhere = BTreeSet::new();
    let mut round = 0;
    while !is_over.load(Ordering::Acquire) {
        made.store(names.len().min(names_elsewhere.len()), Ordering::Release);
        round += 1;
        let (file, other) = (format!("w{number}-{round}"), format!("w{number}-{round}-moved"));
        let (path, moved) = (format!("{base}/{file}"), format!("{base}/{other}"));
        let made: p::CreateResponseProto = answered(
            &door,
            &mut at,
            name,
            &mut calls,
            "create",
            &create_request(&path, &format!("DFSClient_{number}")),
        )
        .await;
        assert!(made.fs.is_some());
        names.insert(file.clone());
        match round % 4 {
            0 => {
                let request = p::DeleteRequestProto { src: path, recursive: false };
                let gone: p::DeleteResponseProto =
                    answered(&door, &mut at, name, &mut calls, "delete", &request).await;
                assert!(gone.result, "it was there");
                names.remove(&file);
            }
            1 => {
                let request = p::RenameRequestProto { src: path, dst: moved };
                let done: p::RenameResponseProto =
                    answered(&door, &mut at, name, &mut calls, "rename", &request).await;
                assert!(done.result, "nothing was in the way");
                names.remove(&file);
                names.insert(other);
            }
            2 => {
                let request = p::CompleteRequestProto {
                    src: path.clone(),
                    client_name: format!("DFSClient_{number}"),
                    last: None,
                    file_id: made.fs.and_then(|fs| fs.file_id),
                };
                let done: p::CompleteResponseProto =
                    answered(&door, &mut at, name, &mut calls, "complete", &request).await;
                assert!(done.result);
                let request = p::RenameRequestProto { src: path, dst: format!("{other_base}/{other}") };
                let done: p::RenameResponseProto =
                    answered(&door, &mut at, name, &mut calls, "rename", &request).await;
                assert!(done.result, "nothing was in the way");
                names.remove(&file);
                if round % 8 == 2 {
                    names_elsewhere.insert(other);
                    continue;
                }
                let request = p::DeleteRequestProto { src: request.dst, recursive: false };
                let gone: p::DeleteResponseProto =
                    answered(&door, &mut at, name, &mut calls, "delete", &request).await;
                assert!(gone.result, "it was there");
            }
            _ => {
                let request = mkdirs_request(&format!("{path}-dir"));
                let made: p::MkdirsResponseProto =
                    answered(&door, &mut at, name, &mut calls, "mkdirs", &request).await;
                assert!(made.result);
                names.insert(format!("{file}-dir"));
            }
        }
    }
    [(base.to_owned(), names), (other_base.to_owned(), names_elsewhere)]
}

/// An answer that is no refusal.
async fn answered<Q: prost::Message, A: prost::Message + Default + prost::Name>(
    door: &impl Fn(usize) -> SocketAddr,
    at: &mut usize,
    name: ClientId,
    calls: &mut i32,
    method: &'static str,
    request: &Q,
) -> A {
    *calls += 1;
    let answer = insist(door, at, name, *calls, method, request).await;
    answer.unwrap_or_else(|error| panic!("{method}: {error}"))
}

async fn all_names(client: &Client, path: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    loop {
        let start_after = names.last().cloned().unwrap_or_default().into();
        let request = p::GetListingRequestProto { src: path.into(), start_after, need_location: false };
        let answer: p::GetListingResponseProto = client.call("getListing", &request).await.unwrap();
        let listing = answer.dir_list.expect("the directory is there");
        let name = |status: p::HdfsFileStatusProto| String::from_utf8(status.path.to_vec()).unwrap();
        names.extend(listing.partial_listing.into_iter().map(name));
        if listing.remaining_entries == 0 {
            return names;
        }
    }
}

/// A listing of directories with other homes: whatever door is asked, it tells their times and numbers of children as a status of each does.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_listing_tells_of_directories_what_their_homes_know() {
    let two = Two::start(2, 2).await;
    let clients = two.clients();
    for (number, group) in [1, 2, 2].into_iter().enumerate() {
        let path = format!("{}/f{number}", two.of(group, 0));
        let file = create(&clients[0], &path).await.unwrap().fs.unwrap().file_id.unwrap();
        assert!(close(&clients[1], &path, file).await.unwrap());
    }
    for client in &clients {
        for listed in listing(client, "/").await {
            let path = format!("/{}", String::from_utf8_lossy(&listed.path));
            let alone = status(client, &path).await.unwrap();
            let facts = |status: &p::HdfsFileStatusProto| (status.modification_time, status.children_num);
            assert_eq!(facts(&listed), facts(&alone), "{path}");
        }
        let counted = status(client, two.of(2, 0)).await.unwrap().children_num;
        assert_eq!(counted, Some(2));
    }
    two.end().await;
}

/// Files that are being written in both groups are in one list, in the order of their ids, by whichever door.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn open_files_of_all_groups_are_in_one_list() {
    let two = Two::start(2, 2).await;
    let clients = two.clients();
    let mut written = BTreeSet::new();
    for group in [1, 2] {
        for (number, client) in clients.iter().enumerate() {
            let path = format!("{}/open-{number}", two.of(group, 0));
            let file = create(client, &path).await.unwrap().fs.unwrap().file_id.unwrap();
            written.insert((file as i64, path));
        }
    }
    for cluster in [&two.first, &two.second] {
        for member in cluster.running() {
            let client = cluster.client_as(member, proto::protocol::CLIENT_NAMENODE, cluster::SUPERUSER);
            let request = p::ListOpenFilesRequestProto { id: 0, types: Vec::new(), path: Some("/".into()) };
            let answer: p::ListOpenFilesResponseProto = client.call("listOpenFiles", &request).await.unwrap();
            let told: Vec<(i64, String)> =
                answer.entries.into_iter().map(|entry| (entry.id, entry.path)).collect();
            assert_eq!(told, written.iter().cloned().collect::<Vec<_>>());
            assert!(!answer.has_more);
        }
    }
    two.end().await;
}

/// A path that leads through a file, named by its id: the group that has the file refuses it, and no group passes it on for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_path_through_a_file_by_its_id_is_refused_by_the_group_that_has_the_file() {
    let two = Two::start(1, 1).await;
    for group in [1, 2] {
        for (number, client) in two.clients().iter().enumerate() {
            let id = file(client, &format!("{}/f{number}", two.of(group, 0))).await;
            let through = create(client, &format!("/.reserved/.inodes/{id}/below/it")).await;
            refused(through, exception::PARENT_NOT_DIRECTORY);
        }
    }
    two.end().await;
}
