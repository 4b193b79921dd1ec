//! Hadoop's own framing of snappy and lz4.
//!
//! A block is its length when it is taken apart (4 bytes, the highest first), and then chunks, each its compressed length
//! and its bytes, until the block has that length.

use super::{read_exactly, wrong};
use std::io::{self, BufRead, Read};

/// A chunk, compressed or taken apart. Hadoop writes 256 KiB unless it is told otherwise.
const CHUNK_BYTES_MAX: usize = 64 << 20;
/// The most bytes that one byte of lz4 can stand for.
const LZ4_RATIO_MAX: usize = 255;

pub struct HadoopBlocks<R> {
    input: R,
    is_lz4: bool,
    /// Bytes of the block that are yet to come.
    left: usize,
    chunk: Vec<u8>,
    /// How much of the chunk was handed on.
    at: usize,
}

impl<R: BufRead> HadoopBlocks<R> {
    pub fn new(input: R, is_lz4: bool) -> Self {
        Self { input, is_lz4, left: 0, chunk: Vec::new(), at: 0 }
    }

    /// Reads the next chunk; false at the end of the input.
    fn next(&mut self) -> io::Result<bool> {
        while self.left == 0 {
            if self.input.fill_buf()?.is_empty() {
                return Ok(false);
            }
            self.left = self.length()?;
        }
        let length = self.length()?;
        if length > CHUNK_BYTES_MAX {
            return Err(wrong(format!(
                "a chunk says that it has {length} bytes; the most is {CHUNK_BYTES_MAX}"
            )));
        }
        let compressed = read_exactly(&mut self.input, length)?;
        let expected = self.left.min(CHUNK_BYTES_MAX);
        self.chunk = match self.is_lz4 {
            true => {
                let mut chunk = vec![0; expected.min(length.saturating_mul(LZ4_RATIO_MAX))];
                let count = lz4_flex::block::decompress_into(&compressed, &mut chunk)
                    .map_err(|error| wrong(error.to_string()))?;
                chunk.truncate(count);
                chunk
            }
            false => {
                let count =
                    snap::raw::decompress_len(&compressed).map_err(|error| wrong(error.to_string()))?;
                if count > expected {
                    return Err(wrong(format!(
                        "a chunk has {count} bytes where its block has {} left",
                        self.left
                    )));
                }
                snap::raw::Decoder::new()
                    .decompress_vec(&compressed)
                    .map_err(|error| wrong(error.to_string()))?
            }
        };
        self.at = 0;
        self.left -= self.chunk.len();
        Ok(true)
    }

    fn length(&mut self) -> io::Result<usize> {
        let mut bytes = [0; 4];
        self.input.read_exact(&mut bytes)?;
        Ok(u32::from_be_bytes(bytes) as usize)
    }
}

impl<R: BufRead> Read for HadoopBlocks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.chunk.len() {
            if !self.next()? {
                return Ok(0);
            }
        }
        let waiting = &self.chunk[self.at..];
        let count = waiting.len().min(buffer.len());
        buffer[..count].copy_from_slice(&waiting[..count]);
        self.at += count;
        Ok(count)
    }
}
