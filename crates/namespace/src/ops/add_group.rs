//! A further group holds a part of the namespace from here on: the directory log begins, or goes on to one group more.

use crate::{
    Context, Namespace, Reply,
    codec::{DecodeError, Field, Reader, Writer},
    edit::{Edit, Planned},
    operation::{Applying, Operation, rules_without_inodes},
};
use base::{FsError, FsResult, GroupId, Level};

#[derive(Clone, Debug, PartialEq)]
pub struct AddGroupEdit {
    pub group: GroupId,
}

impl Field for AddGroupEdit {
    fn encode(&self, out: &mut Writer<'_>) {
        out.number(self.group.0.into());
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let group = GroupId(input.number()?.try_into().unwrap_or(0));
        if !group.is_possible() || group == GroupId::ROOT {
            return Err(input.malformed("a group that cannot be added"));
        }
        Ok(Self { group })
    }
}

/// The service has checked before that the caller may give this order: it is no call on the tree.
///
/// # Errors
/// [`FsError::InvalidArgument`] if no namespace can have such a further group, or this tree is not the root group's.
/// [`FsError::Unsupported`] if the members of the root group do not all know how to write this, or the tree has what several groups cannot
/// share yet.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, group: GroupId) -> FsResult<Planned<AddGroupEdit>> {
    if !group.is_possible() || group == GroupId::ROOT || ns.group() != GroupId::ROOT {
        return Err(FsError::InvalidArgument(format!("Group {group} cannot be added to this namespace.")));
    }
    if ns.tree.directory_log.groups.contains(&group) {
        return Ok(Planned::NoChange(Reply::Unit));
    }
    let level = ns.tree.level.level;
    if level < Level::SEVERAL_GROUPS {
        let (needed, release) = (Level::SEVERAL_GROUPS, Level::SEVERAL_GROUPS.release().unwrap_or_default());
        return Err(FsError::Unsupported(format!(
            "The root group is at level {level}, and a further group needs level {needed}, which came with release {release}: raise it with \
             `clover admin upgrade finalize`."
        )));
    }
    ns.check_can_be_shared().map_err(|why| FsError::Unsupported(why.to_string()))?;
    Ok(Planned::Edit(Edit::of_service(ns, ctx, AddGroupEdit { group })))
}

impl Operation for AddGroupEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    rules_without_inodes!();

    fn followed(&self, _: &Namespace) -> Option<Self> {
        Some(self.clone())
    }

    fn apply(&self, ns: &mut Namespace, _: &mut Applying<'_>) -> Reply {
        ns.tree.directory_log.groups.insert(self.group);
        ns.share_quotas();
        Reply::Unit
    }
}
