//! Open files on their way to another process: one byte on the socket, with the descriptors beside it (`SCM_RIGHTS`).

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};
use tokio::{io::Interest, net::UnixStream};

/// The most descriptors that are handed over with one byte: the two files of a replica.
pub const DESCRIPTORS_MAX: usize = 2;

/// Sends `byte` and the descriptors, which stay open here as well.
///
/// # Errors
/// `InvalidInput` if there are more than [`DESCRIPTORS_MAX`]; or the system's reason, a broken connection for example.
pub async fn send(socket: &UnixStream, byte: u8, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    if descriptors.len() > DESCRIPTORS_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let send = || {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if !beside.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let bytes = [byte];
        Ok(sendmsg(socket.as_fd(), &[IoSlice::new(&bytes)], &mut beside, SendFlags::NOSIGNAL)?)
    };
    socket.async_io(Interest::WRITABLE, send).await.map(drop)
}

/// Receives a byte and the descriptors that came with it, at most [`DESCRIPTORS_MAX`]; further ones are closed. `None`: the
/// other side has ended the connection.
///
/// # Errors
/// The connection broke.
pub async fn receive(socket: &UnixStream) -> io::Result<Option<(u8, Vec<OwnedFd>)>> {
    let receive = || {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(socket.as_fd(), &mut [IoSliceMut::new(&mut byte)], &mut beside, flags)?;
        let mut descriptors = Vec::new();
        for message in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(came) = message {
                descriptors.extend(came);
            }
        }
        Ok((received.bytes > 0).then_some((byte[0], descriptors)))
    };
    socket.async_io(Interest::READABLE, receive).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs::File,
        io::{Read, Seek, Write},
    };

    #[tokio::test]
    async fn a_file_is_read_through_the_descriptor_that_came() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"of another process").unwrap();
        file.rewind().unwrap();
        let (here, there) = UnixStream::pair().unwrap();
        send(&here, 7, &[file.as_fd()]).await.unwrap();
        let (byte, mut descriptors) = receive(&there).await.unwrap().unwrap();
        assert_eq!((byte, descriptors.len()), (7, 1));
        let mut text = String::new();
        File::from(descriptors.remove(0)).read_to_string(&mut text).unwrap();
        assert_eq!(text, "of another process");
    }

    #[tokio::test]
    async fn the_end_of_the_connection_is_no_descriptor() {
        let (here, there) = UnixStream::pair().unwrap();
        drop(here);
        assert!(receive(&there).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn more_descriptors_than_agreed_are_not_sent() {
        let file = tempfile::tempfile().unwrap();
        let (here, _there) = UnixStream::pair().unwrap();
        let three = [file.as_fd(), file.as_fd(), file.as_fd()];
        assert_eq!(send(&here, 0, &three).await.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
