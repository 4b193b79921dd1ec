//! Puts orders into the outbox, and tells what is in it. See [`crate::outbox`].

use crate::{
    Namespace,
    outbox::{Message, Order},
};
use base::{GroupId, TxId};
use std::sync::Arc;

impl Namespace {
    /// The messages to another group that are not known to be carried out, the oldest first.
    pub fn messages_to(&self, group: GroupId) -> impl Iterator<Item = &Arc<Message>> {
        self.tree.post.waiting.range((group, 0)..=(group, u64::MAX)).map(|(_, message)| message)
    }

    /// The groups to which messages wait.
    pub fn groups_with_messages(&self) -> Vec<GroupId> {
        let with_some = |group: &GroupId| self.messages_to(*group).next().is_some();
        self.tree.post.sent.keys().copied().filter(with_some).collect()
    }

    /// How many messages to other groups are not known to be carried out.
    pub fn messages_waiting(&self) -> u64 {
        self.tree.post.waiting.len() as u64
    }

    /// The number of the last message of this group that was carried out here.
    pub fn carried_out_of(&self, group: GroupId) -> u64 {
        self.tree.post.carried_out.get(&group).copied().unwrap_or(0)
    }

    /// After a loss: see [`crate::outbox::Post::begin_lines`].
    pub(crate) fn begin_lines_of_messages(&mut self, losses: u64) {
        if self.tree.directory_log.is_unused() {
            return;
        }
        let own = self.group();
        let others = (GroupId::ROOT.0..=GroupId::LAST.0).map(GroupId).filter(|group| *group != own);
        self.tree.post.begin_lines(losses.max(1), others);
    }

    /// Adds an order of the edit that is being applied.
    pub(crate) fn give_order(&mut self, to: GroupId, order: Order) {
        let orders = self.orders.entry(to).or_default();
        match (orders.last_mut(), order) {
            (
                Some(Order::FreeBlocks { file: last, blocks }),
                Order::FreeBlocks { file, blocks: mut more },
            ) if *last == file => blocks.append(&mut more),
            (Some(Order::Join(last)), Order::Join(mut join)) if last.file == join.file => {
                last.sources.append(&mut join.sources);
            }
            (_, order) => orders.push(order),
        }
    }

    /// Puts the orders of the edit that was applied into the outbox.
    pub(crate) fn post_orders(&mut self, at: TxId) {
        let dix = self.tree.directory_log.end.dix;
        for (to, orders) in std::mem::take(&mut self.orders) {
            let number = self.tree.post.sent.get(&to).copied().unwrap_or(0) + 1;
            self.tree.post.put(to, Message { number, at, dix, orders });
        }
    }
}
