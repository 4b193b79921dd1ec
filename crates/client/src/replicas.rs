//! The replicas of blocks as Clover's metadata servers see them: also those of which clients are not told.

use crate::{FileSystem, Location, Result, namenodes::Namenodes};
use proto::{
    clover::admin::{
        BlockReplicasProto, GetGroupsRequestProto, GetGroupsResponseProto, GetReplicasRequestProto,
        GetReplicasResponseProto, NamespaceGroupProto,
    },
    protocol,
};

/// So many blocks are asked for in one call. A server takes as many ([`proto::REPLICAS_BLOCKS_MAX`]).
const BLOCKS_MAX: usize = proto::REPLICAS_BLOCKS_MAX;

/// The groups of one namespace. Each knows the blocks of its own pool.
pub struct ReplicaRegister {
    groups: Vec<Group>,
}

struct Group {
    block_pool: String,
    servers: Namenodes,
}

impl ReplicaRegister {
    /// Finds the groups. Their servers are asked in the name of the user of `fs`.
    ///
    /// # Errors
    /// The call fails: see [`FileSystem::call`]. HDFS has no such call.
    pub async fn open(fs: &FileSystem) -> Result<Self> {
        let own = fs.namenodes_for(protocol::ADMIN);
        let known: GetGroupsResponseProto = own.call("getGroups", &GetGroupsRequestProto {}).await?;
        let mut groups = Vec::new();
        let mut own = Some(own);
        for group in known.groups.into_iter().filter(|group| group.is_made) {
            let servers = match own.take_if(|_| group.group == known.group) {
                Some(own) => own,
                None => match location(&group) {
                    Some(location) => Namenodes::speaking(protocol::ADMIN, location, fs.settings()),
                    None => continue,
                },
            };
            groups.push(Group { block_pool: group.block_pool, servers });
        }
        Ok(Self { groups })
    }

    /// The replicas of blocks of one pool. Blocks that are gone by now are left out, and all blocks of a pool that no group has.
    ///
    /// # Errors
    /// The user is no superuser; or a call fails: see [`FileSystem::call`].
    pub async fn of_pool(&self, pool: &str, blocks: &[u64]) -> Result<Vec<BlockReplicasProto>> {
        let Some(group) = self.groups.iter().find(|group| group.block_pool == pool) else {
            return Ok(Vec::new());
        };
        let mut told = Vec::new();
        for part in blocks.chunks(BLOCKS_MAX) {
            told.extend(group.ask(part, false).await?.blocks);
        }
        Ok(told)
    }

    /// The replicas of blocks whose pools are not known, with the paths of their files, as each group tells of them.
    ///
    /// # Errors
    /// Those of [`Self::of_pool`].
    pub async fn everywhere(&self, blocks: &[u64]) -> Result<Vec<BlockReplicasProto>> {
        let mut told = Vec::new();
        for group in &self.groups {
            for part in blocks.chunks(BLOCKS_MAX) {
                told.extend(group.ask(part, true).await?.blocks);
            }
        }
        Ok(told)
    }

    /// The replicas with which a block counts as stored.
    ///
    /// # Errors
    /// Those of [`Self::of_pool`].
    pub async fn min_replication(&self) -> Result<u32> {
        match self.groups.first() {
            Some(group) => Ok(group.ask(&[], false).await?.min_replication),
            None => Ok(1),
        }
    }
}

impl Group {
    async fn ask(&self, blocks: &[u64], with_paths: bool) -> Result<GetReplicasResponseProto> {
        let request =
            GetReplicasRequestProto { block_ids: blocks.to_vec(), with_paths: with_paths.then_some(true) };
        self.servers.call("getReplicas", &request).await
    }
}

fn location(group: &NamespaceGroupProto) -> Option<Location> {
    let servers: Vec<String> = group.members.iter().filter_map(|member| member.rpc_address.clone()).collect();
    servers.first().cloned().map(|authority| Location { authority, servers })
}
