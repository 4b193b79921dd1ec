//! What one group has to tell another about the blocks of files: orders that the other carries out once, in order.
//!
//! A file that moved to this group may have blocks in the pools of other groups. If it is deleted, say, those groups have to hear of it. The edit that deletes it
//! puts an order into the outbox for each of them. Orders of one edit to one group are one message. It is sent once the edit has committed,
//! and again until the other group has journaled that it was carried out. The numbers of messages rise by one, so that nothing is carried out twice.

use crate::{
    codec::{DecodeError, Field, Reader, Writer},
    digest::Digester,
    store::shared_map::SharedMap,
};
use base::{BlockId, GroupId, InodeId, TxId, directory_log::Dix};
use std::{collections::BTreeMap, sync::Arc};

/// What the other group has to do about a file that it has exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// The file is gone: all its blocks may go.
    Free {
        file: InodeId,
    },
    /// The file does not have these blocks any more.
    FreeBlocks {
        file: InodeId,
        blocks: Vec<BlockId>,
    },
    SetReplication {
        file: InodeId,
        replication: u16,
    },
    /// The blocks of other files are blocks of this one now, and those files are gone. It stands alone in its message.
    Join(Join),
}

/// What the other group has to know of files that were joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// The file that has the blocks now. The other group may have no export of it yet.
    pub file: InodeId,
    /// The files that are gone. The other group has an export of each.
    pub sources: Vec<InodeId>,
    /// What the file wants of its blocks.
    pub replication: u16,
    pub storage_policy: u8,
}

/// The orders of one edit to one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Rises by one from message to message, for this pair of groups. After a loss it begins anew in the next *line* of numbers: see [`Post::begin_lines`].
    pub number: u64,
    /// The edit, in the log of the group that sends.
    pub at: TxId,
    /// The place in the directory log that the sending group had come to: the receiver must have come as far, to know of the file.
    pub dix: Dix,
    pub orders: Vec<Order>,
}

/// The messages of this group to all others, and what it has carried out for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Post {
    /// Messages that are not known to be carried out.
    pub waiting: SharedMap<(GroupId, u64), Arc<Message>>,
    /// The last message to each group.
    pub sent: BTreeMap<GroupId, u64>,
    /// The last message of each group that was carried out here.
    pub carried_out: BTreeMap<GroupId, u64>,
    /// The sum of the digests of what waits.
    pub sum: u64,
}

/// The bits of a number that count messages. Those above them are the line.
const COUNT_BITS: u32 = 40;

/// Whether a group has sent no message between these two. `earlier`: 0 stands before the first message. Where a new line begins, nobody knows how many messages the lost line had: then the answer
/// is yes.
pub(crate) fn follows(earlier: u64, later: u64) -> bool {
    let line = |number: u64| number >> COUNT_BITS;
    later == earlier + 1 || line(later) > line(earlier)
}

impl Order {
    pub fn file(&self) -> InodeId {
        match self {
            Self::Free { file } | Self::FreeBlocks { file, .. } | Self::SetReplication { file, .. } => *file,
            Self::Join(Join { file, .. }) => *file,
        }
    }
}

impl Field for Order {
    fn encode(&self, out: &mut Writer<'_>) {
        match self {
            Self::Free { file } => {
                out.byte(1);
                file.encode(out);
            }
            Self::FreeBlocks { file, blocks } => {
                out.byte(2);
                file.encode(out);
                blocks.encode(out);
            }
            Self::SetReplication { file, replication } => {
                out.byte(3);
                file.encode(out);
                replication.encode(out);
            }
            Self::Join(Join { file, sources, replication, storage_policy }) => {
                out.byte(4);
                file.encode(out);
                sources.encode(out);
                replication.encode(out);
                storage_policy.encode(out);
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let kind = input.byte()?;
        let file = Field::decode(input)?;
        match kind {
            1 => Ok(Self::Free { file }),
            2 => Ok(Self::FreeBlocks { file, blocks: Field::decode(input)? }),
            3 => Ok(Self::SetReplication { file, replication: Field::decode(input)? }),
            4 => Ok(Self::Join(Join {
                file,
                sources: Field::decode(input)?,
                replication: Field::decode(input)?,
                storage_policy: Field::decode(input)?,
            })),
            _ => Err(input.malformed("an order of a kind that is not known")),
        }
    }
}

impl Field for Message {
    fn encode(&self, out: &mut Writer<'_>) {
        for number in [self.number, self.at.epoch.0, self.at.sn.0, self.dix.0] {
            out.number(number);
        }
        self.orders.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let number = input.number()?;
        let at = TxId { epoch: base::Epoch(input.number()?), sn: base::Sn(input.number()?) };
        let message = Self { number, at, dix: Dix(input.number()?), orders: Field::decode(input)? };
        let joins = message.orders.iter().any(|order| matches!(order, Order::Join(_)));
        if number == 0 || message.orders.is_empty() || joins && message.orders.len() > 1 {
            return Err(input.malformed("a message to another group that no group sends"));
        }
        Ok(message)
    }
}

impl Message {
    /// The message as bytes, for the group that is to carry it out.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut Writer(&mut bytes));
        bytes
    }

    /// # Errors
    /// The bytes are no message.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut input = Reader::new(bytes);
        let message = Self::decode(&mut input)?;
        input.finish()?;
        Ok(message)
    }

    fn digest(&self, to: GroupId) -> u64 {
        let mut digester = Digester::new(b'o');
        digester.number(to.0.into());
        digester.bytes(&self.to_bytes());
        digester.finish()
    }
}

impl Post {
    pub fn is_unused(&self) -> bool {
        self.sent.is_empty() && self.carried_out.is_empty()
    }

    pub fn put(&mut self, to: GroupId, message: Message) {
        self.sent.insert(to, message.number);
        self.sum = self.sum.wrapping_add(message.digest(to));
        self.waiting.insert((to, message.number), Arc::new(message));
    }

    /// After a loss: other groups may have got messages that this tree does not know. Their numbers must not come again, or the other groups would take new messages for the lost ones. So all
    /// numbers go on in a later line. The messages that wait get new numbers too: the other group may have got another message under the old number. If it has got the same one, it carries out
    /// the orders a second time, and that changes nothing.
    ///
    /// `lines`: how many losses there may have been. Each has begun a line.
    pub fn begin_lines(&mut self, lines: u64, others: impl Iterator<Item = GroupId>) {
        for group in others {
            let line = (self.sent.get(&group).copied().unwrap_or(0) >> COUNT_BITS).saturating_add(lines);
            let mut number = line.min(u64::MAX >> COUNT_BITS) << COUNT_BITS;
            let waiting = self.waiting.range((group, 0)..=(group, u64::MAX));
            let waiting: Vec<Arc<Message>> = waiting.map(|(_, message)| message.clone()).collect();
            self.acknowledged(group, u64::MAX);
            for message in waiting {
                number += 1;
                self.put(group, Message { number, ..(*message).clone() });
            }
            self.sent.insert(group, number);
        }
    }

    /// The other group has carried out all messages up to this one.
    pub fn acknowledged(&mut self, by: GroupId, number: u64) {
        let done: Vec<u64> =
            self.waiting.range((by, 0)..=(by, number)).map(|((_, number), _)| *number).collect();
        for number in done {
            if let Some(message) = self.waiting.remove(&(by, number)) {
                self.sum = self.sum.wrapping_sub(message.digest(by));
            }
        }
    }

    pub fn digest(&self) -> u64 {
        let mut digester = Digester::new(b'm');
        digester.number(self.sum);
        for (group, number) in self.sent.iter().chain(&self.carried_out) {
            digester.number(group.0.into());
            digester.number(*number);
        }
        digester.number(self.sent.len() as u64);
        digester.finish()
    }

    /// Whether the other group may still have something to do about this file.
    pub fn is_about(&self, file: InodeId) -> bool {
        self.waiting.iter().any(|(_, message)| message.orders.iter().any(|order| order.file() == file))
    }
}
