//! The file by which balancers know of each other. The balancer that has it open works, be it Hadoop's or this one.

use base::FsError;
use client::{CreateOptions, Error, FileSystem, FileWriter};

/// Hadoop's `HdfsServerConstants.BALANCER_ID_PATH`.
const PATH: &str = "/system/balancer.id";

pub struct IdFile {
    fs: FileSystem,
    writer: FileWriter,
}

impl IdFile {
    /// Opens the file; `None` if another balancer has it open.
    ///
    /// # Errors
    /// The metadata server cannot be reached, or this user may not write there.
    pub async fn take(fs: &FileSystem) -> anyhow::Result<Option<Self>> {
        if fs.exists(PATH).await? {
            // Only a file that nobody holds can be appended to.
            match fs.append(PATH, false).await {
                Ok(writer) => writer.close().await?,
                Err(error) if is_held(&error) => return Ok(None),
                // A file whose block is lost tells of a balancer that is long gone.
                Err(error) if error.is_access_denied() => return Err(error.into()),
                Err(error) => tracing::info!("{PATH} cannot be appended to: {error}"),
            }
            fs.delete(PATH, false).await?;
        }
        let options = CreateOptions { block_size: Some(1 << 20), ..CreateOptions::default() };
        let mut writer = match fs.create(PATH, &options).await {
            Ok(writer) => writer,
            Err(error) if is_held(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        writer.write(host.trim().as_bytes()).await?;
        writer.flush().await?;
        Ok(Some(Self { fs: fs.clone(), writer }))
    }

    /// Closes the file and removes it.
    pub async fn give_back(self) {
        let closed = self.writer.close().await;
        let removed = self.fs.delete(PATH, false).await;
        if let Err(error) = closed.and(removed.map(drop)) {
            tracing::warn!("{PATH} stays behind: {error}");
        }
    }
}

fn is_held(error: &Error) -> bool {
    matches!(
        error,
        Error::Fs(
            FsError::AlreadyBeingCreated(_) | FsError::RecoveryInProgress(_) | FsError::AlreadyExists(_)
        )
    )
}
