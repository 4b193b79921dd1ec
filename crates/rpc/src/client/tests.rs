//! A client against servers that misbehave.

use crate::{CallError, Client, ClientOptions};
use base::FsError;
use bytes::BytesMut;
use proto::{
    protocol,
    rpc_frame::{ErrorCode, ReplyTo, Status, put_error, put_success},
};
use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// A server that takes one connection at a time, waits for some bytes, answers `answer` and closes.
async fn server(answer: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut scratch = [0; 4096];
            let _ = stream.read(&mut scratch).await;
            let _ = stream.write_all(&answer).await;
        }
    });
    address
}

fn client(address: SocketAddr) -> Client {
    let options = ClientOptions { call_timeout: Duration::from_millis(300), ..ClientOptions::default() };
    Client::connect(address, protocol::CLIENT_NAMENODE, "ann", options)
}

async fn call(answer: &[u8]) -> Result<bytes::Bytes, CallError> {
    client(server(answer.to_vec()).await).call_encoded("mkdirs", b"").await
}

fn to(call_id: i32) -> ReplyTo {
    ReplyTo { call_id, client_id: None, retry_count: 0, state_id: None }
}

#[tokio::test]
async fn an_unreachable_server_had_no_call() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = client(address).call_encoded("mkdirs", b"").await.unwrap_err();
    assert!(error.was_not_executed(), "{error:?}");
}

#[tokio::test]
async fn a_connection_that_breaks_leaves_the_call_in_doubt_and_is_made_anew() {
    let client = client(server(Vec::new()).await);
    for _ in 0..3 {
        let error = client.call_encoded("mkdirs", b"").await.unwrap_err();
        assert!(matches!(error, CallError::Io(_)), "{error:?}");
    }
}

#[tokio::test]
async fn silence_ends_in_a_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let error = client(listener.local_addr().unwrap()).call_encoded("mkdirs", b"").await.unwrap_err();
    assert!(matches!(error, CallError::Timeout { ms: 300 }), "{error:?}");
}

#[tokio::test]
async fn nonsense_breaks_the_connection_and_nothing_else() {
    for nonsense in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], &[0; 64], &[0xff; 64], &[0, 0, 0, 2, 1, 8]] {
        let error = call(nonsense).await.unwrap_err();
        assert!(matches!(error, CallError::Io(_)), "{error:?}");
    }
}

#[tokio::test]
async fn a_fatal_reply_answers_all_calls() {
    let mut answer = BytesMut::new();
    put_error(
        &mut answer,
        to(-1),
        Status::Fatal,
        ErrorCode::FatalUnauthorized,
        "a.B",
        "no\n\tat x.y(Z.java:1)",
    );
    let error = call(&answer).await.unwrap_err();
    assert_eq!(FsError::from(error), FsError::Io("a.B: no".into()));
}

#[tokio::test]
async fn replies_to_calls_that_nobody_made_are_passed_over() {
    let mut answer = BytesMut::new();
    put_success(&mut answer, to(99), 3, |out| out.extend_from_slice(b"abc"));
    put_success(&mut answer, to(0), 2, |out| out.extend_from_slice(b"de"));
    assert_eq!(call(&answer).await.unwrap(), &b"de"[..]);
}
