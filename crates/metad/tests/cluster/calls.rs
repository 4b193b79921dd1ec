//! The calls of clients, one at a time or without end.

use super::{Cluster, PATIENCE, SUPERUSER};
use proto::{hdfs as p, protocol};
use rpc::{CallError, Client, ClientOptions};
use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, atomic::Ordering},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

impl Cluster {
    /// The superuser, as a client of files.
    pub fn client(&self, member: u32) -> Client {
        self.client_as(member, protocol::CLIENT_NAMENODE, SUPERUSER)
    }

    pub fn client_as(&self, member: u32, protocol: &str, user: &str) -> Client {
        Client::connect(self.address(member), protocol, user, ClientOptions::default())
    }

    /// Makes a directory, and waits while too few members are in sync for that.
    pub async fn mkdirs(&self, member: u32, path: &str) {
        let (client, began) = (self.client(member), Instant::now());
        loop {
            match try_mkdirs(&client, path).await {
                Ok(made) => return assert!(made),
                Err(error) => be_patient(error, began).await,
            }
        }
    }

    /// The names in a directory, or of the snapshots in `PATH/.snapshot`.
    pub async fn names(&self, member: u32, path: &str) -> Vec<String> {
        let (client, began) = (self.client(member), Instant::now());
        let mut names: Vec<String> = Vec::new();
        loop {
            let start_after = names.last().cloned().unwrap_or_default().into();
            let request = p::GetListingRequestProto { src: path.into(), start_after, need_location: false };
            let response: Result<p::GetListingResponseProto, _> = client.call("getListing", &request).await;
            let response = match response {
                Ok(response) => response,
                Err(error) => {
                    be_patient(error, began).await;
                    continue;
                }
            };
            let listing = response.dir_list.expect("the directory is there");
            let name = |status: p::HdfsFileStatusProto| String::from_utf8(status.path.to_vec()).unwrap();
            names.extend(listing.partial_listing.into_iter().map(name));
            if listing.remaining_entries == 0 {
                return names;
            }
        }
    }

    /// The addresses at which the members take calls. The map is kept up to date when members are started again.
    pub fn addresses(&self) -> Arc<Mutex<BTreeMap<u32, SocketAddr>>> {
        self.addresses.clone()
    }

    /// Tells all writers to stop.
    pub fn say_stop(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// A client that makes directories one after the other, at whichever member takes them, until it is told
    /// to stop. Those that were acknowledged.
    pub fn write_until_told(&self, writer: u32) -> tokio::task::JoinHandle<Vec<String>> {
        let (addresses, is_over) = (self.addresses.clone(), self.is_over.clone());
        tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            let (mut at, mut number) = (writer, 0);
            while !is_over.load(Ordering::Acquire) {
                let all: Vec<_> = addresses.lock().unwrap().values().copied().collect();
                let address = all[at as usize % all.len()];
                let options = ClientOptions::default();
                let client = Client::connect(address, protocol::CLIENT_NAMENODE, SUPERUSER, options);
                while !is_over.load(Ordering::Acquire) {
                    let path = format!("/{writer}/{number:06}");
                    let call = tokio::time::timeout(Duration::from_millis(1_500), try_mkdirs(&client, &path));
                    match call.await {
                        Ok(Ok(true)) => acknowledged.push(path),
                        _ => break,
                    }
                    number += 1;
                }
                // It may have happened or not; the next one has a name of its own.
                number += 1;
                at += 1;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            acknowledged
        })
    }
}

/// Too few members are in sync at the moment, on a busy machine. Any other error is one.
pub async fn be_patient(error: CallError, began: Instant) {
    let is_passing = error.to_string().contains("RetriableException") && began.elapsed() < PATIENCE;
    assert!(is_passing, "{error}");
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// Makes a directory and those above it.
pub async fn try_mkdirs(client: &Client, path: &str) -> Result<bool, CallError> {
    let response: p::MkdirsResponseProto = client.call("mkdirs", &mkdirs_request(path)).await?;
    Ok(response.result)
}

pub fn mkdirs_request(path: &str) -> p::MkdirsRequestProto {
    p::MkdirsRequestProto {
        src: path.into(),
        masked: p::FsPermissionProto { perm: 0o755 },
        create_parent: true,
        unmasked: None,
    }
}

pub async fn exists(client: &Client, path: &str) -> Result<bool, CallError> {
    let request = p::GetFileInfoRequestProto { src: path.into() };
    let found: p::GetFileInfoResponseProto = client.call("getFileInfo", &request).await?;
    Ok(found.fs.is_some())
}

pub async fn set_safe_mode(client: &Client, action: p::SafeModeActionProto) {
    let request = p::SetSafeModeRequestProto { action: action as i32, checked: Some(false) };
    let _: p::SetSafeModeResponseProto = client.call("setSafeMode", &request).await.unwrap();
}

/// The class and the text of a refusal.
pub fn refusal(answer: Result<impl Sized, CallError>) -> (String, String) {
    match answer {
        Err(CallError::Remote { class, message, .. }) => (class, message),
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("not refused"),
    }
}

/// The text of a refusal of this class, whose package may be left out.
pub fn refused(answer: Result<impl Sized, CallError>, class: &str) -> String {
    let (found, message) = refusal(answer);
    let is_it = found == class || found.ends_with(&format!(".{class}"));
    assert!(is_it, "{found}: {message}");
    message
}

/// The text of one of a server's pages, head and all.
pub async fn page(address: SocketAddr, path: &str) -> io::Result<String> {
    page_with(address, path, "").await
}

/// The text of one of a server's pages, asked for with further lines of headers, each of which ends in `\r\n`.
pub async fn page_with(address: SocketAddr, path: &str, headers: &str) -> io::Result<String> {
    let mut connection = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\n{headers}Connection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    Ok(answer)
}
