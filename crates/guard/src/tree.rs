//! Calls about files, from the bytes of a frame to the bytes of the answer: what a server does for them beside waiting for locks, disks and
//! sockets.

use base::{CallId, CallOrigin, Caller, ClientId, Epoch, Moment, Sn, Timestamp, TxId};
use bytes::{Bytes, BytesMut};
use namespace::{
    Context, Edit, FileStatus, Limits, Namespace, Planned, Readable, Reply, fingerprint, ops, reads,
};
use prost::Message;
use proto::{
    answers::{self, Only, encoded},
    common::{RequestHeaderProto, RpcRequestHeaderProto},
    hdfs as p,
    rpc_frame::{ReplyTo, check_header, parse_call_header, parse_request_header, put_success},
    wire::Cursor,
};

/// Directories, and files in each of them.
const DIRECTORIES: u32 = 50;
const FILES: u32 = 1_000;
/// Calls of one kind.
pub const CALLS: u32 = 1_000;

/// A tree with files, and calls that a client sends.
pub struct Tree {
    namespace: Namespace,
    limits: Limits,
    caller: Caller,
    edits: u64,
    frames: Vec<Bytes>,
    /// The answers, one behind the other, as they go to the socket.
    pub answers: BytesMut,
    /// The edits, as they go to the journal.
    pub records: Vec<u8>,
}

impl Tree {
    /// A tree of files, and calls for the status of some of them.
    pub fn to_ask() -> Self {
        let mut tree = Self::filled();
        tree.frames = (0..CALLS)
            .map(|call| {
                // Far from each other, as clients' are.
                let src = path(call * 7_919 % (DIRECTORIES * FILES));
                frame(call, "getFileInfo", &p::GetFileInfoRequestProto { src })
            })
            .collect();
        tree
    }

    /// A tree of files, and calls that make further ones.
    pub fn to_change() -> Self {
        let mut tree = Self::filled();
        tree.frames = (0..CALLS)
            .map(|call| {
                frame(call, "create", &create(path(call % DIRECTORIES * FILES) + "-new-" + &call.to_string()))
            })
            .collect();
        tree
    }

    /// A tree of files, and calls that delete some of them.
    pub fn to_empty() -> Self {
        let mut tree = Self::filled();
        tree.frames = (0..CALLS)
            .map(|call| {
                let src = path(call * 7_919 % (DIRECTORIES * FILES));
                frame(call, "delete", &p::DeleteRequestProto { src, recursive: true })
            })
            .collect();
        tree
    }

    fn filled() -> Self {
        let mut tree = Self {
            namespace: Namespace::new(1, "hdfs", "supergroup", Timestamp::from_ms(1)),
            limits: Limits::default(),
            caller: Caller::simple("ann", &["people"]),
            edits: 0,
            frames: Vec::new(),
            answers: BytesMut::with_capacity(1 << 20),
            records: Vec::with_capacity(1 << 20),
        };
        let everyone = ops::set_permission::Request { path: "/".into(), permission: 0o777 };
        let owner = Caller::simple("hdfs", &["supergroup"]);
        let context = Context { caller: &owner, ..tree.context(ORIGIN, 0) };
        let planned = ops::set_permission::plan(&tree.namespace, &context, &everyone).expect("the owner may");
        tree.apply(edit_of(planned));
        for number in 0..DIRECTORIES * FILES {
            let request = request(create(path(number)));
            let planned = ops::create::plan(&tree.namespace, &tree.context(ORIGIN, 0), &request);
            tree.apply(edit_of(planned.expect("it is made")));
        }
        tree.records.clear();
        tree
    }

    fn context(&self, origin: CallOrigin, fingerprint: u64) -> Context<'_> {
        Context {
            caller: &self.caller,
            origin: Some(origin),
            fingerprint,
            now: Timestamp::from_ms(1_700_000_000_000 + self.edits),
            moment: Moment::default(),
            limits: &self.limits,
            renewals: None,
            looks: None,
            told: None,
            room: None,
        }
    }

    fn apply(&mut self, edit: impl Into<Edit>) -> Reply {
        let edit = edit.into();
        self.edits += 1;
        let reply = self.namespace.apply(TxId { epoch: Epoch(1), sn: Sn(self.edits) }, &edit).reply;
        edit.encode(&mut self.records);
        reply
    }

    /// Answers all calls for a status: each is decoded, looked up, and its answer encoded.
    pub fn stat(&mut self) {
        for frame in std::mem::take(&mut self.frames) {
            let (to, origin, request) = taken_apart(&frame);
            let message: p::GetFileInfoRequestProto = proto::decode(request).expect("a whole message");
            let read = reads::get_file_info::Request { path: message.src };
            let context = self.context(origin, 0);
            let found = read.look(&self.namespace, &context).expect("it may be seen");
            let answer = encoded(Only(found.as_ref().map(view)));
            put_success(&mut self.answers, to, answer.len(), |out| out.extend_from_slice(&answer));
        }
    }

    /// Carries all calls out that make a file: each is decoded, planned, applied, encoded for the journal, and answered.
    pub fn create(&mut self) {
        for frame in std::mem::take(&mut self.frames) {
            let (to, origin, bytes) = taken_apart(&frame);
            let fingerprint = fingerprint("create", &bytes);
            let message: p::CreateRequestProto = proto::decode(bytes).expect("a whole message");
            let request = request(message);
            let context = self.context(origin, fingerprint);
            let planned = ops::create::plan(&self.namespace, &context, &request).expect("it may be made");
            let Reply::Created(inode) = self.apply(edit_of(planned)) else {
                unreachable!("a create makes a file")
            };
            let made = reads::get_file_info::by_id(&self.namespace, inode);
            let answer = encoded(Only(made.as_ref().map(view)));
            put_success(&mut self.answers, to, answer.len(), |out| out.extend_from_slice(&answer));
        }
    }

    /// Carries all calls out that delete a file: each is decoded, planned, applied, encoded for the journal, and answered.
    pub fn delete(&mut self) {
        for frame in std::mem::take(&mut self.frames) {
            let (to, origin, bytes) = taken_apart(&frame);
            let fingerprint = fingerprint("delete", &bytes);
            let message: p::DeleteRequestProto = proto::decode(bytes).expect("a whole message");
            let request = ops::delete::Request { path: message.src, recursive: message.recursive };
            let context = self.context(origin, fingerprint);
            let planned = ops::delete::plan(&self.namespace, &context, &request).expect("it may be deleted");
            let reply = self.apply(edit_of(planned));
            let answer = p::DeleteResponseProto { result: reply == Reply::Bool(true) };
            put_success(&mut self.answers, to, answer.encoded_len(), |out| answer.encode_raw(out));
        }
    }
}

const ORIGIN: CallOrigin = CallOrigin {
    client_id: ClientId(*b"a client of Java"),
    call_id: CallId(0),
    retry_count: 0,
    repeats: 0,
    address: None,
};

fn edit_of<E>(planned: Planned<E>) -> Edit
where
    Edit: From<Edit<E>>,
{
    let Planned::Edit(edit) = planned else { unreachable!("it was not there") };
    edit.into()
}

fn path(number: u32) -> String {
    format!("/warehouse/orders/day-{:04}/part-{:05}", number / FILES, number % FILES)
}

fn create(src: String) -> p::CreateRequestProto {
    p::CreateRequestProto {
        src,
        masked: p::FsPermissionProto { perm: 0o644 },
        client_name: "DFSClient_NONMAPREDUCE_1".into(),
        create_flag: ops::create::flag::CREATE,
        create_parent: true,
        replication: 3,
        block_size: 128 << 20,
        ..p::CreateRequestProto::default()
    }
}

/// As the server makes it of the message.
fn request(message: p::CreateRequestProto) -> ops::create::Request {
    ops::create::Request {
        path: message.src,
        permission: message.masked.perm as u16,
        unmasked: None,
        holder: message.client_name,
        client_machine: "10.0.0.1".into(),
        flags: message.create_flag,
        create_parent: message.create_parent,
        replication: message.replication,
        block_size: message.block_size,
        storage_policy: None,
        erasure_coding: None,
    }
}

/// The frame of a call as Java's client sends it, without its length.
fn frame(call: u32, method: &str, message: &impl Message) -> Bytes {
    let header = RpcRequestHeaderProto {
        rpc_kind: Some(2),
        rpc_op: Some(0),
        call_id: call as i32,
        client_id: ORIGIN.client_id.0.to_vec().into(),
        retry_count: Some(0),
        ..RpcRequestHeaderProto::default()
    };
    let named = RequestHeaderProto {
        method_name: method.into(),
        declaring_class_protocol_name: "org.apache.hadoop.hdfs.protocol.ClientProtocol".into(),
        client_protocol_version: 1,
    };
    let mut frame = header.encode_length_delimited_to_vec();
    frame.extend(named.encode_length_delimited_to_vec());
    frame.extend(message.encode_length_delimited_to_vec());
    frame.into()
}

/// The call of a frame: to whom the answer goes, from whom the call is, and its message.
fn taken_apart(frame: &Bytes) -> (ReplyTo, CallOrigin, Bytes) {
    let mut cursor = Cursor::new(frame);
    let header = parse_request_header(&mut cursor).expect("a header");
    check_header(&header).expect("a header that makes sense");
    let client_id = ClientId(header.client_id.try_into().expect("sixteen bytes"));
    let call = parse_call_header(&mut cursor).expect("a header of the call");
    assert_eq!(call.version, 1);
    let request = frame.slice_ref(cursor.delimited().expect("a message"));
    let retry_count = header.retry_count;
    let to = ReplyTo { call_id: header.call_id, client_id: Some(client_id), retry_count, state_id: None };
    let origin = CallOrigin { client_id, call_id: CallId(header.call_id), retry_count, ..ORIGIN };
    (to, origin, request)
}

/// As the server tells it.
fn view<'a>(status: &FileStatus<'a>) -> answers::FileStatus<'a> {
    answers::FileStatus {
        is_directory: status.is_directory(),
        path: b"",
        length: status.length,
        permission: status.permission,
        owner: status.owner,
        group: status.group,
        modified: status.modified.ms,
        accessed: status.accessed.ms,
        replication: status.replication,
        block_size: status.block_size,
        file_id: status.id.0,
        children: 0,
        storage_policy: status.storage_policy,
        has_acl: status.has_acl,
        snapshot_enabled: status.snapshottable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::rpc_frame::parse_reply;

    /// The messages of the answers that were put.
    fn told<M: Message + Default>(mut answers: &[u8]) -> Vec<M> {
        let mut told = Vec::new();
        while let Some((length, rest)) = answers.split_first_chunk::<4>() {
            let (frame, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
            let mut cursor = Cursor::new(frame);
            let reply = parse_reply(&mut cursor).unwrap();
            assert_eq!(reply.call_id as usize, told.len());
            told.push(M::decode(cursor.delimited().unwrap()).unwrap());
            answers = rest;
        }
        told
    }

    #[test]
    fn each_call_for_a_status_gets_that_of_its_file() {
        let mut tree = Tree::to_ask();
        tree.stat();
        let told: Vec<p::GetFileInfoResponseProto> = told(&tree.answers);
        let files: Vec<_> = told.into_iter().map(|answer| answer.fs.expect("it is there")).collect();
        assert_eq!(files.len(), CALLS as usize);
        assert!(files.iter().all(|file| file.owner == "ann" && file.block_replication == Some(3)));
    }

    #[test]
    fn each_call_that_makes_a_file_leaves_one_and_a_record() {
        let mut tree = Tree::to_change();
        let before = tree.namespace.counts().files;
        tree.create();
        assert_eq!(tree.namespace.counts().files - before, u64::from(CALLS));
        assert!(tree.records.len() > 40 * CALLS as usize, "{} bytes of records", tree.records.len());
        let told: Vec<p::CreateResponseProto> = told(&tree.answers);
        assert!(told.iter().all(|answer| answer.fs.as_ref().is_some_and(|file| file.owner == "ann")));
        assert_eq!(told.len(), CALLS as usize);
    }

    #[test]
    fn each_call_that_deletes_a_file_leaves_one_less() {
        let mut tree = Tree::to_empty();
        let before = tree.namespace.counts().files;
        tree.delete();
        assert_eq!(before - tree.namespace.counts().files, u64::from(CALLS));
        let told: Vec<p::DeleteResponseProto> = told(&tree.answers);
        assert!(told.len() == CALLS as usize && told.iter().all(|answer| answer.result));
    }
}
