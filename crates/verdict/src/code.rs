//! The names of conditions.

use crate::Severity;
use serde::{Serialize, Serializer};
use std::fmt;

macro_rules! codes {
    ($($(#[$about:meta])* $name:ident $text:literal $severities:expr;)*) => {
        /// The name of a kind of condition. It never changes its meaning; programs may compare it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code { $($(#[$about])* $name,)* }

        impl Code {
            /// All codes, in the order of the document that explains them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name, as `BLOCKS_MISSING`.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The severities that a condition of this code may have.
            pub fn severities(self) -> &'static [Severity] {
                match self { $(Self::$name => $severities,)* }
            }
        }
    };
}

const WARNING: &[Severity] = &[Severity::Warning];
const ERROR: &[Severity] = &[Severity::Error];
const EITHER: &[Severity] = &[Severity::Warning, Severity::Error];

codes! {
    /// No metadata server answers.
    NoAnswer "NO_ANSWER" ERROR;
    /// No member of a group serves.
    NoActive "NO_ACTIVE" ERROR;
    /// Too few members have everything: changes are refused.
    GroupBelowMinimum "GROUP_BELOW_MINIMUM" ERROR;
    /// A member does not answer.
    GroupMemberAway "GROUP_MEMBER_AWAY" WARNING;
    /// A member has stopped taking part, and waits for a person.
    MemberStopped "MEMBER_STOPPED" WARNING;
    /// A member answers, and does not have everything.
    MemberBehind "MEMBER_BEHIND" WARNING;
    /// The group would go on with a change on one disk only.
    GroupMinimumOne "GROUP_MINIMUM_ONE" WARNING;
    /// The coordinator does not answer: nobody can take over.
    CoordinatorAway "COORDINATOR_AWAY" WARNING;
    /// A group cannot follow the changes of directories.
    DirectoryLogStopped "DIRECTORY_LOG_STOPPED" ERROR;
    /// Safe mode is on: changes are refused.
    SafeMode "SAFE_MODE" ERROR;
    /// The disk of a metadata store is nearly full, or so full that changes are refused.
    MetadataDiskLow "METADATA_DISK_LOW" EITHER;
    /// A metadata store has damaged files that no other member could replace.
    StoreDamaged "STORE_DAMAGED" WARNING;
    /// Flushes of a metadata server's journal take long.
    JournalSlow "JOURNAL_SLOW" WARNING;
    /// A thread of a metadata server hangs.
    ThreadHangs "THREAD_HANGS" WARNING;
    /// Requests are refused because one like them has ended a server.
    FatalRequests "FATAL_REQUESTS" WARNING;
    /// Blocks without a good replica on a data server that is there.
    BlocksMissing "BLOCKS_MISSING" ERROR;
    /// Blocks with a damaged replica.
    BlocksCorrupt "BLOCKS_CORRUPT" WARNING;
    /// Blocks with fewer replicas than their files want.
    BlocksUnderReplicated "BLOCKS_UNDER_REPLICATED" WARNING;
    /// Replicas that no file has are kept until a person allows their deletion.
    DeletionsHeld "DELETIONS_HELD" WARNING;
    /// No data server is there.
    NoDataServer "NO_DATA_SERVER" ERROR;
    /// A data server has been silent for so long that its replicas are copied.
    DataServerDead "DATA_SERVER_DEAD" WARNING;
    /// A data server has been silent for a while.
    DataServerStale "DATA_SERVER_STALE" WARNING;
    /// Other data servers say that packets to a data server take long.
    DataServerSlow "DATA_SERVER_SLOW" WARNING;
    /// A data server says that one of its disks is slow.
    DiskSlow "DISK_SLOW" WARNING;
    /// Data servers speak from one address and port.
    AddressContested "ADDRESS_CONTESTED" WARNING;
    /// A volume of a data server is out of use.
    VolumeFailed "VOLUME_FAILED" WARNING;
    /// A volume of a data server is nearly full.
    DiskNearlyFull "DISK_NEARLY_FULL" WARNING;
    /// All data servers together are nearly full.
    CapacityNearlyFull "CAPACITY_NEARLY_FULL" EITHER;
    /// The clocks of metadata servers differ.
    ClockApart "CLOCK_APART" WARNING;
    /// Servers run different releases.
    VersionsApart "VERSIONS_APART" WARNING;
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
impl Code {
    /// Whether conditions of this code have data servers as subjects. All groups of a namespace have the same data servers.
    pub(crate) fn is_of_data_servers(self) -> bool {
        matches!(
            self,
            Self::DataServerDead
                | Self::DataServerStale
                | Self::DataServerSlow
                | Self::DiskSlow
                | Self::VolumeFailed
                | Self::DiskNearlyFull
        )
    }
}
