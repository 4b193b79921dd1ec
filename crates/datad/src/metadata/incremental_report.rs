//! Reports of changes of single replicas.

use super::actor::{Actor, Failure, Session};
use crate::{
    convert,
    reporter::{Change, Event},
};
use proto::hdfs::datanode::{
    BlockReceivedAndDeletedRequestProto, BlockReceivedAndDeletedResponseProto, ReceivedDeletedBlockInfoProto,
    StorageReceivedDeletedBlocksProto, received_deleted_block_info_proto::BlockStatus,
};

/// Changes in one call.
const EVENT_COUNT_MAX: usize = 10_000;

impl Actor {
    /// Reports all changes that wait. Those that cannot be reported go back to the queue.
    pub(super) async fn report_changes(&self, session: &Session) -> Result<(), Failure> {
        loop {
            let events = session.queue.take(EVENT_COUNT_MAX);
            if events.is_empty() {
                return Ok(());
            }
            let request = BlockReceivedAndDeletedRequestProto {
                registration: session.registration.clone(),
                block_pool_id: session.pool.id.to_string(),
                blocks: self.by_storage(&events),
            };
            let result: Result<BlockReceivedAndDeletedResponseProto, _> =
                self.client.call("blockReceivedAndDeleted", &request).await;
            if let Err(error) = result {
                session.queue.put_back(events);
                return Err(self.give_up(error));
            }
        }
    }

    #[allow(deprecated, reason = "storageUuid is required on the wire, though servers read storage")]
    fn by_storage(&self, events: &[Event]) -> Vec<StorageReceivedDeletedBlocksProto> {
        let mut storages: Vec<StorageReceivedDeletedBlocksProto> = Vec::new();
        for event in events {
            let found = storages.iter().position(|storage| *storage.storage_uuid == *event.storage_id);
            let at = found.unwrap_or_else(|| {
                let storage_type = self.state.storage_type(&event.storage_id);
                storages.push(StorageReceivedDeletedBlocksProto {
                    storage_uuid: event.storage_id.to_string(),
                    blocks: Vec::new(),
                    storage: Some(convert::storage_to_proto(&event.storage_id, storage_type)),
                });
                storages.len() - 1
            });
            storages[at].blocks.push(change_to_proto(event));
        }
        storages
    }
}

fn change_to_proto(event: &Event) -> ReceivedDeletedBlockInfoProto {
    let (status, delete_hint) = match &event.change {
        Change::Receiving { .. } => (BlockStatus::Receiving, None),
        Change::Received { delete_hint } => (BlockStatus::Received, delete_hint.clone()),
        Change::Deleted => (BlockStatus::Deleted, None),
    };
    ReceivedDeletedBlockInfoProto {
        block: convert::block_to_proto(event.block),
        status: status as i32,
        delete_hint,
    }
}
