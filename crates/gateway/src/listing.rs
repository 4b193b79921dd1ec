//! `LISTSTATUS`: a directory of any size, page by page.

use crate::{answers::status::file_status, error::Result, question::page};
use axum::body::Body;
use bytes::Bytes;
use client::FileSystem;
use proto::hdfs::DirectoryListingProto;

/// Answers once the first page is there, so that a refusal still has its status.
///
/// # Errors
/// There is no such directory, or this user may not read it; or the file system does not answer.
pub async fn list(fs: FileSystem, path: String) -> Result<Body> {
    let first = page(&fs, &path, Bytes::new()).await?;
    let (sender, body) = web::body::pieces(None);
    drop(tokio::spawn(async move {
        let mut text = String::from("{\"FileStatuses\":{\"FileStatus\":[\n");
        let mut listed = 0_usize;
        let mut current = first;
        loop {
            write_page(&mut text, &current, &mut listed);
            if !sender.send(Bytes::from(std::mem::take(&mut text))).await {
                return;
            }
            let last = match current.partial_listing.last() {
                Some(last) if current.remaining_entries > 0 => last.path.clone(),
                _ => break,
            };
            current = match page(&fs, &path, last).await {
                Ok(page) => page,
                // The client sees that the list has no end.
                Err(refusal) => {
                    return tracing::info!(path, refusal = refusal.message, "a listing was broken off");
                }
            };
        }
        if sender.send(Bytes::from_static(b"\n]}}\n")).await {
            sender.end();
        }
    }));
    Ok(body)
}

fn write_page(text: &mut String, page: &DirectoryListingProto, listed: &mut usize) {
    for status in &page.partial_listing {
        if *listed > 0 {
            text.push_str(",\n");
        }
        text.push_str(&file_status(status).to_string());
        *listed += 1;
    }
}
