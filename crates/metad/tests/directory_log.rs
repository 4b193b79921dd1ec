//! Two groups hold one tree of directories: the root group orders every change of them, and the other one follows.

mod cluster;

use base::GroupId;
use bytes::Bytes;
use cluster::{
    Cluster, Plan,
    files::{HOLDER, create_request},
    until,
};
use group::Order;
use proto::{
    clover::{
        admin as a,
        forward::{DirectoryLogRequestProto, DirectoryLogResponseProto},
    },
    hdfs as p, protocol,
};
use rpc::CallError;
use std::collections::BTreeSet;

const SECOND: GroupId = GroupId(2);
const ELEVENTH: u32 = 11;

/// The root group with two members, and another one with so many; and their actives.
async fn two_groups(count: u32) -> (Cluster, u32, Cluster, u32) {
    let (first, active) = Cluster::in_sync(2).await;
    first.mkdirs(active, "/before/below").await;
    let plan = Plan::further_group(&first, SECOND, ELEVENTH, count).await;
    let (second, active_of_second) = plan.in_sync().await;
    (first, active, second, active_of_second)
}

/// A member's account of the directory log.
async fn log_of(cluster: &Cluster, member: u32) -> a::GetDirectoryLogResponseProto {
    let client = cluster.client_as(member, protocol::ADMIN, "anybody");
    client.call("getDirectoryLog", &a::GetDirectoryLogRequestProto {}).await.unwrap()
}

/// The other group has a session with the root group's active, and a lease.
async fn wait_for_session(first: &Cluster) {
    until("the other group has a session", async || {
        let active = first.wait_for_active(&[]).await;
        let log = log_of(first, active).await;
        log.groups.iter().any(|group| group.group == 2 && group.has_session && group.is_leased)
    })
    .await;
}

/// All members of both groups come to the same directories.
async fn wait_until_same(first: &Cluster, second: &Cluster) {
    first.wait_until_equal().await;
    until("both groups have the same directories", async || {
        let digests = |cluster: &Cluster| -> BTreeSet<_> {
            cluster.running().into_iter().map(|member| cluster.server(member).directories_digest()).collect()
        };
        let all: BTreeSet<_> = digests(first).into_iter().chain(digests(second)).collect();
        all.len() == 1
    })
    .await;
}

async fn rename(cluster: &Cluster, member: u32, from: &str, to: &str) {
    let request = p::RenameRequestProto { src: from.into(), dst: to.into() };
    let renamed: p::RenameResponseProto = cluster.client(member).call("rename", &request).await.unwrap();
    assert!(renamed.result);
}

async fn delete(cluster: &Cluster, member: u32, path: &str) {
    let request = p::DeleteRequestProto { src: path.into(), recursive: true };
    let deleted: p::DeleteResponseProto = cluster.client(member).call("delete", &request).await.unwrap();
    assert!(deleted.result);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_group_begins_with_the_directories_that_are_there_and_follows_every_change() {
    let (first, active, mut second, _) = two_groups(2).await;
    wait_for_session(&first).await;
    wait_until_same(&first, &second).await;

    first.mkdirs(active, "/a/b/c").await;
    first.mkdirs(active, "/before/beside").await;
    rename(&first, active, "/a/b", "/before/b").await;
    delete(&first, active, "/before/below").await;
    let request = p::SetPermissionRequestProto {
        src: "/before/b".into(),
        permission: p::FsPermissionProto { perm: 0o700 },
    };
    let _: p::SetPermissionResponseProto =
        first.client(active).call("setPermission", &request).await.unwrap();
    let said = log_of(&first, active).await;
    assert_eq!((said.end, said.visible), (6, 6), "the group itself, and each change: {said:?}");
    wait_until_same(&first, &second).await;

    // Nothing of it is lost when the group's servers begin again, from their own logs.
    second.kill_all().await;
    for member in second.members().collect::<Vec<_>>() {
        second.restart(member).await;
    }
    second.wait_until_in_sync().await;
    wait_until_same(&first, &second).await;
    first.mkdirs(active, "/a/later").await;
    wait_until_same(&first, &second).await;
    second.end().await;
    first.end().await;
}

/// The file is its group's own. The directories that are made for it are everybody's.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn directories_that_are_made_for_a_file_are_followed_and_the_file_is_not() {
    let (first, active, second, _) = two_groups(2).await;
    wait_for_session(&first).await;
    let create = create_request("/new/parents/file", HOLDER);
    let created: p::CreateResponseProto = first.client(active).call("create", &create).await.unwrap();
    assert!(created.fs.is_some());
    assert_eq!(first.names(active, "/new/parents").await, ["file"]);
    wait_until_same(&first, &second).await;
    second.end().await;
    first.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn quotas_and_snapshots_come_to_the_other_group() {
    let (first, active, second, _) = two_groups(1).await;
    let client = first.client(active);
    let quota = p::SetQuotaRequestProto {
        path: "/before".into(),
        namespace_quota: 10,
        storagespace_quota: u64::MAX >> 1,
        storage_type: None,
    };
    let _: p::SetQuotaResponseProto = client.call("setQuota", &quota).await.unwrap();
    let allow = p::AllowSnapshotRequestProto { snapshot_root: "/before".into() };
    let _: p::AllowSnapshotResponseProto = client.call("allowSnapshot", &allow).await.unwrap();
    let take =
        p::CreateSnapshotRequestProto { snapshot_root: "/before".into(), snapshot_name: Some("one".into()) };
    let _: p::CreateSnapshotResponseProto = client.call("createSnapshot", &take).await.unwrap();
    wait_until_same(&first, &second).await;
    second.end().await;
    first.end().await;
}

/// While clients make directories, the active of either group is lost, in turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn takeovers_of_either_group_lose_no_change_and_part_no_trees() {
    let (first, active) = Cluster::in_sync(3).await;
    let plan = Plan::further_group(&first, SECOND, ELEVENTH, 3).await;
    let (mut second, mut of_second) = plan.in_sync().await;
    let (mut first, mut of_first) = (first, active);
    wait_for_session(&first).await;
    let writers: Vec<_> = (1..=2).map(|writer| first.write_until_told(writer)).collect();
    for round in 0..3 {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        second.kill(of_second).await;
        let next = second.wait_for_active(&[of_second]).await;
        second.restart(of_second).await;
        second.tend_until("three are in sync", |cluster| cluster.is_in_sync(3)).await;
        of_second = next;

        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        first.kill(of_first).await;
        let next = first.wait_for_active(&[of_first]).await;
        first.restart(of_first).await;
        first.tend_until("three are in sync", |cluster| cluster.is_in_sync(3)).await;
        of_first = next;
        assert!(log_of(&first, of_first).await.leads, "round {round}");
    }
    // By order, the member that led lives on, with a lease of its own that is not over.
    for _ in 0..3 {
        first.say(of_first, Order::HandOver { to: None }).await.unwrap();
        of_first = first.wait_for_active(&[of_first]).await;
        first.tend_until("three are in sync", |cluster| cluster.is_in_sync(3)).await;
        second.say(of_second, Order::HandOver { to: None }).await.unwrap();
        of_second = second.wait_for_active(&[of_second]).await;
        second.tend_until("three are in sync", |cluster| cluster.is_in_sync(3)).await;
    }
    first.say_stop();
    let mut count = 0;
    for writer in writers {
        let made = writer.await.unwrap();
        count += made.len();
        for path in made {
            assert!(cluster::exists(&first.client(of_first), &path).await.unwrap(), "{path} is gone");
        }
    }
    assert!(count > 50, "{count} directories were made");
    wait_for_session(&first).await;
    wait_until_same(&first, &second).await;
    let log = log_of(&first, of_first).await;
    assert_eq!(log.end, log.visible);
    second.end().await;
    first.end().await;
}

/// A change waits for a group that may be serving, until its lease is over, and no longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_group_that_is_away_holds_changes_up_for_as_long_as_its_lease_and_catches_up() {
    let (first, active, mut second, of_second) = two_groups(1).await;
    wait_for_session(&first).await;
    second.kill(of_second).await;
    for number in 0..300 {
        first.mkdirs(active, &format!("/while-away/{number}")).await;
    }
    let log = log_of(&first, active).await;
    assert_eq!(log.end, log.visible, "nobody waits for it");
    assert!(log.groups.iter().all(|group| !group.is_leased && !group.has_session), "{log:?}");
    assert!(log.kept.unwrap() >= 300, "the entries are kept for it: {log:?}");

    // The root group's own servers begin again meanwhile: what the other group lacks is still there.
    let mut first = first;
    first.kill_all().await;
    for member in first.members().collect::<Vec<_>>() {
        first.restart(member).await;
    }
    let active = first.wait_until_in_sync().await;
    second.restart(of_second).await;
    wait_for_session(&first).await;
    wait_until_same(&first, &second).await;
    // Once it has told that it has carried them out, the next changes say so in the log, and the entries go.
    until("entries are dropped that nobody needs", async || {
        first.mkdirs(active, "/more").await;
        rename(&first, active, "/more", "/more-of-it").await;
        delete(&first, active, "/more-of-it").await;
        log_of(&first, active).await.kept.unwrap() < 300
    })
    .await;
    second.end().await;
    first.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn messages_that_no_member_has_proved_are_refused() {
    let (first, active, second, of_second) = two_groups(1).await;
    wait_for_session(&first).await;
    let request = |scope: &str, group| DirectoryLogRequestProto {
        scope: scope.to_owned(),
        group,
        member: 11,
        messages: vec![Bytes::from_static(b"\x01\x02")],
        mac: Bytes::from_static(&[7; 32]),
    };
    let cluster_id = first.group(active).await.cluster_id;
    for (cluster, member, scope) in
        [(&first, active, cluster_id.clone()), (&second, of_second, format!("{cluster_id}/group-2"))]
    {
        let stranger = cluster.client_as(member, protocol::FORWARD, "mallory");
        let answer: Result<DirectoryLogResponseProto, CallError> =
            stranger.call("directoryLog", &request(&scope, 2)).await;
        let said = answer.unwrap_err().to_string();
        assert!(said.contains("not from a member of this cluster"), "{said}");
    }
    first.mkdirs(active, "/goes-on").await;
    wait_until_same(&first, &second).await;
    second.end().await;
    first.end().await;
}
