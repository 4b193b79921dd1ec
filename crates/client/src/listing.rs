//! The entries of a directory, fetched page by page.

use crate::{Error, FileStatus, FileSystem, Result};
use base::FsError;
use bytes::Bytes;
use proto::hdfs;
use std::collections::VecDeque;

/// Walks through a directory in the order of names. A directory of millions costs the memory of one page.
pub struct Listing {
    fs: FileSystem,
    path: String,
    page: VecDeque<Entry>,
    /// Whether the places of the blocks are asked for.
    is_located: bool,
    /// The last name seen, after which the next page begins; nothing when there is no further page.
    after: Option<Bytes>,
    /// The name of the last entry that was handed out.
    last: Option<Bytes>,
}

struct Entry {
    name: Bytes,
    status: FileStatus,
    located: Option<hdfs::LocatedBlocksProto>,
}

impl Listing {
    pub(crate) fn new(fs: FileSystem, path: &str) -> Self {
        Self {
            fs,
            path: path.to_owned(),
            page: VecDeque::new(),
            is_located: false,
            after: Some(Bytes::new()),
            last: None,
        }
    }

    pub(crate) fn after(fs: FileSystem, path: &str, name: &str) -> Self {
        Self { after: Some(Bytes::copy_from_slice(name.as_bytes())), ..Self::new(fs, path) }
    }

    pub(crate) fn located(fs: FileSystem, path: &str) -> Self {
        Self { is_located: true, ..Self::new(fs, path) }
    }

    /// The directory, or the file, that is listed.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The next entry, or nothing at the end. A file is its own only entry.
    ///
    /// # Errors
    /// Nothing is at the path, or this user may not read it; or a call fails: see
    /// [`FileSystem::call`](crate::FileSystem::call).
    pub async fn next(&mut self) -> Result<Option<FileStatus>> {
        Ok(self.next_located().await?.map(|(status, _)| status))
    }

    /// The next entry with the places of its blocks, if it is a file and the listing was begun by
    /// [`FileSystem::list_located`](crate::FileSystem::list_located).
    ///
    /// # Errors
    /// Those of [`Listing::next`].
    pub async fn next_located(&mut self) -> Result<Option<(FileStatus, Option<hdfs::LocatedBlocksProto>)>> {
        while self.page.is_empty() {
            let Some(after) = self.after.take() else { return Ok(None) };
            self.fetch(after).await?;
        }
        let Some(Entry { name, status, located }) = self.page.pop_front() else { return Ok(None) };
        self.last = Some(name);
        Ok(Some((status, located)))
    }

    /// Gives the memory of the page back. The rest of the page is fetched again when the next entry is wanted.
    pub fn put_aside(&mut self) {
        if !self.page.is_empty() {
            self.page = VecDeque::new();
            self.after = Some(self.last.clone().unwrap_or_default());
        }
    }

    /// All that is left.
    ///
    /// # Errors
    /// Those of [`Listing::next`].
    pub async fn collect(mut self) -> Result<Vec<FileStatus>> {
        let mut entries = Vec::new();
        while let Some(entry) = self.next().await? {
            entries.push(entry);
        }
        Ok(entries)
    }

    async fn fetch(&mut self, after: Bytes) -> Result<()> {
        let request = hdfs::GetListingRequestProto {
            src: self.path.clone(),
            start_after: after.clone(),
            need_location: self.is_located,
        };
        let response: hdfs::GetListingResponseProto = self.fs.call("getListing", &request).await?;
        let Some(listing) = response.dir_list else {
            let message = format!("File {} does not exist.", self.path);
            return Err(Error::Fs(FsError::NotFound(message)));
        };
        if listing.remaining_entries > 0 {
            // A page that does not move on would be asked for over and over.
            let last = listing.partial_listing.last().map(|entry| entry.path.clone());
            let last = last.filter(|last| *last > after).ok_or_else(|| {
                self.fs.nonsense("getListing", "a page with no further name, and more to come")
            })?;
            self.after = Some(last);
        }
        self.page = listing
            .partial_listing
            .into_iter()
            .map(|mut entry| {
                let (name, located) = (entry.path.clone(), entry.locations.take());
                Entry { name, status: FileStatus::from_wire(&self.path, entry), located }
            })
            .collect();
        Ok(())
    }
}
