//! A letter between members as bytes.
//!
//! ```text
//! letter    kind u8, then the fields in their order
//! point     epoch u64, sn u64, chain u64
//! entries   count u32, entry*
//! known     promised epoch u64, end point, committed point
//! entry     epoch u64, sn u64, kind u8, previous chain u64, payload
//! payload   length u32, bytes
//! digests   count u8 of at most 8, then each: epoch u64, sn u64, form u32, digest u64
//! bool      u8, 0 or 1
//! ```
//!
//! Numbers are little-endian. Nothing is allocated for a count or a length before the bytes that it promises are
//! known to be there. The layout is that of the [`Version`] on which both ends have agreed: a field that version N adds
//! stands behind the others, and is written and read where the version is N or later. A message of a kind that is
//! not known is passed over, for no message is relied upon.

use super::{
    letter::Letter,
    version::{Version, Versions},
};
use base::{Chain, Entry, EntryKind, Epoch, LogPoint, Sn, TxId};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use group::{Append, Known, Message, Proposal, StateDigest};
use thiserror::Error;

/// The least bytes of an entry, without its payload.
const ENTRY_BYTES_MIN: usize = 8 + 8 + 1 + 8 + 4;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    #[error("a message ends before its {0}")]
    Short(&'static str),
    #[error("{count} bytes follow a message")]
    Long { count: usize },
    #[error("{what} {number} is not known")]
    Unknown { what: &'static str, number: u64 },
    #[error("epoch {0} is beyond all that are possible")]
    Epoch(u64),
}

mod kind {
    pub const APPEND: u8 = 1;
    pub const APPENDED: u8 = 2;
    pub const MISMATCH: u8 = 3;
    pub const FENCED: u8 = 4;
    pub const NEW_EPOCH: u8 = 5;
    pub const PROMISED: u8 = 6;
    pub const BEACON: u8 = 7;
    pub const GRANT: u8 = 8;
    pub const FETCH: u8 = 9;
    pub const FETCHED: u8 = 10;
    pub const FETCH_FAILED: u8 = 11;
    pub const NEEDS_IMAGE: u8 = 12;
    pub const PRE_VOTE: u8 = 13;
    pub const PRE_VOTED: u8 = 14;
    pub const HAND_OVER: u8 = 15;
    pub const SUGGEST: u8 = 16;
    pub const HELLO: u8 = 17;
    pub const CONTRADICTION: u8 = 18;
    pub const DIGESTS: u8 = 19;
    pub const FATAL_REQUESTS: u8 = 20;
    pub const WATCHED: u8 = 21;
}

/// Appends the letter's bytes, as that version has them, to `to`. The version must have it: see [`Letter::since`].
pub fn encode(version: Version, letter: &Letter, to: &mut BytesMut) {
    debug_assert!(Versions::OURS.contains(version), "version {version} was never agreed on");
    debug_assert!(version >= letter.since(), "version {version} has no such letter");
    match letter {
        Letter::Group(message) => put_message(version, message, to),
        Letter::FatalRequests(text) => {
            to.put_u8(kind::FATAL_REQUESTS);
            put_payload(text, to);
        }
        Letter::Watched { left_ms } => {
            to.put_u8(kind::WATCHED);
            to.put_u64_le(*left_ms);
        }
    }
}

fn put_message(version: Version, message: &Message, to: &mut BytesMut) {
    match message {
        Message::Append(Append { epoch, previous, entries, committed }) => {
            to.put_u8(kind::APPEND);
            to.put_u64_le(epoch.0);
            put_point(*previous, to);
            to.put_u64_le(committed.0);
            put_entries(entries, to);
        }
        Message::Appended { epoch, last } => {
            to.put_u8(kind::APPENDED);
            to.put_u64_le(epoch.0);
            to.put_u64_le(last.0);
        }
        Message::Mismatch { epoch, end, committed } => {
            to.put_u8(kind::MISMATCH);
            to.put_u64_le(epoch.0);
            put_point(*end, to);
            put_point(*committed, to);
        }
        Message::Fenced { promised } => {
            to.put_u8(kind::FENCED);
            to.put_u64_le(promised.0);
        }
        Message::NewEpoch { epoch } => {
            to.put_u8(kind::NEW_EPOCH);
            to.put_u64_le(epoch.0);
        }
        Message::Promised { epoch, end, committed, is_suspect } => {
            to.put_u8(kind::PROMISED);
            to.put_u64_le(epoch.0);
            put_point(*end, to);
            put_point(*committed, to);
            to.put_u8(u8::from(*is_suspect));
        }
        Message::Beacon { epoch, round, committed, lease_ms } => {
            to.put_u8(kind::BEACON);
            to.put_u64_le(epoch.0);
            to.put_u64_le(*round);
            to.put_u64_le(committed.0);
            to.put_u64_le(*lease_ms);
        }
        Message::Grant { epoch, round, is_granted, is_ready, end, committed, data_servers } => {
            to.put_u8(kind::GRANT);
            to.put_u64_le(epoch.0);
            to.put_u64_le(*round);
            to.put_u8(u8::from(*is_granted));
            to.put_u8(u8::from(*is_ready));
            put_point(*end, to);
            put_point(*committed, to);
            if version >= Version::DATA_SERVERS {
                to.put_u32_le(*data_servers);
            }
        }
        Message::Contradiction { epoch, end, committed } => {
            to.put_u8(kind::CONTRADICTION);
            to.put_u64_le(epoch.0);
            put_point(*end, to);
            put_point(*committed, to);
        }
        Message::Digests { digests } => {
            to.put_u8(kind::DIGESTS);
            to.put_u8(digests.len() as u8);
            for StateDigest { at, form, digest } in digests {
                to.put_u64_le(at.epoch.0);
                to.put_u64_le(at.sn.0);
                to.put_u32_le(*form);
                to.put_u64_le(*digest);
            }
        }
        Message::Hello { known } => {
            to.put_u8(kind::HELLO);
            put_known(known, to);
        }
        Message::Fetch { epoch, after, bytes_max } => {
            to.put_u8(kind::FETCH);
            to.put_u64_le(epoch.0);
            put_point(*after, to);
            to.put_u32_le(*bytes_max);
        }
        Message::Fetched { epoch, previous, entries, committed } => {
            to.put_u8(kind::FETCHED);
            to.put_u64_le(epoch.0);
            put_point(*previous, to);
            to.put_u64_le(committed.0);
            put_entries(entries, to);
        }
        Message::FetchFailed { epoch, after, committed, is_gone } => {
            to.put_u8(kind::FETCH_FAILED);
            to.put_u64_le(epoch.0);
            put_point(*after, to);
            put_point(*committed, to);
            to.put_u8(u8::from(*is_gone));
        }
        Message::NeedsImage { epoch, unclean } => {
            to.put_u8(kind::NEEDS_IMAGE);
            to.put_u64_le(epoch.0);
            to.put_u64_le(unclean.0);
        }
        Message::PreVote { epoch } => {
            to.put_u8(kind::PRE_VOTE);
            to.put_u64_le(epoch.0);
        }
        Message::PreVoted { epoch, holds_grant, known } => {
            to.put_u8(kind::PRE_VOTED);
            to.put_u64_le(epoch.0);
            to.put_u8(u8::from(*holds_grant));
            put_known(known, to);
        }
        Message::HandOver { epoch, end } => {
            to.put_u8(kind::HAND_OVER);
            to.put_u64_le(epoch.0);
            put_point(*end, to);
        }
        Message::Suggest { epoch, proposal } => {
            to.put_u8(kind::SUGGEST);
            to.put_u64_le(epoch.0);
            to.put_u8(proposal.kind as u8);
            put_payload(&proposal.payload, to);
        }
    }
}

fn put_point(point: LogPoint, to: &mut BytesMut) {
    to.put_u64_le(point.id.epoch.0);
    to.put_u64_le(point.id.sn.0);
    to.put_u64_le(point.chain.0);
}

fn put_known(known: &Known, to: &mut BytesMut) {
    to.put_u64_le(known.promised.0);
    put_point(known.end, to);
    put_point(known.committed, to);
}

fn put_entries(entries: &[Entry], to: &mut BytesMut) {
    let bytes: usize = entries.iter().map(|entry| ENTRY_BYTES_MIN + entry.payload.len()).sum();
    to.reserve(4 + bytes);
    to.put_u32_le(entries.len() as u32);
    for entry in entries {
        to.put_u64_le(entry.id.epoch.0);
        to.put_u64_le(entry.id.sn.0);
        to.put_u8(entry.kind as u8);
        to.put_u64_le(entry.previous_chain.0);
        put_payload(&entry.payload, to);
    }
}

fn put_payload(payload: &Bytes, to: &mut BytesMut) {
    to.put_u32_le(payload.len() as u32);
    to.put_slice(payload);
}

/// Reads one letter of that version, which must be all of `bytes`. Payloads share its memory. `None`: its kind is not
/// known here.
///
/// # Errors
/// [`DecodeError::Short`] if the bytes end too early, [`DecodeError::Long`] if they go on behind the letter,
/// [`DecodeError::Unknown`] or [`DecodeError::Epoch`] if a value in it makes no sense.
pub fn decode(version: Version, bytes: Bytes) -> Result<Option<Letter>, DecodeError> {
    debug_assert!(Versions::OURS.contains(version), "version {version} was never agreed on");
    let first = bytes.first().copied();
    let mut reader = Reader { version, rest: bytes };
    let letter = match first {
        Some(kind::WATCHED) if version >= Version::WATCHED => reader.watched()?,
        Some(kind::FATAL_REQUESTS) if version >= Version::FATAL_REQUESTS => reader.fatal_requests()?,
        _ => match reader.message()? {
            Some(message) => Letter::Group(message),
            None => return Ok(None),
        },
    };
    match reader.rest.len() {
        0 => Ok(Some(letter)),
        count => Err(DecodeError::Long { count }),
    }
}

struct Reader {
    version: Version,
    rest: Bytes,
}

impl Reader {
    fn message(&mut self) -> Result<Option<Message>, DecodeError> {
        Ok(Some(match self.u8("kind")? {
            kind::APPEND => {
                let (epoch, previous, committed) = (self.epoch()?, self.point()?, self.sn()?);
                Message::Append(Append { epoch, previous, committed, entries: self.entries()? })
            }
            kind::APPENDED => Message::Appended { epoch: self.epoch()?, last: self.sn()? },
            kind::MISMATCH => {
                Message::Mismatch { epoch: self.epoch()?, end: self.point()?, committed: self.point()? }
            }
            kind::FENCED => Message::Fenced { promised: self.epoch()? },
            kind::NEW_EPOCH => Message::NewEpoch { epoch: self.epoch()? },
            kind::PROMISED => Message::Promised {
                epoch: self.epoch()?,
                end: self.point()?,
                committed: self.point()?,
                is_suspect: self.bool("suspicion")?,
            },
            kind::BEACON => Message::Beacon {
                epoch: self.epoch()?,
                round: self.u64("round")?,
                committed: self.sn()?,
                lease_ms: self.u64("lease")?,
            },
            kind::GRANT => Message::Grant {
                epoch: self.epoch()?,
                round: self.u64("round")?,
                is_granted: self.bool("grant")?,
                is_ready: self.bool("readiness")?,
                end: self.point()?,
                committed: self.point()?,
                data_servers: match self.version >= Version::DATA_SERVERS {
                    true => self.u32("count of data servers")?,
                    false => 0,
                },
            },
            kind::CONTRADICTION => {
                Message::Contradiction { epoch: self.epoch()?, end: self.point()?, committed: self.point()? }
            }
            kind::DIGESTS => Message::Digests { digests: self.digests()? },
            kind::HELLO => Message::Hello { known: self.known()? },
            kind::FETCH => {
                Message::Fetch { epoch: self.epoch()?, after: self.point()?, bytes_max: self.u32("limit")? }
            }
            kind::FETCHED => {
                let (epoch, previous, committed) = (self.epoch()?, self.point()?, self.sn()?);
                Message::Fetched { epoch, previous, committed, entries: self.entries()? }
            }
            kind::FETCH_FAILED => Message::FetchFailed {
                epoch: self.epoch()?,
                after: self.point()?,
                committed: self.point()?,
                is_gone: self.bool("reason")?,
            },
            kind::NEEDS_IMAGE => Message::NeedsImage { epoch: self.epoch()?, unclean: self.epoch()? },
            kind::PRE_VOTE => Message::PreVote { epoch: self.epoch()? },
            kind::PRE_VOTED => Message::PreVoted {
                epoch: self.epoch()?,
                holds_grant: self.bool("grant")?,
                known: self.known()?,
            },
            kind::HAND_OVER => Message::HandOver { epoch: self.epoch()?, end: self.point()? },
            kind::SUGGEST => {
                let epoch = self.epoch()?;
                let kind = self.entry_kind()?;
                Message::Suggest { epoch, proposal: Proposal { kind, payload: self.payload()? } }
            }
            _ => return Ok(None),
        }))
    }

    fn fatal_requests(&mut self) -> Result<Letter, DecodeError> {
        self.u8("kind")?;
        Ok(Letter::FatalRequests(self.payload()?))
    }

    fn watched(&mut self) -> Result<Letter, DecodeError> {
        self.u8("kind")?;
        Ok(Letter::Watched { left_ms: self.u64("time")? })
    }

    fn need(&self, count: usize, what: &'static str) -> Result<(), DecodeError> {
        if self.rest.len() < count { Err(DecodeError::Short(what)) } else { Ok(()) }
    }

    fn u8(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        self.need(1, what)?;
        Ok(self.rest.get_u8())
    }

    fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        self.need(4, what)?;
        Ok(self.rest.get_u32_le())
    }

    fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        self.need(8, what)?;
        Ok(self.rest.get_u64_le())
    }

    fn bool(&mut self, what: &'static str) -> Result<bool, DecodeError> {
        match self.u8(what)? {
            0 => Ok(false),
            1 => Ok(true),
            number => Err(DecodeError::Unknown { what, number: number.into() }),
        }
    }

    fn epoch(&mut self) -> Result<Epoch, DecodeError> {
        let epoch = self.u64("epoch")?;
        if epoch > Epoch::LAST.0 { Err(DecodeError::Epoch(epoch)) } else { Ok(Epoch(epoch)) }
    }

    fn sn(&mut self) -> Result<Sn, DecodeError> {
        self.u64("sn").map(Sn)
    }

    fn point(&mut self) -> Result<LogPoint, DecodeError> {
        let id = TxId { epoch: self.epoch()?, sn: self.sn()? };
        Ok(LogPoint { id, chain: Chain(self.u64("chain")?) })
    }

    fn known(&mut self) -> Result<Known, DecodeError> {
        Ok(Known { promised: self.epoch()?, end: self.point()?, committed: self.point()? })
    }

    fn digests(&mut self) -> Result<Vec<StateDigest>, DecodeError> {
        let count = usize::from(self.u8("count of digests")?);
        if count > Message::DIGESTS_MAX {
            return Err(DecodeError::Unknown { what: "the count of digests", number: count as u64 });
        }
        let mut digests = Vec::with_capacity(count);
        for _ in 0..count {
            let at = TxId { epoch: self.epoch()?, sn: self.sn()? };
            digests.push(StateDigest { at, form: self.u32("form")?, digest: self.u64("digest")? });
        }
        Ok(digests)
    }

    fn entry_kind(&mut self) -> Result<EntryKind, DecodeError> {
        let number = self.u8("kind of entry")?;
        EntryKind::from_number(number)
            .ok_or(DecodeError::Unknown { what: "the kind of entry", number: number.into() })
    }

    fn payload(&mut self) -> Result<Bytes, DecodeError> {
        let length = self.u32("length")? as usize;
        self.need(length, "payload")?;
        Ok(self.rest.split_to(length))
    }

    fn entries(&mut self) -> Result<Vec<Entry>, DecodeError> {
        let count = self.u32("count")? as usize;
        self.need(count.saturating_mul(ENTRY_BYTES_MIN), "entries")?;
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            let id = TxId { epoch: self.epoch()?, sn: self.sn()? };
            let kind = self.entry_kind()?;
            let previous_chain = Chain(self.u64("chain")?);
            entries.push(Entry { id, kind, previous_chain, payload: self.payload()? });
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests;
