//! The writers: a pipeline is set up, mended and closed, and the file is appended to.

use super::{Replica, SERVERS, World};
use base::{GenerationStamp, ReplicaState};

impl World {
    pub(super) fn set_up(&mut self) {
        let first = self.below(SERVERS);
        self.pipeline = (0..3).map(|step| (first + step) % SERVERS).collect();
        self.named = self.pipeline.clone();
        for place in self.pipeline.clone() {
            if !self.one_in(40) {
                self.servers[place].replica = Some(Replica {
                    stamp: 1,
                    state: ReplicaState::BeingWritten,
                    bytes: Vec::new(),
                    recovering: None,
                    is_torn: false,
                });
            }
        }
    }

    /// The replica of a server that goes on writing under the writer's stamp.
    fn written(&mut self, place: usize) -> Option<&mut Replica> {
        let (stamp, server) = (self.stamp, &mut self.servers[place]);
        let replica = server.replica.as_mut().filter(|_| !server.is_down)?;
        let is_written = replica.state == ReplicaState::BeingWritten
            && replica.stamp == stamp
            && replica.recovering.is_none();
        is_written.then_some(replica)
    }

    fn is_intact(&mut self) -> bool {
        self.pipeline.clone().into_iter().all(|place| self.written(place).is_some())
    }

    /// False if the writer dies.
    pub(super) fn write(&mut self) -> bool {
        for _ in 0..5 + self.below(60) {
            match self.below(20) {
                0..4 => {
                    let count = 1 + self.below(2);
                    self.stream.extend(vec![self.writer; count]);
                }
                4..12 => self.flow(),
                12..16 => self.acknowledge(),
                16 => self.mishap(),
                17 if self.one_in(3) => return false,
                _ if !self.is_intact() && !self.mend() => return false,
                _ => {}
            }
        }
        true
    }

    /// A packet reaches a server from the one before it.
    pub(super) fn flow(&mut self) {
        let step = self.below(self.pipeline.len());
        let from = match step {
            0 => self.stream.clone(),
            _ => {
                let above = self.pipeline[step - 1];
                let Some(replica) = self.written(above) else { return };
                replica.bytes.clone()
            }
        };
        let count = 1 + self.below(3);
        let place = self.pipeline[step];
        if let Some(replica) = self.written(place) {
            let end = from.len().min(replica.bytes.len() + count);
            let begin = replica.bytes.len().min(end);
            replica.bytes.extend_from_slice(&from[begin..end]);
        }
    }

    /// All servers have some bytes: the writer hears of it.
    pub(super) fn acknowledge(&mut self) {
        if self.is_intact() {
            let places = self.pipeline.clone();
            let lengths = places.into_iter().map(|place| self.written(place).map_or(0, |it| it.bytes.len()));
            let length = lengths.min().unwrap_or(0);
            if length > self.acknowledged.len() {
                self.acknowledged = self.stream[..length].to_vec();
            }
        }
    }

    /// The pipeline goes on without those that are lost, under a new stamp, and perhaps with another server. The
    /// metadata service knows of it before a byte is sent. False if the writer dies, or gives up.
    fn mend(&mut self) -> bool {
        let mut rest = self.pipeline.clone();
        rest.retain(|place| self.written(*place).is_some());
        if rest.is_empty() {
            return false;
        }
        let (old, new) = (self.stamp, self.next_stamp());
        let length = self.acknowledged.len();
        let newcomer = self.below(SERVERS);
        if !self.servers[newcomer].is_down && self.servers[newcomer].replica.is_none() {
            let mut copy = self.written(rest[0]).expect("it goes on").clone();
            (copy.state, copy.stamp) = (ReplicaState::Temporary, new);
            copy.bytes.truncate(length / 2);
            self.servers[newcomer].replica = Some(copy);
            if self.one_in(4) {
                self.named.push(newcomer);
                return false;
            }
            let copy = self.servers[newcomer].replica.as_mut().expect("just made");
            (copy.state, copy.bytes) = (ReplicaState::BeingWritten, self.stream[..length].to_vec());
            rest.push(newcomer);
        }
        for place in rest.clone() {
            self.stamp = old;
            if let Some(replica) = self.written(place) {
                replica.bytes.truncate(length);
                replica.stamp = new;
            }
            if self.one_in(15) {
                return false;
            }
        }
        self.stamp = new;
        self.known.generation_stamp = GenerationStamp(new);
        // Sometimes the metadata service still names the others: their stamp tells that they do not count.
        if self.below(2) == 0 {
            self.named.clear();
        }
        self.named.extend(&rest);
        self.named.sort_unstable();
        self.named.dedup();
        self.pipeline = rest;
        true
    }

    /// The last packet goes down the line. True if the file is closed.
    pub(super) fn close(&mut self) -> bool {
        for place in self.pipeline.clone() {
            let stream = self.stream.clone();
            let dies = self.one_in(6);
            let Some(replica) = self.written(place).filter(|_| !dies && !stream.is_empty()) else {
                return false;
            };
            (replica.bytes, replica.state) = (stream, ReplicaState::Finalized);
        }
        self.acknowledged = self.stream.clone();
        self.known.length = self.stream.len() as u64;
        !self.one_in(4)
    }

    /// Another writer appends where the last one ended. Returns false if it dies.
    pub(super) fn append(&mut self, keeps_stamp: bool) -> bool {
        let known = self.known;
        let mut holders: Vec<usize> = (0..SERVERS).collect();
        holders.retain(|place| {
            let server = &self.servers[*place];
            server.replica.as_ref().is_some_and(|it| it.state == ReplicaState::Finalized)
                && server.replica.as_ref().is_some_and(|it| it.stamp == known.generation_stamp.0)
        });
        self.named = holders.clone();
        holders.retain(|place| !self.servers[*place].is_down);
        let away = self.below(8);
        holders.retain(|place| *place != away);
        if holders.is_empty() {
            return false;
        }
        self.writer += 1;
        self.keeps_stamp = keeps_stamp;
        let stamp = if keeps_stamp { self.stamp } else { self.next_stamp() };
        for place in &holders {
            let replica = self.servers[*place].replica.as_mut().expect("it has one");
            (replica.state, replica.stamp) = (ReplicaState::BeingWritten, stamp);
            if self.one_in(15) {
                return false;
            }
        }
        (self.stamp, self.pipeline) = (stamp, holders);
        self.known.generation_stamp = GenerationStamp(stamp);
        true
    }
}
