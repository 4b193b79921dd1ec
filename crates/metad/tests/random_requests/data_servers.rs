//! Data servers that say that they live, and that they have replicas which they may not have.

use super::generator::Dice;
use proto::hdfs::{self as p, datanode as d};
use rpc::Client;

pub struct DataServers {
    client: Client,
    pool: String,
    registrations: Vec<d::DatanodeRegistrationProto>,
}

impl DataServers {
    pub async fn register(client: Client, count: u32) -> Self {
        let version: p::VersionResponseProto =
            client.call("versionRequest", &p::VersionRequestProto {}).await.unwrap();
        let mut servers =
            Self { client, pool: version.info.block_pool_id.clone(), registrations: Vec::new() };
        for number in 1..=count {
            let registration = d::DatanodeRegistrationProto {
                datanode_id: p::DatanodeIdProto {
                    ip_addr: "0.0.0.0".into(),
                    host_name: "worker".into(),
                    datanode_uuid: format!("uuid-{number}"),
                    xfer_port: 9_000 + number,
                    info_port: 9_864,
                    ipc_port: 9_867,
                    info_secure_port: None,
                },
                storage_info: p::StorageInfoProto {
                    layout_version: -57i32 as u32,
                    ..version.info.storage_info.clone()
                },
                keys: p::ExportedBlockKeysProto::default(),
                software_version: "3.5.0".into(),
            };
            let request = d::RegisterDatanodeRequestProto { registration };
            let answer: d::RegisterDatanodeResponseProto =
                servers.client.call("registerDatanode", &request).await.unwrap();
            servers.registrations.push(answer.registration);
        }
        servers.heartbeat().await;
        servers
    }

    pub async fn heartbeat(&mut self) {
        for (number, registration) in self.registrations.iter().enumerate() {
            #[allow(deprecated)]
            let storage = p::StorageReportProto {
                storage_uuid: storage(number).storage_uuid,
                capacity: Some(1 << 50),
                remaining: Some(1 << 49),
                storage: Some(storage(number)),
                ..p::StorageReportProto::default()
            };
            let request = d::HeartbeatRequestProto {
                registration: registration.clone(),
                reports: vec![storage],
                request_full_block_report_lease: Some(true),
                ..d::HeartbeatRequestProto::default()
            };
            let _: d::HeartbeatResponseProto = self.client.call("sendHeartbeat", &request).await.unwrap();
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
        #[allow(deprecated)]
        let storage = d::StorageReceivedDeletedBlocksProto {
            storage_uuid: storage(number).storage_uuid,
            storage: Some(storage(number)),
            blocks: vec![d::ReceivedDeletedBlockInfoProto {
                block,
                status: dice.below(3) as i32 + 1,
                delete_hint: None,
            }],
        };
        let request = d::BlockReceivedAndDeletedRequestProto {
            registration: self.registrations[number].clone(),
            block_pool_id: self.pool.clone(),
            blocks: vec![storage],
        };
        let _: d::BlockReceivedAndDeletedResponseProto =
            self.client.call("blockReceivedAndDeleted", &request).await.unwrap();
    }
}

fn storage(number: usize) -> p::DatanodeStorageProto {
    p::DatanodeStorageProto {
        storage_uuid: format!("DS-{number}"),
        state: Some(0),
        storage_type: Some(p::StorageTypeProto::Disk as i32),
    }
}
