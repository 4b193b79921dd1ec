//! Rotten replicas whose storages were lost.
//!
//! With its server or its disk such a replica may come back, and the server does not know what a reader has found. So the finding is remembered
//! under the names of server and storage, until the server tells that it has deleted the replica or has received it anew.

use base::{BlockId, GenerationStamp};
use std::{collections::BTreeMap, sync::Arc};

/// Blocks of which rotten replicas are remembered. Beyond that no more are.
const BLOCKS_MAX: usize = 65_536;
/// Findings about one block. Clients name servers and storages as they like.
const FINDINGS_MAX: usize = 16;
/// A longer name of a storage is no data server's.
const NAME_BYTES_MAX: usize = 256;

#[derive(Default)]
pub struct OutOfSight {
    blocks: BTreeMap<BlockId, Vec<Finding>>,
}

struct Finding {
    /// The uuid. Storages are named by their servers, so the storage's name alone says nothing: a made-up server may use any.
    server: Arc<str>,
    storage: Arc<str>,
    stamp: GenerationStamp,
}

impl Finding {
    fn is_at(&self, server: &str, storage: &str) -> bool {
        *self.server == *server && *self.storage == *storage
    }
}

impl OutOfSight {
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub fn remember(&mut self, id: BlockId, stamp: GenerationStamp, server: &Arc<str>, storage: &Arc<str>) {
        let has_room = self.blocks.len() < BLOCKS_MAX || self.blocks.contains_key(&id);
        if !has_room || storage.len() > NAME_BYTES_MAX {
            return;
        }
        let findings = self.blocks.entry(id).or_default();
        findings.retain(|it| !it.is_at(server, storage));
        if findings.len() < FINDINGS_MAX {
            findings.push(Finding { server: server.clone(), storage: storage.clone(), stamp });
        }
    }

    /// Whether this storage had a rotten replica with this stamp when it was lost.
    pub fn has(&self, id: BlockId, stamp: GenerationStamp, server: &str, storage: &str) -> bool {
        let findings = self.blocks.get(&id).map_or(&[][..], Vec::as_slice);
        findings.iter().any(|it| it.is_at(server, storage) && it.stamp == stamp)
    }

    /// The server has moved the replica to another of its storages.
    pub fn follow(&mut self, id: BlockId, server: &str, from: &str, to: &Arc<str>) {
        for it in self.blocks.get_mut(&id).into_iter().flatten().filter(|it| it.is_at(server, from)) {
            it.storage = to.clone();
        }
    }

    /// A replica with this stamp has come to the storage or has gone from there. A word about an older replica than the one that was rotten says nothing.
    pub fn forget(&mut self, id: BlockId, stamp: GenerationStamp, server: &str, storage: &str) {
        if let Some(findings) = self.blocks.get_mut(&id) {
            findings.retain(|it| !it.is_at(server, storage) || it.stamp > stamp);
            if findings.is_empty() {
                self.blocks.remove(&id);
            }
        }
    }

    /// The block is gone.
    pub fn forget_block(&mut self, id: BlockId) {
        self.blocks.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_stranger_invents_take_no_more_than_their_room() {
        let (server, stamp) = (Arc::from("uuid-1"), GenerationStamp(7));
        let mut memory = OutOfSight::default();
        memory.remember(BlockId(1), stamp, &server, &"DS-1".into());
        for number in 0..1_000 {
            memory.remember(BlockId(1), stamp, &server, &format!("DS-made-up-{number}").into());
        }
        memory.remember(BlockId(2), stamp, &server, &"long".repeat(1_000).into());
        assert_eq!(memory.blocks.values().map(Vec::len).collect::<Vec<_>>(), [FINDINGS_MAX]);
        assert!(memory.has(BlockId(1), stamp, "uuid-1", "DS-1"), "what was known first stays");
    }
}
