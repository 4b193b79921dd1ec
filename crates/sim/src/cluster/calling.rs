//! Clients: their requests, the members that they ask, and their next step without an answer.

use super::{
    client::{CallCopy, CallKey, Pending},
    happening::{Arrival, ClientReply, Happening},
    request::Request,
    world::World,
};
use crate::truth::Broken;

/// After so long without an answer a client asks another member.
const PATIENCE_MS: u64 = 1_500;
/// So many reads go to any member, and not to the one that the client has found to lead.
const READS_ELSEWHERE_PERCENT: u64 = 50;
/// A writer whose file cannot be closed gives up after so many tries.
const TRIES_MAX: u32 = 60;

impl World {
    pub(super) fn begin_call(&mut self, client: usize) {
        if self.is_closing || self.clients[client].current.is_some() {
            return;
        }
        let request = if let Some(next) = self.clients[client].next.take() {
            next
        } else if client < self.readers {
            Request::random_read(&mut self.dice)
        } else if self.data.is_some() {
            Request::random_of_files(&mut self.dice)
        } else {
            Request::random(&mut self.dice)
        };
        let one = &mut self.clients[client];
        one.calls += 1;
        let key = CallKey { client: client as u32, call: one.calls };
        let floor = self.observer.answered;
        one.current = Some(Pending { key, request, begun_ns: self.now_ns, tries: 0, repeats: 0, floor });
        self.send_call(client);
    }

    fn send_call(&mut self, client: usize) {
        let favourite = self.clients[client].favourite;
        let Some(current) = &mut self.clients[client].current else { return };
        current.tries += 1;
        current.repeats = 0;
        let (key, request, tries) = (current.key, current.request.clone(), current.tries);
        let copy = CallCopy { key, retry_count: tries - 1, repeats: 0 };
        let goes_elsewhere = self.standbys_read
            && matches!(request, Request::Read(_))
            && self.dice.chance(READS_ELSEWHERE_PERCENT);
        let seat = match goes_elsewhere {
            true => self.dice.below(self.servers.len() as u64) as usize,
            false => favourite,
        };
        if self.servers[seat].is_running {
            self.holding.note_call(key, &request);
            let what = Arrival::Call { copy, request };
            let is_late = self.dice.chance(3);
            if is_late {
                // A copy sits in a socket for a while.
                let (life, late_ms) = (self.servers[seat].life, self.dice.below(3_000));
                self.after_ms(late_ms, Happening::Arrival { seat, life, what: what.clone() });
            }
            // Members that hold calls must not be given one copy twice: they tell copies apart by their numbers.
            if !is_late || !self.holding.is_on() {
                self.soon_for(seat, what);
            }
            self.after_ms(PATIENCE_MS, Happening::Timeout { client, key, tries });
        } else {
            self.soon(Happening::Replied { copy, reply: ClientReply::NotActive });
        }
    }

    fn is_awaited(&self, client: usize, key: CallKey, tries: u32) -> bool {
        let current = self.clients[client].current.as_ref();
        current.is_some_and(|current| current.key == key && current.tries == tries)
    }

    pub(super) fn ask_again(&mut self, client: usize, key: CallKey, tries: u32) {
        if self.is_awaited(client, key, tries) {
            self.send_call(client);
        }
    }

    pub(super) fn timed_out(&mut self, client: usize, key: CallKey, tries: u32) {
        if self.is_awaited(client, key, tries) {
            self.clients[client].favourite = (self.clients[client].favourite + 1) % self.servers.len();
            self.send_call(client);
        }
    }

    /// A client hears the answer to the copy that it has sent last: it has given up the connections of those before.
    pub(super) fn replied(&mut self, copy: CallCopy, reply: ClientReply) -> Result<(), Broken> {
        let CallCopy { key, retry_count, repeats } = copy;
        let client = key.client as usize;
        let is_awaited = |current: &Pending| {
            current.key == key && current.tries == retry_count + 1 && current.repeats == repeats
        };
        let Some(current) = self.clients[client].current.clone().filter(is_awaited) else {
            return Ok(());
        };
        match reply {
            ClientReply::NotActive => {
                // The call goes to the next member a little later.
                let (tries, wait_ms) = (current.tries, 5 + self.dice.below(50));
                self.after_ms(wait_ms, Happening::Timeout { client, key, tries });
                Ok(())
            }
            ClientReply::NotYet if current.tries > TRIES_MAX => {
                // The writer gives up. What it has asked for may yet be done.
                let one = &mut self.clients[client];
                (one.current, one.writing) = (None, None);
                self.after_ms(50, Happening::Think { client });
                Ok(())
            }
            ClientReply::NotYet => {
                let tries = current.tries;
                self.after_ms(40, Happening::Again { client, key, tries });
                Ok(())
            }
            ClientReply::Done { answer, rests_on, kind, is_doubtful } => {
                self.clients[client].current = None;
                self.holding.told(copy);
                self.observer.answered(self.now_ns, &current, &answer, rests_on, kind, is_doubtful)?;
                if self.goes_on_writing(client, &current, &answer) {
                    return Ok(());
                }
                let wait_ms = self.dice.below(self.think_ms.max(1));
                self.after_ms(wait_ms, Happening::Think { client });
                Ok(())
            }
        }
    }
}
