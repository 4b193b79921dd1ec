//! A client of the servers, which insists on an answer, by one door or another.

use super::{
    cluster::files::{add_block_request, client_at, create_request, numbered},
    cluster::mkdirs_request,
    disks::Disks,
    tree::{Call, Outcome, Seen},
};
use base::ClientId;
use proto::{clover::admin as a, hdfs as p, protocol};
use rpc::{CallError, Client, ClientOptions};
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// The flags of an `append` whose bytes go into a new block: Hadoop's `APPEND` and `NEW_BLOCK`.
const NEW_BLOCK: u32 = 0x04 | 0x20;

/// Gives one address after another of the servers that run.
pub type Doors = Arc<dyn Fn(usize) -> SocketAddr + Send + Sync>;

/// Longer than any call takes here, on a busy machine and while servers come and go.
const PATIENCE: Duration = Duration::from_secs(50);
/// After so long the client asks again elsewhere.
const TRY: Duration = Duration::from_secs(3);

pub struct Caller {
    name: ClientId,
    holder: String,
    doors: Doors,
    connections: HashMap<SocketAddr, Client>,
    calls: i32,
    /// What this call has cost so far, and the text of its refusal.
    tries: u32,
    text: String,
    /// Where it writes.
    disks: Option<Arc<Disks>>,
    /// The block that it was given last.
    block: Option<p::ExtendedBlockProto>,
    /// The last blocks of the files that it has opened to append to them, by their ids.
    last: HashMap<u64, p::ExtendedBlockProto>,
}

/// One call on its way.
#[derive(Clone, Copy)]
pub struct Way {
    pub door: usize,
    /// The client waits so long and asks once. `None`: it insists.
    pub breaks_off: Option<Duration>,
}

/// An answer, or a refusal by its class.
type Answer<T> = Result<T, String>;

impl Caller {
    pub fn new(number: u32, doors: Doors, disks: Option<Arc<Disks>>) -> Self {
        let mut name = *b"a random client.";
        name[12..].copy_from_slice(&number.to_le_bytes());
        Self {
            name: ClientId(name),
            holder: format!("DFSClient_histories_{number}"),
            doors,
            connections: HashMap::new(),
            calls: 0,
            tries: 0,
            text: String::new(),
            disks,
            block: None,
            last: HashMap::new(),
        }
    }

    /// How often the last call was sent.
    pub fn tries(&self) -> u32 {
        self.tries
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn has_disks(&self) -> bool {
        self.disks.is_some()
    }

    /// Writes on the block that it was given last.
    pub async fn write(&mut self, bytes: u64) {
        let block = self.block.as_mut().expect("it has a block");
        block.num_bytes = Some(bytes);
        self.disks.as_ref().expect("there are disks").receive(block).await;
    }

    /// `None`: the call was broken off. `base`: the directory of the history.
    pub async fn call(&mut self, base: &str, call: &Call, way: Way) -> Option<Outcome> {
        self.calls += 1;
        self.tries = 0;
        self.text.clear();
        let at = |path: &str| format!("{base}{path}");
        let holder = self.holder.clone();
        let told = match call {
            Call::Mkdirs { path, parents } => {
                let request = p::MkdirsRequestProto { create_parent: *parents, ..mkdirs_request(&at(path)) };
                let answer: Answer<p::MkdirsResponseProto> = self.ask("mkdirs", &request, way).await?;
                answer.map(|it| Outcome::Is(it.result))
            }
            Call::Create { path, overwrite, parents } => {
                let request = p::CreateRequestProto {
                    create_flag: if *overwrite { 3 } else { 1 },
                    create_parent: *parents,
                    ..create_request(&at(path), &holder)
                };
                let answer: Answer<p::CreateResponseProto> = self.ask("create", &request, way).await?;
                answer.map(|it| file(it.fs))
            }
            Call::Parents { .. } => unreachable!("it is a part of a call"),
            Call::AddBlock { path, id } => {
                let request = p::AddBlockRequestProto {
                    file_id: Some(*id),
                    previous: self.last.remove(id),
                    ..add_block_request(&at(path), &holder)
                };
                let answer: Answer<p::AddBlockResponseProto> = self.ask("addBlock", &request, way).await?;
                answer.map(|it| {
                    self.block = Some(it.block.b);
                    Outcome::Done
                })
            }
            Call::Close { path, id, bytes } => {
                let request = p::CompleteRequestProto {
                    src: at(path),
                    client_name: holder,
                    last: self.block.take().filter(|_| *bytes > 0),
                    file_id: Some(*id),
                };
                let answer: Answer<p::CompleteResponseProto> = self.ask("complete", &request, way).await?;
                answer.map(|it| Outcome::Is(it.result))
            }
            Call::Append { path } => {
                let request =
                    p::AppendRequestProto { src: at(path), client_name: holder, flag: Some(NEW_BLOCK) };
                let answer: Answer<p::AppendResponseProto> = self.ask("append", &request, way).await?;
                answer.map(|it| {
                    let told = file(it.stat);
                    if let (Outcome::File(id), Some(last)) = (&told, it.block) {
                        self.last.insert(*id, last.b);
                    }
                    told
                })
            }
            Call::Delete { path, recursive } => {
                let request = p::DeleteRequestProto { src: at(path), recursive: *recursive };
                let answer: Answer<p::DeleteResponseProto> = self.ask("delete", &request, way).await?;
                answer.map(|it| Outcome::Is(it.result))
            }
            Call::Rename { from, to } => {
                let request = p::RenameRequestProto { src: at(from), dst: at(to) };
                let answer: Answer<p::RenameResponseProto> = self.ask("rename", &request, way).await?;
                answer.map(|it| Outcome::Is(it.result))
            }
            Call::Rename2 { from, to, overwrite } => {
                let request = p::Rename2RequestProto {
                    src: at(from),
                    dst: at(to),
                    overwrite_dest: *overwrite,
                    move_to_trash: None,
                };
                let answer: Answer<p::Rename2ResponseProto> = self.ask("rename2", &request, way).await?;
                answer.map(|_| Outcome::Done)
            }
            Call::SetPermission { path, permission } => {
                let permission = p::FsPermissionProto { perm: *permission };
                let request = p::SetPermissionRequestProto { src: at(path), permission };
                let answer: Answer<p::SetPermissionResponseProto> =
                    self.ask("setPermission", &request, way).await?;
                answer.map(|_| Outcome::Done)
            }
            Call::Status { path } => {
                let request = p::GetFileInfoRequestProto { src: at(path) };
                let answer: Answer<p::GetFileInfoResponseProto> =
                    self.ask("getFileInfo", &request, way).await?;
                answer.map(|it| Outcome::Seen(it.fs.as_ref().map(seen)))
            }
            Call::List { path } => {
                let request = p::GetListingRequestProto {
                    src: at(path),
                    start_after: b"".to_vec().into(),
                    need_location: false,
                };
                let answer: Answer<p::GetListingResponseProto> =
                    self.ask("getListing", &request, way).await?;
                let listed = |listing: p::DirectoryListingProto| {
                    let line = |fs: &p::HdfsFileStatusProto| {
                        // Each group counts the children of its own directories.
                        (String::from_utf8_lossy(&fs.path).into_owned(), Seen { children: None, ..seen(fs) })
                    };
                    listing.partial_listing.iter().map(line).collect()
                };
                answer.map(|it| Outcome::Listed(it.dir_list.map(listed)))
            }
        };
        Some(told.unwrap_or_else(Outcome::Refused))
    }

    /// The number of the group that holds the files of this directory.
    pub async fn home_of(&mut self, path: &str, mut door: usize) -> u32 {
        let began = Instant::now();
        loop {
            let client =
                Client::connect((self.doors)(door), protocol::ADMIN, "anybody", ClientOptions::default());
            let request = a::GetHomeRequestProto { path: path.into() };
            let told: Result<a::GetHomeResponseProto, _> = client.call("getHome", &request).await;
            match told {
                Ok(told) if told.directory == path => return told.group,
                // That server is late, or comes and goes.
                told => assert!(began.elapsed() < PATIENCE, "{path}: {told:?}"),
            }
            door += 1;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Asks at one door after another until there is an answer or a refusal, always under one name. `None`: it was broken off.
    async fn ask<Q, A>(&mut self, method: &'static str, request: &Q, way: Way) -> Option<Answer<A>>
    where
        Q: prost::Message,
        A: prost::Message + Default + prost::Name,
    {
        let (mut identity, mut door) = (numbered(self.calls), way.door);
        let began = Instant::now();
        loop {
            self.tries += 1;
            let address = (self.doors)(door);
            let name = self.name;
            let client = self.connections.entry(address).or_insert_with(|| client_at(address, name)).clone();
            let call = client.call_as(identity, method, request);
            match tokio::time::timeout(way.breaks_off.unwrap_or(TRY), call).await {
                Ok(Ok(answer)) => return Some(Ok(answer)),
                Ok(Err(CallError::Remote { class, message, .. })) if !is_passing(&class) => {
                    message.lines().next().unwrap_or_default().clone_into(&mut self.text);
                    let class = class.rsplit('.').next().unwrap_or_default();
                    return Some(Err(class.to_owned()));
                }
                Ok(Err(CallError::Remote { .. })) => {}
                Ok(Err(_)) | Err(_) => {
                    self.connections.remove(&address);
                }
            }
            if way.breaks_off.is_some() {
                return None;
            }
            assert!(began.elapsed() < PATIENCE, "{method} is not answered");
            identity.retry_count += 1;
            door += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A stock client asks again, there or elsewhere.
fn is_passing(class: &str) -> bool {
    ["StandbyException", "RetriableException"].iter().any(|passing| class.ends_with(passing))
}

fn file(status: Option<p::HdfsFileStatusProto>) -> Outcome {
    Outcome::File(status.as_ref().map(seen).expect("the file is told").id)
}

fn seen(fs: &p::HdfsFileStatusProto) -> Seen {
    let is_directory = fs.file_type == p::hdfs_file_status_proto::FileType::IsDir as i32;
    Seen {
        is_directory,
        id: fs.file_id.unwrap_or_default(),
        permission: fs.permission.perm,
        length: fs.length,
        children: is_directory.then(|| fs.children_num.unwrap_or_default() as u32),
    }
}
