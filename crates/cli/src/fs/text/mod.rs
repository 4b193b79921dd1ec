//! `text`: prints files as text: the content of compressed files, and the rows of sequence files.
//!
//! As in Hadoop's shell, the name's ending says how a file is compressed. Where the first bytes say it, the name does
//! not matter. The bytes are foreign: no memory is allocated on their mere promise, and every buffer that grows has a
//! limit.

mod codec;
mod hadoop_blocks;
#[cfg(test)]
mod hostile;
mod sequence;
mod writable;
mod zstd;

use super::{
    cat::{Cat, pour, pour_local, print_each},
    failure::{Failure, Outcome},
    item::Item,
    local, path,
    shell::Shell,
    transfer::{Source, read_remote},
};
use bytes::{Buf, Bytes};
use codec::Codec;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use tokio::sync::mpsc;

/// Bytes of a file's beginning that say what it is.
const HEAD_BYTES: usize = 16;
/// Decoded bytes that are handed on at once.
const PIECE_BYTES: usize = 64 << 10;
/// Pieces that wait for the output.
const PIECES_WAITING: usize = 4;

pub async fn text(shell: &mut Shell, args: Cat) -> Outcome {
    print_each(shell, &args.paths, print_local, print).await
}

/// A file of this machine, written as `file:///a`.
fn print_local(shell: &mut Shell, argument: &str) -> Outcome {
    let wrong = |error| Failure::local(argument, error);
    let mut input = BufReader::with_capacity(PIECE_BYTES, local::open_uri(argument)?);
    let head = input.fill_buf().map_err(wrong)?;
    let head = head[..head.len().min(HEAD_BYTES)].to_vec();
    let Some(form) = form_of(&head, path::name(argument), argument)? else {
        return pour_local(shell, argument, input);
    };
    let mut unwritten = Ok(());
    let decoded = form.decode(input, &mut |piece| {
        unwritten = shell.write(&piece);
        unwritten.as_ref().copied().map_err(|_| io::ErrorKind::BrokenPipe.into())
    });
    unwritten?;
    decoded.map_err(|error| Failure::path(argument, &form.complaint(&error)))
}

/// The form of a file; `None` for text, and a failure if the file is not what its name says.
fn form_of(head: &[u8], name: &str, shown: &str) -> Outcome<Option<Form>> {
    if head.starts_with(b"Obj\x01") {
        let reason = "is an Avro file, which `text' does not read; `cat' prints it as it is";
        return Err(Failure::path(shown, reason));
    }
    let form = Form::of(head, name);
    match form {
        Some(Form::Compressed(codec)) if codec.has_mark() && Codec::of_content(head).is_none() => {
            let reason = format!(
                "has the name of {}, and does not begin like one; `cat' prints it as it is",
                codec.words()
            );
            Err(Failure::path(shown, &reason))
        }
        form => Ok(form),
    }
}

async fn print(shell: &mut Shell, item: &Item) -> Outcome {
    item.file()?;
    let mut reader = item.fs.open(&item.path).await?;
    let head = reader.read_at(0, HEAD_BYTES).await?;
    let Some(form) = form_of(&head, path::name(&item.path), &item.shown)? else {
        return pour(shell, &mut reader, u64::MAX).await;
    };
    let source = read_remote(item.fs.clone(), item.path.clone());
    let (sender, mut pieces) = mpsc::channel::<Bytes>(PIECES_WAITING);
    let decoding = tokio::task::spawn_blocking(move || {
        form.decode(Arriving { source, piece: Bytes::new() }, &mut |piece| {
            sender.blocking_send(piece).map_err(|_| io::ErrorKind::BrokenPipe.into())
        })
    });
    while let Some(piece) = pieces.recv().await {
        shell.write(&piece)?;
    }
    match decoding.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Failure::path(&item.shown, &form.complaint(&error))),
        Err(panic) => Err(Failure::Other(format!("decoding ended in a bug: {panic}"))),
    }
}

/// The form of a file that is not text as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Compressed(Codec),
    Sequence,
}

impl Form {
    fn of(head: &[u8], name: &str) -> Option<Self> {
        match head {
            [] => None,
            [b'S', b'E', b'Q', ..] => Some(Self::Sequence),
            _ => Codec::of_content(head).or_else(|| Codec::of_name(name)).map(Self::Compressed),
        }
    }

    /// Hands on the text, a piece at a time.
    fn decode(self, input: impl BufRead, take: Take) -> io::Result<()> {
        match self {
            Self::Sequence => {
                let mut out = BufWriter::with_capacity(PIECE_BYTES, Taken(take));
                let printed = sequence::print(input, &mut out);
                out.flush()?;
                printed
            }
            Self::Compressed(codec) => {
                let mut decoder = codec.decoder(input);
                loop {
                    let mut piece = Vec::new();
                    // Bytes before a failure are handed on: they are all that there is of a file that was cut.
                    let read = decoder.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece);
                    if !piece.is_empty() {
                        take(piece.into())?;
                    } else if read.is_ok() {
                        return Ok(());
                    }
                    read?;
                }
            }
        }
    }

    fn complaint(self, error: &io::Error) -> String {
        let what = match self {
            Self::Sequence => "a sequence file",
            Self::Compressed(codec) => codec.words(),
        };
        match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                format!("ends in the middle of {what}: it was cut, is not whole yet, or is something else")
            }
            _ => format!("cannot be read as {what}: {error}"),
        }
    }
}

/// The receiver of decoded text. It returns an error if no more text is wanted.
type Take<'a> = &'a mut dyn FnMut(Bytes) -> io::Result<()>;

struct Taken<'a>(Take<'a>);

impl Write for Taken<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0(Bytes::copy_from_slice(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes of a remote file, as they come.
struct Arriving {
    source: Source,
    piece: Bytes,
}

impl BufRead for Arriving {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.piece.is_empty() {
            match self.source.blocking_recv() {
                Some(piece) => self.piece = piece?,
                None => break,
            }
        }
        Ok(&self.piece)
    }

    fn consume(&mut self, count: usize) {
        self.piece.advance(count);
    }
}

impl Read for Arriving {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let waiting = self.fill_buf()?;
        let count = waiting.len().min(buffer.len());
        buffer[..count].copy_from_slice(&waiting[..count]);
        self.consume(count);
        Ok(count)
    }
}

fn wrong(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.into())
}

/// Reads so many bytes; memory grows with what is there, not with what was promised.
fn read_exactly(input: &mut impl Read, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match input.take(count as u64).read_to_end(&mut bytes)? == count {
        true => Ok(bytes),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn read_i32(input: &mut impl Read) -> io::Result<i32> {
    let mut bytes = [0; 4];
    input.read_exact(&mut bytes)?;
    Ok(i32::from_be_bytes(bytes))
}
