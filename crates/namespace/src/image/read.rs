use super::ImageError;
use crate::Namespace;
use std::io;

impl Namespace {
    /// `source` ends where the image ends; `size` bounds every count in it.
    pub fn read_image(seed: u64, source: &mut dyn io::Read, size: u64) -> Result<Self, ImageError> {
        let _ = (seed, source, size);
        todo!()
    }
}
