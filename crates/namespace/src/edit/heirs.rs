//! Edits that make inodes which inherit an ACL.
//!
//! Few do. Such an edit has a kind of its own: first the list of what each new inode inherits, the outermost
//! first, then the fields that the ordinary kind has.

use crate::{
    acl::Acl,
    codec::{DecodeError, Field, Reader, Writer},
};
use std::sync::Arc;

/// An edit whose new inodes may inherit.
pub(crate) trait Heirs: Field + Clone {
    /// The inherited list of each new inode, the outermost inode first.
    fn acls(&mut self) -> Vec<&mut Option<Arc<Acl>>>;
    fn inherits(&self) -> bool;
}

pub(crate) fn encode<T: Heirs>(edit: &T, out: &mut Writer<'_>) {
    let acls: Vec<Option<Arc<Acl>>> = edit.clone().acls().into_iter().map(|acl| acl.take()).collect();
    acls.encode(out);
    edit.encode(out);
}

pub(crate) fn decode<T: Heirs>(input: &mut Reader<'_>) -> Result<T, DecodeError> {
    let acls: Vec<Option<Arc<Acl>>> = Field::decode(input)?;
    let mut edit = T::decode(input)?;
    let heirs = edit.acls();
    if heirs.len() != acls.len() {
        return Err(input.malformed("the ACLs are not as many as the new inodes"));
    }
    heirs.into_iter().zip(acls).for_each(|(heir, acl)| *heir = acl);
    Ok(edit)
}
