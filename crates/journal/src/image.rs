//! The container of an image: chunks with checksums, a digest over all, written beside the running service.

use std::io;

/// Takes an image's bytes in pieces of any size.
pub struct ImageWriter {}

impl ImageWriter {
    pub fn write(&mut self, _bytes: &[u8]) -> io::Result<()> {
        todo!()
    }
}

/// Gives an image's bytes, each chunk checked before it is seen.
pub struct ImageReader {}

impl io::Read for ImageReader {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        todo!()
    }
}
