//! The edits of the journal as bytes, which `docs/format/edits.md` describes.

use crate::{
    DecodeError, Edit,
    codec::{Field, Reader, Writer},
    edit::plain::{VERSION, VERSION_WITH_DUES},
    ops::{decode_body, encode_body},
};

/// Appends the bytes of an edit without its dues, which are a group's own.
pub(crate) fn encode_plain(edit: &Edit, out: &mut Vec<u8>) {
    let out = &mut Writer(out);
    out.byte(VERSION);
    edit.time.encode(out);
    edit.origin.encode(out);
    encode_body(&edit.body, out);
}

impl Edit {
    /// Appends the edit's bytes; see `docs/format/edits.md`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let out = &mut Writer(out);
        out.byte(if self.dues.is_some() { VERSION_WITH_DUES } else { VERSION });
        self.time.encode(out);
        self.origin.encode(out);
        if let Some(dues) = &self.dues {
            dues.encode(out);
        }
        encode_body(&self.body, out);
    }

    /// The whole of `bytes` must be one edit.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if the bytes end too early, [`DecodeError::Malformed`] if they go on behind the edit
    /// or a value in them makes no sense, [`DecodeError::UnknownVersion`] or [`DecodeError::UnknownKind`] if this
    /// release does not know the version or the kind of edit.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut input = Reader::new(bytes);
        let version = input.byte()?;
        if !matches!(version, VERSION | VERSION_WITH_DUES) {
            return Err(DecodeError::UnknownVersion(version));
        }
        let time = Field::decode(&mut input)?;
        let origin = Field::decode(&mut input)?;
        let dues = if version == VERSION_WITH_DUES { Some(Field::decode(&mut input)?) } else { None };
        let kind = input.byte()?;
        let body = decode_body(kind, &mut input)?;
        input.finish()?;
        Ok(Self { time, origin, dues: dues.map(Box::new), body })
    }
}
