//! Notes that another group has carried out messages of this one: they need not be sent any more.

use crate::{
    Context, Namespace, Reply,
    charge::ledger::Ledger,
    codec::{DecodeError, Field, Reader, Writer},
    edit::{Edit, Planned},
    footprint::Marks,
    operation::{Applying, Operation},
};
use base::{GroupId, InodeId, directory_log::Dix};

#[derive(Clone, Debug, PartialEq)]
pub struct NoteCarriedOutEdit {
    pub by: GroupId,
    /// The last message that it has carried out.
    pub number: u64,
}

impl Field for NoteCarriedOutEdit {
    fn encode(&self, out: &mut Writer<'_>) {
        out.number(self.by.0.into());
        out.number(self.number);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let by = GroupId(input.number()?.try_into().unwrap_or(0));
        match by.is_possible() {
            true => Ok(Self { by, number: input.number()? }),
            false => Err(input.malformed("a group that cannot be")),
        }
    }
}

/// `dix`: the place in the directory log that the other group had come to when it told this.
///
/// Nothing is noted before this group has come as far. So what is noted before an entry of the directory log was carried out before that entry, too, and
/// groups that are all put back to one entry lack no order between them: what the receiver has forgotten, the sender has not noted.
///
/// A group that claims to have carried out what it was not sent is believed only as far as it was.
pub fn plan(
    ns: &Namespace,
    ctx: &Context<'_>,
    by: GroupId,
    number: u64,
    dix: Dix,
) -> Planned<NoteCarriedOutEdit> {
    if ns.directory_log().dix < dix {
        return Planned::NoChange(Reply::Unit);
    }
    let waits = ns.messages_to(by).next().is_some_and(|first| first.number <= number);
    match waits {
        true => {
            let number = number.min(ns.tree.post.sent.get(&by).copied().unwrap_or(0));
            Planned::Edit(Edit::of_service(ns, ctx, NoteCarriedOutEdit { by, number }))
        }
        false => Planned::NoChange(Reply::Unit),
    }
}

impl Operation for NoteCarriedOutEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    fn mark(&self, _: &mut Marks<'_>) {}

    fn changed(&self, _: &Namespace, _: &mut dyn FnMut(InodeId)) {}

    fn charge(&self, _: &Namespace, _: &mut Ledger<'_>) {}

    fn apply(&self, ns: &mut Namespace, _: &mut Applying<'_>) -> Reply {
        ns.tree.post.acknowledged(self.by, self.number);
        Reply::Unit
    }
}
