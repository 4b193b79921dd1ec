//! Hadoop's basic values, and how they are printed.

use super::{read_exactly, wrong};
use std::io::{self, Read, Write};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writable {
    Null,
    Boolean,
    Byte,
    Short,
    Int,
    Long,
    VInt,
    VLong,
    Float,
    Double,
    Text,
    /// The older kind of text, with a length of two bytes.
    Utf8,
    Bytes,
    Md5,
}

impl Writable {
    /// The type by the class that a file names.
    pub fn of_class(class: &str) -> io::Result<Self> {
        Ok(match class.strip_prefix("org.apache.hadoop.io.").unwrap_or_default() {
            "NullWritable" => Self::Null,
            "BooleanWritable" => Self::Boolean,
            "ByteWritable" => Self::Byte,
            "ShortWritable" => Self::Short,
            "IntWritable" => Self::Int,
            "LongWritable" => Self::Long,
            "VIntWritable" => Self::VInt,
            "VLongWritable" => Self::VLong,
            "FloatWritable" => Self::Float,
            "DoubleWritable" => Self::Double,
            "Text" => Self::Text,
            "UTF8" => Self::Utf8,
            "BytesWritable" => Self::Bytes,
            "MD5Hash" => Self::Md5,
            _ => {
                return Err(wrong(format!(
                    "its rows have values of the class {class}, which is not known here; a Hadoop with that class on its class path can print them"
                )));
            }
        })
    }

    /// Prints a value as Hadoop's shell does.
    pub fn print(self, mut bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Null => write!(out, "(null)"),
            Self::Boolean => write!(out, "{}", fixed::<1>(bytes)? != [0]),
            Self::Byte => write!(out, "{}", i8::from_be_bytes(fixed(bytes)?)),
            Self::Short => write!(out, "{}", i16::from_be_bytes(fixed(bytes)?)),
            Self::Int => write!(out, "{}", i32::from_be_bytes(fixed(bytes)?)),
            Self::Long => write!(out, "{}", i64::from_be_bytes(fixed(bytes)?)),
            Self::VInt | Self::VLong => write!(out, "{}", read_vint(&mut bytes)?),
            Self::Float => {
                let value = f32::from_be_bytes(fixed(bytes)?);
                write!(out, "{}", fraction(f64::from(value), format!("{value}"), format!("{value:e}")))
            }
            Self::Double => {
                let value = f64::from_be_bytes(fixed(bytes)?);
                write!(out, "{}", fraction(value, format!("{value}"), format!("{value:e}")))
            }
            Self::Text => {
                let length = usize::try_from(read_vint(&mut bytes)?).unwrap_or(usize::MAX);
                let text = bytes.get(..length).ok_or_else(|| wrong("a text is longer than its row"))?;
                out.write_all(String::from_utf8_lossy(text).as_bytes())
            }
            Self::Utf8 => {
                let length = usize::from(u16::from_be_bytes(fixed(bytes)?));
                let text = bytes.get(2..2 + length).ok_or_else(|| wrong("a text is longer than its row"))?;
                out.write_all(String::from_utf8_lossy(text).as_bytes())
            }
            Self::Bytes => {
                let length = u32::from_be_bytes(fixed(bytes)?) as usize;
                let value =
                    bytes[4..].get(..length).ok_or_else(|| wrong("a value is longer than its row"))?;
                for (index, byte) in value.iter().enumerate() {
                    write!(out, "{}{byte:02x}", if index == 0 { "" } else { " " })?;
                }
                Ok(())
            }
            Self::Md5 => fixed::<16>(bytes)?.iter().try_for_each(|byte| write!(out, "{byte:02x}")),
        }
    }
}

fn fixed<const N: usize>(bytes: &[u8]) -> io::Result<[u8; N]> {
    bytes.first_chunk().copied().ok_or_else(|| wrong("a value is shorter than its class wants"))
}

/// A number of one to nine bytes: from -112 to 127 it is the first byte, else that says how many follow, and the sign.
pub fn read_vint(input: &mut impl Read) -> io::Result<i64> {
    let [first] = read_exactly(input, 1)?[..] else { return Err(io::ErrorKind::UnexpectedEof.into()) };
    let first = first as i8;
    let (count, is_negative) = match first {
        -112.. => return Ok(first.into()),
        ..-120 => (-120 - i32::from(first), true),
        _ => (-112 - i32::from(first), false),
    };
    let bytes = read_exactly(input, count as usize)?;
    let value = bytes.iter().fold(0_i64, |value, byte| value << 8 | i64::from(*byte));
    Ok(if is_negative { !value } else { value })
}

/// A fraction as Java prints it: `1.0`, `1.5E10`; without an exponent from a thousandth to ten million.
fn fraction(value: f64, plain: String, scientific: String) -> String {
    let size = value.abs();
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if value == 0.0 || (1e-3..1e7).contains(&size) {
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    match scientific.split_once('e') {
        Some((digits, exponent)) if digits.contains('.') => format!("{digits}E{exponent}"),
        Some((digits, exponent)) => format!("{digits}.0E{exponent}"),
        None => scientific,
    }
}
