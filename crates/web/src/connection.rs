//! The connections of a server: how many there may be, and what one of them may cost.

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::{Instant, Sleep},
};

/// Connections of a server that has no more than a server's own pages: programs that watch it are a handful. Further ones
/// wait to be accepted.
pub const CONNECTIONS_MAX: usize = 32;

/// A connection on which nothing comes and nothing goes for so long is closed, for another may wait.
const IDLE: Duration = Duration::from_secs(60);
/// The time from the first byte of a request, or the end of the one before, to the end of its headers.
const HEADERS_DEADLINE: Duration = Duration::from_secs(30);
/// The request line and all headers together. A path of HDFS has 8,000 characters at most, each of which may take nine bytes.
const HEADER_BYTES_MAX: usize = 96 << 10;
/// More lines of headers are refused.
const HEADERS_MAX: usize = 100;
/// The pause after an accept that failed because something ran out.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// The address of the client that sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// Accepts connections for ever; they end when this future is dropped.
pub(crate) async fn serve(listener: TcpListener, router: Router, count_max: usize) {
    let free = Arc::new(Semaphore::new(count_max));
    let mut tasks = JoinSet::new();
    loop {
        // It is never closed.
        let Ok(permit) = Arc::clone(&free).acquire_owned().await else { return };
        while tasks.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, from)) => {
                // A body that is streamed goes out piece by piece.
                let _ = stream.set_nodelay(true);
                tasks.spawn(serve_one(Connection::new(stream, permit), from, router.clone()));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "an HTTP connection was not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve_one(connection: Connection, from: SocketAddr, router: Router) {
    let service = TowerToHyperService::new(router.layer(Extension(Peer(from))));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_DEADLINE)
        .max_buf_size(HEADER_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(connection), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%from, %error, "an HTTP connection ended");
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// A socket that fails when it has been idle for too long, and that holds one of the server's places.
struct Connection {
    stream: TcpStream,
    idle: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    fn new(stream: TcpStream, permit: OwnedSemaphorePermit) -> Self {
        Self { stream, idle: Box::pin(tokio::time::sleep(IDLE)), _permit: permit }
    }

    fn moved(&mut self) {
        self.idle.as_mut().reset(Instant::now() + IDLE);
    }

    fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        ready!(self.idle.as_mut().poll(context));
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "nothing came or went for a minute"))
    }
}

impl AsyncRead for Connection {
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

impl AsyncWrite for Connection {
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

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
