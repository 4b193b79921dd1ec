//! Raises the level that the group is at: from here on its members may write what came with that level.

use crate::{
    Context, Namespace, Reply,
    codec::{DecodeError, Field, Reader, Writer},
    edit::{Edit, Planned},
    level::{GroupLevel, is_release},
    operation::{Applying, Operation, rules_without_inodes},
};
use base::{FsError, FsResult, Level};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub struct RaiseLevelEdit {
    pub level: Level,
    /// The release that came with it, so that one which does not know the level can name what is needed.
    pub release: Arc<str>,
}

impl Field for RaiseLevelEdit {
    fn encode(&self, out: &mut Writer<'_>) {
        self.level.0.encode(out);
        self.release.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let edit = Self { level: Level(Field::decode(input)?), release: Field::decode(input)? };
        if edit.level <= Level::FIRST || !is_release(&edit.release) {
            return Err(input.malformed("a level that nobody raises anything to"));
        }
        Ok(edit)
    }
}

/// The service has checked before that the caller may give this order, and that all members know the level: this is no call on the tree.
///
/// # Errors
/// [`FsError::InvalidArgument`] if this release does not know the level.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, level: Level) -> FsResult<Planned<RaiseLevelEdit>> {
    let Some(release) = level.release() else {
        return Err(FsError::InvalidArgument(format!("This release does not know level {level}.")));
    };
    if level <= ns.tree.level.level {
        // Levels never fall.
        return Ok(Planned::NoChange(Reply::Unit));
    }
    let edit = RaiseLevelEdit { level, release: release.into() };
    Ok(Planned::Edit(Edit::of_service(ns, ctx, edit)))
}

impl Operation for RaiseLevelEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    rules_without_inodes!();

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        if self.level > ns.tree.level.level {
            ns.tree.level = GroupLevel {
                level: self.level,
                release: self.release.clone(),
                since: applying.at,
                at: applying.time,
            };
        }
        Reply::Unit
    }
}
