//! Clients write the blocks of their files to data servers.

use super::words::Event;
use crate::cluster::{
    client::{Pending, Writing},
    happening::Happening,
    request::{Answer, Request},
    world::World,
};
use base::Block;
use blocks::{Increment, ReplicaState};
use namespace::{Reply, Request as Change};

impl World {
    /// A client has an answer: it may go on writing a file. True if it is busy with that.
    pub(in crate::cluster) fn goes_on_writing(
        &mut self,
        client: usize,
        current: &Pending,
        answer: &Answer,
    ) -> bool {
        if self.data.is_none() {
            return false;
        }
        match (&current.request, answer) {
            (Request::Change(Change::Create(request)), Answer::Reply(Reply::Created(inode))) => {
                if self.room().dice.chance(85) {
                    let path = request.path.clone();
                    let next = Request::AddBlock { path: path.clone(), inode: *inode, previous: None };
                    let one = &mut self.clients[client];
                    one.writing = Some(Writing { path, inode: *inode, block: None, call: 0, copies: 0 });
                    one.next = Some(next);
                }
                false
            }
            (Request::AddBlock { .. }, Answer::Placed { block, targets }) => {
                self.begin_pipeline(client, current.key.call, *block, targets);
                true
            }
            _ => {
                self.clients[client].writing = None;
                false
            }
        }
    }

    fn begin_pipeline(&mut self, client: usize, call: u32, block: Block, targets: &[usize]) {
        let room = self.room();
        let block = Block { length: 100 + room.dice.below(900), ..block };
        let mut ends_ms = 5;
        let mut events = Vec::new();
        for server in targets.iter().copied() {
            let begins_ms = 1 + room.dice.below(3);
            let takes_ms = if room.dice.chance(90) { room.dice.below(20) } else { room.dice.below(300) };
            let life = room.servers[server].life;
            events.push((begins_ms, Event::Writing { server, life, block }));
            events.push((begins_ms + takes_ms, Event::Written { server, life, block, client, call }));
            ends_ms = ends_ms.max(begins_ms + takes_ms + 1);
        }
        for (ms, event) in events {
            self.later(ms * 1_000_000, event);
        }
        if let Some(writing) = &mut self.clients[client].writing {
            (writing.block, writing.call, writing.copies) = (Some(block), call, 0);
        }
        self.later(ends_ms * 1_000_000, Event::PipelineEnded { client, call });
    }

    /// The connection was made to this life of the data server: to a process that begins meanwhile nobody sends anything.
    pub(super) fn begin_replica(&mut self, server: usize, life: u64, block: Block) {
        let it = &self.room().servers[server];
        let takes = it.is_running && !it.is_paused && it.life == life;
        if takes && self.add_replica(server, block, ReplicaState::BeingWritten) {
            self.tell_news(server, &Increment::Receiving(Block { length: 0, ..block }));
        }
    }

    pub(super) fn finish_replica(
        &mut self,
        server: usize,
        life: u64,
        block: Block,
        client: usize,
        call: u32,
    ) {
        let it = &mut self.room().servers[server];
        let is_same_process = it.is_running && it.life == life;
        let Some(replica) = it.replicas.get_mut(&block.id).filter(|_| is_same_process) else { return };
        if replica.state != ReplicaState::BeingWritten {
            return;
        }
        replica.state = ReplicaState::Finalized;
        self.tell_news(server, &Increment::Received { block, delete_hint: None });
        if let Some(writing) = self.clients[client].writing.as_mut().filter(|writing| writing.call == call) {
            writing.copies += 1;
        }
    }

    /// The client closes the file, or asks for another block; without any copy it gives up.
    pub(super) fn pipeline_ended(&mut self, client: usize, call: u32) {
        let Some(writing) = self.clients[client].writing.clone().filter(|writing| writing.call == call)
        else {
            return;
        };
        let Writing { path, inode, block, copies, .. } = writing;
        let room = self.room();
        match block.filter(|_| copies > 0) {
            Some(block) => {
                room.counts.blocks_written += 1;
                let goes_on = room.dice.chance(20);
                self.clients[client].next = Some(match goes_on {
                    true => Request::AddBlock { path, inode, previous: Some(block) },
                    false => Request::Complete { path, inode, last: block },
                });
            }
            None => self.clients[client].writing = None,
        }
        self.after_ms(1, Happening::Think { client });
    }
}
