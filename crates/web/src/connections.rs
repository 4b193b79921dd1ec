//! The connections of a server: how many there may be, and what one of them may cost.

use crate::{
    connection::Connection,
    pace::{Arriving, Leaving, PIECE_BYTES},
    places::{Place, Places},
};
use axum::{
    Extension, Router,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use socket2::SockRef;
use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{Instant, Sleep},
};

/// Connections of a server that has no more than a server's own pages: programs that watch it are a handful. Further ones
/// wait for a place.
pub const CONNECTIONS_MAX: usize = 32;

/// A connection on which nothing comes and nothing goes for so long is closed, for another may wait.
const IDLE: Duration = Duration::from_secs(60);
/// The time from the first byte of a request, or the end of the one before, to the end of its headers.
const HEADERS_DEADLINE: Duration = Duration::from_secs(30);
/// The request line and all headers together. A path of HDFS has 8,000 characters at most, each of which may take nine bytes.
const HEADER_BYTES_MAX: usize = 96 << 10;
/// More lines of headers are refused.
const HEADERS_MAX: usize = 100;
/// The system takes no more of an answer while it has so many bytes of it that have not gone. Otherwise it takes megabytes, and then nothing until a third
/// of them have gone: for seconds a client on a slow line would look like one that takes nothing. It says again that it takes more when half have gone.
const UNSENT_BYTES_MAX: u32 = 2 * PIECE_BYTES as u32;
/// The pause after an accept that failed because something ran out.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// The address of the client that sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// Accepts connections for ever; they end when this future is dropped.
pub(crate) async fn serve(listener: TcpListener, router: Router, count_max: usize) {
    let mut places = Places::new(count_max);
    let mut tasks = JoinSet::new();
    loop {
        let (stream, from) = accept(&listener).await;
        let place = places.take().await;
        while tasks.try_join_next().is_some() {}
        tasks.spawn(serve_one(stream, from, place, router.clone()));
    }
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                // A body that is streamed goes out piece by piece.
                let _ = stream.set_nodelay(true);
                let _ = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX);
                return (stream, from);
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "an HTTP connection was not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve_one(stream: TcpStream, from: SocketAddr, place: Place, router: Router) {
    let router = router.layer(Extension(Peer(from))).layer(Extension(place.connection.clone()));
    // The last layer is the first to see a request.
    let router = router.layer(middleware::from_fn_with_state(place.connection.clone(), answer));
    let socket = Socket::new(stream, place.connection.clone());
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_DEADLINE)
        .max_buf_size(HEADER_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(socket), TowerToHyperService::new(router));
    tokio::select! {
        served = served => {
            if let Err(error) = served {
                tracing::debug!(%from, %error, "an HTTP connection ended");
            }
        }
        () = place.connection.until_told() => {
            tracing::debug!(%from, "an HTTP connection that made others wait gave its place up");
        }
    }
}

/// While a request is answered, its connection keeps its place, unless the server waits for the client.
async fn answer(State(connection): State<Connection>, request: Request, next: Next) -> Response {
    if !connection.begin() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let mut answer = next.run(request.map(|body| Arriving::wrap(body, &connection))).await;
    if connection.has_had_its_turn() {
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    answer.map(|body| Leaving::wrap(body, &connection))
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// A socket that fails when it has been idle for too long, and says when all has gone.
struct Socket {
    stream: TcpStream,
    idle: Pin<Box<Sleep>>,
    connection: Connection,
}

impl Socket {
    fn new(stream: TcpStream, connection: Connection) -> Self {
        Self { stream, idle: Box::pin(tokio::time::sleep(IDLE)), connection }
    }

    fn moved(&mut self) {
        self.idle.as_mut().reset(Instant::now() + IDLE);
    }

    fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        ready!(self.idle.as_mut().poll(context));
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "nothing came or went for a minute"))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(context, buffer) {
            self.moved();
            return Poll::Ready(read);
        }
        self.poll_idle(context).map(Err)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = Pin::new(&mut self.stream).poll_write(context, bytes) {
            self.moved();
            return Poll::Ready(written);
        }
        self.poll_idle(context).map(Err)
    }

    /// It is called when nothing is left that has not been written.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection.sent();
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
