//! The replicas of blocks, as a check of the file system asks for them: data servers are spoken by hand.

mod cluster;

use base::ClientId;
use cluster::{
    Cluster, SUPERUSER,
    files::{self, DataServer},
    refused,
};
use proto::{
    clover::admin::{GetReplicasRequestProto, GetReplicasResponseProto, ReplicaStandingProto},
    exception::{ACCESS_CONTROL, ILLEGAL_ARGUMENT},
    protocol,
};
use rpc::CallError;

async fn ask(
    cluster: &Cluster,
    member: u32,
    user: &str,
    blocks: &[u64],
) -> Result<GetReplicasResponseProto, CallError> {
    let request = GetReplicasRequestProto { block_ids: blocks.to_vec(), with_paths: Some(true) };
    cluster.client_as(member, protocol::ADMIN, user).call("getReplicas", &request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn superusers_are_told_of_all_replicas_by_each_member() {
    let (cluster, active) = Cluster::in_sync(2).await;
    let server = DataServer::register(&cluster, 2).await;
    let writer = files::client_at(cluster.address(active), ClientId([7; 16]));
    files::finished(&cluster, &server, &writer, "/f", 1).await;
    let block = files::located(&writer, "/f").await.blocks[0].b.clone();
    for member in [1, 2] {
        let told = ask(&cluster, member, SUPERUSER, &[block.block_id + 1, block.block_id]).await.unwrap();
        assert_eq!((told.block_pool, told.min_replication), (block.pool_id.clone(), 1), "member {member}");
        let [found] = &told.blocks[..] else { panic!("{:?}", told.blocks) };
        assert_eq!((found.block_id, found.num_bytes, found.path()), (block.block_id, 77, "/f"));
        assert!(found.is_complete && found.generation_stamp == block.generation_stamp);
        let [replica] = &found.replicas[..] else { panic!("{:?}", found.replicas) };
        assert_eq!(
            (&*replica.server_uuid, replica.standing()),
            ("uuid-1", ReplicaStandingProto::ReplicaLive)
        );
        assert_eq!(&*replica.storage_type, "DISK");
    }
    let text = refused(ask(&cluster, active, "bob", &[block.block_id]).await, ACCESS_CONTROL);
    assert!(text.ends_with("Superuser privilege is required for operation fsck"), "{text}");
    refused(ask(&cluster, active, SUPERUSER, &vec![1; 501]).await, ILLEGAL_ARGUMENT);
    cluster.end().await;
}
