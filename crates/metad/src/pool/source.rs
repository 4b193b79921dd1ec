//! Another member, as one that may have an image.

use super::{LOG_ANSWER_BYTES_MAX, fetch::Pieces, purpose};
use crate::{core::Core, peers::codec};
use base::{Entry, MemberId, Sn};
use bytes::Bytes;
use group::Message;
use journal::Checkpoint;
use proto::clover::pool as p;
use std::{sync::Arc, time::Duration};
use tokio::runtime::Handle;

/// A member that has died costs so long before the next one is asked.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

pub struct Source {
    pub member: MemberId,
    core: Arc<Core>,
    client: rpc::Client,
    runtime: Handle,
}

/// The other members: whoever does not lead comes first, and of those the in-sync ones.
pub fn sources(core: &Arc<Core>, runtime: &Handle) -> Vec<Source> {
    let status = core.replica.status();
    let is_in_sync = |member: MemberId| {
        status.view.as_ref().is_some_and(|(view, _)| view.in_sync.iter().any(|store| store.member == member))
    };
    let me = core.replica.me().member;
    let mut records: Vec<_> = core
        .replica
        .records()
        .into_iter()
        .filter(|(member, record)| *member != me && !record.rpc_address.is_empty())
        .collect();
    records.sort_by_key(|(member, _)| (status.active == Some(*member), !is_in_sync(*member), *member));
    let user = &core.config.limits.access.superuser;
    records
        .into_iter()
        .map(|(member, record)| {
            let options = rpc::ClientOptions {
                connect_timeout: CONNECT_TIMEOUT,
                call_timeout: CALL_TIMEOUT,
                ping_interval: None,
                reply_bytes_max: LOG_ANSWER_BYTES_MAX,
                ..rpc::ClientOptions::default()
            };
            let client = rpc::Client::connect(record.rpc_address, proto::protocol::POOL, user, options);
            Source { member, core: core.clone(), client, runtime: runtime.clone() }
        })
        .collect()
}

impl Source {
    /// The committed images that it has. Blocks.
    pub fn images(&self) -> Result<Vec<Checkpoint>, String> {
        let (cluster_id, from) = (self.core.cluster.cluster_id.clone(), self.core.replica.me().member.0);
        let mac = self.sign(purpose::LIST, &[cluster_id.as_bytes(), &from.to_le_bytes()])?;
        let request = p::ListImagesRequestProto { cluster_id, from, mac };
        let response: p::ListImagesResponseProto = self
            .runtime
            .block_on(self.client.call("listImages", &request))
            .map_err(|error| error.to_string())?;
        Ok(response.checkpoints.iter().filter_map(|bytes| Checkpoint::decode(bytes)).collect())
    }

    fn read_piece(&self, checkpoint: &Checkpoint, offset: u64, length: u32) -> Result<Bytes, String> {
        let (cluster_id, from) = (self.core.cluster.cluster_id.clone(), self.core.replica.me().member.0);
        let checkpoint = checkpoint.encode();
        let parts: [&[u8]; 5] = [
            cluster_id.as_bytes(),
            &from.to_le_bytes(),
            &checkpoint,
            &offset.to_le_bytes(),
            &length.to_le_bytes(),
        ];
        let mac = self.sign(purpose::READ, &parts)?;
        let request = p::ReadImageRequestProto { cluster_id, from, checkpoint, offset, length, mac };
        let response: p::ReadImageResponseProto = self
            .runtime
            .block_on(self.client.call("readImage", &request))
            .map_err(|error| error.to_string())?;
        let data = response.data.ok_or("it does not have this image")?;
        if data.is_empty() || data.len() > length as usize {
            return Err(format!("{} bytes where {length} were asked for", data.len()));
        }
        if response.crc != Some(crc32c::crc32c(&data)) {
            return Err("a piece whose checksum is wrong".into());
        }
        Ok(data)
    }

    /// Entries of its log after `after`, as many as one answer carries and none above `up_to`. Blocks.
    pub fn read_log(&self, after: Sn, up_to: Sn) -> Result<Vec<Entry>, String> {
        let (cluster_id, from) = (self.core.cluster.cluster_id.clone(), self.core.replica.me().member.0);
        let (after_bytes, up_to_bytes) = (after.0.to_le_bytes(), up_to.0.to_le_bytes());
        let parts: [&[u8]; 4] = [cluster_id.as_bytes(), &from.to_le_bytes(), &after_bytes, &up_to_bytes];
        let mac = self.sign(purpose::READ_LOG, &parts)?;
        let request = p::ReadLogRequestProto { cluster_id, from, after: after.0, up_to: up_to.0, mac };
        let response: p::ReadLogResponseProto = self
            .runtime
            .block_on(self.client.call("readLog", &request))
            .map_err(|error| error.to_string())?;
        let fetched = response.fetched.ok_or("it does not have these entries any more")?;
        if response.crc != Some(crc32c::crc32c(&fetched)) {
            return Err("entries whose checksum is wrong".into());
        }
        match codec::decode(fetched) {
            Ok(Message::Fetched { entries, .. }) => Ok(entries),
            Ok(_) => Err("something else than entries".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn sign(&self, purpose: &[u8], parts: &[&[u8]]) -> Result<Bytes, String> {
        let secret = self.core.secret.as_ref().ok_or("the cluster has no secret")?;
        Ok(Bytes::copy_from_slice(&secret.sign(purpose, parts)))
    }
}

impl Pieces for Source {
    fn member(&self) -> MemberId {
        self.member
    }

    fn read(&self, checkpoint: &Checkpoint, offset: u64, length: u32) -> Result<Bytes, String> {
        self.read_piece(checkpoint, offset, length)
    }
}
