//! `/imagetransfer`: a NameNode's image, as `hdfs dfsadmin -fetchImage` asks for it.
//!
//! Questions, headers and refusals are those of a Hadoop 3.5.0. Like there, as long as clients are not authenticated, everyone who reaches the port
//! may ask.

use crate::{
    body::{Sender, pieces},
    parameters::Parameters,
};
use axum::{
    Router,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::get,
};
use data_encoding::HEXLOWER;
use hyper::body::Bytes;
use std::{io, sync::Arc, time::Duration};
use tokio::{runtime::Handle, task::spawn_blocking, time::Instant};

/// The image that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Latest,
    /// The image that contains all edits up to this number, and no others.
    Transaction(u64),
}

/// The reason why no image is given out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// This server never has the image that was asked for.
    #[error("{0}")]
    NotHere(String),
    /// Something went wrong.
    #[error("{0}")]
    NotNow(String),
    /// Another client is being served.
    #[error("{0}")]
    Busy(String),
}

/// Writes the bytes of an image.
pub type Write = Box<dyn FnOnce(&mut dyn io::Write) -> io::Result<()> + Send>;

/// An image to be sent.
pub struct Image {
    /// The name of the file that a client makes of it.
    pub name: String,
    /// In bytes; `write` writes as many.
    pub length: u64,
    pub md5: [u8; 16],
    pub write: Write,
}

/// Makes images. It is called on a thread that may wait.
pub type ImageSource = Arc<dyn Fn(Asked) -> Result<Image, Refused> + Send + Sync>;

/// Hadoop's headers beside those of HTTP.
const MD5: HeaderName = HeaderName::from_static("x-md5-digest");
const NAME: HeaderName = HeaderName::from_static("x-image-edits-name");

/// How fast a client has to be. An image holds the memory of its moment while it is sent, and no other one is made meanwhile.
#[derive(Clone, Copy)]
struct Pace {
    /// A client may be behind for so long, at any time.
    patience: Duration,
    bytes_a_second_min: u64,
}

const PACE: Pace = Pace { patience: Duration::from_secs(60), bytes_a_second_min: 1 << 20 };

/// The page `/imagetransfer`.
pub fn image_transfer(source: ImageSource) -> Router {
    at_pace(source, PACE)
}

fn at_pace(source: ImageSource, pace: Pace) -> Router {
    Router::new().route("/imagetransfer", get(show)).with_state((source, pace))
}

/// The image that the parameters name.
fn asked(parameters: &Parameters) -> Result<Asked, Refused> {
    let refused = |what: &str| Err(Refused::NotHere(what.to_owned()));
    if parameters.get("getimage").is_none() {
        return refused(
            "Only images can be fetched here (getimage=1): edits and alias maps are in no format of Hadoop's.",
        );
    }
    match parameters.get("txid") {
        Some("latest") => Ok(Asked::Latest),
        Some(number) => match number.parse() {
            Ok(number) => Ok(Asked::Transaction(number)),
            Err(_) => refused("txid is a number or `latest`."),
        },
        None => refused("txid is missing: a number or `latest`."),
    }
}

async fn show(State((source, pace)): State<(ImageSource, Pace)>, uri: Uri) -> Response {
    let parameters = match Parameters::of(&uri) {
        Ok(parameters) => parameters,
        Err(refusal) => return refusal.into_response(),
    };
    let made = match asked(&parameters) {
        Err(refused) => Err(refused),
        Ok(asked) => spawn_blocking(move || source(asked)).await.unwrap_or_else(|error| {
            tracing::error!(%error, "making an image failed");
            Err(Refused::NotNow("The image could not be made.".into()))
        }),
    };
    match made {
        Ok(image) => send(image, pace),
        Err(refused) => {
            let status = match refused {
                Refused::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
                // Hadoop's word for all that went wrong.
                Refused::NotHere(_) | Refused::NotNow(_) => StatusCode::GONE,
            };
            (status, format!("GetImage failed. {refused}\n")).into_response()
        }
    }
}

fn send(image: Image, pace: Pace) -> Response {
    let Image { name, length, md5, write } = image;
    let digest = HEXLOWER.encode(&md5);
    let mut headers = HeaderMap::new();
    let texts = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, length.to_string()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename={name}")),
        (NAME, name.clone()),
        (MD5, digest),
    ];
    for (header, text) in texts {
        // A name of a file and numbers.
        let Ok(value) = HeaderValue::from_str(&text) else { continue };
        headers.insert(header, value);
    }
    // If the pieces end early the connection is cut, so that the client sees that it has not got the whole.
    let (sender, body) = pieces(Some(length));
    let mut sink =
        Sink { sender, runtime: Handle::current(), pace, begun: Instant::now(), sent: 0, held: Bytes::new() };
    // What the source holds for this image is given back before the client has all of it, and asks for another one.
    spawn_blocking(move || match write(&mut sink).and_then(|()| sink.send_held()) {
        Ok(()) => {
            sink.sender.end();
            tracing::info!(name, length, "an image was sent");
        }
        Err(error) => tracing::warn!(name, %error, "an image was not sent to its end"),
    });
    (headers, body).into_response()
}

/// Hands pieces to the connection, and waits for it.
struct Sink {
    sender: Sender,
    runtime: Handle,
    pace: Pace,
    begun: Instant,
    /// Bytes that the connection has taken.
    sent: u64,
    /// The last piece that was written. It is sent when the next one comes, or when there is none.
    held: Bytes,
}

impl Sink {
    fn send_held(&mut self) -> io::Result<()> {
        let piece = std::mem::take(&mut self.held);
        if piece.is_empty() {
            return Ok(());
        }
        let count = piece.len() as u64;
        let due = Duration::from_secs_f64(self.sent as f64 / self.pace.bytes_a_second_min as f64);
        let until = self.begun + self.pace.patience + due;
        let sent = self.sender.send(piece);
        // A piece that is taken at once is taken in time, however long it took to make.
        match self.runtime.block_on(tokio::time::timeout_at(until, sent)) {
            Ok(true) => {
                self.sent += count;
                Ok(())
            }
            Ok(false) => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the client is gone")),
            Err(_) => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes less than 1 MiB a second"))
            }
        }
    }
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send_held()?;
        self.held = Bytes::copy_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Health, HealthSource, Pages, Web};
    use prometheus_client::registry::Registry;
    use std::{
        net::SocketAddr,
        sync::atomic::{AtomicBool, Ordering},
    };
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };

    /// An image of so many bytes, of which only some are written.
    fn image(length: u64, written: u64) -> Image {
        let write: Write = Box::new(move |sink| {
            let mut left = written;
            while left > 0 {
                let piece = left.min(100_000);
                sink.write_all(&vec![7; piece as usize])?;
                left -= piece;
            }
            Ok(())
        });
        Image { name: "fsimage_0000000000000000042".into(), length, md5: [0xab; 16], write }
    }

    async fn serve(make: impl Fn(Asked) -> Result<Image, Refused> + Send + Sync + 'static) -> Web {
        let health: HealthSource = Arc::new(|| Health { ok: true, ..Health::default() });
        let pages = Pages { router: image_transfer(Arc::new(make)), ..Pages::default() };
        let address = "127.0.0.1:0".parse().unwrap();
        Web::bind_with(address, Arc::new(Registry::default()), health, pages).await.unwrap()
    }

    async fn ask(address: SocketAddr, query: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request =
            format!("GET /imagetransfer?{query} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // A connection that is cut may be an error here.
        let _ = stream.read_to_end(&mut answer).await;
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
        let body = answer.split_off(end);
        (String::from_utf8(answer).unwrap().to_ascii_lowercase(), body)
    }

    #[tokio::test]
    async fn an_image_comes_with_its_name_its_length_and_its_digest() {
        let web = serve(|asked| match asked {
            Asked::Latest => Ok(image(1_000_000, 1_000_000)),
            Asked::Transaction(_) => Ok(image(3, 3)),
        })
        .await;
        let (head, body) = ask(web.local_addr(), "getimage=1&txid=latest").await;
        for line in [
            "http/1.1 200",
            "content-length: 1000000",
            "content-disposition: attachment; filename=fsimage_0000000000000000042",
            "x-image-edits-name: fsimage_0000000000000000042",
            "x-md5-digest: abababababababababababababababab",
        ] {
            assert!(head.contains(line), "{line}: {head}");
        }
        assert!(body.len() == 1_000_000 && body.iter().all(|byte| *byte == 7));
        let (_, body) = ask(web.local_addr(), "getimage=1&txid=77&storageInfo=-67:1:0:CID").await;
        assert_eq!(body, [7; 3]);
        web.shutdown().await;
    }

    #[tokio::test]
    async fn a_client_sees_that_an_image_is_not_whole() {
        let web = serve(|_| Ok(image(1_000_000, 500_000))).await;
        let (head, body) = ask(web.local_addr(), "getimage=1&txid=latest").await;
        assert!(head.contains("content-length: 1000000") && body.len() <= 500_000, "{head}");
        web.shutdown().await;
    }

    /// It may ask for another image at once, and the source makes one at a time.
    #[tokio::test]
    async fn the_source_is_done_with_an_image_before_the_client_has_all_of_it() {
        let is_done = Arc::new(AtomicBool::new(false));
        let done = is_done.clone();
        let source = move |_| {
            let done = done.clone();
            let write: Write = Box::new(move |sink| {
                sink.write_all(&[7; 1_000])?;
                std::thread::sleep(Duration::from_millis(100));
                done.store(true, Ordering::SeqCst);
                Ok(())
            });
            Ok(Image { name: "fsimage".into(), length: 1_000, md5: [0; 16], write })
        };
        let web = serve(source).await;
        let mut stream = TcpStream::connect(web.local_addr()).await.unwrap();
        let request = b"GET /imagetransfer?getimage=1&txid=latest HTTP/1.1\r\nHost: here\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(&[7; 1_000]) {
            assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0);
        }
        assert!(is_done.load(Ordering::SeqCst));
        web.shutdown().await;
    }

    /// One that takes nothing would be cut by its connection after a minute; one that takes a byte now and then would not.
    #[tokio::test]
    async fn a_client_that_is_slow_holds_an_image_for_a_moment_only() {
        let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let source: ImageSource = Arc::new(move |_| {
            let told = told.clone();
            let write: Write = Box::new(move |sink| {
                let piece = vec![7; 100_000];
                let error = loop {
                    if let Err(error) = sink.write_all(&piece) {
                        break error;
                    }
                };
                let _ = told.send(error.kind());
                Err(error)
            });
            // By the length alone the client would have days.
            Ok(Image { name: "fsimage".into(), length: 1 << 40, md5: [0; 16], write })
        });
        let pace = Pace { patience: Duration::from_millis(200), bytes_a_second_min: 1 << 40 };
        let pages = Pages { router: at_pace(source, pace), ..Pages::default() };
        let health: HealthSource = Arc::new(|| Health { ok: true, ..Health::default() });
        let address = "127.0.0.1:0".parse().unwrap();
        let web = Web::bind_with(address, Arc::new(Registry::default()), health, pages).await.unwrap();
        let mut slow = TcpStream::connect(web.local_addr()).await.unwrap();
        slow.write_all(b"GET /imagetransfer?getimage=1&txid=latest HTTP/1.1\r\nHost: here\r\n\r\n")
            .await
            .unwrap();
        let trickle = async {
            loop {
                let _ = slow.read_u8().await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let ended = tokio::select! {
            ended = heard.recv() => ended,
            () = trickle => None,
        };
        assert_eq!(ended, Some(io::ErrorKind::TimedOut));
        web.shutdown().await;
    }

    #[tokio::test]
    async fn refusals_have_hadoops_status_and_a_sentence() {
        let web = serve(|asked| match asked {
            Asked::Latest => Err(Refused::Busy("Later.".into())),
            Asked::Transaction(number) => Err(Refused::NotHere(format!("No {number}."))),
        })
        .await;
        for (query, status, words) in [
            ("getimage=1&txid=latest", "503", "GetImage failed. Later."),
            ("getimage=1&txid=18446744073709551615", "410", "GetImage failed. No 18446744073709551615."),
            ("getimage=1&txid=-1", "410", "txid is a number"),
            ("getimage=1", "410", "txid is missing"),
            ("getedit=1&startTxId=1&endTxId=2", "410", "Only images"),
        ] {
            let (head, body) = ask(web.local_addr(), query).await;
            let body = String::from_utf8(body).unwrap();
            assert!(head.starts_with(&format!("http/1.1 {status}")), "{query}: {head}");
            assert!(body.contains(words), "{query}: {body}");
        }
        web.shutdown().await;
    }
}
