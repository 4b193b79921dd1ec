//! The messages of the directory log as bytes.
//!
//! ```text
//! message   version u8 (1), kind u8, then the fields in their order
//! point     dix u64, chain u64
//! name      epoch u64, number u64: a session, an ask, a Hello
//! progress  received dix u64, queued dix u64, committed dix u64
//! mark      kind u8, key u128
//! marks     count u32, mark*
//! bytes     length u32, bytes
//! entry     dix u64, epoch u64, previous chain u64, has an ask u8, ask (a name, of zeros where there is none), marks, payload (bytes)
//! entries   count u32, entry*
//! bool      u8, 0 or 1
//! ```
//!
//! Numbers are little-endian. Nothing is allocated for a count or a length before the bytes that it promises are known to be there. Who
//! may send what is not decided here: a message comes on a connection that has proved whose it is.

use crate::{
    Ask, AskId, Dix, Entry, HelloId, Mark, MarkKind, Point, Session, ToGroup, ToRoot, message::Progress,
};
use base::{Chain, Epoch};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::fmt;

/// The version of this form.
pub const VERSION: u8 = 1;

/// No honest place in the directory log is beyond: two thousand years at a million entries a second.
pub const DIX_MAX: u64 = 1 << 56;

/// The longest sentence that a refusal may have, in bytes.
pub const WHY_BYTES_MAX: usize = 4_096;

const MARK_BYTES: usize = 17;
/// The least bytes of an entry: without marks and payload.
const ENTRY_BYTES_MIN: usize = 8 + 8 + 8 + 1 + 16 + 4 + 4;

/// Why bytes are no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireError {
    /// They end before this.
    Short(&'static str),
    /// So many bytes follow the message.
    Long(usize),
    /// This number is none that is known.
    Unknown { what: &'static str, number: u64 },
    /// This number is beyond all that are possible.
    Beyond { what: &'static str, number: u64 },
    /// A sentence that is longer than any, or is no text.
    NoSentence,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(what) => write!(f, "a message of the directory log ends before its {what}"),
            Self::Long(count) => write!(f, "{count} bytes follow a message of the directory log"),
            Self::Unknown { what, number } => write!(f, "{what} {number} of the directory log is not known"),
            Self::Beyond { what, number } => write!(f, "{what} {number} is beyond all that are possible"),
            Self::NoSentence => {
                f.write_str("a refusal of the directory log has no sentence that can be read")
            }
        }
    }
}

impl std::error::Error for WireError {}

mod kind {
    pub const HELLO: u8 = 1;
    pub const RECEIVED: u8 = 2;
    pub const RENEW: u8 = 3;
    pub const HELD: u8 = 4;
    pub const IN_THE_WAY: u8 = 5;
    pub const SAY_HELLO: u8 = 16;
    pub const WELCOME: u8 = 17;
    pub const UNWELCOME: u8 = 18;
    pub const APPEND: u8 = 19;
    pub const RENEWED: u8 = 20;
    pub const ASK: u8 = 21;
    pub const RELEASE: u8 = 22;
}

/// Appends the message's bytes to `to`.
pub fn encode_to_root(message: &ToRoot, to: &mut BytesMut) {
    to.put_u8(VERSION);
    match message {
        ToRoot::Hello { hello, root_epoch, applied, committed } => {
            to.put_u8(kind::HELLO);
            put_name(hello.epoch, hello.number, to);
            to.put_u64_le(root_epoch.0);
            put_point(*applied, to);
            to.put_u64_le(committed.0);
        }
        ToRoot::Received { session, progress } => {
            to.put_u8(kind::RECEIVED);
            put_session(*session, to);
            put_progress(*progress, to);
        }
        ToRoot::Renew { session, number, progress } => {
            to.put_u8(kind::RENEW);
            put_session(*session, to);
            to.put_u64_le(*number);
            put_progress(*progress, to);
        }
        ToRoot::Held { session, ask, fact } => {
            to.put_u8(kind::HELD);
            put_session(*session, to);
            put_ask(*ask, to);
            put_bytes(fact, to);
        }
        ToRoot::InTheWay { session, ask } => {
            to.put_u8(kind::IN_THE_WAY);
            put_session(*session, to);
            put_ask(*ask, to);
        }
    }
}

/// Appends the message's bytes to `to`. A sentence that is too long is cut.
pub fn encode_to_group(message: &ToGroup, to: &mut BytesMut) {
    to.put_u8(VERSION);
    match message {
        ToGroup::SayHello { root_epoch, denied } => {
            to.put_u8(kind::SAY_HELLO);
            to.put_u64_le(root_epoch.0);
            to.put_u8(u8::from(denied.is_some()));
            put_session(denied.unwrap_or_default(), to);
        }
        ToGroup::Welcome { hello, session, end, visible, open_from, is_leased } => {
            to.put_u8(kind::WELCOME);
            put_name(hello.epoch, hello.number, to);
            put_session(*session, to);
            to.put_u64_le(end.0);
            to.put_u64_le(visible.0);
            put_ask(*open_from, to);
            to.put_u8(u8::from(*is_leased));
        }
        ToGroup::Unwelcome { hello, root_epoch, why } => {
            to.put_u8(kind::UNWELCOME);
            put_name(hello.epoch, hello.number, to);
            to.put_u64_le(root_epoch.0);
            put_bytes(&why.as_bytes()[..why.floor_char_boundary(WHY_BYTES_MAX)], to);
        }
        ToGroup::Append { session, previous, entries, visible } => {
            to.put_u8(kind::APPEND);
            put_session(*session, to);
            put_point(*previous, to);
            to.put_u64_le(visible.0);
            put_count(entries.len(), to);
            entries.iter().for_each(|entry| put_entry(entry, to));
        }
        ToGroup::Renewed { session, number, is_granted, visible, open_from } => {
            to.put_u8(kind::RENEWED);
            put_session(*session, to);
            to.put_u64_le(*number);
            to.put_u8(u8::from(*is_granted));
            to.put_u64_le(visible.0);
            put_ask(*open_from, to);
        }
        ToGroup::Ask(Ask { session, ask, visible, marks, body }) => {
            to.put_u8(kind::ASK);
            put_session(*session, to);
            put_ask(*ask, to);
            to.put_u64_le(visible.0);
            put_marks(marks, to);
            put_bytes(body, to);
        }
        ToGroup::Release { session, ask } => {
            to.put_u8(kind::RELEASE);
            put_session(*session, to);
            put_ask(*ask, to);
        }
    }
}

/// Reads one message. Payloads, facts and questions share the memory of `bytes`.
///
/// # Errors
/// The bytes are no such message of this version: too few, too many, or with a number that cannot be.
pub fn decode_to_root(bytes: Bytes) -> Result<ToRoot, WireError> {
    let mut from = Reader { bytes };
    let message = match from.begin()? {
        kind::HELLO => {
            let (epoch, number) = from.name("Hello")?;
            ToRoot::Hello {
                hello: HelloId { epoch, number },
                root_epoch: from.epoch("root's epoch")?,
                applied: from.point()?,
                committed: from.dix("committed entry")?,
            }
        }
        kind::RECEIVED => ToRoot::Received { session: from.session()?, progress: from.progress()? },
        kind::RENEW => ToRoot::Renew {
            session: from.session()?,
            number: from.number("number")?,
            progress: from.progress()?,
        },
        kind::HELD => ToRoot::Held { session: from.session()?, ask: from.ask()?, fact: from.bytes("fact")? },
        kind::IN_THE_WAY => ToRoot::InTheWay { session: from.session()?, ask: from.ask()? },
        other => return Err(unknown("the kind of message", other)),
    };
    from.end(message)
}

/// Reads one message. Payloads and questions share the memory of `bytes`.
///
/// # Errors
/// Those of [`decode_to_root`]; [`WireError::NoSentence`] if a refusal has no text.
pub fn decode_to_group(bytes: Bytes) -> Result<ToGroup, WireError> {
    let mut from = Reader { bytes };
    let message = match from.begin()? {
        kind::SAY_HELLO => {
            let root_epoch = from.epoch("root's epoch")?;
            let is_denied = from.flag("denied session")?;
            let session = from.session()?;
            ToGroup::SayHello { root_epoch, denied: is_denied.then_some(session) }
        }
        kind::WELCOME => {
            let (epoch, number) = from.name("Hello")?;
            ToGroup::Welcome {
                hello: HelloId { epoch, number },
                session: from.session()?,
                end: from.dix("end")?,
                visible: from.dix("visible entry")?,
                open_from: from.ask()?,
                is_leased: from.flag("lease")?,
            }
        }
        kind::UNWELCOME => {
            let (epoch, number) = from.name("Hello")?;
            let root_epoch = from.epoch("root's epoch")?;
            let why = from.bytes("sentence")?;
            if why.len() > WHY_BYTES_MAX {
                return Err(WireError::NoSentence);
            }
            let why = String::from_utf8(why.to_vec()).map_err(|_| WireError::NoSentence)?;
            ToGroup::Unwelcome { hello: HelloId { epoch, number }, root_epoch, why }
        }
        kind::APPEND => ToGroup::Append {
            session: from.session()?,
            previous: from.point()?,
            visible: from.dix("visible entry")?,
            entries: from.entries()?,
        },
        kind::RENEWED => ToGroup::Renewed {
            session: from.session()?,
            number: from.number("number")?,
            is_granted: from.flag("grant")?,
            visible: from.dix("visible entry")?,
            open_from: from.ask()?,
        },
        kind::ASK => ToGroup::Ask(Ask {
            session: from.session()?,
            ask: from.ask()?,
            visible: from.dix("visible entry")?,
            marks: from.marks()?,
            body: from.bytes("question")?,
        }),
        kind::RELEASE => ToGroup::Release { session: from.session()?, ask: from.ask()? },
        other => return Err(unknown("the kind of message", other)),
    };
    from.end(message)
}

fn put_name(epoch: Epoch, number: u64, to: &mut BytesMut) {
    to.put_u64_le(epoch.0);
    to.put_u64_le(number);
}

fn put_session(session: Session, to: &mut BytesMut) {
    put_name(session.root_epoch, session.number, to);
}

fn put_ask(ask: AskId, to: &mut BytesMut) {
    put_name(ask.root_epoch, ask.number, to);
}

fn put_point(point: Point, to: &mut BytesMut) {
    to.put_u64_le(point.dix.0);
    to.put_u64_le(point.chain.0);
}

fn put_progress(progress: Progress, to: &mut BytesMut) {
    for dix in [progress.received, progress.queued, progress.committed] {
        to.put_u64_le(dix.0);
    }
}

fn put_count(count: usize, to: &mut BytesMut) {
    to.put_u32_le(u32::try_from(count).expect("the machines' settings bound what they count"));
}

fn put_bytes(bytes: &[u8], to: &mut BytesMut) {
    put_count(bytes.len(), to);
    to.put_slice(bytes);
}

fn put_marks(marks: &[Mark], to: &mut BytesMut) {
    put_count(marks.len(), to);
    for mark in marks {
        to.put_u8(mark.kind as u8);
        to.put_u128_le(mark.key);
    }
}

fn put_entry(entry: &Entry, to: &mut BytesMut) {
    to.put_u64_le(entry.dix.0);
    to.put_u64_le(entry.epoch.0);
    to.put_u64_le(entry.previous_chain.0);
    to.put_u8(u8::from(entry.ask.is_some()));
    put_ask(entry.ask.unwrap_or_default(), to);
    put_marks(&entry.marks, to);
    put_bytes(&entry.payload, to);
}

fn unknown(what: &'static str, number: impl Into<u64>) -> WireError {
    WireError::Unknown { what, number: number.into() }
}

/// The bytes of a message that have not been read yet.
struct Reader {
    bytes: Bytes,
}

impl Reader {
    /// The kind of message, behind its version.
    fn begin(&mut self) -> Result<u8, WireError> {
        match self.byte("version")? {
            VERSION => self.byte("kind"),
            other => Err(unknown("version", other)),
        }
    }

    fn end<T>(self, message: T) -> Result<T, WireError> {
        if self.bytes.is_empty() { Ok(message) } else { Err(WireError::Long(self.bytes.len())) }
    }

    fn needs(&self, count: usize, what: &'static str) -> Result<(), WireError> {
        if self.bytes.len() >= count { Ok(()) } else { Err(WireError::Short(what)) }
    }

    fn byte(&mut self, what: &'static str) -> Result<u8, WireError> {
        self.needs(1, what).map(|()| self.bytes.get_u8())
    }

    fn flag(&mut self, what: &'static str) -> Result<bool, WireError> {
        match self.byte(what)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(unknown(what, other)),
        }
    }

    fn number(&mut self, what: &'static str) -> Result<u64, WireError> {
        self.needs(8, what).map(|()| self.bytes.get_u64_le())
    }

    fn below(&mut self, max: u64, what: &'static str) -> Result<u64, WireError> {
        let number = self.number(what)?;
        if number <= max { Ok(number) } else { Err(WireError::Beyond { what, number }) }
    }

    fn epoch(&mut self, what: &'static str) -> Result<Epoch, WireError> {
        self.below(Epoch::LAST.0, what).map(Epoch)
    }

    fn dix(&mut self, what: &'static str) -> Result<Dix, WireError> {
        self.below(DIX_MAX, what).map(Dix)
    }

    fn name(&mut self, what: &'static str) -> Result<(Epoch, u64), WireError> {
        Ok((self.epoch(what)?, self.number(what)?))
    }

    fn session(&mut self) -> Result<Session, WireError> {
        let (root_epoch, number) = self.name("session")?;
        Ok(Session { root_epoch, number })
    }

    fn ask(&mut self) -> Result<AskId, WireError> {
        let (root_epoch, number) = self.name("ask")?;
        Ok(AskId { root_epoch, number })
    }

    fn point(&mut self) -> Result<Point, WireError> {
        Ok(Point { dix: self.dix("point")?, chain: Chain(self.number("chain")?) })
    }

    fn progress(&mut self) -> Result<Progress, WireError> {
        Ok(Progress {
            received: self.dix("received entry")?,
            queued: self.dix("queued entry")?,
            committed: self.dix("committed entry")?,
        })
    }

    /// A count of things of at least so many bytes, all of which are there.
    fn count(&mut self, bytes_min: usize, what: &'static str) -> Result<usize, WireError> {
        self.needs(4, what)?;
        let count = self.bytes.get_u32_le() as usize;
        self.needs(count.saturating_mul(bytes_min), what)?;
        Ok(count)
    }

    fn bytes(&mut self, what: &'static str) -> Result<Bytes, WireError> {
        let length = self.count(1, what)?;
        Ok(self.bytes.split_to(length))
    }

    fn marks(&mut self) -> Result<Vec<Mark>, WireError> {
        let count = self.count(MARK_BYTES, "marks")?;
        (0..count).map(|_| self.mark()).collect()
    }

    fn mark(&mut self) -> Result<Mark, WireError> {
        let number = self.byte("mark")?;
        let kind = MarkKind::from_number(number).ok_or_else(|| unknown("the kind of mark", number))?;
        self.needs(16, "mark")?;
        Ok(Mark::new(kind, self.bytes.get_u128_le()))
    }

    fn entries(&mut self) -> Result<Vec<Entry>, WireError> {
        let count = self.count(ENTRY_BYTES_MIN, "entries")?;
        (0..count).map(|_| self.entry()).collect()
    }

    fn entry(&mut self) -> Result<Entry, WireError> {
        let (dix, epoch) = (self.dix("entry")?, self.epoch("entry's epoch")?);
        let previous_chain = Chain(self.number("entry's chain")?);
        let has_ask = self.flag("entry's ask")?;
        let ask = self.ask()?;
        let marks = self.marks()?.into();
        let payload = self.bytes("entry's edit")?;
        Ok(Entry { dix, epoch, previous_chain, ask: has_ask.then_some(ask), marks, payload })
    }
}
