//! The disks of members that fail, one alone and all of them at once.

mod cluster;

use cluster::{Cluster, Process, free_address, until};
use journal::{Accepted, FailedStore};
use metad::{Ended, MetaConfig};
use proto::clover::admin::{GetGroupRequestProto, GetGroupResponseProto, RoleProto};
use std::time::Duration;

async fn wait_until_failed(cluster: &Cluster, member: u32) {
    let ended = tokio::time::timeout(Duration::from_secs(30), cluster.server(member).ended()).await;
    let ended = ended.expect("a member whose disk has failed ends");
    assert!(matches!(&ended, Ended::Failed(reason) if reason.contains("the array is gone")), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn when_the_disks_of_all_members_fail_together_nobody_gives_up_what_it_has() {
    let (mut cluster, first) = Cluster::in_sync(3).await;
    for number in 0..20 {
        cluster.mkdirs(first, &format!("/kept/{number}")).await;
    }
    cluster.wait_until_equal().await;
    (1..=3).for_each(|member| cluster.disk_of(member).set_failing(true));
    let refused = cluster::try_mkdirs(&cluster.client(first), "/lost").await;
    assert!(refused.is_err(), "{refused:?}");
    for member in 1..=3 {
        wait_until_failed(&cluster, member).await;
    }
    cluster.kill_all().await;
    (1..=3).for_each(|member| cluster.disk_of(member).set_failing(false));

    // The machines start their servers again, as they do by themselves.
    for _ in 0..2 {
        for member in 1..=3 {
            let refused = cluster.try_restart(member).await.expect_err("a person has to look at this first");
            assert!(refused.to_string().contains("clover meta accept-disk"), "{refused}");
            assert_eq!(cluster.set_aside(member), [""; 0], "member {member}");
        }
    }

    // The operator takes the longest log as it is, and the others follow it.
    // Of several the one that led: it need not ask whether the active is gone.
    let ends: Vec<_> = (1..=3).map(|member| (end(&cluster, member), member == first, member)).collect();
    let (_, _, longest) = *ends.iter().max().unwrap();
    // Its process is up meanwhile, and says so.
    let address = free_address();
    let config = MetaConfig { rpc_address: address, ..cluster.config(longest) };
    let process = Process::begin(cluster.env_of(longest), config);
    let said = wait_for_word(&address.to_string()).await;
    let own = said.members.iter().find(|member| member.member == longest).unwrap();
    assert!(own.disk_failed() && own.role() == RoleProto::Stopped, "{own:?}");
    assert_eq!(own.end.map(|end| end.sn), Some(end(&cluster, longest).sn.0));
    assert!(own.reason().contains("the array is gone") && said.silent.len() == 2, "{said:?}");
    assert_eq!(process.starts(), 0);

    let accepted = journal::accept_fault(&cluster.env_of(longest), &cluster.store(longest)).unwrap();
    // It goes on by itself.
    process.wait_for_start(1).await;
    process.stop().await;
    assert!(
        matches!(&accepted, Accepted::TakenBack(taken) if taken.end.id.sn >= taken.durable),
        "{accepted:?}"
    );
    cluster.restart(longest).await;
    // Alone it answers nothing, and the others can tell all the same that it leads.
    let role = || cluster.replica(longest).standing().role;
    until("it waits for another", async || matches!(role(), group::Role::Starting { .. })).await;
    for member in cluster.others(longest) {
        cluster.restart(member).await;
    }
    let active = cluster.wait_until_in_sync().await;
    let mut names = cluster.names(active, "/kept").await;
    names.sort_by_key(|name| name.parse::<u32>().unwrap());
    assert_eq!(names, (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
    for member in 1..=3 {
        assert_eq!(cluster.set_aside(member), [""; 0], "nobody had to be renewed");
    }
    cluster.mkdirs(active, "/after").await;
    cluster.wait_until_equal().await;
    cluster.end().await;
}

/// The answer of a server to an operator's question about its group, as soon as it answers at all.
async fn wait_for_word(address: &str) -> GetGroupResponseProto {
    for _ in 0..200 {
        let client =
            rpc::Client::connect(address, proto::protocol::ADMIN, "alice", rpc::ClientOptions::default());
        match client.call("getGroup", &GetGroupRequestProto { is_local: None }).await {
            Ok(answer) => return answer,
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
    panic!("{address} says nothing")
}

/// The last entry on the medium of a member whose disk has failed.
fn end(cluster: &Cluster, member: u32) -> base::TxId {
    let failed = FailedStore::open(&cluster.env_of(member), &cluster.store(member)).unwrap();
    failed.expect("its disk has failed").end().unwrap().id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_member_whose_disk_has_failed_goes_on_with_what_it_has_under_another_that_serves() {
    let (mut cluster, first) = Cluster::in_sync(3).await;
    cluster.mkdirs(first, "/kept").await;
    cluster.wait_until_equal().await;
    let failing = cluster.disk_of(first);
    failing.set_failing(true);
    let refused = cluster::try_mkdirs(&cluster.client(first), "/first").await;
    println!("{refused:?}");
    wait_until_failed(&cluster, first).await;
    cluster.kill(first).await;
    failing.set_failing(false);
    let second = cluster.wait_for_active(&[first]).await;
    cluster.mkdirs(second, "/second").await;

    cluster.restart(first).await;
    cluster.wait_in_sync(second, 3).await;
    cluster.wait_until_equal().await;
    assert_eq!(cluster.set_aside(first), [""; 0], "it was not renewed: it had nearly everything");
    let state =
        || journal::survey::survey(&*cluster.env_of(first).disk, &cluster.store(first)).unwrap().state;
    // The member is in sync as soon as it is told; that is written to its disk a moment later.
    cluster::until("an active has vouched for its log", async || !state().is_suspect).await;
    assert_eq!(state().generation, 0);
    cluster.end().await;
}

/// The sealed or open segments of a member's log.
fn segments(cluster: &Cluster, member: u32) -> Vec<std::path::PathBuf> {
    let log = std::fs::read_dir(cluster.store(member).join("log")).unwrap();
    log.map(|entry| entry.unwrap().path()).filter(|path| path.to_str().unwrap().contains("-0000")).collect()
}

/// Writes this version into the headers of all segments of a member.
fn write_version(cluster: &Cluster, member: u32, version: u32) {
    for path in segments(cluster, member) {
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[12..16].copy_from_slice(&version.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[12..4096]);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        std::fs::write(path, bytes).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_program_that_does_not_know_the_format_starts_nowhere_and_gives_nothing_up() {
    let (mut cluster, first) = Cluster::in_sync(3).await;
    cluster.mkdirs(first, "/kept").await;
    cluster.wait_until_equal().await;
    cluster.kill_all().await;
    (1..=3).for_each(|member| write_version(&cluster, member, 2));
    for _ in 0..2 {
        for member in 1..=3 {
            let refused = cluster.try_restart(member).await.expect_err("the format is unknown");
            let text = error_chain(&refused);
            assert!(text.contains("has version 2, and 1 is known") && text.contains("/log/"), "{text}");
            assert_eq!(cluster.set_aside(member), [""; 0], "member {member}");
        }
    }
    (1..=3).for_each(|member| write_version(&cluster, member, 1));
    cluster.restart_all().await;
    let active = cluster.wait_for_active(&[]).await;
    assert_eq!(cluster.names(active, "/").await, ["kept"]);
    cluster.end().await;
}

fn error_chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", error_chain(source)),
        None => error.to_string(),
    }
}
