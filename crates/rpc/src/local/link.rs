//! A client's connection to the data server of its machine, on which open files come.
//!
//! It reads exactly one message at a time. A read beyond its end could take the byte that descriptors come with, and the
//! system would close them.

use super::descriptors;
use crate::streaming::StreamError;
use bytes::BytesMut;
use proto::data_transfer::{Opcode, delimited, op};
use std::{future::Future, io, os::fd::OwnedFd, path::Path, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

pub struct LocalLink {
    socket: UnixStream,
    /// How long the server may take for each step.
    patience: Duration,
}

impl LocalLink {
    /// Connects to the server that listens at `path`.
    ///
    /// # Errors
    /// [`StreamError::Io`] if nobody listens there or the path cannot be reached; [`StreamError::Timeout`] if the server does
    /// not take the connection for so long.
    pub async fn connect(path: &Path, patience: Duration) -> Result<Self, StreamError> {
        let socket = within(patience, UnixStream::connect(path)).await?;
        Ok(Self { socket, patience })
    }

    /// Sends an operation.
    ///
    /// # Errors
    /// [`StreamError::Io`] if the connection broke, [`StreamError::Timeout`] if the server takes nothing for so long.
    pub async fn send(&mut self, code: Opcode, message: &impl prost::Message) -> Result<(), StreamError> {
        let mut bytes = BytesMut::new();
        op::encode(code, message, &mut bytes);
        within(self.patience, self.socket.write_all(&bytes)).await
    }

    /// The next answer.
    ///
    /// # Errors
    /// [`StreamError::Io`] if the connection ended or broke, [`StreamError::Timeout`] if nothing came for so long,
    /// [`StreamError::Wire`] if the bytes are no such message.
    pub async fn message<M: prost::Message + Default + prost::Name>(&mut self) -> Result<M, StreamError> {
        let mut buffer = BytesMut::new();
        loop {
            let end = match delimited::frame(&buffer)? {
                None => buffer.len() + 1,
                Some(range) if range.end > buffer.len() => range.end,
                Some(range) => {
                    let bytes = buffer.split_to(range.end).split_off(range.start);
                    return Ok(delimited::decode(bytes.freeze())?);
                }
            };
            let begin = buffer.len();
            buffer.resize(end, 0);
            within(self.patience, self.socket.read_exact(&mut buffer[begin..])).await?;
        }
    }

    /// The byte and the descriptors that follow an answer.
    ///
    /// # Errors
    /// [`StreamError::Closed`] if the server ended the connection, [`StreamError::Io`] if it broke,
    /// [`StreamError::Timeout`] if nothing came for so long.
    pub async fn descriptors(&mut self) -> Result<(u8, Vec<OwnedFd>), StreamError> {
        within(self.patience, descriptors::receive(&self.socket)).await?.ok_or(StreamError::Closed)
    }

    /// Sends one byte, as a receipt.
    ///
    /// # Errors
    /// Those of [`LocalLink::send`].
    pub async fn receipt(&mut self) -> Result<(), StreamError> {
        within(self.patience, self.socket.write_all(&[0])).await
    }

    /// Whether the server still has the connection, as far as is known here, and has said nothing on it.
    pub fn is_quiet(&self) -> bool {
        let mut byte = [0];
        self.socket.try_read(&mut byte).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

async fn within<T>(patience: Duration, step: impl Future<Output = io::Result<T>>) -> Result<T, StreamError> {
    timeout(patience, step).await.map_err(|_| StreamError::Timeout(patience))?.map_err(StreamError::Io)
}
