//! zstd frames, one behind the other, with a bounded window.

use super::wrong;
use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};
use std::io::{self, BufRead, Read};

/// The largest window that the program `zstd` takes without an option for more.
const WINDOW_BYTES_MAX: u64 = 128 << 20;

pub struct Zstd<R> {
    input: R,
    decoder: FrameDecoder,
    is_in_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    pub fn new(input: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW_BYTES_MAX);
        Self { input, decoder, is_in_frame: false }
    }

    /// Goes to the next frame that holds something; false at the end of the input.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.input) {
                Ok(()) => {
                    self.is_in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    if io::copy(&mut self.input.by_ref().take(length), &mut io::sink())? != length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(self.reason(&error)),
            }
        }
        Ok(false)
    }

    fn end(&mut self) -> io::Result<()> {
        self.is_in_frame = false;
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(written), calculated) if calculated != Some(written) => {
                Err(wrong("its checksum does not match"))
            }
            _ => Ok(()),
        }
    }

    /// An input that ends too early was cut. For every other error the decoder's own words are told.
    fn reason(&mut self, error: &FrameDecoderError) -> io::Error {
        match self.input.fill_buf() {
            Ok([]) => io::ErrorKind::UnexpectedEof.into(),
            Ok(_) => wrong(match error {
                FrameDecoderError::WindowSizeTooBig { requested, .. } => {
                    format!("it wants {requested} bytes of memory; the most is {WINDOW_BYTES_MAX}")
                }
                FrameDecoderError::ReadFrameHeaderError(_) => "a frame does not begin like one".to_owned(),
                FrameDecoderError::DictNotProvided { .. } => "it wants a dictionary".to_owned(),
                _ => "it is damaged".to_owned(),
            }),
            Err(error) => error,
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if buffer.is_empty() || !self.is_in_frame && !self.begin()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let decoded =
                    self.decoder.decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBlocks(1));
                decoded.map_err(|error| self.reason(&error))?;
            }
            match self.decoder.read(buffer)? {
                0 => self.end()?,
                count => return Ok(count),
            }
        }
    }
}
