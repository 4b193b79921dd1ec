//! The container of an image: chunks with checksums, a digest over all, written beside the running service.
//!
//! ```text
//! header (64)  0 magic "CLOVIMAG"  8 crc32c of bytes 12..64  12 version (1)  16 group  20 0
//!              24 epoch, 32 sn, 40 chain of the last entry contained   48 store uuid (16)
//! chunk        length (4, at most 1 MiB)  crc32c of the bytes (4)  the bytes
//! end          a chunk of length 0
//! trailer (64) 0 magic "CLOVIEND"  8 crc32c of bytes 12..64  12 0  16 bytes in all chunks  24 chunks
//!              32 sha256 of all before the trailer
//! ```

pub(crate) mod growing;

use crate::{
    Checkpoint,
    record::{u32_at, u64_at},
};
use base::{Chain, Epoch, GroupId, LogPoint, Sn, TxId};
use env::File;
use sha2::{Digest, Sha256};
use std::{io, sync::Arc};

const HEADER_MAGIC: [u8; 8] = *b"CLOVIMAG";
const TRAILER_MAGIC: [u8; 8] = *b"CLOVIEND";
const VERSION: u32 = 1;
const EDGE_BYTES: usize = 64;
const CHUNK_HEADER_BYTES: usize = 8;
/// Large enough for the disk to stream, small enough to check before any of it is believed.
pub const CHUNK_BYTES_MAX: usize = 1 << 20;

/// The header of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageHeader {
    pub group: GroupId,
    /// The last entry that the image contains.
    pub at: LogPoint,
    pub store_uuid: [u8; 16],
}

impl ImageHeader {
    fn encode(&self) -> [u8; EDGE_BYTES] {
        let mut bytes = [0; EDGE_BYTES];
        bytes[..8].copy_from_slice(&HEADER_MAGIC);
        bytes[12..16].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.group.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.at.id.epoch.0.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.at.id.sn.0.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.at.chain.0.to_le_bytes());
        bytes[48..64].copy_from_slice(&self.store_uuid);
        seal_edge(bytes)
    }

    fn decode(bytes: &[u8; EDGE_BYTES]) -> Result<Self, String> {
        check_edge(bytes, HEADER_MAGIC)?;
        let version = u32_at(bytes, 12);
        if version != VERSION {
            return Err(format!("format version {version} where {VERSION} is supported"));
        }
        Ok(Self {
            group: GroupId(u32_at(bytes, 16)),
            at: LogPoint {
                id: TxId { epoch: Epoch(u64_at(bytes, 24)), sn: Sn(u64_at(bytes, 32)) },
                chain: Chain(u64_at(bytes, 40)),
            },
            store_uuid: bytes[48..64].try_into().expect("sixteen bytes"),
        })
    }
}

/// A sentence with the version found and the version known, if the header is intact and of a version that this
/// release does not know.
fn unknown_version(bytes: &[u8; EDGE_BYTES]) -> Option<String> {
    let version = u32_at(bytes, 12);
    (check_edge(bytes, HEADER_MAGIC).is_ok() && version != VERSION)
        .then(|| format!("the image's header has version {version}, and {VERSION} is known"))
}

fn seal_edge(mut bytes: [u8; EDGE_BYTES]) -> [u8; EDGE_BYTES] {
    let crc = crc32c::crc32c(&bytes[12..]);
    bytes[8..12].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn check_edge(bytes: &[u8; EDGE_BYTES], magic: [u8; 8]) -> Result<(), String> {
    if bytes[..8] != magic {
        return Err(format!("not the magic \"{}\"", String::from_utf8_lossy(&magic)));
    }
    let (written, found) = (u32_at(bytes, 8), crc32c::crc32c(&bytes[12..]));
    if written != found {
        return Err(format!("checksum {found:08x} where {written:08x} is written"));
    }
    Ok(())
}

/// Takes an image's bytes in pieces of any size.
pub struct ImageWriter {
    file: Arc<dyn File>,
    at: LogPoint,
    position: u64,
    content_bytes: u64,
    chunks: u64,
    buffer: Vec<u8>,
    sha256: Sha256,
}

impl ImageWriter {
    pub(crate) fn new(file: Arc<dyn File>, header: &ImageHeader) -> io::Result<Self> {
        let mut writer = Self {
            file,
            at: header.at,
            position: 0,
            content_bytes: 0,
            chunks: 0,
            buffer: Vec::with_capacity(CHUNK_HEADER_BYTES + CHUNK_BYTES_MAX),
            sha256: Sha256::new(),
        };
        writer.put(&header.encode())?;
        writer.buffer.resize(CHUNK_HEADER_BYTES, 0);
        Ok(writer)
    }

    /// # Errors
    /// The error of the file: its disk is full, or cannot be written.
    pub fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = CHUNK_HEADER_BYTES + CHUNK_BYTES_MAX - self.buffer.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() == CHUNK_HEADER_BYTES + CHUNK_BYTES_MAX {
                self.end_chunk()?;
            }
        }
        Ok(())
    }

    /// Content bytes taken so far.
    pub fn content_bytes(&self) -> u64 {
        self.content_bytes + (self.buffer.len() - CHUNK_HEADER_BYTES) as u64
    }

    /// Writes the rest and syncs the file.
    pub(crate) fn finish(mut self) -> io::Result<Checkpoint> {
        if self.buffer.len() > CHUNK_HEADER_BYTES {
            self.end_chunk()?;
        }
        self.put(&[0; CHUNK_HEADER_BYTES])?;
        let sha256: [u8; 32] = self.sha256.finalize_reset().into();
        let mut trailer = [0; EDGE_BYTES];
        trailer[..8].copy_from_slice(&TRAILER_MAGIC);
        trailer[16..24].copy_from_slice(&self.content_bytes.to_le_bytes());
        trailer[24..32].copy_from_slice(&self.chunks.to_le_bytes());
        trailer[32..].copy_from_slice(&sha256);
        self.put(&seal_edge(trailer))?;
        self.file.sync_data()?;
        Ok(Checkpoint { at: self.at, file_bytes: self.position, sha256 })
    }

    /// Writes a chunk and syncs it: an edit's sync would wait for all that is on its way to the disk.
    fn end_chunk(&mut self) -> io::Result<()> {
        let mut chunk = std::mem::take(&mut self.buffer);
        let content = &chunk[CHUNK_HEADER_BYTES..];
        let (length, crc) = (content.len(), crc32c::crc32c(content));
        chunk[..4].copy_from_slice(&(length as u32).to_le_bytes());
        chunk[4..8].copy_from_slice(&crc.to_le_bytes());
        self.put(&chunk)?;
        self.file.sync_data()?;
        self.content_bytes += length as u64;
        self.chunks += 1;
        chunk.truncate(CHUNK_HEADER_BYTES);
        self.buffer = chunk;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(bytes, self.position)?;
        self.sha256.update(bytes);
        self.position += bytes.len() as u64;
        Ok(())
    }
}

/// Gives an image's bytes, each chunk checked before it is seen. An error names the offset and what was
/// expected there.
pub struct ImageReader {
    file: Arc<dyn File>,
    header: ImageHeader,
    file_bytes: u64,
    position: u64,
    chunk: Vec<u8>,
    /// Bytes of the chunk already given out.
    given: usize,
    content_bytes: u64,
    chunks: u64,
    sha256: Sha256,
    /// The digest in the trailer, once everything before it was read and agrees with it.
    verified: Option<[u8; 32]>,
}

impl ImageReader {
    /// Reads the header of an image file.
    ///
    /// # Errors
    /// `Unsupported` if a later release wrote the image; `InvalidData` if the header is damaged; or the file cannot
    /// be read.
    pub fn open(file: Arc<dyn File>) -> io::Result<Self> {
        let file_bytes = file.length()?;
        let mut reader = Self {
            file,
            header: ImageHeader { group: GroupId(0), at: LogPoint::default(), store_uuid: [0; 16] },
            file_bytes,
            position: 0,
            chunk: Vec::new(),
            given: 0,
            content_bytes: 0,
            chunks: 0,
            sha256: Sha256::new(),
            verified: None,
        };
        let mut header = [0; EDGE_BYTES];
        reader.take(&mut header)?;
        reader.header = ImageHeader::decode(&header).map_err(|what| match unknown_version(&header) {
            Some(what) => io::Error::new(io::ErrorKind::Unsupported, what),
            None => damaged(0, "an image's header", &what),
        })?;
        reader.sha256.update(header);
        Ok(reader)
    }

    pub fn header(&self) -> &ImageHeader {
        &self.header
    }

    /// Bytes of the whole file.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Reads what is left and checks the digest over the whole file.
    ///
    /// # Errors
    /// `InvalidData` if a chunk or the trailer is damaged or the digest is another; `Unsupported` if a later release
    /// wrote it; or the file cannot be read.
    pub fn finish(mut self) -> io::Result<[u8; 32]> {
        loop {
            if let Some(digest) = self.verified {
                return Ok(digest);
            }
            self.next_chunk()?;
        }
    }

    /// Reads and checks the next chunk, or the trailer, which leaves `chunk` empty.
    fn next_chunk(&mut self) -> io::Result<()> {
        self.chunk.clear();
        self.given = 0;
        let start = self.position;
        let mut head = [0; CHUNK_HEADER_BYTES];
        self.take(&mut head)?;
        let (length, crc) = (u32_at(&head, 0) as usize, u32_at(&head, 4));
        if length > CHUNK_BYTES_MAX {
            let found = format!("one of {length} bytes");
            return Err(damaged(start, &format!("a chunk of at most {CHUNK_BYTES_MAX} bytes"), &found));
        }
        if length == 0 {
            self.sha256.update(head);
            return self.trailer();
        }
        if self.position + length as u64 > self.file_bytes {
            let found = format!("the end of the file at {}", self.file_bytes);
            return Err(damaged(start, &format!("a chunk of {length} bytes"), &found));
        }
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.resize(length, 0);
        self.take(&mut chunk)?;
        let found = crc32c::crc32c(&chunk);
        if found != crc {
            let expected = format!("a chunk with checksum {crc:08x}");
            return Err(damaged(start, &expected, &format!("checksum {found:08x}")));
        }
        self.sha256.update(head);
        self.sha256.update(&chunk);
        self.content_bytes += length as u64;
        self.chunks += 1;
        self.chunk = chunk;
        Ok(())
    }

    fn trailer(&mut self) -> io::Result<()> {
        let start = self.position;
        let mut trailer = [0; EDGE_BYTES];
        self.take(&mut trailer)?;
        check_edge(&trailer, TRAILER_MAGIC).map_err(|what| damaged(start, "an image's trailer", &what))?;
        let (content_bytes, chunks) = (u64_at(&trailer, 16), u64_at(&trailer, 24));
        if (content_bytes, chunks) != (self.content_bytes, self.chunks) {
            let expected = format!("{content_bytes} bytes in {chunks} chunks");
            let found = format!("{} bytes in {} chunks", self.content_bytes, self.chunks);
            return Err(damaged(start, &expected, &found));
        }
        let digest: [u8; 32] = self.sha256.finalize_reset().into();
        if digest != trailer[32..] {
            return Err(damaged(start, "the sha256 of what was read", "another one"));
        }
        if self.position != self.file_bytes {
            let found = format!("{} bytes more", self.file_bytes - self.position);
            return Err(damaged(self.position, "the end of the file", &found));
        }
        self.verified = Some(digest);
        Ok(())
    }

    fn take(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        if self.position + bytes.len() as u64 > self.file_bytes {
            let expected = format!("{} more bytes", bytes.len());
            let found = format!("the end of the file at {}", self.file_bytes);
            return Err(damaged(self.position, &expected, &found));
        }
        env::disk::read_exact_at(&*self.file, bytes, self.position)?;
        self.position += bytes.len() as u64;
        Ok(())
    }
}

impl io::Read for ImageReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while self.given == self.chunk.len() {
            if self.verified.is_some() {
                return Ok(0);
            }
            self.next_chunk()?;
        }
        let rest = &self.chunk[self.given..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.given += count;
        Ok(count)
    }
}

/// How much of the beginning of this file is the beginning of an image of that place: its header and all whole chunks
/// whose checksums are right. The bytes behind them may be anything.
///
/// # Errors
/// `Unsupported` if a later release wrote the file; or it cannot be read. Damage is no error.
fn intact_bytes(file: &Arc<dyn File>, wanted: &ImageHeader) -> io::Result<u64> {
    let mut reader = match ImageReader::open(file.clone()) {
        Err(error) if is_damage(&error) => return Ok(0),
        opened => opened?,
    };
    let header = *reader.header();
    if (header.at, header.group) != (wanted.at, wanted.group) {
        return Ok(0);
    }
    loop {
        let before = reader.position;
        match reader.next_chunk() {
            Ok(()) if reader.verified.is_none() => {}
            Ok(()) => return Ok(reader.position),
            Err(error) if is_damage(&error) => return Ok(before),
            Err(error) => return Err(error),
        }
    }
}

fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

fn damaged(offset: u64, expected: &str, found: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("at offset {offset}: expected {expected}, found {found}"),
    )
}

#[cfg(test)]
mod tests;
