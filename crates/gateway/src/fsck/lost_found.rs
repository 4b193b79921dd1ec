//! Copies the blocks that a damaged file still has to `/lost+found` (`hdfs fsck -move`).

use super::{out::Out, sums::File};
use base::FsError;
use client::{CreateOptions, Error, FileReader, FileSystem, FileWriter, Result};

const DIRECTORY: &str = "/lost+found";
/// The modes that Hadoop's umask leaves.
const DIRECTORY_MODE: u16 = 0o755;
const FILE_MODE: u16 = 0o644;
/// The most that is taken from a reader at once.
const PIECE_BYTES: usize = 64 << 10;

/// Copies blocks. Each run of blocks that can be read becomes a file, named by its number, in a directory named as the damaged file.
pub struct LostFound {
    fs: FileSystem,
    is_there: bool,
}

impl LostFound {
    /// `fs`: it is asked in the name of the user whose files these are to be.
    pub fn new(fs: &FileSystem) -> Self {
        // The leases of its files end with it.
        Self { fs: fs.as_another_client(), is_there: false }
    }

    /// Copies what is left of a file, whose mode the directory gets. Nothing is done if the directory is there from before.
    ///
    /// # Errors
    /// The directories cannot be made, or a block cannot be copied; all other blocks are copied nevertheless.
    pub async fn take(&mut self, file: &File, mode: u16, out: &mut Out) -> Result<()> {
        self.prepare().await?;
        let target = format!("{DIRECTORY}{}", file.path);
        if self.fs.exists(&target).await? {
            tracing::warn!(file = file.path, "fsck copies nothing of the file: {target} is there already");
            return Ok(());
        }
        self.fs.make_directory(&target, true, mode & 0o777).await?;
        let mut reader = self.fs.open(&file.path).await?;
        let mut chain: Option<FileWriter> = None;
        let (mut number, mut offset, mut failure) = (0, 0, None);
        for block in &file.blocks {
            let begin = offset;
            offset += block.bytes;
            if block.servers.is_empty() {
                end(chain.take()).await?;
                continue;
            }
            let mut writer = match chain.take() {
                Some(writer) => writer,
                None => {
                    let options =
                        CreateOptions { overwrite: true, mode: Some(FILE_MODE), ..CreateOptions::default() };
                    let writer = self.fs.create(&format!("{target}/{number}"), &options).await?;
                    number += 1;
                    writer
                }
            };
            match copy(&mut reader, &mut writer, begin, block.bytes, out).await {
                Ok(()) => chain = Some(writer),
                Err(error) => {
                    tracing::warn!(file = file.path, block = block.name, %error, "fsck could not copy a block");
                    end(Some(writer)).await?;
                    failure = Some(error);
                }
            }
        }
        end(chain).await?;
        match failure {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    async fn prepare(&mut self) -> Result<()> {
        if self.is_there {
            return Ok(());
        }
        match self.fs.find(DIRECTORY).await? {
            Some(status) if !status.is_dir() => {
                return Err(Error::Fs(FsError::Io(format!("{DIRECTORY} is no directory"))));
            }
            Some(_) => {}
            None => self.fs.make_directory(DIRECTORY, true, DIRECTORY_MODE).await?,
        }
        self.is_there = true;
        Ok(())
    }
}

async fn copy(
    reader: &mut FileReader,
    writer: &mut FileWriter,
    begin: u64,
    bytes: u64,
    out: &mut Out,
) -> Result<()> {
    reader.seek(begin)?;
    let mut left = bytes;
    while left > 0 {
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
        let Some(piece) = reader.read(count).await? else {
            return Err(Error::Fs(FsError::Io(format!("{} became shorter", reader.path()))));
        };
        writer.write(&piece).await?;
        left -= piece.len() as u64;
        // The client waits. If it has gone, the file is copied nevertheless: half of it would be in the way of the next check.
        let _ = out.say("").await;
    }
    Ok(())
}

async fn end(chain: Option<FileWriter>) -> Result<()> {
    match chain {
        Some(chain) => chain.close().await,
        None => Ok(()),
    }
}
