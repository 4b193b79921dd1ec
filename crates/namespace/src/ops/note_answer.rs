//! Notes that a call was answered and has changed nothing, so that no older copy of it is carried out later.
//!
//! The edit changes the retry cache and nothing else. It has the name and the fingerprint of the call as every edit has
//! them, and says which copy of the call was answered ([`base::CopyOfCall`]). Of the answer it says nothing: the active that has
//! given it may still remember it, and a client that still waits for one asks again.

use crate::{
    Context, Namespace, Reply,
    codec::{DecodeError, Field, Reader, Writer},
    edit::Edit,
    operation::{Applying, Operation, rules_without_inodes},
};
use base::{CopyOfCall, Level};

#[derive(Clone, Debug, PartialEq)]
pub struct NoteAnswerEdit {
    /// The latest copy of the call that was answered.
    pub copy: CopyOfCall,
}

impl Field for NoteAnswerEdit {
    fn encode(&self, out: &mut Writer<'_>) {
        out.number(self.copy.retry_count.into());
        out.number(self.copy.repeats.into());
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut number =
            || input.number_below(1 << 32, "a count of more than 32 bits").map(|number| number as u32);
        let copy = CopyOfCall { retry_count: number()?, repeats: number()? };
        if !copy.has_older() {
            return Err(input.malformed("a note about the first copy of a call"));
        }
        Ok(Self { copy })
    }
}

/// To be asked when the call of `ctx` is answered and has changed nothing. The note, if older copies of the call may come
/// later: the copy says that others were sent before. Nothing is noted of a call that the service makes of itself, of a client
/// that does not count its copies, and below level 3.
pub fn plan(ns: &Namespace, ctx: &Context<'_>) -> Option<Edit<NoteAnswerEdit>> {
    let origin = ctx.origin.filter(|origin| origin.call_id.0 >= 0)?;
    let copy = origin.copy().filter(|copy| copy.has_older())?;
    let is_known_to_all = ns.group_level().level >= Level::NOTED_ANSWERS;
    is_known_to_all.then(|| Edit::note(ctx, NoteAnswerEdit { copy }))
}

impl Operation for NoteAnswerEdit {
    fn answer(&self) -> Option<Reply> {
        None
    }

    // No read tells of the retry cache.
    rules_without_inodes!();

    fn apply(&self, _: &mut Namespace, _: &mut Applying<'_>) -> Reply {
        // The retry cache takes it from the edit.
        Reply::Unit
    }
}
