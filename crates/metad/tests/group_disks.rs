//! The disks of members that fail, one alone and all of them at once.

#[allow(dead_code, reason = "other stories need more of it")]
mod cluster;

use cluster::Cluster;
use journal::{Accepted, FailedStore};
use metad::{Ended, MetaConfig};
use proto::clover::admin::{GetGroupRequestProto, GetGroupResponseProto, RoleProto};
use std::time::Duration;

fn store(cluster: &Cluster, member: u32) -> std::path::PathBuf {
    cluster.name_directory(member).join("group-1")
}

/// What was put aside in the store of this member.
fn aside(cluster: &Cluster, member: u32) -> Vec<String> {
    let names = std::fs::read_dir(store(cluster, member)).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("set-aside")).collect()
}

async fn wait_until_failed(cluster: &Cluster, member: u32) {
    let ended = tokio::time::timeout(Duration::from_secs(30), cluster.server(member).ended()).await;
    let ended = ended.expect("a member whose disk has failed ends");
    assert!(matches!(&ended, Ended::Failed(reason) if reason.contains("the array is gone")), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn when_the_disks_of_all_members_fail_together_nobody_gives_up_what_it_has() {
    let mut cluster = Cluster::start(3).await;
    let first = cluster.wait_for_active(&[]).await;
    cluster.wait_in_sync(first, 3).await;
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
    for member in 1..=3 {
        cluster.kill(member).await;
    }
    (1..=3).for_each(|member| cluster.disk_of(member).set_failing(false));

    // The machines start their servers again, as they do by themselves.
    for _ in 0..2 {
        for member in 1..=3 {
            let refused = cluster.try_restart(member).await.expect_err("a person has to look at this first");
            assert!(refused.to_string().contains("clover meta accept-disk"), "{refused}");
            assert_eq!(aside(&cluster, member), [""; 0], "member {member}");
        }
    }

    // The operator takes the longest log as it is, and the others follow it.
    // Of several the one that led: it need not ask whether the active is gone.
    let ends: Vec<_> = (1..=3).map(|member| (end(&cluster, member), member == first, member)).collect();
    let (_, _, longest) = *ends.iter().max().unwrap();
    // Its process is up meanwhile, and says so.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = MetaConfig { rpc_address: address, ..cluster.config(longest) };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (started, mut is_started) = tokio::sync::mpsc::unbounded_channel();
    let env = cluster.env_of(longest);
    let process = tokio::spawn(async move {
        let stopped = async { drop(stopped.await) };
        metad::run(env, config, stopped, |_| started.send(()).unwrap()).await
    });
    let said = wait_for_word(&address.to_string()).await;
    let own = said.members.iter().find(|member| member.member == longest).unwrap();
    assert!(own.disk_failed() && own.role() == RoleProto::Stopped, "{own:?}");
    assert_eq!(own.end.map(|end| end.sn), Some(end(&cluster, longest).sn.0));
    assert!(own.reason().contains("the array is gone") && said.silent.len() == 2, "{said:?}");
    assert!(is_started.try_recv().is_err());

    let accepted = journal::accept_fault(&cluster.env_of(longest), &store(&cluster, longest)).unwrap();
    is_started.recv().await.expect("it goes on by itself");
    stop.send(()).unwrap();
    process.await.unwrap().unwrap();
    assert!(
        matches!(&accepted, Accepted::TakenBack(taken) if taken.end.id.sn >= taken.durable),
        "{accepted:?}"
    );
    cluster.restart(longest).await;
    // Alone it answers nothing, and the others can tell all the same that it leads.
    while !matches!(cluster.server(longest).replica().standing().role, group::Role::Starting { .. }) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for member in (1..=3).filter(|member| *member != longest) {
        cluster.restart(member).await;
    }
    let active = cluster.wait_for_active(&[]).await;
    cluster.wait_in_sync(active, 3).await;
    let mut names = cluster.names(active, "/kept").await;
    names.sort_by_key(|name| name.parse::<u32>().unwrap());
    assert_eq!(names, (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
    for member in 1..=3 {
        assert_eq!(aside(&cluster, member), [""; 0], "nobody had to be renewed");
    }
    cluster.mkdirs(active, "/after").await;
    cluster.wait_until_equal().await;
    cluster.end().await;
}

/// What a server answers an operator, as soon as it does.
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

/// Where the log of a member whose disk has failed ends on the medium.
fn end(cluster: &Cluster, member: u32) -> base::TxId {
    let failed = FailedStore::open(&cluster.env_of(member), &store(cluster, member)).unwrap();
    failed.expect("its disk has failed").end().unwrap().id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_member_whose_disk_has_failed_goes_on_with_what_it_has_under_another_that_serves() {
    let mut cluster = Cluster::start(3).await;
    let first = cluster.wait_for_active(&[]).await;
    cluster.wait_in_sync(first, 3).await;
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
    assert_eq!(aside(&cluster, first), [""; 0], "it was not renewed: it had nearly everything");
    let suspect =
        journal::survey::survey(&*cluster.env_of(first).disk, &store(&cluster, first)).unwrap().state;
    assert_eq!(suspect.generation, 0);
    assert!(!suspect.is_suspect, "an active has vouched for its log meanwhile");
    cluster.end().await;
}

/// The sealed or open segments of a member's log.
fn segments(cluster: &Cluster, member: u32) -> Vec<std::path::PathBuf> {
    let log = std::fs::read_dir(store(cluster, member).join("log")).unwrap();
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
    let mut cluster = Cluster::start(3).await;
    let first = cluster.wait_for_active(&[]).await;
    cluster.wait_in_sync(first, 3).await;
    cluster.mkdirs(first, "/kept").await;
    cluster.wait_until_equal().await;
    for member in 1..=3 {
        cluster.kill(member).await;
    }
    (1..=3).for_each(|member| write_version(&cluster, member, 2));
    for _ in 0..2 {
        for member in 1..=3 {
            let refused = cluster.try_restart(member).await.expect_err("the format is unknown");
            let text = error_chain(&refused);
            assert!(text.contains("has version 2, and 1 is known") && text.contains("/log/"), "{text}");
            assert_eq!(aside(&cluster, member), [""; 0], "member {member}");
        }
    }
    (1..=3).for_each(|member| write_version(&cluster, member, 1));
    for member in 1..=3 {
        cluster.restart(member).await;
    }
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
