//! A mistake in the configuration must not make a server part of another cluster.

mod cluster;

use cluster::Plan;

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_another_cluster_is_refused_and_nothing_is_touched() {
    let mut ours = Plan::group(1).named("ours").made();
    let theirs = Plan::group(1).named("theirs").made();
    let mistaken = theirs.name_directory(1);
    ours.adjust(move |_, config| config.name_directory = mistaken.clone());
    let refused = ours.try_restart(1).await.unwrap_err();
    let reasons = std::iter::successors(Some(&refused as &dyn std::error::Error), |error| error.source());
    let text = reasons.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    assert!(text.contains("belongs to cluster theirs, and the coordinator to ours"), "{text}");

    // Its rightful member finds everything as it was.
    ours.adjust(|_, _| ());
    ours.restart(1).await;
    assert_eq!(ours.server(1).cluster().cluster_id, "ours");
    ours.stop(1).await;
}
