use super::{found, located_at, placed};
use ::blocks::{AdminState, BlockState, DataServer, Located, Location, Registration, StorageType};
use base::{Block, BlockId, GenerationStamp, Moment};
use proptest::{collection::vec, prelude::*};
use prost::Message;
use proto::{
    answers::{Only, encoded},
    hdfs as p,
};
use std::sync::Arc;

const POOL: &str = "BP-1-127.0.0.1-2";

prop_compose! {
    fn location()(
        texts in vec("\\PC{0,40}", 6),
        ports in any::<[u16; 4]>(),
        numbers in any::<[u64; 7]>(),
        (blocks, xceivers) in any::<(u32, u32)>(),
        kind in 0..6usize,
    ) -> Location {
        let text = |at: usize| Arc::<str>::from(&*texts[at]);
        let types = [
            StorageType::Disk,
            StorageType::Ssd,
            StorageType::Archive,
            StorageType::RamDisk,
            StorageType::Provided,
            StorageType::Nvdimm,
        ];
        let registration = Registration {
            uuid: text(0),
            ip: text(1),
            host_name: text(2),
            transfer_port: ports[0],
            info_port: ports[1],
            info_secure_port: ports[2],
            ipc_port: ports[3],
            software_version: text(3),
        };
        let server = DataServer {
            admin_state: AdminState::DecommissionInProgress,
            blocks_in_need: 0,
            admin_state_since: Moment::default(),
            registration: Arc::new(registration),
            rack: text(4),
            alive: true,
            last_heartbeat: Moment::default(),
            last_report: Moment::default(),
            capacity: numbers[0],
            dfs_used: numbers[1],
            non_dfs_used: numbers[2],
            remaining: numbers[3],
            block_pool_used: numbers[4],
            cache_capacity: numbers[5],
            cache_used: numbers[6],
            blocks: blocks.into(),
            xceivers,
            blocks_scheduled: 0,
            transfers_in_progress: 0,
            failed_volumes: 0,
            volume_failures: None,
        };
        Location { server: Arc::new(server), storage: text(5), storage_type: types[kind] }
    }
}

proptest! {
    #[test]
    fn clients_and_data_servers_are_told_the_same_of_a_block(
        locations in vec(location(), 0..5),
        (id, stamp, length, offset) in any::<(u64, u64, u64, u64)>(),
        corrupt in any::<bool>(),
    ) {
        let block = Block { id: BlockId(id), generation_stamp: GenerationStamp(stamp), length };
        let response = |block| p::AddBlockResponseProto { block }.encode_to_vec();

        let written = encoded(Only(Some(placed(POOL, block, offset, &locations))));
        let generated = located_at(POOL, block, offset, &locations);
        prop_assert_eq!(written, response(generated.clone()));

        let located = Located { block, state: BlockState::Complete, corrupt, locations };
        let written = encoded(Only(Some(found(POOL, block, offset, Some(&located)))));
        prop_assert_eq!(written, response(p::LocatedBlockProto { corrupt, ..generated }));

        let written = encoded(Only(Some(found(POOL, block, offset, None))));
        prop_assert_eq!(written, response(located_at(POOL, block, offset, &[])));
    }
}
