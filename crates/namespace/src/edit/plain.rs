//! The bytes of an edit that has no dues, and holds no other edit: as the directory log carries it.

use crate::{
    DecodeError,
    codec::{Field, Reader},
    kinds,
    retry::Origin,
};
use base::Timestamp;

/// The first byte of an edit that preserves and charges nothing.
pub(crate) const VERSION: u8 = 1;
/// The first byte of an edit that preserves or charges something.
pub(crate) const VERSION_WITH_DUES: u8 = 2;

/// The body of an edit without dues. It holds no other edit.
pub(crate) fn decode<B: Field>(bytes: &[u8]) -> Result<B, DecodeError> {
    let mut input = Reader::new(bytes);
    pass_head(&mut input)?;
    let body = B::decode(&mut input)?;
    input.finish()?;
    Ok(body)
}

/// Whether an edit without dues takes a snapshot, by the number of its kind. One whose kind cannot be read may do that.
pub(crate) fn takes_snapshot(bytes: &[u8]) -> bool {
    let mut input = Reader::new(bytes);
    let kind = pass_head(&mut input).and_then(|()| input.byte());
    kind.map_or(true, |kind| kind == kinds::CREATE_SNAPSHOT)
}

/// Reads what stands before the body.
fn pass_head(input: &mut Reader<'_>) -> Result<(), DecodeError> {
    match input.byte()? {
        VERSION => {}
        VERSION_WITH_DUES => return Err(input.malformed("dues in an entry of the directory log")),
        version => return Err(DecodeError::UnknownVersion(version)),
    }
    let _time: Timestamp = Field::decode(input)?;
    let _origin: Option<Origin> = Field::decode(input)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Edit, SnapshotId,
        edit_bytes::encode_plain,
        ops::{Body, create_snapshot::CreateSnapshotEdit, delete_snapshot::DeleteSnapshotEdit},
    };
    use base::InodeId;

    #[test]
    fn an_edit_that_takes_a_snapshot_is_known_by_its_kind() {
        let takes = |body: Body| {
            let mut bytes = Vec::new();
            encode_plain(&Edit { time: Timestamp::default(), origin: None, dues: None, body }, &mut bytes);
            takes_snapshot(&bytes)
        };
        let (root, id, name) = (InodeId(16_385), SnapshotId(1), "s".into());
        assert!(takes(Body::CreateSnapshot(CreateSnapshotEdit { root, id, name })));
        assert!(!takes(Body::DeleteSnapshot(DeleteSnapshotEdit { root, id })));
        assert!(takes_snapshot(&[0xff]), "what cannot be read may take one");
        assert!(takes_snapshot(&[]));
    }
}
