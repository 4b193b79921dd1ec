//! The active notices that the clock of another member is wrong, and says so wherever its verdict is told.

mod cluster;

use base::Timestamp;
use cluster::{Cluster, Plan, page};
use env::{Clock, Env, SystemClock};
use metad::LastResort;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// The machine's clock, so much too fast.
struct Ahead(u64);

impl Clock for Ahead {
    fn timestamp(&self) -> Timestamp {
        Timestamp::from_ms(SystemClock.timestamp().ms + self.0)
    }

    fn moment(&self) -> base::Moment {
        SystemClock.moment()
    }
}

/// A group of three in which member 2 has a clock that is so much too fast; and the active.
async fn with_clock_ahead(ms: u64) -> (Cluster, u32) {
    let plan = Plan::group(3).in_worlds(move |member| {
        let clock = Arc::new(Ahead(if member == 2 { ms } else { 0 }));
        (Env { clock, ..Env::production() }, LastResort::default())
    });
    plan.adjusted(|_, config| config.http_address = Some("127.0.0.1:0".parse().unwrap())).in_sync().await
}

async fn health(cluster: &Cluster, member: u32) -> String {
    page(cluster.server(member).http_address().unwrap(), "/health").await.unwrap()
}

async fn metrics(cluster: &Cluster, member: u32) -> String {
    page(cluster.server(member).http_address().unwrap(), "/metrics").await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_active_says_that_a_clock_is_wrong() {
    let (mut cluster, active) = with_clock_ahead(9_000).await;
    let begun = Instant::now();
    let told = loop {
        let told = health(&cluster, active).await;
        if told.contains("CLOCK_APART") {
            break told;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{told}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(told.contains("member 2"), "{told}");
    let counted = metrics(&cluster, active).await;
    assert!(counted.contains("clover_condition{code=\"CLOCK_APART\",severity=\"warning\"} 1"), "{counted}");
    // Members that follow read no clocks.
    for standby in cluster.others(active) {
        assert!(!health(&cluster, standby).await.contains("CLOCK_APART"));
    }
    // The next active reads them anew.
    cluster.kill(active).await;
    let next = cluster.wait_for_active(&[active]).await;
    if active != 2 {
        while !health(&cluster, next).await.contains("CLOCK_APART") {
            assert!(begun.elapsed() < Duration::from_secs(120), "the next active does not notice");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clocks_that_nearly_agree_are_no_trouble() {
    let (mut cluster, active) = with_clock_ahead(700).await;
    let facts = cluster.client_as(active, proto::protocol::ADMIN, "nobody");
    let begun = Instant::now();
    let read = loop {
        let request = proto::clover::admin::GetFactsRequestProto {};
        let told: proto::clover::admin::GetFactsResponseProto =
            facts.call("getFacts", &request).await.unwrap();
        if told.clocks.len() == 3 {
            break told.clocks;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", told.clocks);
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let of = |member| read.iter().find(|clock| clock.member == member).unwrap();
    let ahead_ms = of(2).ahead_ms - of(1).ahead_ms;
    let uncertain_ms = (of(1).uncertain_ms + of(2).uncertain_ms) as i64;
    assert!((ahead_ms - 700).abs() <= uncertain_ms, "{read:?}");
    assert!(!health(&cluster, active).await.contains("CLOCK_APART"));
    cluster.stop_all().await;
}
