//! A group goes to the next level by an operator's order, once all members know it, and not before.

mod cluster;

use base::{EntryKind, Level, MemberId};
use cluster::{Cluster, Plan, until};
use env::Env;
use metad::EpochStart;
use proto::{clover::admin as a, hdfs as p};
use rpc::CallError;

async fn raise(cluster: &Cluster, member: u32, is_confirmed: bool) -> a::RaiseLevelResponseProto {
    let request = a::RaiseLevelRequestProto { is_confirmed: Some(is_confirmed), level: None };
    cluster.order(member, "raiseLevel", &request).await.unwrap()
}

async fn ask<Q: prost::Message, A: prost::Message + Default + prost::Name>(
    cluster: &Cluster,
    member: u32,
    method: &'static str,
    request: &Q,
) -> Result<A, CallError> {
    cluster.client(member).call(method, request).await
}

/// The level in each member's own state, and the level in the view that it knows.
fn levels(cluster: &Cluster, members: &[u32]) -> Vec<(Level, Option<Level>)> {
    let of = |member: &u32| {
        let replica = cluster.server(*member).replica();
        (replica.journal().state().level, replica.status().view.map(|(view, _)| view.level))
    };
    members.iter().map(of).collect()
}

async fn wait_for_level(cluster: &Cluster, members: &[u32], level: Level) {
    let wanted = vec![(level, Some(level)); members.len()];
    until("all are at this level", async || levels(cluster, members) == wanted).await;
}

/// The first entries of all epochs in a store that nobody has open: who leads them, as they say.
fn leaders(cluster: &Cluster, member: u32) -> Vec<Option<MemberId>> {
    let recovery =
        journal::open(&Env::production(), &cluster.store(member), journal::Settings::default()).unwrap();
    let mut leaders = Vec::new();
    let mut note = |entry: &base::Entry| {
        if entry.kind == EntryKind::EpochStart {
            let start = EpochStart::decode(&entry.payload).unwrap();
            leaders.push(start.leader.map(|life| life.store.member));
        }
    };
    let (_, recovered) = recovery
        .replay(|entry| {
            note(&entry);
            Ok(())
        })
        .unwrap();
    recovered.tail.iter().for_each(&mut note);
    leaders
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_group_goes_to_the_next_level_by_an_order_that_looks_first() {
    let (mut cluster, active) = Plan::group(3).at_level(Level::FIRST).in_sync().await;
    cluster.mkdirs(active, "/before").await;
    assert_eq!(levels(&cluster, &[1, 2, 3]), vec![(Level::FIRST, Some(Level::FIRST)); 3]);

    // Hadoop's tools hear that it goes on, and are told what makes it final.
    let status: p::UpgradeStatusResponseProto =
        ask(&cluster, active, "upgradeStatus", &p::UpgradeStatusRequestProto {}).await.unwrap();
    assert!(!status.upgrade_finalized);
    let query = p::RollingUpgradeRequestProto { action: p::RollingUpgradeActionProto::Query as i32 };
    let query: p::RollingUpgradeResponseProto =
        ask(&cluster, active, "rollingUpgrade", &query).await.unwrap();
    assert!(query.rolling_upgrade_info.is_some_and(|info| info.finalize_time == 0 && info.start_time > 0));
    let refused: Result<p::FinalizeUpgradeResponseProto, _> =
        ask(&cluster, active, "finalizeUpgrade", &p::FinalizeUpgradeRequestProto {}).await;
    assert!(refused.unwrap_err().to_string().contains("clover admin upgrade finalize"));

    let found = raise(&cluster, active, false).await;
    assert_eq!((found.level(), found.wanted(), found.is_done()), (1, Level::NEWEST.0.into(), false));
    assert!(found.obstacles.is_empty() && !found.switches_on.is_empty(), "{found:?}");

    // A member that is away may come back with an older release.
    let away = cluster.others(active)[0];
    cluster.stop(away).await;
    cluster.wait_in_sync(active, 2).await;
    let refused = raise(&cluster, active, true).await;
    assert!(!refused.is_done() && refused.obstacles[0].contains(&format!("member {away} ")), "{refused:?}");
    let others = cluster.others(away);
    assert_eq!(levels(&cluster, &others), vec![(Level::FIRST, Some(Level::FIRST)); 2], "nothing was done");

    cluster.restart(away).await;
    cluster.wait_in_sync(active, 3).await;
    // By way of a standby, as an operator may.
    let done = raise(&cluster, away, true).await;
    assert!(done.is_done() && done.level() == u32::from(Level::NEWEST.0), "{done:?}");
    wait_for_level(&cluster, &[1, 2, 3], Level::NEWEST).await;
    cluster.wait_until_equal().await;
    let seen = cluster.group(active).await;
    assert_eq!(seen.level, Some(Level::NEWEST.0.into()));
    assert!(seen.level_at_ms.is_some() && seen.members.iter().all(|one| one.release.is_some()), "{seen:?}");
    let again = raise(&cluster, active, true).await;
    assert!(again.is_done() && again.obstacles.is_empty());
    let status: p::UpgradeStatusResponseProto =
        ask(&cluster, active, "upgradeStatus", &p::UpgradeStatusRequestProto {}).await.unwrap();
    assert!(status.upgrade_finalized);

    // The new level switches on that the first entry of an epoch says who leads it.
    cluster.kill(active).await;
    let next = cluster.wait_for_active(&[active]).await;
    cluster.mkdirs(next, "/after").await;
    for member in cluster.others(active) {
        cluster.stop(member).await;
    }
    let leaders = leaders(&cluster, next);
    assert_eq!(leaders.first(), Some(&None), "{leaders:?}");
    assert!(leaders.contains(&Some(MemberId(next))), "{leaders:?}");

    // The level is read back from the log, as everything is.
    cluster.restart_together(&[1, 2, 3]).await;
    let active = cluster.tend_until_active().await;
    assert_eq!(cluster.group(active).await.level, Some(Level::NEWEST.0.into()));
    wait_for_level(&cluster, &[1, 2, 3], Level::NEWEST).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_group_begins_at_the_newest_level_and_a_level_that_nobody_knows_is_refused() {
    let (cluster, active) = Cluster::in_sync(2).await;
    wait_for_level(&cluster, &[1, 2], Level::NEWEST).await;
    let seen = cluster.group(active).await;
    assert_eq!((seen.level, seen.level_at_ms), (Some(Level::NEWEST.0.into()), None), "nobody has raised it");
    let text = std::fs::read_to_string(cluster.name_directory(1).join("CLUSTER")).unwrap();
    assert!(text.starts_with("layout=2\n"), "an older release refuses it: {text}");
    let request = a::RaiseLevelRequestProto { is_confirmed: Some(true), level: Some(999) };
    let refused: Result<a::RaiseLevelResponseProto, _> = cluster.order(active, "raiseLevel", &request).await;
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("level 999") && text.contains("knows levels up to"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_level_that_an_unclean_election_gave_up_stays_in_the_view_until_it_is_raised_again() {
    let (mut cluster, active) = Plan::group(3).at_level(Level::FIRST).in_sync().await;
    let others = cluster.others(active);
    let (second, elected) = (others[0], others[1]);
    // The disk of one member will be as it is now: before the level was raised.
    cluster.mkdirs(active, "/known").await;
    cluster.wait_until_equal().await;
    cluster.stop(elected).await;
    cluster.keep(elected);
    cluster.restart(elected).await;
    cluster.wait_in_sync(active, 3).await;
    assert!(raise(&cluster, active, true).await.is_done());
    wait_for_level(&cluster, &[1, 2, 3], Level::NEWEST).await;
    for member in 1..=3 {
        cluster.kill(member).await;
        cluster.lose(member);
    }
    cluster.put_back(elected);

    cluster.restart(elected).await;
    cluster.elect_without(elected, &[active, second]).await;
    cluster.wait_for_reading(elected).await;
    for member in [active, second] {
        cluster.join(member);
        cluster.restart(member).await;
    }
    let leads = cluster.wait_for_active(&[]).await;
    cluster.wait_in_sync(leads, 3).await;

    // The journal knows nothing of the level, and members write by the journal. The view keeps it, so that releases which do not know it
    // cannot come back.
    let seen = cluster.group(leads).await;
    assert_eq!(seen.level, Some(Level::FIRST.0.into()), "{seen:?}");
    assert_eq!(seen.view.unwrap().level, Some(Level::NEWEST.0.into()));
    cluster.mkdirs(leads, "/after").await;

    // The order is given a second time.
    let found = raise(&cluster, leads, false).await;
    assert_eq!((found.level(), found.wanted()), (1, Level::NEWEST.0.into()));
    assert_eq!(found.obstacles, [""; 0]);
    assert!(raise(&cluster, leads, true).await.is_done());
    wait_for_level(&cluster, &[1, 2, 3], Level::NEWEST).await;
    assert_eq!(cluster.group(leads).await.level, Some(Level::NEWEST.0.into()));
}
