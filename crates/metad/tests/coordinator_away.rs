//! A coordinator out of reach is no failure, but whoever watches a server must see it: nobody could take over.

mod cluster;

use base::MemberId;
use cluster::{Cluster, Plan, page, way::Way};
use coord::Event;
use proto::clover::admin as p;

#[tokio::test(flavor = "multi_thread")]
async fn health_metrics_and_the_operators_see_that_the_coordinator_is_out_of_reach() {
    let way = Way::default();
    let to_coordinator = way.clone();
    let plan = Plan::group(1).adjusted(move |_, config| {
        to_coordinator.lay(&mut config.group.coordinator);
        config.http_address = Some("127.0.0.1:0".parse().unwrap());
    });
    let (mut cluster, _) = plan.in_sync().await;
    let pages = cluster.server(1).http_address().unwrap();
    const METRIC: &str = "\nclover_coordinator_out_of_reach ";
    for (event, is_away) in
        [(None, false), (Some(Event::Disconnected), true), (Some(Event::Connected), false)]
    {
        event.into_iter().for_each(|event| way.tell(event));
        let health = page(pages, "/health").await.unwrap();
        assert!(health.contains("200 OK"), "it goes on: {health}");
        assert_eq!(health.contains("coordinator_out_of_reach_ms"), is_away, "{health}");
        let expected = format!("{METRIC}{}\n", u8::from(is_away));
        assert!(page(pages, "/metrics").await.unwrap().contains(&expected), "{expected}");
        assert_eq!(cluster.group(1).await.coordinator_away_ms.is_some(), is_away);
    }
    cluster.stop(1).await;
}

/// It could never join, and from then on it would be missed.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_keeps_its_view_for_itself_takes_no_second_one_in() {
    let mut cluster = Cluster::alone().await;
    let request = p::AddMemberRequestProto { member: 2, in_sync_min: None };
    let refusal = cluster.order::<_, p::AddMemberResponseProto>(1, "addMember", &request).await.unwrap_err();
    assert!(refusal.to_string().contains("coordinator = embedded"), "{refusal}");
    assert_eq!(cluster.replica(1).status().view.unwrap().0.members, [MemberId(1)]);
    cluster.stop(1).await;
}
