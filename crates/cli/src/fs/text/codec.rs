//! How a file is compressed, and what takes it apart.

use super::{hadoop_blocks::HadoopBlocks, zstd::Zstd};
use std::io::{self, BufRead, Read};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    Gzip,
    /// The format that Hadoop's `DefaultCodec` writes.
    Zlib,
    Bzip2,
    Zstd,
    /// The format that the program `lz4` writes.
    Lz4Frame,
    SnappyFrame,
    /// Raw lz4 in Hadoop's blocks.
    HadoopLz4,
    HadoopSnappy,
}

impl Codec {
    /// The codec by the first bytes, if nothing else begins with them.
    pub fn of_content(head: &[u8]) -> Option<Self> {
        let is_bzip2 = head.starts_with(b"BZh")
            && head.get(4..10).is_some_and(|mark| mark == b"1AY&SY" || mark == b"\x17\x72\x45\x38\x50\x90");
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            _ if is_bzip2 => Some(Self::Bzip2),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            [0x04, 0x22, 0x4d, 0x18, ..] => Some(Self::Lz4Frame),
            _ if head.starts_with(b"\xff\x06\x00\x00sNaPpY") => Some(Self::SnappyFrame),
            _ => None,
        }
    }

    /// The codec by the ending that Hadoop's codecs give to files.
    pub fn of_name(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1 {
            "gz" => Some(Self::Gzip),
            "deflate" => Some(Self::Zlib),
            "bz2" => Some(Self::Bzip2),
            "zst" => Some(Self::Zstd),
            "lz4" => Some(Self::HadoopLz4),
            "snappy" => Some(Self::HadoopSnappy),
            _ => None,
        }
    }

    /// The codec by the class that a sequence file names.
    pub fn of_class(class: &str) -> Option<Self> {
        match class.strip_prefix("org.apache.hadoop.io.compress.")? {
            "DefaultCodec" | "DeflateCodec" => Some(Self::Zlib),
            "GzipCodec" => Some(Self::Gzip),
            "BZip2Codec" => Some(Self::Bzip2),
            "ZStandardCodec" => Some(Self::Zstd),
            "Lz4Codec" => Some(Self::HadoopLz4),
            "SnappyCodec" => Some(Self::HadoopSnappy),
            _ => None,
        }
    }

    /// Whether each of its files begins with bytes that say so.
    pub fn has_mark(self) -> bool {
        !matches!(self, Self::Zlib | Self::HadoopLz4 | Self::HadoopSnappy)
    }

    /// The codec's name for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Gzip => "a gzip file",
            Self::Zlib => "a zlib file",
            Self::Bzip2 => "a bzip2 file",
            Self::Zstd => "a zstd file",
            Self::Lz4Frame => "an lz4 file",
            Self::SnappyFrame => "a snappy file",
            Self::HadoopLz4 => "an lz4 file of Hadoop's",
            Self::HadoopSnappy => "a snappy file of Hadoop's",
        }
    }

    pub fn decoder<'a>(self, input: impl BufRead + 'a) -> Box<dyn Read + 'a> {
        match self {
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(input)),
            Self::Zlib => Box::new(flate2::bufread::ZlibDecoder::new(input)),
            Self::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(input)),
            Self::Zstd => Box::new(Zstd::new(input)),
            Self::Lz4Frame => Box::new(Lz4Frames(lz4_flex::frame::FrameDecoder::new(input))),
            Self::SnappyFrame => Box::new(snap::read::FrameDecoder::new(input)),
            Self::HadoopLz4 | Self::HadoopSnappy => {
                Box::new(HadoopBlocks::new(input, self == Self::HadoopLz4))
            }
        }
    }
}

/// lz4 frames, one behind the other: the decoder says "end" after each.
struct Lz4Frames<R: Read>(lz4_flex::frame::FrameDecoder<R>);

impl<R: BufRead> Read for Lz4Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.0.read(buffer)?;
            if count > 0 || buffer.is_empty() || self.0.get_mut().fill_buf()?.is_empty() {
                return Ok(count);
            }
        }
    }
}
