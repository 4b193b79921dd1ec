//! Moves the bytes of files between HTTP and data servers.

use crate::{
    answers::blocks,
    body,
    error::{Refusal, Result},
    operation::{Create, Transfer},
};
use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use bytes::Bytes;
use client::{CreateOptions, FileReader, FileSystem, FileWriter};
use proto::hdfs::ChecksumTypeProto;
use web::Permit;

/// The most that is taken from a reader at once.
const PIECE_BYTES: usize = 64 << 10;

const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// Carries a transfer out. `place` is held until it has ended.
///
/// # Errors
/// The file system refuses, the file's bytes are not to be had, or the body ends before its end.
pub async fn carry_out(
    fs: FileSystem,
    path: String,
    transfer: Transfer,
    body: Body,
    place: Permit,
) -> Result<Response> {
    match transfer {
        Transfer::Open { offset, length } => open(fs, path, offset, length, place).await,
        Transfer::Checksum => checksum(&fs, &path).await,
        Transfer::Create(create) => {
            let location = format!("{}{path}", fs.uri());
            let options = options(*create);
            write(body, place, async move { fs.create(&path, &options).await }).await?;
            let mut response = empty(StatusCode::CREATED);
            if let Ok(location) = HeaderValue::from_bytes(location.as_bytes()) {
                response.headers_mut().insert(header::LOCATION, location);
            }
            Ok(response)
        }
        Transfer::Append => {
            write(body, place, async move { fs.append(&path, false).await }).await?;
            Ok(empty(StatusCode::OK))
        }
    }
}

/// An answer without a body.
pub fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, OCTETS);
    response
}

async fn open(
    fs: FileSystem,
    path: String,
    offset: u64,
    length: Option<u64>,
    place: Permit,
) -> Result<Response> {
    let mut reader = fs.open(&path).await?;
    if offset > reader.length() {
        let length = reader.length();
        return Err(Refusal::io(format!(
            "Offset={offset} out of the range [0, {length}); OPEN, path={path}"
        )));
    }
    reader.seek(offset)?;
    let count = length.unwrap_or(u64::MAX).min(reader.length() - offset);
    // A file whose bytes are lost is refused with its reason, instead of an answer that breaks off at once.
    let first = if count > 0 { next(&mut reader, count).await? } else { Bytes::new() };
    let (sender, body) = web::body::pieces(Some(count));
    drop(tokio::spawn(async move {
        let _place = place;
        let mut left = count - first.len() as u64;
        if !first.is_empty() && !sender.send(first).await {
            return;
        }
        while left > 0 {
            match next(&mut reader, left).await {
                Ok(piece) => {
                    left -= piece.len() as u64;
                    if !sender.send(piece).await {
                        return;
                    }
                }
                // The connection is cut, and the client sees that bytes are missing.
                Err(refusal) => {
                    let at = reader.position();
                    return tracing::warn!(path, at, reason = refusal.message, "an answer is broken off");
                }
            }
        }
        sender.end();
    }));
    let mut response = Response::new(body);
    allow_get(response.headers_mut());
    Ok(response)
}

fn allow_get(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_TYPE, OCTETS);
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET"));
    // A page that is stored here must not run as one of this server's own.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

async fn next(reader: &mut FileReader, left: u64) -> Result<Bytes> {
    let count = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
    match reader.read(count).await? {
        Some(piece) => Ok(piece),
        None => Err(Refusal::io(format!("{} became shorter", reader.path()))),
    }
}

async fn checksum(fs: &FileSystem, path: &str) -> Result<Response> {
    let located = fs.block_locations(path, 0, 1).await?;
    if located.under_construction {
        return Err(Refusal::io(format!("Fail to get checksum, since file {path} is under construction.")));
    }
    let checksum = fs.checksum(path).await?;
    let value = match checksum.kind {
        ChecksumTypeProto::ChecksumNull => return Err(Refusal::io(format!("{path} has no checksums"))),
        _ => blocks::file_checksum(&checksum),
    };
    Ok(crate::json(value))
}

fn options(create: Create) -> CreateOptions {
    CreateOptions {
        overwrite: create.overwrite,
        parent_must_exist: create.parent_must_exist,
        mode: create.mode,
        unmasked: create.unmasked,
        storage_policy: create.storage_policy,
        erasure_coding: create.erasure_coding,
        lazy_persist: create.lazy_persist,
        replication: create.replication,
        block_size: create.block_size,
        ..CreateOptions::default()
    }
}

/// Writes a body to a file, and closes the file once the whole body is there. On a task of its own: a client that has sent
/// everything and does not wait for the answer has its file all the same.
async fn write(
    mut body: Body,
    place: Permit,
    file: impl Future<Output = client::Result<FileWriter>> + Send + 'static,
) -> Result<()> {
    let writing = tokio::spawn(async move {
        let _place = place;
        let mut file = file.await?;
        loop {
            match body::next(&mut body).await {
                Ok(Some(piece)) => file.write(&piece).await?,
                Ok(None) => break,
                // The client has not said that this is all: the file stays open, as if its client had died.
                Err(error) => {
                    let (path, written) = (file.path(), file.written());
                    tracing::info!(path, written, %error, "a body ended early; the file stays open until its lease is over");
                    return Err(Refusal::io(format!(
                        "the body of {path} ended early, after {written} bytes"
                    )));
                }
            }
        }
        Ok(file.close().await?)
    });
    writing.await.unwrap_or_else(|error| Err(Refusal::io(format!("the file could not be written: {error}"))))
}
