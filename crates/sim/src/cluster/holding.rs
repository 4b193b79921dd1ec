//! Calls at members that do not serve: held, handed to the member that does, and sent again where their fate is unknown.
//!
//! This is played as `metad` does it. A held copy goes out when its member leads again, or when it hears of another that
//! does. So copies of a call come late, in the epochs of later actives.

use super::{
    client::CallCopy,
    happening::{Arrival, ClientReply, Happening},
    request::Request,
    world::{World, seat_of},
};
use crate::truth::Broken;

/// How long a member holds a call.
const HOLD_NS: u64 = 8_000_000_000;

impl World {
    /// A member cannot answer this copy. `is_begun`: it may have carried it out.
    pub(super) fn pass_on(&mut self, seat: usize, copy: CallCopy, is_begun: bool) {
        if !self.holding.is_on {
            return self.reply(copy, ClientReply::NotActive);
        }
        let request = self.holding.requests.get(&copy.key).cloned();
        let is_full = self.dice.chance(20);
        let Some(request) = request.filter(|_| !is_full) else {
            return self.reply(copy, ClientReply::NotActive);
        };
        let Some(copy) = (if is_begun { self.repeated(copy) } else { Some(copy) }) else { return };
        let since_ns = self.now_ns;
        self.hold(seat, copy, request, since_ns);
    }

    /// The copy that a member sends after one whose fate it does not know; `None` if the client has heard an answer to that, or
    /// another copy was sent in its place before.
    fn repeated(&mut self, copy: CallCopy) -> Option<CallCopy> {
        if self.holding.told.get(&copy.key).is_some_and(|told| told.retry_count == copy.retry_count) {
            return None;
        }
        let latest = self.holding.repeats.entry((copy.key, copy.retry_count)).or_default();
        if *latest > copy.repeats {
            return None;
        }
        *latest = copy.repeats + 1;
        let repeated = CallCopy { repeats: copy.repeats + 1, ..copy };
        let current = self.clients[copy.key.client as usize].current.as_mut();
        if let Some(current) = current.filter(|it| it.key == copy.key && it.tries == copy.retry_count + 1) {
            current.repeats = repeated.repeats;
        }
        Some(repeated)
    }

    fn hold(&mut self, seat: usize, copy: CallCopy, request: Request, since_ns: u64) {
        let (life, after_ms) = (self.servers[seat].life, 5 + self.dice.below(100));
        let what = Arrival::Held { copy, request, since_ns };
        self.after_ms(after_ms, Happening::Arrival { seat, life, what });
    }

    /// A held copy is looked at again.
    pub(super) fn held(
        &mut self,
        seat: usize,
        copy: CallCopy,
        request: Request,
        since_ns: u64,
    ) -> Result<(), Broken> {
        if self.servers[seat].is_serving() {
            self.note(format!("member {} carries out what it held: {copy:?}", super::world::member(seat)));
            return self.call(seat, copy, &request);
        }
        if self.now_ns - since_ns > HOLD_NS {
            self.reply(copy, ClientReply::NotActive);
            return Ok(());
        }
        let active = self
            .keeper
            .view
            .active
            .map(seat_of)
            .filter(|_| self.keeper.is_reachable(super::world::member(seat)));
        let Some(active) = active.filter(|active| *active != seat && self.servers[*active].is_running) else {
            self.hold(seat, copy, request, since_ns);
            return Ok(());
        };
        let what = Arrival::Forwarded { copy, request: request.clone(), by: seat, since_ns };
        // The active is frozen, or the connection breaks while the copy is on its way, and it is sent again.
        if self.dice.chance(15)
            && let Some(again) = self.repeated(copy)
        {
            let (life, late_ms) = (self.servers[active].life, self.dice.below(3_000));
            self.after_ms(late_ms, Happening::Arrival { seat: active, life, what });
            self.hold(seat, again, request, since_ns);
        } else {
            self.soon_for(active, what);
        }
        Ok(())
    }

    /// A copy that another member has sent on.
    pub(super) fn forwarded(
        &mut self,
        seat: usize,
        by: usize,
        copy: CallCopy,
        request: Request,
        since_ns: u64,
    ) -> Result<(), Broken> {
        if self.servers[seat].is_serving() {
            return self.call(seat, copy, &request);
        }
        // "Elsewhere": the member that has sent it looks for the active again.
        if self.servers[by].is_running {
            self.hold(by, copy, request, since_ns);
        }
        Ok(())
    }
}
