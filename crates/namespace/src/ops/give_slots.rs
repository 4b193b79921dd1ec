//! Gives slots to a group: it is the home of directories that are made in these slots from here on.

use crate::{
    Context, Namespace, Reply,
    codec::{DecodeError, Field, Reader, Writer},
    edit::{Edit, Planned},
    operation::{Applying, Operation, rules_without_inodes},
};
use base::{FsError, FsResult, GroupId, InodeId};
use std::ops::Range;

#[derive(Clone, Debug, PartialEq)]
pub struct GiveSlotsEdit {
    pub group: GroupId,
    /// No group had them, and no directory is in one of them.
    pub slots: Range<u16>,
}

impl Field for GiveSlotsEdit {
    fn encode(&self, out: &mut Writer<'_>) {
        for number in [self.group.0.into(), self.slots.start.into(), self.slots.end.into()] {
            out.number(number);
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let group = GroupId(input.number()?.try_into().unwrap_or(0));
        let mut slot = || input.number().map(|slot| u16::try_from(slot).unwrap_or(u16::MAX));
        let slots = slot()?..slot()?;
        if !group.is_possible() || slots.is_empty() || slots.end > InodeId::SLOTS {
            return Err(input.malformed("slots that cannot be given to a group"));
        }
        Ok(Self { group, slots })
    }
}

/// The service has checked before that the caller may give this order: it is no call on the tree.
///
/// # Errors
/// [`FsError::InvalidArgument`] if the group was not added to the namespace, or this tree is not the root group's.
/// [`FsError::Unsupported`] if all slots have a group.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, group: GroupId) -> FsResult<Planned<GiveSlotsEdit>> {
    let log = &ns.tree.directory_log;
    if ns.group() != GroupId::ROOT || !log.groups.contains(&group) {
        return Err(FsError::InvalidArgument(format!("Group {group} was not added to this namespace.")));
    }
    let slots = log.slots.free()?;
    Ok(Planned::Edit(Edit::of_service(ns, ctx, GiveSlotsEdit { group, slots })))
}

impl Operation for GiveSlotsEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    // No directory is in one of the slots.
    rules_without_inodes!();

    fn followed(&self, _: &Namespace) -> Option<Self> {
        Some(self.clone())
    }

    fn apply(&self, ns: &mut Namespace, _: &mut Applying<'_>) -> Reply {
        ns.tree.directory_log.slots.give(self.group, self.slots.clone());
        Reply::Unit
    }
}
