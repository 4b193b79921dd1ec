//! The recoveries: what their leaders do, and the stores of the servers.

use super::{ID, Leader, Work, World};
use crate::recovery::{BlockRecovery, Commit, Failure, Outcome, RecoveryOrder};
use base::{Block, Candidate, GenerationStamp, ReplicaState};

impl World {
    /// The writer is taken for dead, rightly or not.
    pub(super) fn recover(&mut self) {
        // The metadata service does not name a server that has been away for long. That server may come back later.
        if self.one_in(4) {
            self.named.retain(|place| !self.servers[*place].is_down);
        }
        for _ in 0..60 {
            match self.below(24) {
                0..2 => self.mishap(),
                2 if self.truncation.is_none() => self.flow(),
                3 if self.truncation.is_none() => self.acknowledge(),
                4 => self.order(),
                5 if !self.leaders.is_empty() => {
                    let dead = self.below(self.leaders.len());
                    self.leaders.remove(dead);
                }
                _ if self.leaders.is_empty() => self.order(),
                _ => self.go_on(),
            }
            if self.has_ended || self.fault.is_some() {
                return;
            }
        }
        self.settle_down();
    }

    /// All servers are there again: the next recovery comes to an end, if there is anything left.
    fn settle_down(&mut self) {
        self.is_calm = true;
        self.leaders.clear();
        for server in &mut self.servers {
            server.is_down = false;
        }
        self.order();
        while !self.leaders.is_empty() && self.fault.is_none() {
            self.go_on();
        }
    }

    fn order(&mut self) {
        let order = RecoveryOrder {
            block: self.known,
            stamp: GenerationStamp(self.next_stamp()),
            truncation: self.truncation,
            target: ID,
            servers: self.named.iter().map(|place| place.to_string().into()).collect(),
        };
        let (stamp, work) = (order.stamp.0, Work::Asking(BlockRecovery::new(order)));
        self.leaders.push(Leader { stamp, work, heard: Vec::new(), answers: 0 });
    }

    /// One leader does one thing.
    fn go_on(&mut self) {
        let place = self.below(self.leaders.len());
        let mut leader = self.leaders.remove(place);
        match leader.work {
            Work::Asking(mut recovery) => match recovery.ask() {
                Some(server) => {
                    let place = self.named[server];
                    let answer = self.begin(place, leader.stamp);
                    leader.answers += usize::from(answer.is_ok());
                    if let Ok(Some(found)) = &answer {
                        leader.heard.push((place, *found));
                    }
                    recovery.answered(server, answer);
                    self.leaders.push(Leader { work: Work::Asking(recovery), ..leader });
                }
                None => match recovery.decide_by(self.rule) {
                    Ok(Outcome::Delete) => self.commit(leader.stamp, &Commit::deletion()),
                    Ok(Outcome::Agreed(agreement)) => {
                        self.judge(agreement.length(), &leader.heard);
                        let left = agreement.participants();
                        self.leaders.push(Leader { work: Work::Taking(agreement, left), ..leader });
                    }
                    Err(error) => self.judge_refusal(&error, &leader.heard, leader.answers),
                },
            },
            Work::Taking(mut agreement, mut left) => match left.pop() {
                Some(participant) => {
                    let place = self.named[participant.server];
                    let length = agreement.length();
                    let word = self.finish(place, participant.replica, leader.stamp, length);
                    agreement.finished(participant.server, word);
                    self.leaders.push(Leader { work: Work::Taking(agreement, left), ..leader });
                }
                None => match agreement.commit() {
                    Ok(commit) => self.commit(leader.stamp, &commit),
                    Err(error) => self.judge_refusal(&error, &leader.heard, leader.answers),
                },
            },
        }
    }

    /// A data server's answer to the question of a recovery, by the rules of its block store. `None`: it has no such
    /// replica.
    pub(super) fn begin(&mut self, place: usize, recovery: u64) -> Result<Option<Candidate>, Failure> {
        let unknown = Err(Failure::Unknown("no answer".into()));
        let (is_heard, is_answered) = (!self.one_in(10), !self.one_in(10));
        let wanted = self.known.generation_stamp.0;
        let server = &mut self.servers[place];
        if server.is_down || !is_heard {
            return unknown;
        }
        let Some(replica) = &mut server.replica else { return Ok(None) };
        if replica.stamp < wanted || replica.stamp >= recovery {
            return unknown;
        }
        if replica.recovering.is_some_and(|earlier| earlier >= recovery) {
            return Err(Failure::Superseded("being recovered".into()));
        }
        replica.recovering = Some(recovery);
        let block = Block {
            id: ID,
            generation_stamp: GenerationStamp(replica.stamp),
            length: replica.bytes.len() as u64,
        };
        if is_answered { Ok(Some(Candidate { block, state: replica.state })) } else { unknown }
    }

    /// A data server takes the agreed length, by the rules of its block store.
    pub(super) fn finish(
        &mut self,
        place: usize,
        told: Block,
        recovery: u64,
        length: u64,
    ) -> Result<String, String> {
        let (is_heard, is_answered, dies) = (!self.one_in(10), !self.one_in(10), self.one_in(15));
        let server = &mut self.servers[place];
        let replica = server.replica.as_mut().filter(|_| !server.is_down && is_heard).ok_or("no answer")?;
        let has = replica.bytes.len() as u64;
        if replica.recovering != Some(recovery) || has != told.length || length > has {
            return Err("refused".into());
        }
        (replica.stamp, replica.recovering) = (recovery, None);
        if dies && (replica.state != ReplicaState::Finalized || has > length) {
            (replica.state, server.is_down) = (ReplicaState::WaitingRecovery, true);
            return Err("no answer".into());
        }
        replica.bytes.truncate(length as usize);
        replica.state = ReplicaState::Finalized;
        if is_answered { Ok(place.to_string()) } else { Err("no answer".into()) }
    }
}
