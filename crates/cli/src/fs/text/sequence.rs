//! Sequence files: rows of a key and a value, printed with a tab between.
//!
//! The header is `SEQ` and a version; the classes of keys and values; whether values are compressed, and whether in
//! blocks; the codec's class; pairs of text; and 16 bytes that come again before rows, as a mark to begin from. Numbers have
//! the highest byte first.

use super::{
    codec::Codec,
    read_exactly, read_i32,
    writable::{self, Writable},
    wrong,
};
use std::io::{self, BufRead, ErrorKind, Read, Write};

/// The versions that Hadoop has written since 2008.
const VERSIONS: std::ops::RangeInclusive<u8> = 4..=6;
/// A row, or a block's keys or values, compressed or not.
const PART_BYTES_MAX: usize = 128 << 20;
/// A name in the header.
const NAME_BYTES_MAX: usize = 64 << 10;
/// Pairs of text in the header.
const PAIRS_MAX: i32 = 64 << 10;
const SYNC_BYTES: usize = 16;
/// Stands where a row's length would be: the mark follows.
const SYNC_COMES: i32 = -1;

struct Header {
    key: Writable,
    value: Writable,
    codec: Option<Codec>,
    is_in_blocks: bool,
    sync: Vec<u8>,
}

pub fn print(mut input: impl BufRead, out: &mut impl Write) -> io::Result<()> {
    let header = Header::read(&mut input)?;
    while !input.fill_buf()?.is_empty() {
        match header.is_in_blocks {
            true => header.print_block(&mut input, out)?,
            false => header.print_row(&mut input, out)?,
        }
    }
    Ok(())
}

impl Header {
    fn read(input: &mut impl Read) -> io::Result<Self> {
        let mut magic = [0; 4];
        input.read_exact(&mut magic)?;
        let version = magic[3];
        if !VERSIONS.contains(&version) {
            return Err(wrong(format!("it is of version {version}; versions 4 to 6 are read")));
        }
        let key = Writable::of_class(&name(input)?)?;
        let value = Writable::of_class(&name(input)?)?;
        let is_compressed = flag(input)?;
        let is_in_blocks = flag(input)?;
        let codec =
            match (is_compressed, version) {
                (false, _) => None,
                (true, 4) => Some(Codec::Zlib),
                (true, _) => {
                    let class = name(input)?;
                    let codec = Codec::of_class(&class);
                    Some(codec.ok_or_else(|| {
                        wrong(format!("it is compressed by {class}, which is not known here"))
                    })?)
                }
            };
        if version >= 6 {
            let pairs = read_i32(input)?;
            if !(0..=PAIRS_MAX).contains(&pairs) {
                return Err(wrong(format!(
                    "its header says that it has {pairs} pairs; the most is {PAIRS_MAX}"
                )));
            }
            for _ in 0..pairs {
                name(input)?;
                name(input)?;
            }
        }
        let sync = read_exactly(input, SYNC_BYTES)?;
        Ok(Self { key, value, codec, is_in_blocks, sync })
    }

    fn print_row(&self, input: &mut impl Read, out: &mut impl Write) -> io::Result<()> {
        let mut length = read_i32(input)?;
        if length == SYNC_COMES {
            self.check_sync(input)?;
            length = match read_i32(input) {
                // A mark may be the last that there is.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
                length => length?,
            };
        }
        let length = part(length.into())?;
        let key_length = read_i32(input)?;
        let key_length = usize::try_from(key_length).ok().filter(|key_length| *key_length <= length);
        let key_length = key_length.ok_or_else(|| wrong("a row's key is longer than the row"))?;
        let row = read_exactly(input, length)?;
        let (key, value) = row.split_at(key_length);
        match self.codec {
            None => self.put(key, value, out),
            Some(codec) => self.put(key, &apart(codec, value)?, out),
        }
    }

    fn print_block(&self, input: &mut impl Read, out: &mut impl Write) -> io::Result<()> {
        if read_i32(input)? != SYNC_COMES {
            return Err(wrong("a block does not begin with the mark"));
        }
        self.check_sync(input)?;
        let rows = writable::read_vint(input)?;
        let codec = self.codec.unwrap_or(Codec::Zlib);
        let mut part = || -> io::Result<Vec<u8>> {
            let length = part(writable::read_vint(input)?)?;
            apart(codec, &read_exactly(input, length)?)
        };
        let (key_lengths, keys, value_lengths, values) = (part()?, part()?, part()?, part()?);
        let (mut key_lengths, mut value_lengths) = (&*key_lengths, &*value_lengths);
        let (mut keys, mut values) = (&*keys, &*values);
        for _ in 0..rows {
            self.put(next(&mut key_lengths, &mut keys)?, next(&mut value_lengths, &mut values)?, out)?;
        }
        Ok(())
    }

    fn check_sync(&self, input: &mut impl Read) -> io::Result<()> {
        match read_exactly(input, SYNC_BYTES)? == self.sync {
            true => Ok(()),
            false => Err(wrong("the mark between rows is not the one of its header")),
        }
    }

    fn put(&self, key: &[u8], value: &[u8], out: &mut impl Write) -> io::Result<()> {
        self.key.print(key, out)?;
        out.write_all(b"\t")?;
        self.value.print(value, out)?;
        out.write_all(b"\n")
    }
}

/// The next of a block's keys or values.
fn next<'a>(lengths: &mut &[u8], bytes: &mut &'a [u8]) -> io::Result<&'a [u8]> {
    let length = usize::try_from(writable::read_vint(lengths)?).ok();
    let split = length.and_then(|length| bytes.split_at_checked(length));
    let (first, rest) = split.ok_or_else(|| wrong("a key or a value is longer than its block"))?;
    *bytes = rest;
    Ok(first)
}

fn apart(codec: Codec, compressed: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let count = codec.decoder(compressed).take(PART_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    part(count as i64).map(|_| bytes)
}

fn part(length: i64) -> io::Result<usize> {
    usize::try_from(length).ok().filter(|length| *length <= PART_BYTES_MAX).ok_or_else(|| {
        wrong(format!("a row or a block has {length} bytes; from 0 to {PART_BYTES_MAX} are read"))
    })
}

fn name(input: &mut impl Read) -> io::Result<String> {
    let length = writable::read_vint(input)?;
    let length = usize::try_from(length).ok().filter(|length| *length <= NAME_BYTES_MAX);
    let length =
        length.ok_or_else(|| wrong(format!("a name in its header is longer than {NAME_BYTES_MAX}")))?;
    String::from_utf8(read_exactly(input, length)?).map_err(|_| wrong("a name in its header is not UTF-8"))
}

fn flag(input: &mut impl Read) -> io::Result<bool> {
    Ok(read_exactly(input, 1)? != [0])
}
