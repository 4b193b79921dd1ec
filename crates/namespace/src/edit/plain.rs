//! The bytes of an edit that has no dues, and holds no other edit: as the directory log carries it.

use crate::{
    DecodeError,
    codec::{Field, Reader},
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
    match input.byte()? {
        VERSION => {}
        VERSION_WITH_DUES => return Err(input.malformed("dues in an entry of the directory log")),
        version => return Err(DecodeError::UnknownVersion(version)),
    }
    let _time: Timestamp = Field::decode(&mut input)?;
    let _origin: Option<Origin> = Field::decode(&mut input)?;
    let body = B::decode(&mut input)?;
    input.finish()?;
    Ok(body)
}
