//! The rows of bad input that concern RPC frames, each over a real socket, and what a good client gets.

use crate::{
    Call, CallError, Client, ClientOptions, Limits, NoResponse, NullService, Replier, RpcError, Server,
    ServerConfig, Service,
};
use base::{ClientId, FsError};
use bytes::{Bytes, BytesMut};
use prost::Message;
use proto::{
    common::{RpcSaslProto, rpc_sasl_proto::SaslState},
    hdfs::{
        DeleteRequestProto, DeleteResponseProto, FsPermissionProto, GetFileInfoRequestProto,
        GetFileInfoResponseProto, MkdirsRequestProto, MkdirsResponseProto, RenameRequestProto,
        RenameResponseProto,
    },
    protocol,
    rpc_frame::{
        AuthProtocol, CallHeader, ErrorCode, Status, parse_reply, put_connection_context, put_ping,
        put_preamble, put_request, put_sasl,
    },
    wire::Cursor,
};
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Answers in all the ways in which a service may.
struct Pupil;

impl Service for Pupil {
    fn protocols(&self) -> &[(&'static str, u64)] {
        &[(protocol::CLIENT_NAMENODE, 1)]
    }

    fn call(&self, call: Call, mut reply: Replier) {
        match call.method {
            "mkdirs" => reply
                .result(call.decode::<MkdirsRequestProto>().map(|_| MkdirsResponseProto { result: true })),
            "getFileInfo" => {
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    reply.set_state_id(77);
                    reply.ok(&GetFileInfoResponseProto { fs: None });
                });
            }
            "delete" => reply.fs_error(&FsError::NotFound(format!("no {}", call.caller))),
            "getListing" => reply.ok_encoded(1 << 20, |out| out.resize(out.len() + (1 << 20), 0)),
            _ => drop(reply),
        }
    }
}

fn server(limits: Limits) -> Server {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let config = ServerConfig {
        limits,
        http_hint: Some("127.0.0.1:9870".into()),
        ..ServerConfig::new(address, Arc::new(Pupil))
    };
    Server::bind(config).unwrap()
}

fn client(server: &Server) -> Client {
    Client::connect(server.local_addr(), protocol::CLIENT_NAMENODE, "ann", ClientOptions::default())
}

fn mkdirs(src: &str) -> MkdirsRequestProto {
    MkdirsRequestProto {
        src: src.into(),
        masked: FsPermissionProto { perm: 0o755 },
        create_parent: true,
        unmasked: None,
    }
}

const CLIENT_ID: ClientId = ClientId(*b"0123456789abcdef");
const CLIENT_PROTOCOL: CallHeader<'static> =
    CallHeader { method: "mkdirs", protocol: protocol::CLIENT_NAMENODE, version: 1 };

/// Preamble and connection context.
fn greeting() -> BytesMut {
    let mut out = BytesMut::new();
    put_preamble(&mut out, AuthProtocol::None);
    put_connection_context(&mut out, CLIENT_ID, "ann", None, protocol::CLIENT_NAMENODE);
    out
}

fn put_call(out: &mut BytesMut, call_id: i32, header: CallHeader<'_>, body: &[u8]) {
    put_request(out, call_id, CLIENT_ID, 0, None, header, body.len(), |out| out.extend_from_slice(body));
}

fn put_mkdirs(out: &mut BytesMut, call_id: i32) {
    put_call(out, call_id, CLIENT_PROTOCOL, &mkdirs("/a").encode_to_vec());
}

/// A frame with a length of its own saying.
fn put_frame(out: &mut BytesMut, length: i32, bytes: &[u8]) {
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Sends bytes and returns all that comes back until the server closes.
async fn exchange(server: &Server, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    tokio::time::timeout(Duration::from_secs(5), reading).await.expect("the server closes").unwrap();
    answer
}

#[derive(Debug, PartialEq)]
struct Answer {
    call_id: i32,
    status: Status,
    class: String,
    message: String,
    code: Option<i32>,
}

/// Splits what a server sent into replies.
fn replies(mut bytes: &[u8]) -> Vec<Answer> {
    let mut answers = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let (frame, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
        let header = parse_reply(&mut Cursor::new(frame)).unwrap();
        answers.push(Answer {
            call_id: header.call_id,
            status: header.status,
            class: header.exception.unwrap_or_default().into(),
            message: header.message.unwrap_or_default().into(),
            code: header.error_code,
        });
        bytes = rest;
    }
    answers
}

/// The one refusal that `bytes` get, after which the server closes.
async fn fatal(server: &Server, bytes: &[u8], code: ErrorCode) -> Answer {
    let mut answers = replies(&exchange(server, bytes).await);
    assert_eq!(answers.len(), 1, "{answers:?}");
    let answer = answers.remove(0);
    assert_eq!((answer.status, answer.code), (Status::Fatal, Some(code as i32)), "{answer:?}");
    // Others are served as before.
    let _: MkdirsResponseProto = client(server).call("mkdirs", &mkdirs("/a")).await.unwrap();
    answer
}

/// The answer to one call, after which the connection lives: a good call gets its reply too.
async fn refused(server: &Server, header: CallHeader<'_>, body: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let mut out = greeting();
    put_call(&mut out, 5, header, body);
    put_mkdirs(&mut out, 6);
    stream.write_all(&out).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let mut answers = replies(&answer);
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert_eq!((answers[1].call_id, answers[1].status), (6, Status::Success));
    assert_eq!((answers[0].call_id, answers[0].status), (5, Status::Error));
    answers.remove(0)
}

#[tokio::test]
async fn http_gets_a_line_that_says_where_http_is() {
    let server = server(Limits::default());
    for request in ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST /webhdfs/v1 HTTP/1.1\r\n\r\n"] {
        let answer = String::from_utf8(exchange(&server, request.as_bytes()).await).unwrap();
        assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\nContent-type: text/plain\r\n\r\n"), "{answer}");
        assert!(answer.contains("not the correct port for the web interface"), "{answer}");
        assert!(answer.contains("WebHDFS is on 127.0.0.1:9870"), "{answer}");
    }
}

#[tokio::test]
async fn a_tls_hello_gets_a_short_line() {
    let server = server(Limits::default());
    let mut hello = vec![0x16, 0x03, 0x01, 0x02, 0x00, 0x01];
    hello.resize(517, 7);
    let answer = String::from_utf8(exchange(&server, &hello).await).unwrap();
    assert_eq!(answer, "This is a Hadoop RPC port, without TLS; WebHDFS is on 127.0.0.1:9870.\r\n");
    assert_eq!(exchange(&server, b"\0\0\0\x04abcd").await, answer.as_bytes());
}

#[tokio::test]
async fn another_version_gets_version_mismatch_in_its_own_layout() {
    let server = server(Limits::default());
    let class = "org.apache.hadoop.ipc.Server$VersionMismatch";
    // Version 8 and older: call id, status, class and message as plain fields.
    let old = exchange(&server, b"hrpc\x08\x00\x00").await;
    let message = "Server IPC version 9 cannot communicate with client version 8";
    let mut expected = vec![0xff; 8];
    for text in [class, message] {
        expected.extend_from_slice(&(text.len() as u32).to_be_bytes());
        expected.extend_from_slice(text.as_bytes());
    }
    assert_eq!(old, expected);
    for version in [10, 200] {
        let preamble = [&b"hrpc"[..], &[version, 0, 0]].concat();
        let new = fatal(&server, &preamble, ErrorCode::FatalVersionMismatch).await;
        assert_eq!((new.call_id, new.class.as_str()), (-1, class));
        assert!(new.message.ends_with(&format!("client version {version}")), "{new:?}");
    }
}

#[tokio::test]
async fn an_unknown_auth_protocol_is_refused() {
    let server = server(Limits::default());
    let answer = fatal(&server, b"hrpc\x09\x00\x07", ErrorCode::FatalUnauthorized).await;
    assert_eq!(answer.class, "org.apache.hadoop.ipc.IpcException");
    assert_eq!(answer.message, "Unknown auth protocol:7");
}

#[tokio::test]
async fn frame_lengths_out_of_range_name_the_limit() {
    let server = server(Limits::default());
    for (length, words) in [
        (0, "a frame of 0 bytes"),
        (-1, "Unexpected data length -1"),
        (i32::MIN, "Unexpected data length -2147483648"),
        (i32::MAX, "longer than maximum configured RPC length 134217728"),
    ] {
        let mut bytes = greeting();
        put_frame(&mut bytes, length, &[]);
        let answer = fatal(&server, &bytes, ErrorCode::FatalInvalidRpcHeader).await;
        assert!(answer.message.contains(words), "{answer:?}");
    }
}

#[tokio::test]
async fn a_frame_that_dribbles_meets_its_deadline() {
    let limits = Limits { frame_deadline: Duration::from_millis(300), ..Limits::default() };
    let server = server(limits);
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let mut bytes = greeting();
    put_frame(&mut bytes, 64 << 20, &[1, 2]);
    stream.write_all(&bytes).await.unwrap();
    let begun = Instant::now();
    let (mut read, mut write) = stream.into_split();
    let dribble = tokio::spawn(async move {
        while write.write_all(b"a").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut answer = Vec::new();
    read.read_to_end(&mut answer).await.unwrap_or_default();
    assert!(begun.elapsed() < Duration::from_secs(20));
    let answers = replies(&answer);
    assert_eq!(answers.len(), 1);
    assert!(answers[0].message.contains("must be complete within 0.3 s"), "{answers:?}");
    dribble.abort();
}

#[tokio::test]
async fn a_client_that_says_nothing_meets_the_deadline() {
    let server = server(Limits { frame_deadline: Duration::from_millis(100), ..Limits::default() });
    assert_eq!(replies(&exchange(&server, b"").await).len(), 1);
    assert_eq!(replies(&exchange(&server, b"hrpc\x09").await).len(), 1);
}

#[tokio::test]
async fn an_idle_connection_may_stay() {
    let server = server(Limits { frame_deadline: Duration::from_millis(50), ..Limits::default() });
    let client = client(&server);
    let _: MkdirsResponseProto = client.call("mkdirs", &mkdirs("/a")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(server.connection_count(), 1);
    let _: MkdirsResponseProto = client.call("mkdirs", &mkdirs("/a")).await.unwrap();
    assert_eq!(server.connection_count(), 1);
}

#[tokio::test]
async fn headers_that_do_not_decode_are_fatal() {
    let server = server(Limits::default());
    let endless = [0xff; 12];
    for frame in [&endless[..], &[5, 1, 2], &[2, 0x18, 0x80], &[1, 0x18], &[0]] {
        let mut bytes = greeting();
        put_frame(&mut bytes, frame.len() as i32, frame);
        let answer = fatal(&server, &bytes, ErrorCode::FatalDeserializingRequest).await;
        assert!(answer.message.starts_with("Error decoding RpcRequestHeaderProto: "), "{answer:?}");
    }
}

#[tokio::test]
async fn requests_that_do_not_decode_are_fatal() {
    let server = server(Limits::default());
    // A varint of 11 bytes, a length past the end, and messages 10,000 deep: groups nest in any message.
    let deep = [(99 << 3 | 3) as u8 | 0x80, 6].repeat(10_000);
    for body in [&[0xff; 11][..], &[0x0a, 100, b'/'], &[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f], &deep] {
        let mut bytes = greeting();
        put_call(&mut bytes, 7, CLIENT_PROTOCOL, body);
        put_mkdirs(&mut bytes, 8);
        let answer = fatal(&server, &bytes, ErrorCode::FatalDeserializingRequest).await;
        assert_eq!(answer.call_id, 7);
        assert!(answer.message.starts_with("IPC server unable to read call parameters: "), "{answer:?}");
    }
}

#[tokio::test]
async fn a_request_without_a_required_field_is_refused_by_itself() {
    let server = server(Limits::default());
    let answer = refused(&server, CLIENT_PROTOCOL, &[]).await;
    assert_eq!(answer.class, "org.apache.hadoop.thirdparty.protobuf.InvalidProtocolBufferException");
    assert!(answer.message.starts_with("Message missing required fields: src"), "{answer:?}");
}

#[tokio::test]
async fn a_path_that_is_not_utf8_is_an_invalid_path() {
    let server = server(Limits::default());
    let mut body = mkdirs("/ab").encode_to_vec();
    body[3] = 0xff;
    let answer = refused(&server, CLIENT_PROTOCOL, &body).await;
    assert_eq!(answer.class, "org.apache.hadoop.fs.InvalidPathException");
    assert_eq!(answer.message, "Invalid path name /\u{fffd}b");
}

#[tokio::test]
async fn unknown_protocols_methods_and_versions_are_refused_by_themselves() {
    let server = server(Limits::default());
    let answer = refused(&server, CallHeader { protocol: "a.B", ..CLIENT_PROTOCOL }, &[]).await;
    assert_eq!(answer.class, "org.apache.hadoop.ipc.RpcNoSuchProtocolException");
    assert_eq!(answer.message, "Unknown protocol: a.B");
    assert_eq!(answer.code, Some(ErrorCode::NoSuchProtocol as i32));

    let answer = refused(&server, CallHeader { method: "mkdirz", ..CLIENT_PROTOCOL }, &[]).await;
    assert_eq!(answer.class, "org.apache.hadoop.ipc.RpcNoSuchMethodException");
    assert_eq!(answer.code, Some(ErrorCode::NoSuchMethod as i32));

    let answer = refused(&server, CallHeader { version: 2, ..CLIENT_PROTOCOL }, &[]).await;
    assert_eq!(answer.class, "org.apache.hadoop.ipc.RPC$VersionMismatch");
    assert_eq!(answer.code, Some(ErrorCode::RpcVersionMismatch as i32));
}

#[tokio::test]
async fn negative_call_ids_and_short_client_ids_are_fatal() {
    let server = server(Limits::default());
    for call_id in [-1, -2, -5, i32::MIN] {
        let mut bytes = greeting();
        put_mkdirs(&mut bytes, call_id);
        fatal(&server, &bytes, ErrorCode::FatalInvalidRpcHeader).await;
    }
    let mut bytes = greeting();
    let header = [&[9, 0x08, 2, 0x10, 0, 0x18, 2, 0x22, 1][..], &[65]].concat();
    put_frame(&mut bytes, header.len() as i32, &header);
    let answer = fatal(&server, &bytes, ErrorCode::FatalInvalidRpcHeader).await;
    assert_eq!(answer.message, "Invalid clientId - length is 1 expected length 16");
}

#[tokio::test]
async fn calls_before_the_connection_context_and_second_contexts_are_fatal() {
    let server = server(Limits::default());
    let mut early = BytesMut::new();
    put_preamble(&mut early, AuthProtocol::None);
    put_mkdirs(&mut early, 0);
    let answer = fatal(&server, &early, ErrorCode::FatalInvalidRpcHeader).await;
    assert_eq!(answer.message, "Connection context not established");

    let mut twice = greeting();
    put_connection_context(&mut twice, CLIENT_ID, "bob", None, protocol::CLIENT_NAMENODE);
    let answer = fatal(&server, &twice, ErrorCode::FatalInvalidRpcHeader).await;
    assert_eq!(answer.message, "Connection context already processed");
}

#[tokio::test]
async fn nobody_acts_for_another_without_leave() {
    let server = server(Limits::default());
    let mut bytes = BytesMut::new();
    put_preamble(&mut bytes, AuthProtocol::None);
    put_connection_context(&mut bytes, CLIENT_ID, "ann", Some("eve"), protocol::CLIENT_NAMENODE);
    let answer = fatal(&server, &bytes, ErrorCode::FatalUnauthorized).await;
    assert_eq!(answer.class, "org.apache.hadoop.security.authorize.AuthorizationException");
    assert_eq!(answer.message, "User: eve is not allowed to impersonate ann");

    let mut bytes = BytesMut::new();
    put_preamble(&mut bytes, AuthProtocol::None);
    put_connection_context(&mut bytes, CLIENT_ID, "", None, protocol::CLIENT_NAMENODE);
    fatal(&server, &bytes, ErrorCode::FatalUnauthorized).await;
}

#[tokio::test]
async fn a_simple_server_tells_a_sasl_client_to_go_on_without() {
    let server = server(Limits::default());
    let negotiate = RpcSaslProto { state: SaslState::Negotiate.into(), ..Default::default() };
    let mut bytes = BytesMut::new();
    put_preamble(&mut bytes, AuthProtocol::Sasl);
    put_sasl(&mut bytes, &negotiate);
    put_connection_context(&mut bytes, CLIENT_ID, "ann", None, protocol::CLIENT_NAMENODE);
    put_ping(&mut bytes, CLIENT_ID);
    put_mkdirs(&mut bytes, 0);
    put_mkdirs(&mut bytes, -2);
    let answers = replies(&exchange(&server, &bytes).await);
    let facts: Vec<_> = answers.iter().map(|answer| (answer.call_id, answer.status)).collect();
    assert_eq!(facts, [(-33, Status::Success), (0, Status::Success), (-2, Status::Fatal)]);

    let mut early = BytesMut::new();
    put_preamble(&mut early, AuthProtocol::Sasl);
    put_connection_context(&mut early, CLIENT_ID, "ann", None, protocol::CLIENT_NAMENODE);
    let answer = fatal(&server, &early, ErrorCode::FatalInvalidRpcHeader).await;
    assert_eq!(answer.message, "Connection header sent during SASL negotiation");

    let mut unasked = BytesMut::new();
    put_preamble(&mut unasked, AuthProtocol::None);
    put_sasl(&mut unasked, &negotiate);
    fatal(&server, &unasked, ErrorCode::FatalInvalidRpcHeader).await;
}

#[tokio::test]
async fn bytes_may_arrive_one_by_one() {
    let server = server(Limits::default());
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut bytes = greeting();
    put_mkdirs(&mut bytes, 1);
    put_mkdirs(&mut bytes, 2);
    for byte in bytes.iter() {
        stream.write_all(&[*byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert_eq!(replies(&answer).len(), 2);
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_not_read_without_end() {
    let limits =
        Limits { reply_bytes_max: 2 << 20, write_deadline: Duration::from_millis(300), ..Limits::default() };
    let server = server(limits);
    let began = Instant::now();
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let mut bytes = greeting();
    for call_id in 0..200 {
        put_call(&mut bytes, call_id, CallHeader { method: "getListing", ..CLIENT_PROTOCOL }, &[]);
    }
    // 200 MiB of answers were asked for, and none is read: the server cuts the client off.
    let _ = stream.write_all(&bytes).await;
    let has_come = || server.shared.next_connection.load(Ordering::Relaxed) > 0;
    while !has_come() || server.connection_count() > 0 {
        assert!(began.elapsed() < Duration::from_secs(30), "it is still connected");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(began.elapsed() >= Duration::from_millis(300), "it had time to read");
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_come_as_they_are_made_and_many_calls_share_a_connection() {
    let server = server(Limits::default());
    let client = client(&server);
    let slow = {
        let client = client.clone();
        tokio::spawn(async move {
            let request = GetFileInfoRequestProto { src: "/a".into() };
            client.call::<_, GetFileInfoResponseProto>("getFileInfo", &request).await
        })
    };
    let tasks: Vec<_> = (0..100)
        .map(|index| {
            let client = client.clone();
            tokio::spawn(async move {
                client.call::<_, MkdirsResponseProto>("mkdirs", &mkdirs(&format!("/{index}"))).await
            })
        })
        .collect();
    for task in tasks {
        assert!(task.await.unwrap().unwrap().result);
    }
    slow.await.unwrap().unwrap();
    assert_eq!(client.last_state_id(), Some(77));
    assert_eq!(server.connection_count(), 1);
}

#[tokio::test]
async fn refusals_reach_the_caller_as_class_and_message() {
    let server = server(Limits::default());
    let client = client(&server);
    let request = DeleteRequestProto { src: "/a".into(), recursive: false };
    let error = client.call::<_, DeleteResponseProto>("delete", &request).await.unwrap_err();
    assert!(matches!(&error, CallError::Remote { class, .. } if class == "java.io.FileNotFoundException"));
    assert_eq!(FsError::from(error), FsError::NotFound("no ann".into()));

    // A call that the service forgot.
    let request = RenameRequestProto { src: "/a".into(), dst: "/b".into() };
    let error = client.call::<_, RenameResponseProto>("rename", &request).await.unwrap_err();
    assert_eq!(error.class(), Some("java.io.IOException"));
}

#[tokio::test]
async fn a_resolver_makes_the_caller_and_may_refuse() {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let config = ServerConfig {
        caller_resolver: Some(Arc::new(|user, _, _| match user {
            "eve" => Err(RpcError::fatal(ErrorCode::FatalUnauthorized, "a.B", "no")),
            user => Ok(Arc::new(base::Caller::simple(user, &["staff"]))),
        })),
        ..ServerConfig::new(address, Arc::new(NullService))
    };
    let server = Server::bind(config).unwrap();
    let call = async |user| {
        let client =
            Client::connect(server.local_addr(), protocol::CLIENT_NAMENODE, user, ClientOptions::default());
        client.call_encoded("mkdirs", b"").await
    };
    assert_eq!(call("ann").await.unwrap(), Bytes::new());
    assert_eq!(call("eve").await.unwrap_err().class(), Some("a.B"));
}

#[tokio::test]
async fn shutdown_closes_connections_and_the_port() {
    let server = server(Limits::default());
    let address = server.local_addr();
    let client = client(&server);
    let _: MkdirsResponseProto = client.call("mkdirs", &mkdirs("/a")).await.unwrap();
    server.shutdown().await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let error = client.call::<_, MkdirsResponseProto>("mkdirs", &mkdirs("/a")).await.unwrap_err();
    assert!(matches!(error, CallError::Connect(_)), "{error:?}");
    // The port is free for a successor.
    let config = ServerConfig::new(address, Arc::new(Pupil));
    let server = Server::bind(config).unwrap();
    let response: MkdirsResponseProto = client.call("mkdirs", &mkdirs("/a")).await.unwrap();
    assert!(response.result);
    drop(server);
}

/// Keeps every call, and tells the test.
struct Keeper(std::sync::mpsc::Sender<Replier>);

impl Service for Keeper {
    fn protocols(&self) -> &[(&'static str, u64)] {
        &[(protocol::CLIENT_NAMENODE, 1)]
    }

    fn call(&self, _: Call, reply: Replier) {
        let _ = self.0.send(reply);
    }
}

#[tokio::test]
async fn a_call_whose_client_has_left_is_known_as_abandoned() {
    let (sender, kept) = std::sync::mpsc::channel();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = Server::bind(ServerConfig::new(address, Arc::new(Keeper(sender)))).unwrap();
    let client = client(&server);
    let caller = client.clone();
    let call = tokio::spawn(async move {
        caller.call::<_, MkdirsResponseProto>("mkdirs", &mkdirs("/a")).await.map(|answer| answer.result)
    });
    let reply = loop {
        match kept.try_recv() {
            Ok(reply) => break reply,
            Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    };
    assert!(!reply.is_abandoned());
    call.abort();
    let _ = call.await;
    client.disconnect();
    let began = Instant::now();
    while !reply.is_abandoned() {
        assert!(began.elapsed() < Duration::from_secs(10), "the client's end was not noticed");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A stock client takes an `IOException` for the answer, and a connection that is closed for a reason to ask again.
#[tokio::test]
async fn what_a_server_on_its_way_out_lets_go_of_is_not_refused() {
    let (sender, kept) = std::sync::mpsc::channel();
    let any = "127.0.0.1:0".parse().unwrap();
    let server = Server::bind(ServerConfig::new(any, Arc::new(Keeper(sender)))).unwrap();
    let client = client(&server);
    let call =
        tokio::spawn(async move { client.call::<_, MkdirsResponseProto>("mkdirs", &mkdirs("/a")).await });
    let reply = loop {
        match kept.try_recv() {
            Ok(reply) => break reply,
            Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    };
    // Before the connection's own task hears of it: there is one thread.
    drop(server);
    drop(reply);
    let error = call.await.unwrap().unwrap_err();
    assert!(error.class().is_none(), "it was answered: {error:?}");
}

#[test]
fn a_captured_answer_is_given_once_in_every_way() {
    let answer = |act: fn(Replier)| {
        let (sender, receiver) = std::sync::mpsc::channel();
        act(Replier::captured(move |answer| sender.send(answer).unwrap()));
        let answer = receiver.recv().unwrap();
        assert!(receiver.recv().is_err(), "answered twice");
        answer
    };
    let done = answer(|mut reply| {
        reply.set_state_id(7);
        reply.ok(&MkdirsResponseProto { result: true });
    });
    assert_eq!(done.result.unwrap(), MkdirsResponseProto { result: true }.encode_to_vec());
    assert_eq!(done.state_id, Some(7));
    let refused = answer(|reply| reply.fs_error(&FsError::NotFound("/a".into()))).result.unwrap_err();
    assert!(
        matches!(&refused, NoResponse::Refused(error) if error.class == "java.io.FileNotFoundException"),
        "{refused:?}"
    );
    let dropped = answer(drop).result.unwrap_err();
    assert!(matches!(dropped, NoResponse::GivenUp), "{dropped:?}");
}

/// A process with few descriptors: so many are for connections.
fn short_of_descriptors(limits: Limits) -> (Server, usize) {
    let descriptors = Arc::new(env::Descriptors::new(20));
    let most = descriptors.connections_max();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let config = ServerConfig { limits, descriptors, ..ServerConfig::new(address, Arc::new(Pupil)) };
    (Server::bind(config).unwrap(), most)
}

#[tokio::test]
async fn connections_never_take_the_descriptors_that_are_kept_back() {
    let (server, most) = short_of_descriptors(Limits::default());
    let descriptors = Arc::clone(&server.shared.descriptors);
    let mut clients = Vec::new();
    for _ in 0..most {
        let client = client(&server);
        let _: MkdirsResponseProto = client.call("mkdirs", &mkdirs("/a")).await.unwrap();
        clients.push(client);
    }
    assert_eq!(descriptors.taken(), most);
    for refused in 1..=50 {
        let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
        assert!(!matches!(stream.read(&mut [0; 1]).await, Ok(count) if count > 0));
        assert_eq!((descriptors.taken(), descriptors.refused()), (most, refused));
    }
    // Connections that exist are served all the time, and a connection that ends makes room.
    let _: MkdirsResponseProto = clients[0].call("mkdirs", &mkdirs("/a")).await.unwrap();
    clients.pop().unwrap().disconnect();
    while descriptors.taken() == most {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let _: MkdirsResponseProto = client(&server).call("mkdirs", &mkdirs("/a")).await.unwrap();
}

#[tokio::test]
async fn strangers_that_say_nothing_make_room_when_descriptors_are_short() {
    let (server, most) = short_of_descriptors(Limits::default());
    let mut silent = Vec::new();
    for _ in 0..most {
        silent.push(TcpStream::connect(server.local_addr()).await.unwrap());
    }
    let began = Instant::now();
    let client = client(&server);
    while client.call::<_, MkdirsResponseProto>("mkdirs", &mkdirs("/a")).await.is_err() {
        // Their set-up may take half a minute where there is room.
        assert!(began.elapsed() < Duration::from_secs(15), "they keep everybody out");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A service may hold a look at its own server. Even so the service is dropped with the server: a store is locked for
/// as long as it lives.
#[tokio::test]
async fn a_look_at_a_server_does_not_keep_what_it_serves() {
    let service = Arc::new(Pupil);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = Server::bind(ServerConfig::new(address, service.clone())).unwrap();
    let load = server.load();
    let client = client(&server);
    let _: MkdirsResponseProto = client.call("mkdirs", &mkdirs("/a")).await.unwrap();
    assert_eq!((load.connections(), load.request_bytes(), load.unread_bytes()), (1, 0, 0));
    server.shutdown().await;
    drop(client);
    while Arc::strong_count(&service) > 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(load.connections(), 0);
}

#[tokio::test]
async fn calls_are_counted_and_timed_by_method_and_user() {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let config = ServerConfig::new(address, Arc::new(Pupil));
    let calls = config.calls.clone();
    let server = Server::bind(config).unwrap();
    let client = client(&server);
    for _ in 0..3 {
        client.call::<_, MkdirsResponseProto>("mkdirs", &mkdirs("/a")).await.unwrap();
    }
    let stat = GetFileInfoRequestProto { src: "/a".into() };
    client.call::<_, GetFileInfoResponseProto>("getFileInfo", &stat).await.unwrap();
    let delete = DeleteRequestProto { src: "/a".into(), recursive: true };
    client.call::<_, DeleteResponseProto>("delete", &delete).await.unwrap_err();

    let methods = calls.methods();
    let seen: Vec<_> = methods.iter().map(|of| (of.method, of.stages[2].count(), of.refused)).collect();
    assert_eq!(seen, [("delete", 1, 1), ("getFileInfo", 1, 0), ("mkdirs", 3, 0)]);
    // A task answers it after 20 ms.
    assert!(methods[1].stages[1].sum_ns >= 20_000_000, "{methods:?}");
    let now = env::Clock::moment(&env::SystemClock);
    let top: Vec<_> =
        calls.top_users(300, now, 1).into_iter().map(|top| (top.user, top.method, top.calls)).collect();
    assert_eq!(top, [("ann".to_owned(), "mkdirs", 3)]);
}
