//! A change of directories, as an entry of the directory log.
//!
//! Where a namespace has several groups, the root group journals each change of directories in such an edit. It holds the change, and what the
//! other groups are sent: see `docs/protocol/one-namespace.md`.

use crate::{
    Namespace, Reply,
    codec::{DecodeError, Field, Reader, Writer},
    edit::plain,
    operation::{Applying, Operation, rules_of_its_change},
};
use base::{
    Chain, Epoch,
    directory_log::{AskId, Dix, Entry, Mark, MarkKind},
};
use bytes::Bytes;

/// The change, and the entry that it is.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderedEdit<B> {
    /// Its payload is the change as an edit without dues. All groups get these very bytes, whatever release reads them.
    pub entry: Entry,
    /// Every entry up to this one was visible when this one was planned.
    pub visible: Dix,
    /// Every group had carried out all entries up to this one.
    pub dropped: Dix,
    pub change: Box<B>,
}

impl Field for Entry {
    fn encode(&self, out: &mut Writer<'_>) {
        for number in [self.dix.0, self.previous_chain.0, self.epoch.0] {
            out.number(number);
        }
        self.ask.map(|ask| (ask.root_epoch, ask.number)).encode(out);
        out.number(self.marks.len() as u64);
        self.marks.iter().for_each(|mark| mark.encode(out));
        out.bytes(&self.payload);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (dix, previous_chain) = (Dix(input.number()?), Chain(input.number()?));
        let epoch = Field::decode(input)?;
        let ask: Option<(Epoch, u64)> = Field::decode(input)?;
        let marks: Vec<Mark> = Field::decode(input)?;
        if dix == Dix(0) {
            return Err(input.malformed("an entry of the directory log before its first"));
        }
        Ok(Self {
            dix,
            epoch,
            previous_chain,
            ask: ask.map(|(root_epoch, number)| AskId { root_epoch, number }),
            marks: marks.into(),
            payload: Bytes::copy_from_slice(input.bytes()?),
        })
    }
}

impl Field for Mark {
    fn encode(&self, out: &mut Writer<'_>) {
        out.byte(self.kind as u8);
        out.0.extend_from_slice(&self.key.to_le_bytes());
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let kind = MarkKind::from_number(input.byte()?);
        let kind = kind.ok_or_else(|| input.malformed("a mark of a kind that is not known"))?;
        let mut key = [0; 16];
        key.copy_from_slice(input.take(16)?);
        Ok(Self { kind, key: u128::from_le_bytes(key) })
    }
}

impl<B: Field> Field for OrderedEdit<B> {
    fn encode(&self, out: &mut Writer<'_>) {
        out.number(self.visible.0);
        out.number(self.dropped.0);
        self.entry.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (visible, dropped) = (Dix(input.number()?), Dix(input.number()?));
        let entry: Entry = Field::decode(input)?;
        if dropped > visible || visible >= entry.dix {
            return Err(
                input.malformed("an entry of the directory log that was visible before it was planned")
            );
        }
        let change = Box::new(plain::decode(&entry.payload)?);
        Ok(Self { entry, visible, dropped, change })
    }
}

impl<B: Operation> Operation for OrderedEdit<B> {
    rules_of_its_change!();

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        let reply = self.change.apply(ns, applying);
        ns.tree.directory_log.push(self.entry.clone(), plain::takes_snapshot(&self.entry.payload));
        ns.tree.directory_log.kept.note(self.visible, self.dropped);
        reply
    }
}
