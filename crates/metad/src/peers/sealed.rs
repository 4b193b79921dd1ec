//! Frames behind the handshake: nobody else can add one, change one, repeat one or put one in another's place.
//!
//! ```text
//! frame   length of the body u32, tag 16, body
//! tag     the first 16 bytes of hmac-sha256(key, number of the frame u64, length of the body u32, body)
//! ```
//!
//! Each connection has a key of its own for each direction, made from the secret and from both sides' messages of the
//! handshake, which include random numbers. The number of a frame is not sent: both sides count from 0, so a frame
//! fits at one place of one connection only. A wrong tag ends the connection. The content is not encrypted.
//!
//! The tag takes the place of a checksum. With the SHA instructions of a processor it costs 0.9 ms for 1 MiB and
//! 0.2 µs for a beacon, on each side (a checksum: 0.06 ms and 0.01 µs).

use super::frame::FrameError;
use bytes::{Bytes, BytesMut};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::io::Read;

const LENGTH_BYTES: usize = 4;
const TAG_BYTES: usize = 16;
const HEADER_BYTES: usize = LENGTH_BYTES + TAG_BYTES;

/// The state of one direction of a connection: the key, and how many frames there were.
struct Counted {
    key: Hmac<Sha256>,
    next: u64,
}

impl Counted {
    /// The keyed hash for the tag of the next frame.
    fn tagger(&mut self, length: [u8; LENGTH_BYTES]) -> Hmac<Sha256> {
        let mut mac = self.key.clone();
        mac.update(&self.next.to_le_bytes());
        mac.update(&length);
        self.next += 1;
        mac
    }
}

/// The end of a direction that sends.
pub struct Sealer(Counted);

impl Sealer {
    pub(super) fn new(key: Hmac<Sha256>) -> Self {
        Self(Counted { key, next: 0 })
    }

    /// Begins a frame: leaves room for its header, which [`Self::seal`] fills in once the body is behind it, and
    /// returns the frame's offset.
    pub fn begin(&self, to: &mut BytesMut) -> usize {
        let start = to.len();
        to.extend_from_slice(&[0; HEADER_BYTES]);
        start
    }

    /// Completes the frame that was begun at `start`. Frames are sent in the order in which they are completed.
    ///
    /// # Panics
    /// The frame is larger than [`BODY_BYTES_MAX`](super::frame::BODY_BYTES_MAX).
    pub fn seal(&mut self, to: &mut BytesMut, start: usize) {
        let bytes = to.len() - start - HEADER_BYTES;
        assert!(
            bytes <= super::frame::BODY_BYTES_MAX,
            "a message of {bytes} bytes is larger than a frame may be"
        );
        let length = (bytes as u32).to_le_bytes();
        let mut mac = self.0.tagger(length);
        mac.update(&to[start + HEADER_BYTES..]);
        to[start..start + LENGTH_BYTES].copy_from_slice(&length);
        to[start + LENGTH_BYTES..start + HEADER_BYTES]
            .copy_from_slice(&mac.finalize().into_bytes()[..TAG_BYTES]);
    }
}

/// The end of a direction that receives.
pub struct Opener(Counted);

impl Opener {
    pub(super) fn new(key: Hmac<Sha256>) -> Self {
        Self(Counted { key, next: 0 })
    }

    /// Reads the next frame, whose body has at most `limit` bytes. Nothing is allocated for more. After an error
    /// nothing more can be read from the connection.
    ///
    /// # Errors
    /// [`FrameError::Io`] if the connection broke, ended or brought nothing for its time limit;
    /// [`FrameError::TooLarge`] if the frame is larger than `limit`; [`FrameError::Forged`] if it was not sealed by the
    /// other end as the next one.
    pub fn read(&mut self, stream: &mut impl Read, limit: usize) -> Result<Bytes, FrameError> {
        let mut header = [0; HEADER_BYTES];
        stream.read_exact(&mut header)?;
        let (length, tag) = header.split_at(LENGTH_BYTES);
        let length: [u8; LENGTH_BYTES] = length.try_into().expect("four bytes");
        let bytes = u32::from_le_bytes(length) as usize;
        if bytes > limit {
            return Err(FrameError::TooLarge { bytes, limit });
        }
        let mut body = vec![0; bytes];
        stream.read_exact(&mut body)?;
        let number = self.0.next;
        let mut mac = self.0.tagger(length);
        mac.update(&body);
        mac.verify_truncated_left(tag).map_err(|_| FrameError::Forged { number })?;
        Ok(body.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hmac::KeyInit;

    fn key(of: u8) -> Hmac<Sha256> {
        Hmac::new_from_slice(&[of; 32]).unwrap()
    }

    fn frames(key: Hmac<Sha256>, bodies: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut sealer = Sealer::new(key);
        bodies
            .iter()
            .map(|body| {
                let mut to = BytesMut::new();
                let start = sealer.begin(&mut to);
                to.extend_from_slice(body);
                sealer.seal(&mut to, start);
                to.to_vec()
            })
            .collect()
    }

    /// The frames that are read from these bytes, up to the first error.
    fn read(key: Hmac<Sha256>, bytes: &[u8]) -> (Vec<Bytes>, FrameError) {
        let (mut opener, mut rest, mut bodies) = (Opener::new(key), bytes, Vec::new());
        loop {
            match opener.read(&mut rest, 100) {
                Ok(body) => bodies.push(body),
                Err(error) => return (bodies, error),
            }
        }
    }

    fn is_forged(error: &FrameError, at: u64) -> bool {
        matches!(error, FrameError::Forged { number } if *number == at)
    }

    #[test]
    fn bodies_come_back_in_their_order() {
        let sent = frames(key(1), &[b"one", b"", b"two"]).concat();
        let (bodies, end) = read(key(1), &sent);
        assert_eq!(bodies, [&b"one"[..], b"", b"two"]);
        assert!(matches!(end, FrameError::Io(_)), "{end}");
    }

    #[test]
    fn a_frame_that_was_sent_before_or_comes_early_is_refused() {
        let sent = frames(key(1), &[b"one", b"two", b"three"]);
        let repeated = [&sent[0][..], &sent[1], &sent[1]].concat();
        let (bodies, error) = read(key(1), &repeated);
        assert!(bodies.len() == 2 && is_forged(&error, 2), "{error}");
        let swapped = [&sent[1][..], &sent[0]].concat();
        let (bodies, error) = read(key(1), &swapped);
        assert!(bodies.is_empty() && is_forged(&error, 0), "{error}");
        let left_out = [&sent[0][..], &sent[2]].concat();
        assert!(is_forged(&read(key(1), &left_out).1, 1));
    }

    #[test]
    fn a_frame_of_another_direction_or_connection_is_refused() {
        let (bodies, error) = read(key(2), &frames(key(1), &[b"one"]).concat());
        assert!(bodies.is_empty() && is_forged(&error, 0), "{error}");
    }

    #[test]
    fn no_bit_can_be_changed() {
        let sent = frames(key(1), &[b"entries"]).concat();
        for bit in 0..sent.len() * 8 {
            let mut changed = sent.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let (bodies, error) = read(key(1), &changed);
            assert!(bodies.is_empty(), "bit {bit}: {error}");
        }
    }

    #[test]
    fn a_length_beyond_the_limit_is_refused_before_anything_is_read() {
        let mut sent = u32::MAX.to_le_bytes().to_vec();
        sent.extend_from_slice(&[0; TAG_BYTES]);
        let (_, error) = read(key(1), &sent);
        assert_eq!(error.to_string(), "a frame of 4294967295 bytes is announced; 100 are the limit");
    }
}
