//! Reads the section about files that live in other groups, and about what those groups are told.

use super::{
    EXPORTS_VERSION, Section,
    read::{Image, Result},
};
use crate::{
    directory_log::ENTRY_BYTES_LIMIT,
    exports::Export,
    outbox::Message,
    store::{NONE, block_list::Stored},
};
use base::{GroupId, InodeId};

impl Image<'_> {
    pub(super) fn exports(&mut self) -> Result<()> {
        self.section = Section::Exports;
        let version = self.byte()?;
        if version != EXPORTS_VERSION {
            return Err(self.malformed(format!("version {version} is not known; {EXPORTS_VERSION} is")));
        }
        let own = self.ns.group();
        let mut last = InodeId(0);
        for _ in 0..self.number()? {
            let to = self.other_group()?;
            let (handle, _) = self.inode(NONE, NONE)?;
            let inode = self.ns.tree.inode(handle);
            let id = inode.id();
            let is_sound = inode.is_file() && !inode.is_open() && id > last;
            let is_foreign = |stored: Stored| stored.block.id.pool_number() != own.number().into();
            if !is_sound || self.ns.tree.blocks_of(handle).any(is_foreign) {
                return Err(self.malformed(format!("inode {id} is no export")));
            }
            last = id;
            self.ns.set_export(id, Some(Export { to, handle }));
        }
        for is_sent in [true, false] {
            for _ in 0..self.below(u64::from(GroupId::LAST.0) + 1, "number of groups")? {
                let (group, number) = (self.other_group()?, self.number()?);
                let post = &mut self.ns.tree.post;
                let numbers = if is_sent { &mut post.sent } else { &mut post.carried_out };
                if number == 0 || numbers.last_key_value().is_some_and(|(last, _)| *last >= group) {
                    return Err(self.malformed("numbers of messages that no member writes"));
                }
                numbers.insert(group, number);
            }
        }
        self.messages()
    }

    fn messages(&mut self) -> Result<()> {
        let mut last = (GroupId(0), 0);
        for _ in 0..self.number()? {
            let to = self.other_group()?;
            let mut bytes = Vec::new();
            for _ in 0..self.below(ENTRY_BYTES_LIMIT, "length of a message")? {
                bytes.push(self.byte()?);
            }
            let message = Message::from_bytes(&bytes);
            let message = message.map_err(|error| self.malformed(format!("a message to {to}: {error}")))?;
            let sent = self.ns.tree.post.sent.get(&to).copied().unwrap_or(0);
            if (to, message.number) <= last || message.number > sent {
                return Err(self.malformed(format!("message {} to group {to} was not sent", message.number)));
            }
            last = (to, message.number);
            let post = &mut self.ns.tree.post;
            post.put(to, message);
            post.sent.insert(to, sent);
        }
        Ok(())
    }

    fn other_group(&mut self) -> Result<GroupId> {
        let group = GroupId(self.below(u64::from(GroupId::LAST.0) + 1, "number of a group")? as u32);
        match group == self.ns.group() || !group.is_possible() {
            true => Err(self.malformed(format!("group {group} stands for another one"))),
            false => Ok(group),
        }
    }
}
