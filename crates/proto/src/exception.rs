//! Refusals as Hadoop spells them: one table between [`FsError`] and Java's exception classes.

use base::FsError;

/// A constructor of [`FsError`].
type Make = fn(String) -> FsError;

pub const IO: &str = "java.io.IOException";
pub const DISK_BALANCER: &str = "org.apache.hadoop.hdfs.server.diskbalancer.DiskBalancerException";

/// Exceptions of the RPC layer itself, which are not about files.
pub const RPC_SERVER: &str = "org.apache.hadoop.ipc.RpcServerException";
pub const NO_SUCH_METHOD: &str = "org.apache.hadoop.ipc.RpcNoSuchMethodException";
pub const NO_SUCH_PROTOCOL: &str = "org.apache.hadoop.ipc.RpcNoSuchProtocolException";
/// The server's framing is of another version than the client's.
pub const SERVER_VERSION_MISMATCH: &str = "org.apache.hadoop.ipc.Server$VersionMismatch";
/// The server has the protocol, in another version.
pub const PROTOCOL_VERSION_MISMATCH: &str = "org.apache.hadoop.ipc.RPC$VersionMismatch";
pub const AUTHORIZATION: &str = "org.apache.hadoop.security.authorize.AuthorizationException";
pub const IPC: &str = "org.apache.hadoop.ipc.IpcException";
pub const SASL: &str = "javax.security.sasl.SaslException";
pub const INVALID_PROTOCOL_BUFFER: &str =
    "org.apache.hadoop.thirdparty.protobuf.InvalidProtocolBufferException";

pub const FILE_NOT_FOUND: &str = "java.io.FileNotFoundException";
pub const PARENT_NOT_DIRECTORY: &str = "org.apache.hadoop.fs.ParentNotDirectoryException";
pub const FILE_ALREADY_EXISTS: &str = "org.apache.hadoop.fs.FileAlreadyExistsException";
pub const PATH_IS_NOT_EMPTY_DIRECTORY: &str = "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException";
pub const INVALID_PATH: &str = "org.apache.hadoop.fs.InvalidPathException";
pub const ACCESS_CONTROL: &str = "org.apache.hadoop.security.AccessControlException";
pub const ILLEGAL_ARGUMENT: &str = "org.apache.hadoop.HadoopIllegalArgumentException";
pub const UNSUPPORTED_OPERATION: &str = "java.lang.UnsupportedOperationException";
pub const PATH_COMPONENT_TOO_LONG: &str =
    "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException";
pub const MAX_DIRECTORY_ITEMS_EXCEEDED: &str =
    "org.apache.hadoop.hdfs.protocol.FSLimitException$MaxDirectoryItemsExceededException";
pub const NS_QUOTA_EXCEEDED: &str = "org.apache.hadoop.hdfs.protocol.NSQuotaExceededException";
pub const DS_QUOTA_EXCEEDED: &str = "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException";
pub const TYPE_QUOTA_EXCEEDED: &str = "org.apache.hadoop.hdfs.protocol.QuotaByStorageTypeExceededException";
pub const UNSUPPORTED_ACTION: &str = "org.apache.hadoop.hdfs.server.namenode.UnsupportedActionException";
pub const LEASE_EXPIRED: &str = "org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException";
pub const ALREADY_BEING_CREATED: &str = "org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException";
pub const RECOVERY_IN_PROGRESS: &str = "org.apache.hadoop.hdfs.protocol.RecoveryInProgressException";
pub const NOT_REPLICATED_YET: &str = "org.apache.hadoop.hdfs.server.namenode.NotReplicatedYetException";
pub const SAFE_MODE: &str = "org.apache.hadoop.hdfs.server.namenode.SafeModeException";
pub const STANDBY: &str = "org.apache.hadoop.ipc.StandbyException";
pub const RETRIABLE: &str = "org.apache.hadoop.ipc.RetriableException";
pub const ACL: &str = "org.apache.hadoop.hdfs.protocol.AclException";
pub const SNAPSHOT: &str = "org.apache.hadoop.hdfs.protocol.SnapshotException";
pub const SNAPSHOT_ACCESS_CONTROL: &str = "org.apache.hadoop.hdfs.protocol.SnapshotAccessControlException";
pub const PATH_IS_NOT_DIRECTORY: &str = "org.apache.hadoop.fs.PathIsNotDirectoryException";
pub const XATTR_NOT_FOUND: &str = "org.apache.hadoop.hdfs.protocol.XAttrNotFoundException";
pub const NO_EC_POLICY_SET: &str = "org.apache.hadoop.hdfs.protocol.NoECPolicySetException";
pub const LISTING_START_NOT_FOUND: &str = "org.apache.hadoop.fs.DirectoryListingStartAfterNotFoundException";
pub const UNREGISTERED_NODE: &str = "org.apache.hadoop.hdfs.protocol.UnregisteredNodeException";
pub const DISALLOWED_DATANODE: &str = "org.apache.hadoop.hdfs.server.protocol.DisallowedDatanodeException";
pub const INCORRECT_VERSION: &str = "org.apache.hadoop.hdfs.server.common.IncorrectVersionException";

/// Data servers answer with these about replicas. A reader of a file that is being written takes the first for an empty
/// replica, where all servers say so.
pub const REPLICA_NOT_FOUND: &str = "org.apache.hadoop.hdfs.server.datanode.ReplicaNotFoundException";
pub const REPLICA_ALREADY_EXISTS: &str =
    "org.apache.hadoop.hdfs.server.datanode.ReplicaAlreadyExistsException";

/// Refusals that no client of ours tells from others.
pub const JAVA_ILLEGAL_ARGUMENT: &str = "java.lang.IllegalArgumentException";
pub const BLOCK_MISSING: &str = "org.apache.hadoop.hdfs.BlockMissingException";
pub const INVALID_REQUEST: &str = "org.apache.hadoop.fs.InvalidRequestException";
pub const INVALID_TOKEN: &str = "org.apache.hadoop.security.token.SecretManager$InvalidToken";

/// A metadata server answers with these to those who watch or steer it.
pub const SERVICE_FAILED: &str = "org.apache.hadoop.ha.ServiceFailedException";
pub const HEALTH_CHECK_FAILED: &str = "org.apache.hadoop.ha.HealthCheckFailedException";

/// The error that each class becomes when it is received. A variant may have several classes; its first one is the
/// one that [`class_of`] sends.
const TABLE: &[(&str, Make)] = &[
    (FILE_NOT_FOUND, FsError::NotFound),
    (PARENT_NOT_DIRECTORY, FsError::ParentNotDirectory),
    (FILE_ALREADY_EXISTS, FsError::AlreadyExists),
    (PATH_IS_NOT_EMPTY_DIRECTORY, FsError::NotEmpty),
    (INVALID_PATH, invalid_path),
    (ACCESS_CONTROL, FsError::AccessDenied),
    ("org.apache.hadoop.fs.permission.AccessControlException", FsError::AccessDenied),
    (ILLEGAL_ARGUMENT, FsError::InvalidArgument),
    (JAVA_ILLEGAL_ARGUMENT, FsError::InvalidArgument),
    (UNSUPPORTED_OPERATION, FsError::Unsupported),
    (PATH_COMPONENT_TOO_LONG, FsError::ComponentTooLong),
    (MAX_DIRECTORY_ITEMS_EXCEEDED, FsError::DirectoryFull),
    (NS_QUOTA_EXCEEDED, FsError::NamespaceQuotaExceeded),
    (DS_QUOTA_EXCEEDED, FsError::SpaceQuotaExceeded),
    (TYPE_QUOTA_EXCEEDED, FsError::TypeQuotaExceeded),
    (UNSUPPORTED_ACTION, FsError::UnsupportedAction),
    (LEASE_EXPIRED, FsError::LeaseExpired),
    (ALREADY_BEING_CREATED, FsError::AlreadyBeingCreated),
    (RECOVERY_IN_PROGRESS, FsError::RecoveryInProgress),
    (NOT_REPLICATED_YET, FsError::NotReplicatedYet),
    (SAFE_MODE, FsError::SafeMode),
    (STANDBY, FsError::NotActive),
    (RETRIABLE, FsError::Retry),
    (ACL, FsError::Acl),
    (SNAPSHOT, FsError::Snapshot),
    (SNAPSHOT_ACCESS_CONTROL, |_| FsError::SnapshotReadOnly),
    (PATH_IS_NOT_DIRECTORY, path_is_not_directory),
    (XATTR_NOT_FOUND, FsError::XattrNotFound),
    (NO_EC_POLICY_SET, FsError::NoErasureCoding),
    (LISTING_START_NOT_FOUND, FsError::ListingStartNotFound),
    (UNREGISTERED_NODE, FsError::Unregistered),
    (DISALLOWED_DATANODE, FsError::DisallowedDatanode),
    (INCORRECT_VERSION, FsError::IncorrectVersion),
    (IO, FsError::Io),
];

/// The text that `FsError::InvalidPath` puts before the path, and that is in the message on the wire.
const INVALID_PATH_PREFIX: &str = "Invalid path name ";

fn invalid_path(message: String) -> FsError {
    match message.strip_prefix(INVALID_PATH_PREFIX) {
        Some(path) => FsError::InvalidPath(path.to_owned()),
        None => FsError::InvalidPath(message),
    }
}

/// The text that `PathIOException` puts around the path.
fn path_is_not_directory(message: String) -> FsError {
    let path = message.strip_prefix('`').and_then(|rest| rest.strip_suffix("': Is not a directory"));
    FsError::PathIsNotDirectory(path.unwrap_or(&message).to_owned())
}

/// The class and the message by which an error crosses the wire.
pub fn to_remote(error: &FsError) -> (&'static str, String) {
    let message = match error {
        // The wrapped exception as Java prints it.
        FsError::SafeModeRetry(text) => format!("{SAFE_MODE}: {text}"),
        error => error.to_string(),
    };
    (class_of(error), message)
}

/// The class by which an error crosses the wire.
pub fn class_of(error: &FsError) -> &'static str {
    match error {
        FsError::NotFound(_) => FILE_NOT_FOUND,
        FsError::ParentNotDirectory(_) => PARENT_NOT_DIRECTORY,
        FsError::AlreadyExists(_) => FILE_ALREADY_EXISTS,
        FsError::NotEmpty(_) => PATH_IS_NOT_EMPTY_DIRECTORY,
        FsError::InvalidPath(_) => INVALID_PATH,
        FsError::AccessDenied(_) => ACCESS_CONTROL,
        FsError::InvalidArgument(_) => ILLEGAL_ARGUMENT,
        FsError::Unsupported(_) => UNSUPPORTED_OPERATION,
        FsError::ComponentTooLong(_) => PATH_COMPONENT_TOO_LONG,
        FsError::DirectoryFull(_) => MAX_DIRECTORY_ITEMS_EXCEEDED,
        FsError::NamespaceQuotaExceeded(_) => NS_QUOTA_EXCEEDED,
        FsError::SpaceQuotaExceeded(_) => DS_QUOTA_EXCEEDED,
        FsError::TypeQuotaExceeded(_) => TYPE_QUOTA_EXCEEDED,
        FsError::UnsupportedAction(_) => UNSUPPORTED_ACTION,
        FsError::LeaseExpired(_) => LEASE_EXPIRED,
        FsError::AlreadyBeingCreated(_) => ALREADY_BEING_CREATED,
        FsError::RecoveryInProgress(_) => RECOVERY_IN_PROGRESS,
        FsError::NotReplicatedYet(_) => NOT_REPLICATED_YET,
        FsError::SafeMode(_) => SAFE_MODE,
        FsError::NotActive(_) => STANDBY,
        FsError::Retry(_) | FsError::SafeModeRetry(_) => RETRIABLE,
        FsError::Acl(_) => ACL,
        FsError::Snapshot(_) => SNAPSHOT,
        FsError::SnapshotReadOnly => SNAPSHOT_ACCESS_CONTROL,
        FsError::PathIsNotDirectory(_) => PATH_IS_NOT_DIRECTORY,
        FsError::XattrNotFound(_) => XATTR_NOT_FOUND,
        FsError::NoErasureCoding(_) => NO_EC_POLICY_SET,
        FsError::ListingStartNotFound(_) => LISTING_START_NOT_FOUND,
        FsError::Unregistered(_) => UNREGISTERED_NODE,
        FsError::DisallowedDatanode(_) => DISALLOWED_DATANODE,
        FsError::IncorrectVersion(_) => INCORRECT_VERSION,
        FsError::Io(_) => IO,
    }
}

/// The error that stands for a server's exception. A class that is not known becomes an I/O error that names it.
///
/// Hadoop's servers append the stack trace to the message; only what is before it is kept.
pub fn from_remote(class: &str, message: &str) -> FsError {
    let message = without_stack_trace(message);
    match TABLE.iter().find(|(name, _)| *name == class) {
        Some((_, make)) => make(message.to_owned()),
        None => FsError::Io(format!("{class}: {message}")),
    }
}

/// The message proper: lines before the first that is a frame of a Java stack trace.
pub fn without_stack_trace(message: &str) -> &str {
    let end = message.find("\n\tat ").unwrap_or(message.len());
    message[..end].trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_survives_the_round_trip() {
        for (class, make) in TABLE {
            let error = make("/a/b: why".into());
            let (sent, message) = to_remote(&error);
            assert_eq!(from_remote(sent, &message), error, "{class} is sent as {sent}");
        }
    }

    #[test]
    fn an_invalid_path_does_not_gather_prefixes() {
        let error = from_remote(INVALID_PATH, "Invalid path name /a//b");
        assert_eq!(error, FsError::InvalidPath("/a//b".into()));
        assert_eq!(error.to_string(), "Invalid path name /a//b");
    }

    #[test]
    fn a_java_stack_trace_is_left_behind() {
        let message = "File does not exist: /x\n\tat org.apache.hadoop.A.b(A.java:7)\n\tat c";
        assert_eq!(from_remote(FILE_NOT_FOUND, message), FsError::NotFound("File does not exist: /x".into()));
    }

    #[test]
    fn safe_mode_that_ends_by_itself_is_wrapped_for_the_clients_that_ask_again() {
        let (class, message) = to_remote(&FsError::SafeModeRetry("Cannot delete /x.".into()));
        assert_eq!(class, RETRIABLE);
        assert_eq!(message, "org.apache.hadoop.hdfs.server.namenode.SafeModeException: Cannot delete /x.");
        assert_eq!(from_remote(class, &message), FsError::Retry(message));
    }

    #[test]
    fn an_unknown_class_is_named() {
        assert_eq!(from_remote("a.b.C", "d"), FsError::Io("a.b.C: d".into()));
    }
}
