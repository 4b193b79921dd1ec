//! A server whose retry cache has forgotten a call, and its journal.

use super::Older;
use crate::{GroupConfig, MetaConfig, MetaServer, partition::turn::Turn, run};
use base::{CallId, CallOrigin, ClientId, FsError};
use env::Env;
use namespace::{AccessPolicy, Edit, Limits, Origin, Planned, RETRY_WINDOW_MS, Reply, RetryLookup, ops};
use proto::hdfs as p;
use rpc::{CallIdentity, Client, ClientOptions};
use std::{path::Path, sync::mpsc, time::Duration};

const CLIENT: ClientId = ClientId(*b"a patient client");
/// The number of other calls: more than the retry cache holds.
const OTHERS: i32 = (1 << 20) + (1 << 17);
/// The number of calls that are made in one turn, which stays short even in a build without optimisation.
const OTHERS_AT_ONCE: i32 = 256;
/// Turns that wait for the disk.
const UNDER_WAY_MAX: u32 = 8;

fn config(directory: &Path) -> MetaConfig {
    let access = AccessPolicy { superuser: "alice".into(), ..AccessPolicy::default() };
    let safe_mode = blocks::SafeModeConfig { extension_ms: 0, ..Default::default() };
    MetaConfig {
        limits: Limits { access, ..Limits::default() },
        blocks: blocks::Config { safe_mode, ..Default::default() },
        edits_per_image: 1_000_000_000,
        // A million edits where nothing is optimised, beside other tests: that a thread is slow means nothing here.
        group: GroupConfig {
            timing: group::Settings { hang_ms: 60_000, ..group::Settings::default() },
            ..GroupConfig::default()
        },
        ..MetaConfig::new(directory.to_owned())
    }
}

async fn start(directory: &Path) -> (MetaServer, Client) {
    let server = run::start(&Env::production(), &config(directory), run::TRIES).await.unwrap();
    let options = ClientOptions { client_id: Some(CLIENT), ..ClientOptions::default() };
    let client = Client::connect(server.rpc_address(), proto::protocol::CLIENT_NAMENODE, "alice", options);
    (server, client)
}

fn numbered(call: i32, retry_count: i32) -> CallIdentity {
    CallIdentity { call_id: CallId(call), retry_count }
}

async fn delete(client: &Client, identity: CallIdentity, path: &str) -> Result<bool, rpc::CallError> {
    let request = p::DeleteRequestProto { src: path.into(), recursive: false };
    client
        .call_as::<_, p::DeleteResponseProto>(identity, "delete", &request)
        .await
        .map(|response| response.result)
}

async fn mkdirs(client: &Client, identity: CallIdentity, path: &str) -> bool {
    let request = p::MkdirsRequestProto {
        src: path.into(),
        masked: p::FsPermissionProto { perm: 0o755 },
        create_parent: true,
        unmasked: None,
    };
    client.call_as::<_, p::MkdirsResponseProto>(identity, "mkdirs", &request).await.unwrap().result
}

/// An edit that other clients may make over and over.
fn edit_of_others(turn: &Turn<'_>, times: u64) -> Edit {
    let plan = turn.plan_own(|namespace, context, _| {
        let request =
            ops::set_times::Request { path: "/others".into(), modified: times as i64, accessed: -1 };
        ops::set_times::plan(namespace, context, &request)
    });
    let Ok(Planned::Edit(edit)) = plan else { panic!("{plan:?}") };
    edit.into()
}

/// Other clients make so many changes that the retry cache has room for no others.
fn others_are_busy(server: &MetaServer) {
    let (sender, done) = mpsc::channel();
    let mut under_way = 0;
    for first in (0..OTHERS).step_by(OTHERS_AT_ONCE as usize) {
        let sender = sender.clone();
        server.core.partition.write(Box::new(move |turn| {
            let mut edit = edit_of_others(turn, 1_000 + first as u64);
            for call in first..first + OTHERS_AT_ONCE {
                edit.origin = Some(Origin { client: ClientId([9; 16]), call: CallId(call), fingerprint: 1 });
                turn.apply(edit.clone());
            }
            turn.after_commit(move |committed| {
                // Nobody listens any more once one has failed.
                let _ = sender.send(committed.map_err(str::to_owned));
            });
        }));
        under_way += 1;
        if under_way == UNDER_WAY_MAX {
            done.recv().unwrap().unwrap();
            under_way -= 1;
        }
    }
    drop(sender);
    done.iter().for_each(|committed| committed.unwrap());
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..1_200 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("after two minutes it is still not so that {what}");
}

fn is_indexed(server: &MetaServer) -> bool {
    let core = &server.core;
    let end = core.partition.older_answers.index.read().as_ref().map(|index| index.end());
    end.is_some_and(|end| end >= core.partition.commit.committed())
}

/// The call that was carried out long ago is carried out no second time, and its number serves no other.
async fn the_old_call_is_known(server: &MetaServer, client: &Client, deleted: i32) {
    let core = &server.core;
    let origin =
        CallOrigin { client_id: CLIENT, call_id: CallId(deleted), retry_count: 1, repeats: 0, address: None };
    let cached = core.partition.tree().namespace.retry_lookup(&origin, 0);
    assert_eq!(cached, RetryLookup::Miss, "the retry cache has forgotten it");
    let before = core.partition.older_answers.answered();
    assert!(delete(client, numbered(deleted, 1), "/d").await.unwrap(), "the answer of the first time");
    // Not all clients count how often they ask.
    assert!(delete(client, numbered(deleted, -1), "/d").await.unwrap());
    let refused = delete(client, numbered(deleted, 1), "/e").await.unwrap_err().to_string();
    assert!(refused.contains("was already used for another request"), "{refused}");
    assert!(!is_gone(server), "it was deleted a second time");
    assert_eq!(core.partition.older_answers.answered(), before + 3);
    let window_ms = core.partition.older_answers.window_ms(&core.partition.tree().namespace);
    assert!(window_ms > core.partition.tree().namespace.retry_window_ms());
    assert!(window_ms <= RETRY_WINDOW_MS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_the_retry_cache_has_forgotten_has_one_effect_and_one_answer() {
    let directory = tempfile::tempdir().unwrap();
    let loopback = "127.0.0.1".parse().unwrap();
    crate::format(&Env::production(), directory.path(), None, loopback, &Default::default()).unwrap();
    let (server, client) = start(directory.path()).await;
    assert_eq!(server.core.partition.older_answers.bytes(), 0, "no index where nobody is busy");
    assert!(mkdirs(&client, numbered(1, 0), "/others").await);
    assert!(mkdirs(&client, numbered(2, 0), "/d").await);
    assert!(delete(&client, numbered(3, 0), "/d").await.unwrap());
    others_are_busy(&server);
    until("the index has all that has committed", || is_indexed(&server)).await;
    // A call that the journal does not know is new. Others have made the directory again: it must not be deleted.
    assert!(mkdirs(&client, numbered(4, 0), "/d").await);
    the_old_call_is_known(&server, &client, 3).await;
    let memory = server.core.partition.tree().namespace.memory().retry_cache
        + server.core.partition.older_answers.bytes();
    assert!(memory <= 128 << 20, "{memory} bytes");

    // A start goes through the journal before it takes a repeated call for a new one.
    let (sender, written) = mpsc::channel();
    server.core.partition.checkpoint.request(Box::new(move |result| sender.send(result).unwrap()));
    tokio::task::spawn_blocking(move || written.recv().unwrap().unwrap()).await.unwrap();
    drop(client);
    server.shutdown().await;
    let (server, client) = start(directory.path()).await;
    while let Err(refused) = delete(&client, numbered(3, 1), "/d").await {
        assert!(refused.to_string().contains("goes through its journal"), "{refused}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    until("the index has all that has committed", || is_indexed(&server)).await;
    the_old_call_is_known(&server, &client, 3).await;
    drop(client);
    server.shutdown().await;
}

/// Whether there is no directory `/d`.
fn is_gone(server: &MetaServer) -> bool {
    let tree = server.core.partition.tree();
    let caller = base::Caller::simple("alice", &[]);
    namespace::reads::get_file_info::get(&tree.namespace, &server.core.partition.context(&caller, None), "/d")
        .unwrap()
        .is_none()
}

#[test]
fn while_the_journal_is_gone_through_only_calls_that_say_they_are_repeated_wait() {
    let origin = |retry_count| CallOrigin {
        client_id: CLIENT,
        call_id: CallId(1),
        retry_count,
        repeats: 0,
        address: None,
    };
    assert!(matches!(Older::NotYet.lookup(&origin(1)), Err(FsError::Retry(_))));
    assert_eq!(Older::NotYet.lookup(&origin(0)), Ok(RetryLookup::Miss));
    assert_eq!(Older::Nothing.lookup(&origin(1)), Ok(RetryLookup::Miss));
    let known = RetryLookup::Hit(Reply::Unit);
    assert_eq!(Older::Known(known).lookup(&origin(0)), Ok(known));
}
