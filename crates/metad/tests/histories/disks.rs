//! A data server that the test plays itself. It says of each block that it has received all that the client wrote.

use super::cluster::{
    SUPERUSER,
    spoken::{self, STORAGE},
};
use proto::{
    hdfs::{self as p, datanode as d},
    protocol,
};
use rpc::{Client, ClientOptions};
use std::{net::SocketAddr, sync::Arc, time::Duration};

/// From one heartbeat to the next. After some minutes without any a data server is taken for dead.
const BEAT: Duration = Duration::from_secs(3);

/// One session with a metadata server.
struct Session {
    client: Client,
    pool: String,
    registration: d::DatanodeRegistrationProto,
}

pub struct Disks(Vec<Session>);

impl Disks {
    /// Known to the metadata servers at these addresses.
    pub async fn of(addresses: impl IntoIterator<Item = SocketAddr>) -> Arc<Self> {
        let mut sessions = Vec::new();
        for address in addresses {
            let client = Client::connect(address, protocol::DATANODE, SUPERUSER, ClientOptions::default());
            let info = spoken::version(&client).await;
            let registration = spoken::registration(&info, "uuid-1");
            let registration = spoken::register(&client, registration).await.unwrap();
            spoken::heartbeat(&client, &registration, STORAGE).await.unwrap();
            sessions.push(Session { client, pool: info.block_pool_id, registration });
        }
        let disks = Arc::new(Self(sessions));
        let beating = Arc::downgrade(&disks);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(BEAT).await;
                let Some(disks) = beating.upgrade() else { return };
                for Session { client, registration, .. } in &disks.0 {
                    // The metadata server may be at its end.
                    let _ = spoken::heartbeat(client, registration, STORAGE).await;
                }
            }
        });
        disks
    }

    /// Tells the group of the block's pool of a replica.
    pub async fn receive(&self, block: &p::ExtendedBlockProto) {
        let status = d::received_deleted_block_info_proto::BlockStatus::Received as i32;
        let replica = p::BlockProto {
            block_id: block.block_id,
            gen_stamp: block.generation_stamp,
            num_bytes: block.num_bytes,
        };
        for Session { client, pool, registration } in self.0.iter().filter(|it| it.pool == block.pool_id) {
            spoken::tell(client, registration, (pool, STORAGE), replica, status).await;
        }
    }
}
