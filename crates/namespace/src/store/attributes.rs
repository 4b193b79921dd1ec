//! The attributes that many inodes share: owner, group, mode, replication, block size, policy, and an ACL if there is
//! one. Each combination is kept once, as long as an inode has it.

use super::{
    arena::{Arena, NONE, Slot},
    strings::{StringIndex, Strings},
};
use crate::{acl::Acl, digest::Digester};
use hashbrown::HashTable;
use std::sync::Arc;

#[derive(Clone)]
pub(crate) struct Attributes {
    pub owner: u32,
    pub group: u32,
    /// Nine permission bits and the sticky bit.
    pub mode: u16,
    /// 0 for directories.
    pub replication: u16,
    pub storage_policy: u8,
    pub block_size: u64,
    pub acl: Option<Arc<Acl>>,
    /// A digest of the contents, texts and all; also the key of the index.
    pub digest: u64,
    uses: u32,
}

impl Default for Attributes {
    fn default() -> Self {
        Self {
            owner: NONE,
            group: NONE,
            mode: 0,
            replication: 0,
            storage_policy: 0,
            block_size: 0,
            acl: None,
            digest: 0,
            uses: 0,
        }
    }
}

impl Slot for Attributes {
    fn next_free(&self) -> u32 {
        self.owner
    }
    fn set_next_free(&mut self, next: u32) {
        self.owner = next;
    }
}

/// A combination as an edit or an image names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AttributeValues<'a> {
    pub owner: &'a str,
    pub group: &'a str,
    pub mode: u16,
    pub replication: u16,
    pub storage_policy: u8,
    pub block_size: u64,
    pub acl: Option<&'a Arc<Acl>>,
}

impl AttributeValues<'_> {
    fn digest(&self) -> u64 {
        let mut digester = Digester::new(b'a');
        digester.bytes(self.owner.as_bytes());
        digester.bytes(self.group.as_bytes());
        digester.number(u64::from(self.mode) | u64::from(self.replication) << 16);
        digester.number(self.block_size);
        digester.number(u64::from(self.storage_policy));
        // Nothing for none: digests are older than ACLs.
        for entry in self.acl.iter().flat_map(|acl| acl.entries()) {
            let kind = u64::from(entry.scope as u8) << 8 | u64::from(entry.kind as u8);
            digester.number(1 << 16 | kind << 4 | u64::from(entry.permission));
            digester.bytes(entry.name.as_deref().unwrap_or_default().as_bytes());
        }
        digester.finish()
    }
}

impl Attributes {
    pub fn uses(&self) -> u32 {
        self.uses
    }
}

pub(crate) type AttributeArena = Arena<Attributes>;

impl AttributeArena {
    pub fn values<'a>(&'a self, handle: u32, strings: &'a Strings) -> AttributeValues<'a> {
        let slot = self.get(handle);
        AttributeValues {
            owner: strings.text(slot.owner),
            group: strings.text(slot.group),
            mode: slot.mode,
            replication: slot.replication,
            storage_policy: slot.storage_policy,
            block_size: slot.block_size,
            acl: slot.acl.as_ref(),
        }
    }
}

/// Finds the handle of a combination.
pub(crate) struct AttributeIndex {
    seed: u64,
    handles: HashTable<u32>,
}

impl AttributeIndex {
    pub fn new(seed: u64) -> Self {
        Self { seed, handles: HashTable::new() }
    }

    pub fn bytes(&self) -> usize {
        self.handles.allocation_size()
    }

    /// Counts one more use of a combination, which is stored if it is new.
    pub fn acquire(
        &mut self,
        arena: &mut AttributeArena,
        strings: &mut Strings,
        names: &mut StringIndex,
        values: AttributeValues<'_>,
    ) -> u32 {
        let digest = values.digest();
        let seed = self.seed;
        let found = self.handles.find(digest ^ seed, |handle| arena.values(*handle, strings) == values);
        if let Some(handle) = found {
            arena.get_mut(*handle).uses += 1;
            return *handle;
        }
        let handle = arena.insert(Attributes {
            owner: names.acquire(strings, values.owner),
            group: names.acquire(strings, values.group),
            mode: values.mode,
            replication: values.replication,
            storage_policy: values.storage_policy,
            block_size: values.block_size,
            acl: values.acl.cloned(),
            digest,
            uses: 1,
        });
        self.handles.insert_unique(digest ^ seed, handle, |handle| arena.get(*handle).digest ^ seed);
        handle
    }

    /// Counts one more use of a combination whose handle is known.
    pub fn acquire_again(&self, arena: &mut AttributeArena, handle: u32) {
        arena.get_mut(handle).uses += 1;
    }

    pub fn release(
        &mut self,
        arena: &mut AttributeArena,
        strings: &mut Strings,
        names: &mut StringIndex,
        handle: u32,
    ) {
        let slot = arena.get_mut(handle);
        slot.uses -= 1;
        if slot.uses > 0 {
            return;
        }
        let (owner, group, digest) = (slot.owner, slot.group, slot.digest);
        if let Ok(entry) = self.handles.find_entry(digest ^ self.seed, |other| *other == handle) {
            entry.remove();
        }
        names.release(strings, owner);
        names.release(strings, group);
        arena.remove(handle);
    }
}
