//! The errors of file-system operations, sorted by what a Hadoop client can do about them.
//!
//! One table in `proto` maps each variant to Hadoop's exception class, and back for `client`. `Display` is
//! the message that crosses the wire, so texts follow what Hadoop's clients and people's scripts know.

use thiserror::Error;

pub type FsResult<T> = Result<T, FsError>;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FsError {
    /// Fix the path. Hadoop: `FileNotFoundException`.
    #[error("{0}")]
    NotFound(String),
    /// Fix the path. Hadoop: `ParentNotDirectoryException`.
    #[error("{0}")]
    ParentNotDirectory(String),
    /// Choose another name. Hadoop: `FileAlreadyExistsException`.
    #[error("{0}")]
    AlreadyExists(String),
    /// Delete recursively or empty it first. Hadoop: `PathIsNotEmptyDirectoryException`.
    #[error("{0}")]
    NotEmpty(String),
    /// Fix the path. Hadoop: `InvalidPathException`.
    #[error("Invalid path name {0}")]
    InvalidPath(String),
    /// Ask as another user. Hadoop: `AccessControlException`.
    #[error("{0}")]
    AccessDenied(String),
    /// Fix the argument. Hadoop: `HadoopIllegalArgumentException`.
    #[error("{0}")]
    InvalidArgument(String),
    /// Hadoop: `UnsupportedOperationException`.
    #[error("{0}")]
    Unsupported(String),
    /// Hadoop: `FSLimitException$PathComponentTooLongException`.
    #[error("{0}")]
    ComponentTooLong(String),
    /// Hadoop: `FSLimitException$MaxDirectoryItemsExceededException`.
    #[error("{0}")]
    DirectoryFull(String),
    /// Hadoop: `NSQuotaExceededException`.
    #[error("{0}")]
    NamespaceQuotaExceeded(String),
    /// Hadoop: `DSQuotaExceededException`.
    #[error("{0}")]
    SpaceQuotaExceeded(String),
    /// Hadoop: `QuotaByStorageTypeExceededException`.
    #[error("{0}")]
    TypeQuotaExceeded(String),
    /// Hadoop: `UnsupportedActionException`.
    #[error("{0}")]
    UnsupportedAction(String),
    /// The writer no longer holds the file. Hadoop: `LeaseExpiredException`.
    #[error("{0}")]
    LeaseExpired(String),
    /// Another writer holds the file. Hadoop: `AlreadyBeingCreatedException`.
    #[error("{0}")]
    AlreadyBeingCreated(String),
    /// Try again once recovery has finished. Hadoop: `RecoveryInProgressException`.
    #[error("{0}")]
    RecoveryInProgress(String),
    /// Try again: an earlier block is not yet complete. Hadoop: `NotReplicatedYetException`.
    #[error("{0}")]
    NotReplicatedYet(String),
    /// Try again when the server has left safe mode. Hadoop: `SafeModeException`.
    #[error("{0}")]
    SafeMode(String),
    /// Ask again: the server leaves safe mode by itself, or another one answers. Hadoop: `SafeModeException`, wrapped in
    /// `RetriableException`.
    #[error("{0}")]
    SafeModeRetry(String),
    /// Ask another server. Hadoop: `StandbyException`.
    #[error("{0}")]
    NotActive(String),
    /// Ask again. Hadoop: `RetriableException`.
    #[error("{0}")]
    Retry(String),
    /// Hadoop: `AclException`.
    #[error("{0}")]
    Acl(String),
    /// Hadoop: `SnapshotException`.
    #[error("{0}")]
    Snapshot(String),
    /// Change the directory itself, not what a snapshot shows of it. Hadoop: `SnapshotAccessControlException`.
    #[error("Modification on a read-only snapshot is disallowed")]
    SnapshotReadOnly,
    /// Fix the path. Hadoop: `PathIsNotDirectoryException`.
    #[error("`{0}': Is not a directory")]
    PathIsNotDirectory(String),
    /// Hadoop: `XAttrNotFoundException`.
    #[error("{0}")]
    XattrNotFound(String),
    /// Hadoop: `NoECPolicySetException`.
    #[error("{0}")]
    NoErasureCoding(String),
    /// List from the beginning. Hadoop: `DirectoryListingStartAfterNotFoundException`.
    #[error("{0}")]
    ListingStartNotFound(String),
    /// Data server: register again. Hadoop: `UnregisteredNodeException`.
    #[error("{0}")]
    Unregistered(String),
    /// Data server: refused for good. Hadoop: `DisallowedDatanodeException`.
    #[error("{0}")]
    DisallowedDatanode(String),
    /// Data server of another cluster or layout. Hadoop: `IncorrectVersionException`.
    #[error("{0}")]
    IncorrectVersion(String),
    /// Everything else that Hadoop answers with a plain `IOException`.
    #[error("{0}")]
    Io(String),
}
