//! The answer to a heartbeat: a claim to be the active server, orders, and the permission to send a full report.
//!
//! A data server obeys orders for the sake of the claim that comes with them. So orders go out only with the claim of
//! the reign in which they were given: a thread of the metadata server may have made the claim, and then been without
//! the processor for so long that another member has led meanwhile, and this one again.

use crate::{
    leadership::Claim,
    map::BlockMap,
    words::{Command, Heartbeat, ServerError, ServerId},
};
use base::Moment;

/// What the metadata server says of itself, before it asks the block map for the rest of the answer, and what the data
/// server asks for.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub claim: Claim,
    /// This server is sure that it leads now: its lease holds.
    pub is_sure: bool,
    /// The data server would like to send a full report.
    pub wants_lease: bool,
}

/// The answer to a heartbeat.
#[derive(Clone, Debug)]
pub struct Answer {
    pub claim: Claim,
    pub commands: Vec<Command>,
    /// A permission to send a full report; 0: none.
    pub lease: u64,
    /// Others have reported the server as slow, and it may be passed over for that.
    pub is_slow: bool,
}

impl Answer {
    /// The lease has ended before the answer went out: it goes out without orders. Only the order to register stays,
    /// which any server may give.
    pub fn withdraw_orders(&mut self) {
        self.commands.retain(|command| matches!(command, Command::Register));
    }
}

impl BlockMap {
    /// The data server lives, and its storages are as described. Answers what it must do, as far as this server may
    /// give orders.
    ///
    /// # Errors
    /// [`ServerError::AnotherHolds`] if another server holds the uuid, [`ServerError::TooManyStorages`] if the server
    /// would have more storages than it may. A server that is not registered gets the order to register, and no error.
    pub fn answer_heartbeat(
        &mut self,
        id: ServerId,
        heartbeat: &Heartbeat,
        terms: Terms,
        now: Moment,
    ) -> Result<Answer, ServerError> {
        let Terms { claim, is_sure, wants_lease } = terms;
        let is_of_this_reign = self.commanding && claim.epoch() == Some(self.reign);
        let may_order = is_sure && is_of_this_reign;
        let commands = match may_order {
            true => self.heartbeat(id, heartbeat, now)?,
            false => self.heartbeat_without_orders(id, heartbeat, now)?,
        };
        let lease = if wants_lease { self.grant_report_lease(id, now) } else { 0 };
        if lease != 0 && is_of_this_reign {
            let index = self.speaker(id)?;
            self.servers.get_mut(index).fenced_lease = lease;
        }
        let is_slow = self.speaker(id).is_ok_and(|index| self.servers.get(index).is_avoided);
        Ok(Answer { claim, commands, lease, is_slow })
    }
}
