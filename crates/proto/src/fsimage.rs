//! A NameNode's image (`fsimage_N`): the file around its messages.
//!
//! ```text
//! magic "HDFSIMG1" | sections | summary | length of the summary with its own length, u32 big-endian
//! ```
//!
//! A section is a row of messages, each behind its length. The summary names the sections and says where each one is, so that a writer gives
//! them out in any order: the texts come last here, once all of them are known. The messages are in [`crate::hdfs::fsimage`].

pub use strings::{AttributeSpace, EntryKind, Strings};

mod strings;

use crate::hdfs::fsimage::{FileSummary, StringTableSection, file_summary, string_table_section};
use prost::Message;
use std::{cmp::Ordering, io};

pub const MAGIC: &[u8; 8] = b"HDFSIMG1";
/// The version of the file around the messages.
const FILE_VERSION: u32 = 1;
/// Hadoop 3.5.0's `NameNodeLayoutVersion`: what the messages may hold. An older Hadoop says that the version is unknown to it.
pub const LAYOUT_VERSION: i32 = -67;
/// The number of no snapshot: of now.
pub const CURRENT_SNAPSHOT: u32 = i32::MAX as u32 - 1;
/// The name of the attribute in the namespace `system` whose one byte is a directory's storage policy.
pub const STORAGE_POLICY: &str = "hsm.block.storage.policy.id";

/// Bytes that are gathered before they are handed out.
const PIECE: usize = 256 * 1024;

/// The sections that Hadoop knows and that Clover writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    NameSystem,
    ErasureCoding,
    Inodes,
    Directories,
    UnderConstruction,
    Snapshots,
    SnapshotDiffs,
    References,
    Secrets,
    Caches,
    Strings,
}

impl Section {
    pub fn name(self) -> &'static str {
        match self {
            Self::NameSystem => "NS_INFO",
            Self::ErasureCoding => "ERASURE_CODING",
            Self::Inodes => "INODE",
            Self::Directories => "INODE_DIR",
            Self::UnderConstruction => "FILES_UNDERCONSTRUCTION",
            Self::Snapshots => "SNAPSHOT",
            Self::SnapshotDiffs => "SNAPSHOT_DIFF",
            Self::References => "INODE_REFERENCE",
            Self::Secrets => "SECRET_MANAGER",
            Self::Caches => "CACHE_MANAGER",
            Self::Strings => "STRING_TABLE",
        }
    }
}

/// Writes an image, message by message. It keeps the texts and the summary in memory, and nothing else.
pub struct ImageWriter<'w> {
    sink: &'w mut dyn io::Write,
    buffer: Vec<u8>,
    /// Bytes handed out.
    written: u64,
    /// Where the present section begins.
    begun: u64,
    sections: Vec<file_summary::Section>,
    pub strings: Strings,
}

impl<'w> ImageWriter<'w> {
    pub fn new(sink: &'w mut dyn io::Write) -> Self {
        let buffer = MAGIC.to_vec();
        let begun = buffer.len() as u64;
        Self { sink, buffer, written: 0, begun, sections: Vec::new(), strings: Strings::default() }
    }

    /// Puts a message into the present section.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn put(&mut self, message: &impl Message) -> io::Result<()> {
        put_delimited(&mut self.buffer, message);
        self.flush_full()
    }

    /// Puts messages that were encoded before, each behind its length.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn put_encoded(&mut self, messages: &[u8]) -> io::Result<()> {
        for part in messages.chunks(PIECE) {
            self.buffer.extend_from_slice(part);
            self.flush_full()?;
        }
        Ok(())
    }

    fn flush_full(&mut self) -> io::Result<()> {
        if self.buffer.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the present section; the next one begins.
    pub fn end(&mut self, section: Section) {
        let at = self.written + self.buffer.len() as u64;
        self.sections.push(file_summary::Section {
            name: Some(section.name().to_owned()),
            length: Some(at - self.begun),
            offset: Some(self.begun),
        });
        self.begun = at;
    }

    /// Writes the texts and the summary.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn finish(mut self) -> io::Result<()> {
        let strings = std::mem::take(&mut self.strings);
        self.put(&StringTableSection { num_entry: Some(strings.len()), mask_bits: Some(0) })?;
        for (text, id) in strings.iter() {
            self.put(&string_table_section::Entry { id: Some(id), str: Some(text.to_owned()) })?;
        }
        self.end(Section::Strings);
        let summary = FileSummary {
            ondisk_version: FILE_VERSION,
            layout_version: LAYOUT_VERSION as u32,
            codec: None,
            sections: std::mem::take(&mut self.sections),
        };
        let before = self.buffer.len();
        put_delimited(&mut self.buffer, &summary);
        let length = (self.buffer.len() - before) as u32;
        self.buffer.extend_from_slice(&length.to_be_bytes());
        self.flush()
    }
}

/// Appends a message behind its length.
pub fn put_delimited(buffer: &mut Vec<u8>, message: &impl Message) {
    // A vector takes as much as there is memory.
    message.encode_length_delimited(buffer).expect("a vector has room");
}

/// The order in which a NameNode expects the names of entries: their bytes are numbers with a sign, so that letters beyond ASCII come first.
pub fn name_order(one: &[u8], other: &[u8]) -> Ordering {
    one.iter().map(|byte| byte.cast_signed()).cmp(other.iter().map(|byte| byte.cast_signed()))
}

/// The file's name, with the number of the last edit that the image contains.
pub fn file_name(transaction: u64) -> String {
    format!("fsimage_{transaction:019}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdfs::fsimage::CacheManagerSection;

    fn small() -> Vec<u8> {
        let mut file = Vec::new();
        let mut image = ImageWriter::new(&mut file);
        let caches = CacheManagerSection { next_directive_id: 1, num_pools: 0, num_directives: 0 };
        image.put(&caches).unwrap();
        image.end(Section::Caches);
        image.end(Section::UnderConstruction);
        image.strings.permission("ann", "staff", 0o644).unwrap();
        image.finish().unwrap();
        file
    }

    #[test]
    fn the_summary_is_found_from_the_end_and_says_where_the_sections_are() {
        let file = small();
        assert_eq!(&file[..8], MAGIC);
        let (rest, length) = file.split_last_chunk::<4>().unwrap();
        let mut summary = &rest[rest.len() - u32::from_be_bytes(*length) as usize..];
        let summary = FileSummary::decode_length_delimited(&mut summary).unwrap();
        assert_eq!((summary.ondisk_version, summary.layout_version as i32, summary.codec), (1, -67, None));
        let sections: Vec<_> = summary
            .sections
            .iter()
            .map(|section| {
                (section.name.as_deref().unwrap(), section.offset.unwrap(), section.length.unwrap())
            })
            .collect();
        // The message of the caches has 6 bytes, and one before it says so.
        let strings = file.len() as u64 - 4 - u64::from(u32::from_be_bytes(*length));
        assert_eq!(
            sections,
            [("CACHE_MANAGER", 8, 7), ("FILES_UNDERCONSTRUCTION", 15, 0), ("STRING_TABLE", 15, strings - 15)]
        );
        let mut table = &file[15..strings as usize];
        let head = StringTableSection::decode_length_delimited(&mut table).unwrap();
        assert_eq!((head.num_entry, head.mask_bits), (Some(2), Some(0)));
        let mut texts = Vec::new();
        while !table.is_empty() {
            let entry = string_table_section::Entry::decode_length_delimited(&mut table).unwrap();
            texts.push((entry.id.unwrap(), entry.str.unwrap()));
        }
        assert_eq!(texts, [(1, "ann".to_owned()), (2, "staff".to_owned())]);
    }

    #[test]
    fn names_beyond_ascii_come_first() {
        let mut names = ["a", "b", "a\u{fc}", "ab", "\u{fc}", "", "\u{7f}"].map(str::as_bytes);
        names.sort_by(|one, other| name_order(one, other));
        assert_eq!(names, ["", "\u{fc}", "a", "a\u{fc}", "ab", "b", "\u{7f}"].map(str::as_bytes));
    }

    #[test]
    fn the_name_has_nineteen_digits() {
        assert_eq!(file_name(42), "fsimage_0000000000000000042");
    }
}
