//! The connections of a server: how many there may be, and what one of them may cost.

use crate::places::{Patience, Place, Places};
use axum::{
    Extension, Router,
    body::{Body, HttpBody},
    extract::{Request, State},
    http::StatusCode,
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use hyper::{
    body::{Bytes, Frame, SizeHint},
    server::conn::http1,
};
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
/// The pause after an accept that failed because something ran out.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// The address of the client that sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// Accepts connections for ever; they end when this future is dropped.
pub(crate) async fn serve(listener: TcpListener, router: Router, count_max: usize) {
    let (places, mut patience) = (Places::new(count_max), Patience::default());
    let mut tasks = JoinSet::new();
    for number in 0.. {
        let (stream, from) = accept(&listener).await;
        let place = places.take(number, &mut patience).await;
        while tasks.try_join_next().is_some() {}
        tasks.spawn(serve_one(stream, from, Arc::new(place), router.clone()));
    }
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                // A body that is streamed goes out piece by piece.
                let _ = stream.set_nodelay(true);
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

async fn serve_one(stream: TcpStream, from: SocketAddr, place: Arc<Place>, router: Router) {
    let router = router.layer(Extension(Peer(from)));
    // The last layer is the first to see a request.
    let router = router.layer(middleware::from_fn_with_state(place.clone(), answer));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_DEADLINE)
        .max_buf_size(HEADER_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(Connection::new(stream)), TowerToHyperService::new(router));
    tokio::select! {
        served = served => {
            if let Err(error) = served {
                tracing::debug!(%from, %error, "an HTTP connection ended");
            }
        }
        () = place.until_cut() => tracing::debug!(%from, "an HTTP connection without a request gave its place up"),
    }
}

/// While a request is answered, its connection keeps its place.
async fn answer(State(place): State<Arc<Place>>, request: Request, next: Next) -> Response {
    if !place.begin() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let answering = Answering(place);
    next.run(request).await.map(|body| Body::new(Answer { body, _answering: answering }))
}

/// A request is being answered until this is dropped.
struct Answering(Arc<Place>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.rest();
    }
}

/// The body of an answer. It is dropped when all of it has gone.
struct Answer {
    body: Body,
    _answering: Answering,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// A socket that fails when it has been idle for too long.
struct Connection {
    stream: TcpStream,
    idle: Pin<Box<Sleep>>,
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        Self { stream, idle: Box::pin(tokio::time::sleep(IDLE)) }
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
