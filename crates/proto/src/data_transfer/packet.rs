//! A packet of block data.
//!
//! ```text
//! 0    4  payload length: data and checksums and these 4 bytes themselves, big-endian
//! 4    2  header length, big-endian
//! 6    h  PacketHeaderProto
//! 6+h  c  checksums, one a chunk, big-endian
//! ..   d  data
//! ```
//!
//! The header is five fixed-width fields, encoded and decoded here by hand: it is met once in 64 KiB of data
//! and twice on each server, and this spares an allocation each time.

use super::Error;
use base::PacketHeader;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Payload and header length.
pub const LENGTHS_BYTES: usize = 6;

/// The longest header there is: three fields of nine, two and five bytes and one of two.
pub const HEADER_BYTES_MAX: usize = 27;

/// Header and lengths at most: what to leave free in front of checksums and data.
pub const PREFIX_BYTES_MAX: usize = LENGTHS_BYTES + HEADER_BYTES_MAX;

/// The largest packet (lengths apart) that Hadoop's servers and clients accept.
pub const PACKET_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The lengths in the first six bytes of a packet, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    pub header_bytes: usize,
    /// Checksums and data.
    pub body_bytes: usize,
}

impl Lengths {
    /// # Errors
    /// [`Error::Packet`] if the payload has fewer than four bytes, the header's length is negative, or both together
    /// are above [`PACKET_BYTES_MAX`].
    pub fn decode(bytes: [u8; LENGTHS_BYTES]) -> Result<Self, Error> {
        let payload = i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let header = i16::from_be_bytes([bytes[4], bytes[5]]);
        if payload < 4 {
            return Err(Error::Packet(format!("payload length {payload}, at least 4 are needed")));
        }
        if header < 0 {
            return Err(Error::Packet(format!("header length {header}")));
        }
        let (payload, header) = (payload as usize, header as usize);
        if payload + header > PACKET_BYTES_MAX {
            return Err(Error::Packet(format!(
                "{} bytes, at most {PACKET_BYTES_MAX} are accepted",
                payload + header
            )));
        }
        Ok(Self { header_bytes: header, body_bytes: payload - 4 })
    }

    /// Everything behind the lengths.
    pub fn rest_bytes(&self) -> usize {
        self.header_bytes + self.body_bytes
    }
}

/// A whole packet. All parts share the buffer it was received in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    pub header: PacketHeader,
    /// The whole packet as received, to be sent on.
    pub whole: Bytes,
    pub sums: Bytes,
    pub data: Bytes,
}

/// The answer of [`take`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    Packet(Packet),
    /// At least this many more bytes are needed.
    More(usize),
}

/// Takes a packet off the front of `buffer`.
///
/// # Errors
/// Those of [`Lengths::decode`] and [`decode_header`].
pub fn take(buffer: &mut BytesMut) -> Result<Taken, Error> {
    let Some(lengths) = buffer.first_chunk::<LENGTHS_BYTES>() else {
        return Ok(Taken::More(LENGTHS_BYTES - buffer.len()));
    };
    let lengths = Lengths::decode(*lengths)?;
    let total = LENGTHS_BYTES + lengths.rest_bytes();
    if buffer.len() < total {
        return Ok(Taken::More(total - buffer.len()));
    }
    let sums_at = LENGTHS_BYTES + lengths.header_bytes;
    let header = decode_header(lengths, &buffer[LENGTHS_BYTES..sums_at])?;
    let data_at = total - header.data_length as usize;
    let whole = buffer.split_to(total).freeze();
    let (sums, data) = (whole.slice(sums_at..data_at), whole.slice(data_at..));
    Ok(Taken::Packet(Packet { header, whole, sums, data }))
}

/// Decodes a header and checks it against the lengths in front of it. The checksums are the first
/// `body_bytes - data_length` bytes of the body.
///
/// # Errors
/// [`Error::Packet`] if the header is cut off or has not as many bytes as `lengths` says, has an unknown field, lacks a
/// required one, or gives the data a length that is negative or above that of the body.
pub fn decode_header(lengths: Lengths, mut bytes: &[u8]) -> Result<PacketHeader, Error> {
    if bytes.len() != lengths.header_bytes {
        return Err(Error::Packet(format!("{} of {} header bytes", bytes.len(), lengths.header_bytes)));
    }
    let mut header = PacketHeader::default();
    let mut seen = 0u8;
    while let Some(&tag) = bytes.first() {
        bytes.advance(1);
        match tag {
            0x09 => header.offset_in_block = fixed(bytes.try_get_i64_le())?,
            0x11 => header.seqno = fixed(bytes.try_get_i64_le())?,
            0x18 => header.last_in_block = boolean(&mut bytes)?,
            0x25 => header.data_length = fixed(bytes.try_get_i32_le())?,
            0x28 => header.sync = boolean(&mut bytes)?,
            tag => return Err(Error::Packet(format!("unknown header field {tag:#x}"))),
        }
        seen |= 1 << (tag >> 3);
    }
    const REQUIRED: u8 = 0b1_1110;
    if seen & REQUIRED != REQUIRED {
        return Err(Error::Packet("a required header field is missing".into()));
    }
    if header.data_length < 0 {
        return Err(Error::Packet(format!("data length {}", header.data_length)));
    }
    if header.data_length as usize > lengths.body_bytes {
        return Err(Error::Packet(format!(
            "data length {} in a body of {} bytes",
            header.data_length, lengths.body_bytes
        )));
    }
    Ok(header)
}

fn fixed<T>(value: Result<T, bytes::TryGetError>) -> Result<T, Error> {
    value.map_err(|_| Error::Packet("truncated header".into()))
}

fn boolean(bytes: &mut &[u8]) -> Result<bool, Error> {
    match fixed(bytes.try_get_u8())? {
        0 => Ok(false),
        1 => Ok(true),
        value => Err(Error::Packet(format!("{value} where a yes or no belongs"))),
    }
}

/// Bytes of lengths and header together.
pub fn prefix_bytes(header: &PacketHeader) -> usize {
    LENGTHS_BYTES + header_bytes(header)
}

/// `syncBlock` is written only when set, as Hadoop does: early servers did not know it.
fn header_bytes(header: &PacketHeader) -> usize {
    if header.sync { HEADER_BYTES_MAX } else { HEADER_BYTES_MAX - 2 }
}

/// Writes lengths and header of a packet with `checksum_bytes` of checksums; checksums and
/// `header.data_length` bytes of data must follow.
pub fn encode_prefix(header: &PacketHeader, checksum_bytes: usize, mut out: impl BufMut) {
    out.put_i32((checksum_bytes + header.data_length as usize + 4) as i32);
    out.put_u16(header_bytes(header) as u16);
    out.put_u8(0x09);
    out.put_i64_le(header.offset_in_block);
    out.put_u8(0x11);
    out.put_i64_le(header.seqno);
    out.put_u8(0x18);
    out.put_u8(header.last_in_block.into());
    out.put_u8(0x25);
    out.put_i32_le(header.data_length);
    if header.sync {
        out.put_u8(0x28);
        out.put_u8(1);
    }
}
