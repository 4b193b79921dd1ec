//! Replicas that are on their way: copies that were ordered, and the pipeline's replicas of a block just
//! completed that have not been reported yet.

use base::{BlockId, Moment};
use std::collections::BTreeMap;

struct Awaited {
    /// Indices of servers. The replica may end on another storage of the server than was chosen.
    servers: Vec<u32>,
    /// Those of the pipeline with which a client has finished the block.
    writers: Vec<Writer>,
    sender: Sender,
    deadline: Moment,
}

/// A server of a client's pipeline, and the storage that was chosen there; indices of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    pub server: u32,
    pub place: u32,
}

/// The server that sends replicas of a block which are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The index of the only one.
    One(u32),
    /// Several, or a client.
    Others,
}

impl Sender {
    pub fn and(self, other: Self) -> Self {
        if self == other { self } else { Self::Others }
    }
}

#[derive(Default)]
pub struct Pending {
    blocks: BTreeMap<BlockId, Awaited>,
    /// No deadline is earlier.
    next_deadline: Moment,
}

impl Pending {
    pub fn add(
        &mut self,
        id: BlockId,
        servers: impl IntoIterator<Item = u32>,
        sender: Sender,
        deadline: Moment,
    ) {
        let mut servers = servers.into_iter().peekable();
        if servers.peek().is_none() {
            return;
        }
        if self.blocks.is_empty() {
            self.next_deadline = deadline;
        }
        self.next_deadline = self.next_deadline.min(deadline);
        let new = Awaited { servers: Vec::new(), writers: Vec::new(), sender, deadline };
        let awaited = self.blocks.entry(id).or_insert(new);
        awaited.deadline = deadline;
        awaited.sender = awaited.sender.and(sender);
        for server in servers {
            if !awaited.servers.contains(&server) {
                awaited.servers.push(server);
            }
        }
    }

    /// Awaits the rest of a finished block's pipeline. Replicas that it reports now are those that the client has
    /// written.
    pub fn add_writers(&mut self, id: BlockId, writers: Vec<Writer>, deadline: Moment) {
        self.add(id, writers.iter().map(|writer| writer.server), Sender::Others, deadline);
        if let Some(awaited) = self.blocks.get_mut(&id) {
            awaited.writers = writers;
        }
    }

    /// Those whose replicas are awaited from a client's pipeline.
    pub fn writers(&self, id: BlockId) -> &[Writer] {
        self.blocks.get(&id).map_or(&[], |awaited| &awaited.writers)
    }

    pub fn servers(&self, id: BlockId) -> &[u32] {
        self.blocks.get(&id).map_or(&[], |awaited| &awaited.servers)
    }

    /// The server that alone sends what is awaited there.
    pub fn only_sender_to(&self, id: BlockId, server: u32) -> Option<u32> {
        let awaited = self.blocks.get(&id).filter(|awaited| awaited.servers.contains(&server))?;
        match awaited.sender {
            Sender::One(source) => Some(source),
            Sender::Others => None,
        }
    }

    /// True if it was awaited from the pipeline of a client.
    pub fn arrived(&mut self, id: BlockId, server: u32) -> bool {
        let Some(awaited) = self.blocks.get_mut(&id) else { return false };
        let was_writer = awaited.writers.iter().any(|writer| writer.server == server);
        awaited.servers.retain(|held| *held != server);
        awaited.writers.retain(|writer| writer.server != server);
        if awaited.servers.is_empty() {
            self.blocks.remove(&id);
        }
        was_writer
    }

    /// Returns who sends what was awaited.
    pub fn remove(&mut self, id: BlockId) -> Option<Sender> {
        self.blocks.remove(&id).map(|awaited| awaited.sender)
    }

    /// Awaits nothing any more. Returns what was awaited, and from whom.
    pub fn clear(&mut self) -> impl Iterator<Item = (BlockId, Sender)> + use<> {
        std::mem::take(&mut self.blocks).into_iter().map(|(id, awaited)| (id, awaited.sender))
    }

    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Each block, when it is given up, and how many replicas of it are on their way.
    pub fn iter(&self) -> impl Iterator<Item = (BlockId, Moment, usize)> + '_ {
        self.blocks.iter().map(|(id, awaited)| (*id, awaited.deadline, awaited.servers.len()))
    }

    /// The server is gone: nothing will arrive there. Returns the blocks that waited for it, and who sends them.
    pub fn forget_server(&mut self, server: u32) -> Vec<(BlockId, Sender)> {
        let touched: Vec<_> = self
            .blocks
            .iter()
            .filter(|(_, awaited)| awaited.servers.contains(&server))
            .map(|(id, awaited)| (*id, awaited.sender))
            .collect();
        for (id, _) in &touched {
            self.arrived(*id, server);
        }
        touched
    }

    /// Removes and returns what did not arrive in time, and who sends it.
    pub fn overdue(&mut self, now: Moment) -> Vec<(BlockId, Sender)> {
        if self.blocks.is_empty() || now < self.next_deadline {
            return Vec::new();
        }
        let late = |awaited: &Awaited| awaited.deadline <= now;
        let overdue: Vec<_> = self
            .blocks
            .iter()
            .filter(|(_, awaited)| late(awaited))
            .map(|(id, awaited)| (*id, awaited.sender))
            .collect();
        for (id, _) in &overdue {
            self.blocks.remove(id);
        }
        self.next_deadline = self.blocks.values().map(|awaited| awaited.deadline).min().unwrap_or_default();
        overdue
    }
}
