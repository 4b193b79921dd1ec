//! A mistake in the configuration must not make a server part of another cluster.

use env::Env;
use metad::{CoordinatorConfig, FileDefaults, GroupConfig, MetaConfig, MetaServer};
use std::{path::Path, sync::Arc};

fn config(directory: &Path, group: GroupConfig) -> MetaConfig {
    MetaConfig {
        name_directory: directory.to_owned(),
        rpc_address: "127.0.0.1:0".parse().unwrap(),
        http_address: None,
        limits: Default::default(),
        defaults: FileDefaults::default(),
        blocks: Default::default(),
        complete_wait_ms: 200,
        edits_per_image: 1_000_000,
        image_period_ms: 3_600_000,
        journal_bytes_per_image: 64 << 20,
        call_queue: Default::default(),
        racks: Vec::new(),
        data_servers_file: None,
        groups: metad::GroupsConfig::default(),
        audit_log: None,
        group,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_another_cluster_is_refused_and_nothing_is_touched() {
    let (env, root) = (Env::production(), tempfile::tempdir().unwrap());
    let mut made = Vec::new();
    for name in ["ours", "theirs"] {
        let coordinator =
            coord::Embedded::open(&env, &root.path().join(format!("coordinator-{name}"))).unwrap();
        let coordinator = CoordinatorConfig::Shared(Arc::new(coordinator));
        let group = GroupConfig { coordinator, ..GroupConfig::default() };
        let directory = root.path().join(name);
        metad::format(&env, &directory, Some(name.into()), "127.0.0.1".parse().unwrap(), &group).unwrap();
        made.push((directory, group));
    }
    let [(ours, group), (theirs, _)] = &made[..] else { panic!("two clusters were made") };
    let refused = MetaServer::start(env.clone(), config(theirs, group.clone())).await.err().unwrap();
    let reasons = std::iter::successors(Some(&refused as &dyn std::error::Error), |error| error.source());
    let text = reasons.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    assert!(text.contains("belongs to cluster theirs, and the coordinator to ours"), "{text}");

    // Its rightful member finds everything as it was.
    let server = MetaServer::start(env, config(ours, group.clone())).await.unwrap();
    assert_eq!(server.cluster().cluster_id, "ours");
    server.shutdown().await;
}
