//! How much memory requests take, counted at the allocator.
//!
//! The file stands alone so that it has a process to itself.

use base::ClientId;
use bytes::BytesMut;
use proto::{
    protocol,
    rpc_frame::{
        AuthProtocol, CallHeader, Status, parse_reply, put_connection_context, put_preamble, put_request,
    },
    wire::Cursor,
};
use rpc::{Call, Limits, Replier, Server, ServerConfig, Service};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Mutex,
};

struct Counted;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed to the system's allocator as it is; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
        // SAFETY: the caller's promises are the system's conditions.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

const MIB: usize = 1 << 20;

/// Nothing is answered while it is set.
static HOLD: AtomicBool = AtomicBool::new(false);

/// The calls that came while nothing was answered.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Answers by and by, so that requests wait.
struct Slow;

impl Service for Slow {
    fn protocols(&self) -> &[(&'static str, u64)] {
        &[(protocol::CLIENT_NAMENODE, 1)]
    }

    fn call(&self, call: Call, reply: Replier) {
        if HOLD.load(Relaxed) {
            HELD.fetch_add(1, Relaxed);
        }
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            while HOLD.load(Relaxed) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            drop(call);
            reply.ok_encoded(0, |_| {});
        });
    }
}

fn server(limits: Limits) -> Server {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Server::bind(ServerConfig { limits, ..ServerConfig::new(address, Arc::new(Slow)) }).unwrap()
}

/// The bytes that set up a connection, and a call of `bytes` bytes behind them.
fn long_call(bytes: usize) -> BytesMut {
    let client_id = ClientId([7; 16]);
    let mut out = BytesMut::new();
    put_preamble(&mut out, AuthProtocol::None);
    put_connection_context(&mut out, client_id, "ann", None, protocol::CLIENT_NAMENODE);
    let header = CallHeader { method: "mkdirs", protocol: protocol::CLIENT_NAMENODE, version: 1 };
    put_request(&mut out, 0, client_id, 0, None, header, bytes, |out| out.resize(out.len() + bytes, 0));
    out
}

async fn answer(stream: &mut TcpStream) -> Vec<u8> {
    let length = stream.read_u32().await.unwrap() as usize;
    let mut frame = vec![0; length];
    stream.read_exact(&mut frame).await.unwrap();
    frame
}

/// The tests count the process's memory.
static ALONE: Mutex<()> = Mutex::const_new(());

#[tokio::test(flavor = "multi_thread")]
async fn long_requests_on_many_connections_take_turns_and_are_all_answered() {
    let _alone = ALONE.lock().await;
    const CONNECTIONS: usize = 40;
    const REQUEST: usize = 4 * MIB;
    let limits = Limits { frame_bytes_max: 5 * MIB, request_bytes_max: 16 * MIB, ..Limits::default() };
    let server = server(limits);
    let call = Arc::new(long_call(REQUEST));
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let clients = (0..CONNECTIONS).map(|_| {
        let (call, address) = (Arc::clone(&call), server.local_addr());
        tokio::spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(&call).await.unwrap();
            let frame = answer(&mut stream).await;
            assert_eq!(parse_reply(&mut Cursor::new(&frame)).unwrap().status, Status::Success);
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    let peak = PEAK.load(Relaxed) - before;
    // The room, a short chunk for each connection, and what tasks and sockets take.
    let allowed = 16 * MIB + CONNECTIONS * (64 << 10) + 2 * MIB;
    assert!(peak <= allowed, "{peak} bytes at the peak, {allowed} are allowed");
    assert!(peak >= 2 * REQUEST, "{peak} bytes: nothing was served at the same time");
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_has_not_said_who_calls_gets_no_long_frame() {
    let _alone = ALONE.lock().await;
    let server = server(Limits::default());
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let mut streams = Vec::new();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
        let mut bytes = BytesMut::new();
        put_preamble(&mut bytes, AuthProtocol::None);
        bytes.extend_from_slice(&(8 * MIB as u32).to_be_bytes());
        stream.write_all(&bytes).await.unwrap();
        streams.push(stream);
    }
    for stream in &mut streams {
        let frame = answer(stream).await;
        let header = parse_reply(&mut Cursor::new(&frame)).unwrap();
        let message = header.message.unwrap();
        assert_eq!(header.status, Status::Fatal);
        assert!(
            message.contains("65536") && message.ends_with("for the set-up of a connection"),
            "{message}"
        );
    }
    let peak = PEAK.load(Relaxed) - before;
    assert!(peak < 4 * MIB, "{peak} bytes for connections that have said nothing yet");
    drop(server);
}

/// Room for one long request.
fn narrow(frame_deadline: Duration) -> Limits {
    Limits { frame_bytes_max: MIB, request_bytes_max: MIB, frame_deadline, ..Limits::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_request_for_which_there_is_no_room_is_told_to_come_again() {
    let _alone = ALONE.lock().await;
    let server = server(narrow(Duration::from_millis(300)));
    let call = long_call(MIB * 3 / 4);
    // It is answered after so long.
    HOLD.store(true, Relaxed);
    let mut holder = TcpStream::connect(server.local_addr()).await.unwrap();
    holder.write_all(&call).await.unwrap();
    // A socket takes the bytes before the server has read them. The room goes to the connection that is read first.
    while HELD.load(Relaxed) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    let (mut read, mut write) = stream.split();
    let _ = tokio::join!(write.write_all(&call), async {
        let length = read.read_u32().await.unwrap() as usize;
        let mut frame = vec![0; length];
        read.read_exact(&mut frame).await.unwrap();
        let header = parse_reply(&mut Cursor::new(&frame)).unwrap();
        assert_eq!(header.status, Status::Fatal);
        assert_eq!(header.exception, Some("org.apache.hadoop.ipc.RetriableException"));
        assert!(header.message.unwrap().contains("try again in a moment"));
    });
    HOLD.store(false, Relaxed);
    answer(&mut holder).await;
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_a_long_request_slowly_does_not_keep_the_room_from_others() {
    let _alone = ALONE.lock().await;
    let server = server(narrow(Duration::from_millis(2_000)));
    let call = long_call(MIB * 3 / 4);
    let mut slow = TcpStream::connect(server.local_addr()).await.unwrap();
    let (beginning, rest) = call.split_at(call.len() - 4_000);
    slow.write_all(beginning).await.unwrap();
    let rest = rest.to_vec();
    let dribbling = tokio::spawn(async move {
        for byte in rest {
            if slow.write_all(&[byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    // Its frame's time is nearly over by what is asked where others wait; alone it had a second more for each 64 KiB.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    stream.write_all(&call).await.unwrap();
    let frame = answer(&mut stream).await;
    assert_eq!(parse_reply(&mut Cursor::new(&frame)).unwrap().status, Status::Success);
    dribbling.abort();
    drop(server);
}
