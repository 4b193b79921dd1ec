//! Data servers that say that they live, and that they have replicas which they may not have.

use super::{cluster::spoken, generator::Dice};
use proto::hdfs::{self as p, datanode as d};
use rpc::Client;

pub struct DataServers {
    client: Client,
    pool: String,
    registrations: Vec<d::DatanodeRegistrationProto>,
}

impl DataServers {
    pub async fn register(client: Client, count: u32) -> Self {
        let info = spoken::version(&client).await;
        let mut registrations = Vec::new();
        for number in 1..=count {
            let mut registration = spoken::registration(&info, &format!("uuid-{number}"));
            registration.datanode_id.xfer_port = 9_000 + number;
            registrations.push(spoken::register(&client, registration).await.unwrap());
        }
        let mut servers = Self { client, pool: info.block_pool_id, registrations };
        servers.heartbeat().await;
        servers
    }

    pub async fn heartbeat(&mut self) {
        for (number, registration) in self.registrations.iter().enumerate() {
            spoken::heartbeat(&self.client, registration, &storage(number)).await.unwrap();
        }
    }

    /// A replica that may be one of those that clients write.
    pub async fn report(&mut self, dice: &mut Dice) {
        let number = dice.below(self.registrations.len() as u64) as usize;
        let block = p::BlockProto {
            block_id: 1_073_741_825 + dice.below(40),
            gen_stamp: 1_001 + dice.below(60),
            num_bytes: Some(*dice.pick(&[0, 1, 512, 1 << 20])),
        };
        let status = dice.below(3) as i32 + 1;
        let registration = &self.registrations[number];
        spoken::tell(&self.client, registration, (&self.pool, &storage(number)), block, status).await;
    }
}

fn storage(number: usize) -> String {
    format!("DS-{number}")
}
