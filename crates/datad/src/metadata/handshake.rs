//! The first words with a metadata server: whose it is, and who we are.

use super::actor::{Actor, Failure, Part};
use crate::convert;
use base::level::RELEASE;
use blockstore::{OpenError, PoolInfo, layout::LAYOUT_VERSION};
use proto::hdfs::{
    BlockKeyProto, ExportedBlockKeysProto, NamespaceInfoProto, StorageInfoProto, VersionRequestProto,
    VersionResponseProto,
    datanode::{DatanodeRegistrationProto, RegisterDatanodeRequestProto, RegisterDatanodeResponseProto},
};
use std::sync::{Arc, atomic::Ordering};

/// The release whose protocols are spoken: metadata servers refuse data servers that are too old for them.
pub const SOFTWARE_VERSION: &str = "3.5.0";

impl Actor {
    /// Learns the cluster and serves the block pool that the metadata server names; the registration is what this
    /// server calls itself from now on.
    pub(super) async fn shake_hands(&self) -> Result<(Part, DatanodeRegistrationProto), Failure> {
        let answer: VersionResponseProto =
            self.client.call("versionRequest", &VersionRequestProto {}).await?;
        let info = answer.info;
        let pool = pool_info(&info)?;
        self.refuse_other_pool(&pool)?;
        // Not on the store's own thread, where the other pools' heartbeats would wait for it: it reads all names of the pool.
        let store = self
            .state
            .apart(move |volumes| volumes.serve_pool(&pool))
            .await
            .map_err(|error| Failure::Transient(format!("the pool is not opened: {error}")))?
            .map_err(|error| self.refuse_cluster(&error))?;
        let pool = self.state.serve(store).map_err(|error| Failure::Fatal(error.to_string()))?;
        Ok((self.take_part(pool).clone(), self.registration(&info)))
    }

    /// Refuses a metadata server that has changed its pool, so that no news of the one goes out as news of the other.
    fn refuse_other_pool(&self, now: &PoolInfo) -> Result<(), Failure> {
        let Some(Part { pool, .. }) = self.part() else { return Ok(()) };
        let before = pool.store.info();
        // Another cluster is refused for that, by the store.
        if before.pool == now.pool || before.cluster != now.cluster {
            return Ok(());
        }
        Err(Failure::Fatal(format!(
            "metadata server {}: its block pool is {}, and was {}: it was formatted anew, or another server has its address. \
             The replicas of the old pool stay on the disks. To serve the new one, start this data server again",
            self.address, now.pool, before.pool
        )))
    }

    /// Registers this server. The answer names it as it is known from now on: by the address that it spoke from.
    pub(super) async fn register(
        &self,
        registration: DatanodeRegistrationProto,
    ) -> Result<DatanodeRegistrationProto, Failure> {
        let request = RegisterDatanodeRequestProto { registration };
        let response: RegisterDatanodeResponseProto = self.client.call("registerDatanode", &request).await?;
        // A NameNode can be set so. Everybody could read and write here what it wants to have checked.
        if response.registration.keys.is_block_token_enabled {
            return Err(Failure::Fatal(format!(
                "metadata server {}: it wants block tokens (dfs.block.access.token.enable), and this data server cannot check them",
                self.address
            )));
        }
        if !self.is_displaced.load(Ordering::Relaxed) {
            tracing::info!(server = %self.address, uuid = %self.state.identity.uuid, "registered");
        }
        Ok(response.registration)
    }

    fn refuse_cluster(&self, error: &OpenError) -> Failure {
        let message = format!("metadata server {}: {error}", self.address);
        match error {
            // The disk may come back; whose the directory is stays as it is.
            OpenError::Io { .. } => Failure::Transient(message),
            _ => Failure::Fatal(message),
        }
    }

    fn registration(&self, info: &NamespaceInfoProto) -> DatanodeRegistrationProto {
        DatanodeRegistrationProto {
            datanode_id: self.state.identity.to_proto(),
            storage_info: StorageInfoProto {
                // A negative number in an unsigned field, as on Hadoop's wire.
                layout_version: LAYOUT_VERSION as u32,
                ..info.storage_info.clone()
            },
            keys: no_keys(),
            // A metadata server looks at the numbers; the rest is for people.
            software_version: format!("{SOFTWARE_VERSION}-clover-{RELEASE}"),
        }
    }
}

fn pool_info(info: &NamespaceInfoProto) -> Result<PoolInfo, Failure> {
    let storage = &info.storage_info;
    if storage.cluster_id.is_empty() {
        return Err(Failure::Fatal("the metadata server names no cluster: is it formatted?".into()));
    }
    Ok(PoolInfo {
        pool: Arc::from(info.block_pool_id.as_str()),
        cluster: Arc::from(storage.cluster_id.as_str()),
        namespace_id: convert::signed(storage.namespce_id),
        created_ms: storage.c_time,
    })
}

/// Block tokens are not in use.
fn no_keys() -> ExportedBlockKeysProto {
    ExportedBlockKeysProto {
        is_block_token_enabled: false,
        key_update_interval: 0,
        token_life_time: 0,
        current_key: BlockKeyProto { key_id: 0, expiry_date: 0, key_bytes: None },
        all_keys: Vec::new(),
    }
}
