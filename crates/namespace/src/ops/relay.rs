//! Carries out a change of directories that the root group has decided, in a group that follows the directory log.
//!
//! The root group's edit comes through the directory log as it was planned. A group journals it in a relay, so that its standbys, images
//! and restarts need nothing else. What depends on the group's own files is worked out here: whether a deleted subtree is small, and
//! what the change owes to snapshots, which keep this group's files. The answer to the call goes into the retry cache, as in the
//! root group.

use crate::{
    Context, Namespace, Reply,
    codec::{DecodeError, Field, Reader, Writer},
    edit::Edit,
    operation::{Applying, Operation, rules_of_its_change},
};
use base::{
    Chain, InodeId,
    directory_log::{Dix, Point},
};

/// The change, and the place in the directory log that the group has come to with it.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayEdit<B> {
    pub point: Point,
    pub change: Box<B>,
}

/// An entry of the directory log that this tree cannot follow: the two do not belong together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFollowed {
    #[error("entry {found} of the directory log is to be applied where {expected} is the next")]
    NotNext { expected: Dix, found: Dix },
    #[error("entry {0} of the directory log is no change of directories that this tree has")]
    NoDirectories(Dix),
}

impl<B: Field> Field for RelayEdit<B> {
    fn encode(&self, out: &mut Writer<'_>) {
        out.number(self.point.dix.0);
        out.number(self.point.chain.0);
        self.change.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let point = Point { dix: Dix(input.number()?), chain: Chain(input.number()?) };
        Ok(Self { point, change: Box::new(B::decode(input)?) })
    }
}

/// See [`Namespace::follow`].
pub(crate) fn plan<B: Operation>(
    ns: &Namespace,
    ctx: &Context<'_>,
    entry: &Edit<B>,
    point: Point,
) -> Result<Edit<RelayEdit<B>>, NotFollowed> {
    let expected = ns.directory_log().dix.next();
    if point.dix != expected {
        return Err(NotFollowed::NotNext { expected, found: point.dix });
    }
    let change = entry.body.followed(ns).ok_or(NotFollowed::NoDirectories(point.dix))?;
    let edit = Edit::of_service(ns, ctx, RelayEdit { point, change: Box::new(change) });
    Ok(Edit { time: entry.time, origin: entry.origin, ..edit })
}

impl Namespace {
    /// The place in the directory log up to which this tree has followed it.
    pub fn directory_log(&self) -> Point {
        self.tree.directory_log.end
    }

    /// Whether this tree has a directory of that id.
    pub(crate) fn has_directory(&self, id: InodeId) -> bool {
        self.handle(id).is_some_and(|handle| self.tree.inode(handle).is_directory())
    }
}

impl<B: Operation> Operation for RelayEdit<B> {
    rules_of_its_change!();

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        let reply = self.change.apply(ns, applying);
        ns.tree.directory_log.end = self.point;
        reply
    }
}
