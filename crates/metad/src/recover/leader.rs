//! Whether another member leads at this moment. The view only names one: its process may be gone, its disk may have failed
//! as well. So it is asked itself, and the coordinator has to confirm afterwards that nobody else was elected meanwhile.

use crate::admin_protocol::ask_member;
use base::{Epoch, GroupId, MemberId, Sn};
use coord::Coordinator;
use proto::clover::admin::RoleProto;
use tokio::runtime::Handle;

/// A member that has said of itself that it leads, and was still the one when it had said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leader {
    pub member: MemberId,
    pub epoch: Epoch,
    /// The first entry of its epoch has committed: its log is the group's.
    pub serves: bool,
    /// The last entry that it knows to have committed.
    pub committed: Sn,
}

impl Leader {
    /// Whether its log has everything that was durable up to here, if that has committed: what a member needs to know before
    /// it puts its own log aside.
    pub fn has(&self, durable: Sn) -> bool {
        self.serves && self.committed >= durable
    }
}

/// Looks for a member other than `me` that leads in no older epoch than `promised`. Blocks. The error is a sentence that
/// says why there is none.
pub fn find(
    coordinator: &dyn Coordinator,
    group: GroupId,
    me: MemberId,
    promised: Epoch,
    user: &str,
) -> Result<Leader, String> {
    let versioned = coord::wait(|done| coordinator.read(group, done))
        .map_err(|error| error.to_string())?
        .ok_or("the coordinator knows nothing of the group")?;
    let (basis, view) = (versioned.basis(), versioned.view);
    let active = view.active.filter(|active| *active != me);
    let member = active.ok_or("the coordinator names no other member as active")?;
    if view.epoch < promised {
        return Err(format!("member {member} has epoch {}, and {promised} was promised here", view.epoch));
    }
    let records =
        coord::wait(|done| coordinator.read_members(group, done)).map_err(|error| error.to_string())?;
    let record = records.into_iter().find(|record| record.life.store.member == member);
    let address = record.map(|record| record.rpc_address).filter(|address| !address.is_empty());
    let address = address.ok_or_else(|| format!("member {member} has not said where it can be asked"))?;
    let runtime = Handle::try_current().map_err(|error| error.to_string())?;
    let answer = runtime.block_on(ask_member(address.clone(), user.to_owned())).ok_or_else(|| {
        format!("member {member}, which had epoch {}, does not answer at {address}", view.epoch)
    })?;
    let said = answer.members.iter().find(|said| said.member == member.0);
    let role = said.map_or(RoleProto::Unknown, |said| said.role());
    let epoch = answer.view.as_ref().map(|view| view.epoch);
    if answer.answered_by != member.0
        || epoch != Some(view.epoch.0)
        // An active that has its epoch and too few members in sync waits for this very member, perhaps.
        || !matches!(role, RoleProto::Active | RoleProto::Reading | RoleProto::Starting)
    {
        return Err(format!("member {member} has epoch {} and does not lead (yet)", view.epoch));
    }
    // It may have answered as one that was deposed long ago.
    coord::wait(|done| coordinator.confirm(group, basis, me, done))
        .map_err(|error| format!("whether member {member} still leads is not known: {error}"))?;
    Ok(Leader {
        member,
        epoch: view.epoch,
        serves: role == RoleProto::Active,
        committed: Sn(answer.committed.unwrap_or(0)),
    })
}
