//! Notes of requests that have ended a server, as text: one a line, for people and for members alike.
//!
//! ```text
//! clover fatal requests 1
//! cleared up_to=0
//! panic number=1 at_ms=1763829600000 member=1 protocol=… method=mkdirs bytes=57 sha256=00c0ffee… user=alice client=… call=12
//! ```
//!
//! Notes are numbered: one that is new gets the number behind all that its member knows. So it is told which notes were
//! cleared and which came later, whatever the clocks of the members say. Two members may give the same number to two
//! notes. Lines that make no sense, the last one if it is torn, are passed over.

use base::{CallId, ClientId, MemberId};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Notes kept; the oldest goes first.
pub const NOTES_MAX: usize = 64;
/// The most bytes of all lines together.
pub const TEXT_BYTES_MAX: usize = 64 << 10;
/// No server dies so often: beyond is no number, so that none can be used up.
const NUMBER_MAX: u64 = 1 << 48;
const WORD_BYTES_MAX: usize = 96;
const HEAD: &str = "clover fatal requests 1";

/// A hash that tells one request from all others: nobody can make another request with an equal one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a request's bytes; its protocol and method are noted beside it.
    pub fn of(request: &[u8]) -> Self {
        Self(Sha256::digest(request).into())
    }

    fn parse(hex: &str) -> Option<Self> {
        parse_hex(hex).map(Self)
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl std::fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// A note of a request, and of a server that it has ended by a panic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    pub number: u64,
    pub member: MemberId,
    /// The time of the panic, for people.
    pub at_ms: u64,
    pub protocol: String,
    pub method: String,
    /// The length of the request.
    pub bytes: u64,
    pub fingerprint: Fingerprint,
    /// The user who made the request, for people to read. Every user's equal request is refused.
    pub user: String,
    pub client: ClientId,
    pub call: CallId,
}

/// A name as one word of a line.
pub fn word(text: &str) -> String {
    let word: String = text
        .chars()
        .map(|letter| if letter.is_ascii_graphic() { letter } else { '?' })
        .take(WORD_BYTES_MAX)
        .collect();
    if word.is_empty() { "?".to_owned() } else { word }
}

impl Note {
    /// The note as a line of the file, with its end of line.
    pub fn line(&self) -> String {
        format!(
            "panic number={} at_ms={} member={} protocol={} method={} bytes={} sha256={} user={} client={} call={}\n",
            self.number,
            self.at_ms,
            self.member,
            word(&self.protocol),
            word(&self.method),
            self.bytes,
            self.fingerprint,
            word(&self.user),
            self.client,
            self.call.0,
        )
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        if words.next()? != "panic" {
            return None;
        }
        let mut next = |name: &str| -> Option<&str> {
            let word = words.next()?.strip_prefix(name)?.strip_prefix('=')?;
            let is_word = (1..=WORD_BYTES_MAX).contains(&word.len())
                && word.bytes().all(|byte| byte.is_ascii_graphic());
            is_word.then_some(word)
        };
        let note = Self {
            number: next("number")?.parse().ok().filter(|number| (1..=NUMBER_MAX).contains(number))?,
            at_ms: next("at_ms")?.parse().ok()?,
            member: MemberId(next("member")?.parse().ok()?),
            protocol: next("protocol")?.to_owned(),
            method: next("method")?.to_owned(),
            bytes: next("bytes")?.parse().ok()?,
            fingerprint: Fingerprint::parse(next("sha256")?)?,
            user: next("user")?.to_owned(),
            client: ClientId(parse_hex(next("client")?)?),
            call: CallId(next("call")?.parse().ok()?),
        };
        words.next().is_none().then_some(note)
    }

    /// The time in the form that people read.
    pub fn time(&self) -> String {
        let at = i64::try_from(self.at_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
        at.map_or_else(|| format!("{} ms after 1970", self.at_ms), |at| at.to_string())
    }
}

fn parse_hex<const N: usize>(hex: &str) -> Option<[u8; N]> {
    HEXLOWER.decode(hex.as_bytes()).ok()?.try_into().ok()
}

/// All notes that this member has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// The notes in the order in which they became known, each once.
    known: Vec<Note>,
    /// Notes up to this number count no more.
    cleared: u64,
}

impl Notes {
    pub fn all(&self) -> &[Note] {
        &self.known
    }

    pub fn tells_something(&self) -> bool {
        !self.known.is_empty() || self.cleared > 0
    }

    /// The number for the next note.
    pub fn next_number(&self) -> u64 {
        self.last_number().saturating_add(1).min(NUMBER_MAX)
    }

    fn last_number(&self) -> u64 {
        self.known.last().map_or(0, |note| note.number).max(self.cleared)
    }

    /// The note because of which such a request is refused. Its bytes are looked at only if there are as many as in one
    /// that is known.
    pub fn find(&self, protocol: &str, method: &str, request: &[u8]) -> Option<&Note> {
        let alike = |note: &&Note| {
            note.bytes == request.len() as u64 && note.method == method && note.protocol == protocol
        };
        self.known.iter().find(alike)?;
        let fingerprint = Fingerprint::of(request);
        self.known.iter().filter(alike).find(|note| note.fingerprint == fingerprint)
    }

    /// Unless it is known, or was cleared.
    pub fn add(&mut self, note: Note) {
        if note.number <= self.cleared {
            return;
        }
        let Err(place) = self.known.binary_search(&note) else { return };
        self.known.insert(place, note);
        if self.known.len() > NOTES_MAX {
            self.known.remove(0);
        }
    }

    pub fn clear(&mut self) {
        self.clear_up_to(self.last_number());
    }

    fn clear_up_to(&mut self, number: u64) {
        self.cleared = self.cleared.max(number);
        self.known.retain(|note| note.number > self.cleared);
    }

    /// Whether something was new.
    pub fn merge(&mut self, told: Self) -> bool {
        let before = self.clone();
        self.clear_up_to(told.cleared);
        told.known.into_iter().for_each(|note| self.add(note));
        *self != before
    }

    pub fn encode(&self) -> String {
        let mut text = format!("{HEAD}\ncleared up_to={}\n", self.cleared);
        for note in &self.known {
            let _ = text.write_str(&note.line());
        }
        text
    }

    /// Reads the file's text, and counts the lines that make no sense. `None`: the text is of another kind or version.
    pub fn decode(text: &[u8]) -> Option<(Self, usize)> {
        let text = &text[..text.len().min(TEXT_BYTES_MAX)];
        let (mut notes, mut malformed) = (Self::default(), 0);
        let mut lines = text.split_inclusive(|byte| *byte == b'\n');
        if lines.next()?.strip_suffix(b"\n")? != HEAD.as_bytes() {
            return None;
        }
        for line in lines {
            let whole = line.strip_suffix(b"\n").and_then(|line| std::str::from_utf8(line).ok());
            let is_known = whole.is_some_and(|line| notes.take(line));
            malformed += usize::from(!is_known);
        }
        Some((notes, malformed))
    }

    fn take(&mut self, line: &str) -> bool {
        if let Some(cleared) = line.strip_prefix("cleared up_to=") {
            let cleared = cleared.parse::<u64>().ok().filter(|cleared| *cleared < NUMBER_MAX);
            return cleared.map(|cleared| self.clear_up_to(cleared)).is_some();
        }
        Note::parse(line).map(|note| self.add(note)).is_some()
    }
}

#[cfg(test)]
mod tests;
