//! A server under bytes that nobody meant: whole sessions with bytes changed, cut, doubled and made up.
//!
//! The file stands alone so that it has a process to itself: it counts every panic in it.

use base::ClientId;
use bytes::BytesMut;
use proptest::prelude::*;
use prost::Message;
use proto::{
    common::{RpcSaslProto, rpc_sasl_proto::SaslState},
    hdfs::{FsPermissionProto, MkdirsRequestProto, MkdirsResponseProto},
    protocol,
    rpc_frame::{
        AuthProtocol, CallHeader, put_connection_context, put_ping, put_preamble, put_request, put_sasl,
    },
};
use rpc::{Call, Client, ClientOptions, Limits, Replier, Server, ServerConfig, Service};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Decodes, answers, forgets: what a service does with calls.
struct Busy;

impl Service for Busy {
    fn protocols(&self) -> &[(&'static str, u64)] {
        &[(protocol::CLIENT_NAMENODE, 1)]
    }

    fn call(&self, call: Call, reply: Replier) {
        match call.method {
            "mkdirs" => reply
                .result(call.decode::<MkdirsRequestProto>().map(|_| MkdirsResponseProto { result: true })),
            "delete" => drop(tokio::spawn(async move { reply.ok_encoded(0, |_| {}) })),
            _ => drop(reply),
        }
    }
}

fn request() -> Vec<u8> {
    let masked = FsPermissionProto { perm: 0o755 };
    MkdirsRequestProto { src: "/a/b".into(), masked, create_parent: true, unmasked: None }.encode_to_vec()
}

/// One session that is as it should be.
fn session(auth: AuthProtocol) -> Vec<u8> {
    let client_id = ClientId([7; 16]);
    let mut out = BytesMut::new();
    put_preamble(&mut out, auth);
    if auth == AuthProtocol::Sasl {
        put_sasl(&mut out, &RpcSaslProto { state: SaslState::Negotiate.into(), ..Default::default() });
    }
    put_connection_context(&mut out, client_id, "ann", None, protocol::CLIENT_NAMENODE);
    for (call_id, method) in ["mkdirs", "delete", "rename", "mkdirs"].into_iter().enumerate() {
        let call = CallHeader { method, protocol: protocol::CLIENT_NAMENODE, version: 1 };
        let body = request();
        put_request(&mut out, call_id as i32, client_id, 0, Some(3), call, body.len(), |out| {
            out.extend_from_slice(&body);
        });
        put_ping(&mut out, client_id);
    }
    out.to_vec()
}

/// A change that is made to the bytes of a session.
#[derive(Clone, Debug)]
enum Harm {
    Set(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index, usize),
}

fn harm() -> impl Strategy<Value = Harm> {
    let interesting = prop_oneof![Just(0), Just(0x7f), Just(0x80), Just(0xff), any::<u8>()];
    prop_oneof![
        4 => (any::<prop::sample::Index>(), interesting).prop_map(|(at, byte)| Harm::Set(at, byte)),
        1 => any::<prop::sample::Index>().prop_map(Harm::Cut),
        1 => (any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 1..20))
            .prop_map(|(at, bytes)| Harm::Insert(at, bytes)),
        1 => (any::<prop::sample::Index>(), 1..20usize).prop_map(|(at, count)| Harm::Remove(at, count)),
    ]
}

fn harmed(mut bytes: Vec<u8>, harms: &[Harm]) -> Vec<u8> {
    for harm in harms {
        if bytes.is_empty() {
            break;
        }
        match harm {
            Harm::Set(at, byte) => {
                let index = at.index(bytes.len());
                bytes[index] = *byte;
            }
            Harm::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Harm::Insert(at, more) => {
                let index = at.index(bytes.len());
                bytes.splice(index..index, more.iter().copied());
            }
            Harm::Remove(at, count) => {
                let index = at.index(bytes.len());
                bytes.drain(index..(index + count).min(bytes.len()));
            }
        }
    }
    bytes
}

static PANICS: AtomicU32 = AtomicU32::new(0);

struct World {
    runtime: tokio::runtime::Runtime,
    server: Server,
}

impl World {
    fn new() -> World {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            before(panic);
        }));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let server = runtime.block_on(async {
            let limits = Limits {
                frame_bytes_max: 1 << 16,
                frame_deadline: Duration::from_secs(2),
                ..Limits::default()
            };
            let address = SocketAddr::from(([127, 0, 0, 1], 0));
            Server::bind(ServerConfig { limits, ..ServerConfig::new(address, Arc::new(Busy)) }).unwrap()
        });
        World { runtime, server }
    }

    /// Sends bytes, in pieces, and waits for the server to be done with them.
    fn suffer(&self, bytes: &[u8], piece: usize) {
        let address = self.server.local_addr();
        self.runtime.block_on(async {
            let stream = TcpStream::connect(address).await.unwrap();
            let (mut read, mut write) = stream.into_split();
            for piece in bytes.chunks(piece) {
                if write.write_all(piece).await.is_err() {
                    break;
                }
            }
            let _ = write.shutdown().await;
            let mut answer = Vec::new();
            let reading = read.read_to_end(&mut answer);
            let read = tokio::time::timeout(Duration::from_secs(10), reading).await;
            let _ = read.expect("the server is done with a client that is done");
        });
        assert_eq!(PANICS.load(Ordering::SeqCst), 0, "a task panicked");
    }

    fn serves_others(&self) {
        let options = ClientOptions::default();
        let client = Client::connect(self.server.local_addr(), protocol::CLIENT_NAMENODE, "bob", options);
        let reply = self.runtime.block_on(client.call_encoded("mkdirs", &request()));
        assert_eq!(reply.unwrap(), &[8, 1][..]);
    }
}

#[test]
fn no_bytes_harm_the_server() {
    let world = World::new();
    let auth = prop_oneof![Just(AuthProtocol::None), Just(AuthProtocol::Sasl)];
    let harms = prop::collection::vec(harm(), 0..6);
    let mutated = (auth, harms).prop_map(|(auth, harms)| harmed(session(auth), &harms));
    let made_up = prop::collection::vec(any::<u8>(), 0..200);
    let framed = made_up.clone().prop_map(|bytes| [b"hrpc\x09\0\0\0\0\0\xc0".to_vec(), bytes].concat());
    let bytes = prop_oneof![8 => mutated, 1 => made_up, 1 => framed];

    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 600,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner
        .run(&(bytes, 1..500usize), |(bytes, piece)| {
            world.suffer(&bytes, piece);
            Ok(())
        })
        .unwrap();
    world.serves_others();
}
