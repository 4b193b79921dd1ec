//! A connection to a file system: everything that can be asked of it.

use crate::{
    Config, ContentSummary, Error, FileReader, FileStatus, FileWriter, FsStats, Listing, Location, Result,
    ServerDefaults, Settings,
    block::{BlockOptions, Checksums, LocalReads},
    lease::{LeaseGuard, Leases},
    namenodes::Namenodes,
};
use base::FsError;
use proto::hdfs::{self, acl_entry_proto::FsActionProto};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The file system behind one `hdfs://` name. Cheap to clone; all clones share connections and the lease.
///
/// Paths are absolute and without a scheme; how relative ones and URIs are meant is the caller's business.
#[derive(Clone)]
pub struct FileSystem {
    shared: Arc<Shared>,
}

struct Shared {
    location: Location,
    settings: Settings,
    /// The name of this client, by which the servers know the holder of a lease.
    client_name: Arc<str>,
    namenodes: Arc<Namenodes>,
    leases: Arc<Leases>,
    defaults: OnceCell<ServerDefaults>,
    /// The open files and the shared memory from the data servers of this machine.
    local: Option<Arc<LocalReads>>,
}

/// How a new file is made. A value that is `None` comes from the configuration, else from the server.
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    /// Replace a file that is there.
    pub overwrite: bool,
    /// Refuse when the directory is missing, instead of making it.
    pub parent_must_exist: bool,
    /// The mode before the umask is taken away; 0666 if not given.
    pub mode: Option<u16>,
    /// The mode on which the default access control list of the directory works; `mode` if not given.
    pub unmasked: Option<u16>,
    /// The name of the file's own storage policy; that of the directory if not given.
    pub storage_policy: Option<String>,
    /// The name of the file's own erasure coding policy; that of the directory if not given.
    pub erasure_coding: Option<String>,
    /// Replicas may be in memory at first.
    pub lazy_persist: bool,
    pub replication: Option<u16>,
    pub block_size: Option<u64>,
    pub bytes_per_checksum: Option<u32>,
    pub checksums: Option<Checksums>,
    /// Data servers, as `host:port`, where replicas are to be if they have room.
    pub favoured: Vec<String>,
}

/// Bits of `createFlag`.
const CREATE: u32 = 1;
const OVERWRITE: u32 = 2;
const APPEND: u32 = 4;
const LAZY_PERSIST: u32 = 0x10;
const NEW_BLOCK: u32 = 0x20;

/// The largest time that crosses the wire as "leave it as it is": Hadoop's -1.
const TIME_UNCHANGED: u64 = u64::MAX;

impl FileSystem {
    /// Prepares to talk to `uri` (`hdfs://host:port`, or a name service of the configuration). Servers are
    /// connected to when they are first needed.
    ///
    /// # Errors
    /// [`Error::Config`] if the configuration makes no sense (see [`Settings::new`]), or the URI has another scheme
    /// than `hdfs`, names no host, or names a service whose servers are not configured.
    pub fn connect(uri: &str, config: &Config) -> Result<Self> {
        let settings = Settings::new(config)?;
        Ok(Self::connect_to(Location::resolve(uri, config)?, settings))
    }

    /// Prepares to talk to servers whose addresses are known, with settings that are checked.
    pub fn connect_to(location: Location, settings: Settings) -> Self {
        let client_name = new_client_name();
        let namenodes = Arc::new(Namenodes::new(location.clone(), &settings));
        let leases = Leases::new(namenodes.clone(), client_name.clone());
        let local = settings
            .local
            .clone()
            .map(|local| Arc::new(LocalReads::new(local, &client_name, settings.io_timeout)));
        let defaults = OnceCell::new();
        let shared = Shared { location, settings, client_name, namenodes, leases, defaults, local };
        Self { shared: Arc::new(shared) }
    }

    /// A file system that shares this one's connections and settings, but has a client name of its own. The servers keep separate leases
    /// for it: they end when the files that it opened are closed or dropped, even while this file system still writes.
    pub fn as_another_client(&self) -> Self {
        let client_name = new_client_name();
        let shared = &self.shared;
        let leases = Leases::new(shared.namenodes.clone(), client_name.clone());
        let shared = Shared {
            location: shared.location.clone(),
            settings: shared.settings.clone(),
            client_name,
            namenodes: shared.namenodes.clone(),
            leases,
            defaults: OnceCell::new_with(shared.defaults.get().copied()),
            local: shared.local.clone(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// `hdfs://` and the authority, without a path.
    pub fn uri(&self) -> String {
        self.shared.location.uri()
    }

    /// The user on whose behalf everything is asked.
    pub fn user(&self) -> &str {
        &self.shared.settings.user
    }

    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    pub(crate) fn namenodes(&self) -> &Namenodes {
        &self.shared.namenodes
    }

    /// The same servers, spoken to in another protocol than that of clients.
    pub(crate) fn namenodes_for(&self, protocol: &'static str) -> Namenodes {
        Namenodes::speaking(protocol, self.shared.location.clone(), &self.shared.settings)
    }

    pub fn client_name(&self) -> &str {
        &self.shared.client_name
    }

    /// Sends one call of Hadoop's client protocol to the active metadata server.
    ///
    /// # Errors
    /// [`Error::Fs`] if the server refuses the call: with [`FsError::NotFound`] where there is no such path,
    /// [`FsError::AccessDenied`] where this user may not do it, [`FsError::NamespaceQuotaExceeded`] or
    /// [`FsError::SpaceQuotaExceeded`] where a quota is reached; with [`FsError::NotActive`] or [`FsError::Retry`] if
    /// servers answer so until the attempts are used up. [`Error::Unreachable`] if no server answers within the
    /// attempts of the settings, [`Error::NotServing`] if the only one that is named does not serve and names no other,
    /// and [`Error::Nonsense`] if an answer does not decode.
    pub async fn call<Q, A>(&self, method: &str, request: &Q) -> Result<A>
    where
        Q: prost::Message + prost::Name,
        A: prost::Message + Default + prost::Name,
    {
        self.shared.namenodes.call(method, request).await
    }

    /// The status of a path, or nothing where nothing is.
    ///
    /// # Errors
    /// This user may not reach the path; or the call fails: see [`FileSystem::call`].
    pub async fn find(&self, path: &str) -> Result<Option<FileStatus>> {
        let request = hdfs::GetFileInfoRequestProto { src: path.to_owned() };
        let response: hdfs::GetFileInfoResponseProto = self.call("getFileInfo", &request).await?;
        Ok(response.fs.map(|status| FileStatus::from_wire(path, status)))
    }

    /// The status of a path; an error where nothing is.
    ///
    /// # Errors
    /// [`Error::Fs`] with [`FsError::NotFound`] if nothing is there; and those of
    /// [`FileSystem::find`].
    pub async fn status(&self, path: &str) -> Result<FileStatus> {
        self.find(path).await?.ok_or_else(|| missing(path))
    }

    /// # Errors
    /// Those of [`FileSystem::find`].
    pub async fn exists(&self, path: &str) -> Result<bool> {
        Ok(self.find(path).await?.is_some())
    }

    /// The entries of a directory in the order of names, fetched page by page; a file is its own only entry.
    pub fn list(&self, path: &str) -> Listing {
        Listing::new(self.clone(), path)
    }

    /// The entries of a directory whose names come after `name`, which need not be there.
    pub fn list_after(&self, path: &str, name: &str) -> Listing {
        Listing::after(self.clone(), path, name)
    }

    /// Makes a directory and those above it; it may be there already.
    ///
    /// # Errors
    /// Those of [`FileSystem::make_directory`].
    pub async fn mkdirs(&self, path: &str) -> Result<()> {
        self.make_directory(path, true, 0o777).await
    }

    /// Makes a directory; `mode` is what is left of it after the umask.
    ///
    /// # Errors
    /// A file is at the path ([`FsError::AlreadyExists`]) or on the way ([`FsError::ParentNotDirectory`]), this user
    /// may not write there, the directory above is missing and `parents` is not set, or a limit or quota is reached; or
    /// the call fails: see [`FileSystem::call`].
    pub async fn make_directory(&self, path: &str, parents: bool, mode: u16) -> Result<()> {
        let request = hdfs::MkdirsRequestProto {
            src: path.to_owned(),
            masked: permission(mode & !self.shared.settings.umask),
            create_parent: parents,
            unmasked: Some(permission(mode)),
        };
        let response: hdfs::MkdirsResponseProto = self.call("mkdirs", &request).await?;
        match response.result {
            true => Ok(()),
            false => Err(refused(format!("directory {path} could not be made"))),
        }
    }

    /// Makes a file and opens it for writing.
    ///
    /// # Errors
    /// The bytes per checksum do not divide the block size ([`FsError::Io`]); a directory is at the path, or a file
    /// that is not to be overwritten ([`FsError::AlreadyExists`]) or is being written
    /// ([`FsError::AlreadyBeingCreated`], [`FsError::RecoveryInProgress`]); this user may not write there; or a limit
    /// or quota is reached. Or a call fails: see [`FileSystem::call`].
    pub async fn create(&self, path: &str, options: &CreateOptions) -> Result<FileWriter> {
        let settings = &self.shared.settings;
        let defaults = self.defaults().await?;
        let mode = options.mode.unwrap_or(0o666);
        let replication = options.replication.or(settings.replication).unwrap_or(defaults.replication);
        let block_size = options.block_size.or(settings.block_size).unwrap_or(defaults.block_size);
        let block_options = self.block_options(options).await?;
        let chunk = block_options.bytes_per_checksum;
        // No server asks for it: Hadoop's Java client neither makes such a file nor appends to one.
        if !block_size.is_multiple_of(chunk.into()) {
            return Err(refused(format!(
                "{path}: dfs.bytes-per-checksum ({chunk}) must divide dfs.blocksize ({block_size})"
            )));
        }
        let request = hdfs::CreateRequestProto {
            src: path.to_owned(),
            masked: permission(mode & !settings.umask),
            client_name: self.client_name().to_owned(),
            create_flag: CREATE
                | if options.overwrite { OVERWRITE } else { 0 }
                | if options.lazy_persist { LAZY_PERSIST } else { 0 },
            create_parent: !options.parent_must_exist,
            replication: u32::from(replication),
            block_size,
            unmasked: Some(permission(options.unmasked.unwrap_or(mode))),
            ec_policy_name: options.erasure_coding.clone(),
            storage_policy: options.storage_policy.clone(),
            ..Default::default()
        };
        let lease = self.lease();
        let response: hdfs::CreateResponseProto = self.call("create", &request).await?;
        let status = response
            .fs
            .map(|status| FileStatus::from_wire(path, status))
            .ok_or_else(|| self.nonsense("create", "no file status"))?;
        Ok(FileWriter::new(self.clone(), status, block_options, lease, options.favoured.clone()))
    }

    /// Opens a file to write on behind what it has; with `new_block` in a block of its own.
    ///
    /// # Errors
    /// There is no such file, this user may not write it, or a client writes it ([`FsError::AlreadyBeingCreated`],
    /// [`FsError::RecoveryInProgress`]); or a call fails: see [`FileSystem::call`]. [`Error::Write`] if no pipeline
    /// comes to be for the last block.
    pub async fn append(&self, path: &str, new_block: bool) -> Result<FileWriter> {
        let options = self.block_options(&CreateOptions::default()).await?;
        let request = hdfs::AppendRequestProto {
            src: path.to_owned(),
            client_name: self.client_name().to_owned(),
            flag: Some(if new_block { APPEND | NEW_BLOCK } else { APPEND }),
        };
        let lease = self.lease();
        let response: hdfs::AppendResponseProto = self.call("append", &request).await?;
        let status = response
            .stat
            .map(|status| FileStatus::from_wire(path, status))
            .ok_or_else(|| self.nonsense("append", "no file status"))?;
        FileWriter::append(self.clone(), status, options, lease, response.block).await
    }

    /// Cuts a file to a shorter length. False: its last block is still being cut, and the file can be read but not
    /// changed until [`is_closed`](Self::is_closed) says so.
    ///
    /// # Errors
    /// There is no such file, it is shorter than `length` ([`FsError::InvalidArgument`]), this user may not write it,
    /// or a client writes it ([`FsError::AlreadyBeingCreated`], [`FsError::RecoveryInProgress`]); or the call fails:
    /// see [`FileSystem::call`].
    pub async fn truncate(&self, path: &str, length: u64) -> Result<bool> {
        let request = hdfs::TruncateRequestProto {
            src: path.to_owned(),
            new_length: length,
            client_name: self.client_name().to_owned(),
        };
        let response: hdfs::TruncateResponseProto = self.call("truncate", &request).await?;
        Ok(response.result)
    }

    /// Moves the blocks of files of one directory behind those of another file there, and removes the files.
    ///
    /// # Errors
    /// A file is not there or this user may not change it; one is empty, being written, in another directory or named
    /// twice ([`FsError::InvalidArgument`]) or in a snapshot ([`FsError::Snapshot`]); or the call fails: see
    /// [`FileSystem::call`].
    pub async fn concat(&self, target: &str, sources: &[String]) -> Result<()> {
        let request = hdfs::ConcatRequestProto { trg: target.to_owned(), srcs: sources.to_vec() };
        let _: hdfs::ConcatResponseProto = self.call("concat", &request).await?;
        Ok(())
    }

    /// Whether a file is closed: no client is writing it.
    ///
    /// # Errors
    /// There is no such file; or the call fails: see [`FileSystem::call`].
    pub async fn is_closed(&self, path: &str) -> Result<bool> {
        let request = hdfs::IsFileClosedRequestProto { src: path.to_owned() };
        let response: hdfs::IsFileClosedResponseProto = self.call("isFileClosed", &request).await?;
        Ok(response.result)
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// There is no such file, this user may not read it, or it is erasure-coded or encrypted
    /// ([`FsError::Unsupported`]); or a call fails: see [`FileSystem::call`]. That no data server tells how far a block
    /// that is being written can be read is no error: then the file ends where the metadata service knows that it does.
    pub async fn open(&self, path: &str) -> Result<FileReader> {
        FileReader::open(self.clone(), path).await
    }

    /// Renames; refuses when `to` is there, unless `overwrite` allows to replace a file or an empty directory.
    ///
    /// # Errors
    /// Nothing is at `from`, something is at `to` that may not be replaced ([`FsError::AlreadyExists`]), the directory
    /// above `to` is missing, `to` lies below `from` ([`FsError::Io`]), or this user may not change a directory; or the
    /// call fails: see [`FileSystem::call`].
    pub async fn rename(&self, from: &str, to: &str, overwrite: bool) -> Result<()> {
        let request = hdfs::Rename2RequestProto {
            src: from.to_owned(),
            dst: to.to_owned(),
            overwrite_dest: overwrite,
            move_to_trash: None,
        };
        let _: hdfs::Rename2ResponseProto = self.call("rename2", &request).await?;
        Ok(())
    }

    /// Hadoop's older rename: moves into `to` where that is a directory, and answers false instead of saying
    /// why nothing was renamed.
    ///
    /// # Errors
    /// This user may not change a directory, or a limit or quota is reached; or the call fails: see
    /// [`FileSystem::call`].
    pub async fn rename_or_move_into(&self, from: &str, to: &str) -> Result<bool> {
        let request = hdfs::RenameRequestProto { src: from.to_owned(), dst: to.to_owned() };
        let response: hdfs::RenameResponseProto = self.call("rename", &request).await?;
        Ok(response.result)
    }

    /// Deletes a path; answers whether anything was there.
    ///
    /// # Errors
    /// The directory is not empty and `recursive` is not set ([`FsError::NotEmpty`]), holds one with snapshots
    /// ([`FsError::Snapshot`]), or is protected or this user may not change it ([`FsError::AccessDenied`]); or the call
    /// fails: see [`FileSystem::call`].
    pub async fn delete(&self, path: &str, recursive: bool) -> Result<bool> {
        let request = hdfs::DeleteRequestProto { src: path.to_owned(), recursive };
        let response: hdfs::DeleteResponseProto = self.call("delete", &request).await?;
        Ok(response.result)
    }

    /// # Errors
    /// There is no such path, or this user does not own it; or the call fails: see [`FileSystem::call`].
    pub async fn set_permission(&self, path: &str, mode: u16) -> Result<()> {
        let request = hdfs::SetPermissionRequestProto { src: path.to_owned(), permission: permission(mode) };
        let _: hdfs::SetPermissionResponseProto = self.call("setPermission", &request).await?;
        Ok(())
    }

    /// Changes the owner, the group, or both.
    ///
    /// # Errors
    /// There is no such path, or this user may not give it away; or the call fails: see [`FileSystem::call`].
    pub async fn set_owner(&self, path: &str, owner: Option<&str>, group: Option<&str>) -> Result<()> {
        let request = hdfs::SetOwnerRequestProto {
            src: path.to_owned(),
            username: owner.map(str::to_owned),
            groupname: group.map(str::to_owned),
        };
        let _: hdfs::SetOwnerResponseProto = self.call("setOwner", &request).await?;
        Ok(())
    }

    /// Changes the time of modification, of access, or both; milliseconds since 1970.
    ///
    /// # Errors
    /// There is no such path, this user may not write it, or a time is out of range ([`FsError::InvalidArgument`]); or
    /// the call fails: see [`FileSystem::call`].
    pub async fn set_times(&self, path: &str, modified: Option<u64>, accessed: Option<u64>) -> Result<()> {
        let request = hdfs::SetTimesRequestProto {
            src: path.to_owned(),
            mtime: modified.unwrap_or(TIME_UNCHANGED),
            atime: accessed.unwrap_or(TIME_UNCHANGED),
        };
        let _: hdfs::SetTimesResponseProto = self.call("setTimes", &request).await?;
        Ok(())
    }

    /// Changes how many copies of a file there are; answers false for a directory.
    ///
    /// # Errors
    /// The replication is out of the server's bounds ([`FsError::Io`]), or this user may not write the file; or the
    /// call fails: see [`FileSystem::call`].
    pub async fn set_replication(&self, path: &str, replication: u16) -> Result<bool> {
        let request =
            hdfs::SetReplicationRequestProto { src: path.to_owned(), replication: u32::from(replication) };
        let response: hdfs::SetReplicationResponseProto = self.call("setReplication", &request).await?;
        Ok(response.result)
    }

    /// # Errors
    /// There is no such path, or this user may not read a directory below; or the call fails: see
    /// [`FileSystem::call`].
    pub async fn content_summary(&self, path: &str) -> Result<ContentSummary> {
        let request = hdfs::GetContentSummaryRequestProto { path: path.to_owned() };
        let response: hdfs::GetContentSummaryResponseProto = self.call("getContentSummary", &request).await?;
        Ok(response.summary.into())
    }

    /// Refuses when this user may not read, write or execute `path`.
    ///
    /// # Errors
    /// [`Error::Fs`] with [`FsError::AccessDenied`] if this user may not do it, with [`FsError::NotFound`] if nothing
    /// is there; or the call fails: see [`FileSystem::call`].
    pub async fn check_access(&self, path: &str, action: FsActionProto) -> Result<()> {
        let request = hdfs::CheckAccessRequestProto { path: path.to_owned(), mode: action as i32 };
        let _: hdfs::CheckAccessResponseProto = self.call("checkAccess", &request).await?;
        Ok(())
    }

    /// Capacity and use of the whole file system.
    ///
    /// # Errors
    /// The call fails: see [`FileSystem::call`].
    pub async fn stats(&self) -> Result<FsStats> {
        let response: hdfs::GetFsStatsResponseProto =
            self.call("getFsStats", &hdfs::GetFsStatusRequestProto {}).await?;
        Ok(response.into())
    }

    /// The values that the server would choose for a new file. The server is asked once.
    ///
    /// # Errors
    /// The call fails: see [`FileSystem::call`].
    pub async fn defaults(&self) -> Result<ServerDefaults> {
        let ask = || async {
            let request = hdfs::GetServerDefaultsRequestProto {};
            let response: hdfs::GetServerDefaultsResponseProto =
                self.call("getServerDefaults", &request).await?;
            Ok::<ServerDefaults, Error>(response.server_defaults.into())
        };
        self.shared.defaults.get_or_try_init(ask).await.copied()
    }

    /// Hadoop's checksum of a whole file.
    ///
    /// # Errors
    /// There is no such file, or this user may not read it; or a call fails: see [`FileSystem::call`]. [`Error::Read`]
    /// if no data server of a block tells its checksum, [`Error::Checksum`] if the blocks' checksums are of different kinds.
    pub async fn checksum(&self, path: &str) -> Result<crate::FileChecksum> {
        crate::checksum::of_file(self, path).await
    }

    /// The entries of a directory with the places of their blocks: see [`Listing::next_located`].
    pub fn list_located(&self, path: &str) -> Listing {
        Listing::located(self.clone(), path)
    }

    /// The locations of the blocks in a range of a file, in bytes.
    ///
    /// # Errors
    /// There is no such file, or this user may not read it; or the call fails: see [`FileSystem::call`].
    pub async fn block_locations(
        &self,
        path: &str,
        offset: u64,
        length: u64,
    ) -> Result<hdfs::LocatedBlocksProto> {
        let request = hdfs::GetBlockLocationsRequestProto { src: path.to_owned(), offset, length };
        let response: hdfs::GetBlockLocationsResponseProto = self.call("getBlockLocations", &request).await?;
        response.locations.ok_or_else(|| missing(path))
    }

    pub(crate) fn lease(&self) -> LeaseGuard {
        self.shared.leases.open()
    }

    /// How blocks are written and read, before anything that a single file says.
    pub(crate) async fn block_options(&self, options: &CreateOptions) -> Result<BlockOptions> {
        let settings = &self.shared.settings;
        let defaults = self.defaults().await?;
        Ok(BlockOptions {
            checksums: options.checksums.or(settings.checksums).unwrap_or(defaults.checksums),
            bytes_per_checksum: options
                .bytes_per_checksum
                .or(settings.bytes_per_checksum)
                .unwrap_or(defaults.bytes_per_checksum),
            packet_bytes: settings.packet_bytes.unwrap_or(defaults.packet_bytes),
            replacement: settings.replacement,
            ..self.read_options()
        })
    }

    pub(crate) fn read_options(&self) -> BlockOptions {
        let settings = &self.shared.settings;
        BlockOptions {
            connect_timeout: settings.connect_timeout,
            io_timeout: settings.io_timeout,
            by_host_name: settings.by_host_name,
            local: self.shared.local.clone(),
            ..BlockOptions::new(self.client_name())
        }
    }

    /// The reads of this client from data servers of its machine that do not use the network. `None`: they are not configured.
    pub fn local_reads(&self) -> Option<&LocalReads> {
        self.shared.local.as_deref()
    }

    pub(crate) fn nonsense(&self, method: &str, reason: &str) -> Error {
        Error::Nonsense { address: self.uri(), method: method.to_owned(), reason: reason.to_owned() }
    }
}

/// Hadoop's clients name themselves alike; people look for it in server logs.
fn new_client_name() -> Arc<str> {
    format!("DFSClient_CLOVER_{}", uuid::Uuid::new_v4().simple()).into()
}

fn permission(mode: u16) -> hdfs::FsPermissionProto {
    hdfs::FsPermissionProto { perm: u32::from(mode) }
}

fn missing(path: &str) -> Error {
    Error::Fs(FsError::NotFound(format!("File does not exist: {path}")))
}

fn refused(message: String) -> Error {
    Error::Fs(FsError::Io(message))
}
