//! The way of a question to the active of another group, and of its answer.

use crate::{cluster, neighbours::Neighbours, peers::Secret};
use base::{GroupId, MemberId};
use bytes::Bytes;
use parking_lot::Mutex;
use proto::{
    clover::forward::{PostRequestProto, PostResponseProto},
    protocol,
};
use rpc::{Client, ClientOptions};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// How long one question may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// Part of every proof, so that one made for something else fits no question.
const PURPOSE: &[u8] = b"clover post 1";

/// See the module's documentation.
pub struct Ways {
    me: MemberId,
    group: GroupId,
    cluster_id: String,
    secret: Secret,
    neighbours: Arc<Neighbours>,
    clients: Mutex<BTreeMap<GroupId, Client>>,
}

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct Question {
    pub messages: Vec<Bytes>,
    pub blocks: Vec<u64>,
    pub directories: Vec<u64>,
    /// In which snapshot the directories are meant.
    pub snapshot: Option<u64>,
    pub host: Option<String>,
    /// What a group lacks of a quota; for the root group.
    pub allot: Option<Bytes>,
}

/// The answer of a member that does not lead its group: nothing was done.
pub fn elsewhere() -> PostResponseProto {
    PostResponseProto { is_elsewhere: Some(true), ..Default::default() }
}

/// Whether the question is from somebody who knows the cluster's secret.
pub fn is_proved(secret: &Secret, request: &PostRequestProto) -> bool {
    with_parts(request, |parts| secret.verifies(PURPOSE, parts, &request.mac))
}

/// Every part has a length of its own before it, so that no two questions have the same parts.
fn with_parts<T>(request: &PostRequestProto, take: impl FnOnce(&[&[u8]]) -> T) -> T {
    let bytes_of = |ids: &[u64]| ids.iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>();
    let (blocks, directories) = (bytes_of(&request.blocks), bytes_of(&request.directories));
    let snapshot = request.snapshot.map(u64::to_le_bytes);
    let counts = [request.group, request.member, request.messages.len() as u32].map(u32::to_le_bytes);
    let host = request.host.as_deref().unwrap_or_default().as_bytes();
    let mut parts: Vec<&[u8]> = vec![request.scope.as_bytes()];
    parts.extend(counts.iter().map(|count| &count[..]));
    parts.extend([&blocks[..], &directories[..], host]);
    // A question of an older release has none, and the same parts as ever.
    parts.extend(request.allot.iter().flat_map(|lack| [&b"allot"[..], lack]));
    parts.extend(snapshot.iter().flat_map(|snapshot| [&b"snapshot"[..], snapshot]));
    parts.extend(request.messages.iter().map(|message| &message[..]));
    take(&parts)
}

impl Ways {
    pub fn new(
        me: MemberId,
        group: GroupId,
        cluster_id: String,
        secret: Secret,
        neighbours: Arc<Neighbours>,
    ) -> Self {
        Self { me, group, cluster_id, secret, neighbours, clients: Mutex::default() }
    }

    /// Asks the active of a group.
    ///
    /// # Errors
    /// Nobody who leads the group has answered in time; the text says why. The other group may have done what it was asked all the same.
    pub async fn ask(&self, group: GroupId, question: Question) -> Result<PostResponseProto, String> {
        let neighbour = self.neighbours.of(group);
        let Some((member, address)) = neighbour.active() else {
            neighbour.look_again();
            return Err(format!("the active of group {group} is not known"));
        };
        let request = self.request(group, question);
        let client = self.client(group, &address);
        let answer = tokio::time::timeout(CALL_TIMEOUT, client.call("post", &request)).await;
        let failed = match answer {
            Ok(Ok(answer)) => {
                let answer: PostResponseProto = answer;
                if !answer.is_elsewhere() {
                    return Ok(answer);
                }
                format!("member {member} does not lead group {group}")
            }
            Ok(Err(error)) => format!("member {member} of group {group}: {error}"),
            Err(_) => format!("member {member} of group {group} did not answer within {CALL_TIMEOUT:?}"),
        };
        neighbour.look_again();
        Err(failed)
    }

    /// A question with its proof.
    pub fn request(&self, group: GroupId, question: Question) -> PostRequestProto {
        let Question { messages, blocks, directories, snapshot, host, allot } = question;
        let mut request = PostRequestProto {
            scope: cluster::scope(&self.cluster_id, group),
            group: self.group.0,
            member: self.me.0,
            messages,
            blocks,
            host,
            mac: Bytes::new(),
            directories,
            allot,
            snapshot,
        };
        request.mac = with_parts(&request, |parts| Bytes::copy_from_slice(&self.secret.sign(PURPOSE, parts)));
        request
    }

    fn client(&self, group: GroupId, address: &str) -> Client {
        let mut clients = self.clients.lock();
        let known = clients.get(&group).filter(|client| client.address() == address);
        if let Some(client) = known {
            return client.clone();
        }
        // No user of any system has a space in its name: nobody's groups are looked up for the connection.
        let user = format!("clover member {}", self.me);
        let options = ClientOptions {
            connect_timeout: CALL_TIMEOUT,
            call_timeout: CALL_TIMEOUT,
            ping_interval: None,
            ..ClientOptions::default()
        };
        let client = Client::connect(address, protocol::FORWARD, &user, options);
        clients.insert(group, client.clone());
        client
    }
}
