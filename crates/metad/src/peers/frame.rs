//! The frames of the handshake: length u32, crc32c of the body u32, body; little-endian.
//!
//! Frames after the handshake have a proof of their sender instead of a checksum: [`super::sealed`].

use bytes::Bytes;
use std::io::{self, Read, Write};
use thiserror::Error;

/// The largest body of a message, which holds at most [`group::Message::ENTRIES_BYTES_MAX`] of payloads, but for one
/// entry that is larger than that by itself: the journal takes 16 MiB.
pub const BODY_BYTES_MAX: usize = (16 << 20) + (4 << 10);

const HEADER_BYTES: usize = 8;

#[derive(Debug, Error)]
pub enum FrameError {
    #[error("the connection has ended")]
    Io(#[from] io::Error),
    #[error("a frame of {bytes} bytes is announced; {limit} are the limit")]
    TooLarge { bytes: usize, limit: usize },
    #[error("the checksum of a frame is {found:08x}, its header says {expected:08x}")]
    Checksum { expected: u32, found: u32 },
    #[error("frame {number} of the connection was changed, repeated, or made by somebody else")]
    Forged { number: u64 },
}

/// Writes one body as a frame.
///
/// # Errors
/// The error of the stream: the connection broke, or took nothing for its time limit.
pub fn write(stream: &mut impl Write, body: &[u8]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(body).to_le_bytes());
    bytes.extend_from_slice(body);
    stream.write_all(&bytes)
}

/// Reads one frame whose body has at most `limit` bytes. Nothing is allocated for more.
///
/// # Errors
/// [`FrameError::Io`] if the connection broke, ended or brought nothing for its time limit; [`FrameError::TooLarge`] if
/// the frame is larger than `limit`; [`FrameError::Checksum`] if its checksum is wrong.
pub fn read(stream: &mut impl Read, limit: usize) -> Result<Bytes, FrameError> {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header)?;
    let bytes = u32::from_le_bytes(header[..4].try_into().expect("four bytes")) as usize;
    let expected = u32::from_le_bytes(header[4..].try_into().expect("four bytes"));
    if bytes > limit {
        return Err(FrameError::TooLarge { bytes, limit });
    }
    let mut body = vec![0; bytes];
    stream.read_exact(&mut body)?;
    let found = crc32c::crc32c(&body);
    if found != expected {
        return Err(FrameError::Checksum { expected, found });
    }
    Ok(body.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_comes_back() {
        let mut stream = Vec::new();
        write(&mut stream, b"one").unwrap();
        write(&mut stream, b"").unwrap();
        let mut reader = &stream[..];
        assert_eq!(read(&mut reader, 100).unwrap(), &b"one"[..]);
        assert_eq!(read(&mut reader, 100).unwrap(), &b""[..]);
        assert!(matches!(read(&mut reader, 100), Err(FrameError::Io(_))));
    }

    #[test]
    fn a_length_beyond_the_limit_is_refused_before_anything_is_read() {
        let mut stream = u32::MAX.to_le_bytes().to_vec();
        stream.extend_from_slice(&[0; 4]);
        let error = read(&mut &stream[..], BODY_BYTES_MAX).unwrap_err();
        assert_eq!(error.to_string(), "a frame of 4294967295 bytes is announced; 16781312 are the limit");
    }

    #[test]
    fn a_changed_bit_is_seen() {
        let mut stream = Vec::new();
        write(&mut stream, b"entries").unwrap();
        *stream.last_mut().unwrap() ^= 1;
        assert!(matches!(read(&mut &stream[..], 100), Err(FrameError::Checksum { .. })));
    }
}
