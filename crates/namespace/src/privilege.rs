//! The operations that only a superuser may ask for, by Hadoop's names, and the refusal that others hear.
//!
//! Quotas stand beside their plan ([`crate::ops::set_quota`]), since the name of that operation depends on the numbers.

use crate::AccessPolicy;
use base::{Caller, FsError, FsResult};

macro_rules! privileged {
    ($($name:ident = $hadoop:literal;)*) => {
        /// An operation that only a superuser may ask for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Privileged {
            $($name,)*
        }

        impl Privileged {
            /// All of them, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Hadoop's name, which the refusal tells.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $hadoop,)*
                }
            }
        }
    };
}

privileged! {
    // Safe mode. To ask whether it is on is open to all.
    EnterSafeMode = "safemode_enter";
    LeaveSafeMode = "safemode_leave";
    ForceSafeModeExit = "safemode_force_exit";

    // The service.
    SaveNamespace = "saveNamespace";
    RollEditLog = "rollEditLog";
    CheckRestoreFailedStorage = "checkRestoreFailedStorage";
    EnableRestoreFailedStorage = "enableRestoreFailedStorage";
    DisableRestoreFailedStorage = "disableRestoreFailedStorage";
    RefreshNodes = "refreshNodes";
    FinalizeUpgrade = "finalizeUpgrade";
    QueryRollingUpgrade = "queryRollingUpgrade";
    StartRollingUpgrade = "startRollingUpgrade";
    FinalizeRollingUpgrade = "finalizeRollingUpgrade";
    SetBalancerBandwidth = "setBalancerBandwidth";
    MetaSave = "metaSave";
    GetCurrentEditLogTxid = "getCurrentEditLogTxid";
    GetEditsFromTxid = "getEditsFromTxid";
    DatanodeReport = "datanodeReport";
    GetDatanodeStorageReport = "getDatanodeStorageReport";
    ListCorruptFileBlocks = "listCorruptFileBlocks";
    ListOpenFiles = "listOpenFiles";
    ListProperties = "listNamenodeReconfigurableProperties";
    GetReconfigurationStatus = "getNamenodeReconfigurationStatus";
    StartReconfiguration = "startNamenodeReconfiguration";

    // Who is active.
    TransitionToActive = "transitionToActive";
    TransitionToStandby = "transitionToStandby";
    GracefulFailover = "gracefulFailover";
    CedeActive = "cedeActive";

    // Directories.
    AllowSnapshot = "allowSnapshot";
    DisallowSnapshot = "disallowSnapshot";

    // Encryption zones. To ask for the zone of one path is open to its readers.
    CreateEncryptionZone = "createEncryptionZone";
    ListEncryptionZones = "listEncryptionZones";
    ReencryptEncryptionZone = "reencryptEncryptionZone";
    ListReencryptionStatus = "listReencryptionStatus";

    // Erasure coding. The policy of a directory is set by those who may write it.
    AddErasureCodingPolicies = "addErasureCodingPolicies";
    RemoveErasureCodingPolicy = "removeErasureCodingPolicy";
    EnableErasureCodingPolicy = "enableErasureCodingPolicy";
    DisableErasureCodingPolicy = "disableErasureCodingPolicy";
    GetEcTopologyResult = "getECTopologyResultForPolicies";

    // Caching. Directives are for those who may write to their pool.
    AddCachePool = "addCachePool";
    ModifyCachePool = "modifyCachePool";
    RemoveCachePool = "removeCachePool";

    // Balancers and secondary servers. To ask for the server's version is open to all.
    GetBlocks = "getBlocks";
    GetBlockKeys = "getBlockKeys";
    GetTransactionId = "getTransactionId";
    GetMostRecentCheckpointTxId = "getMostRecentCheckpointTxId";
    GetMostRecentNameNodeFileTxId = "getMostRecentNameNodeFileTxId";
    ErrorReport = "errorReport";
    RegisterSubordinateNamenode = "registerSubordinateNamenode";
    StartCheckpoint = "startCheckpoint";
    EndCheckpoint = "endCheckpoint";
    GetEditLogManifest = "getEditLogManifest";
    IsUpgradeFinalized = "isUpgradeFinalized";
    IsRollingUpgrade = "isRollingUpgrade";
    GetNextSpsPath = "getNextSPSPath";

    // Clover's own.
    OrderDataServer = "orderDataServer";
    GetDataServerOrders = "getDataServerOrders";

    // Questions of fsck about replicas, under the name that Hadoop's refusal tells.
    GetReplicas = "fsck";
}

impl Privileged {
    /// The operation of this name, for protocols whose methods are called as their operations are.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|operation| operation.name() == name)
    }

    /// Hadoop's `checkSuperuserPrivilege`.
    ///
    /// # Errors
    /// [`FsError::AccessDenied`] if permissions are checked and the caller is no superuser.
    pub fn check(self, policy: &AccessPolicy, caller: &Caller) -> FsResult<()> {
        if !policy.enabled || policy.is_superuser(caller) {
            return Ok(());
        }
        Err(FsError::AccessDenied(format!(
            "Access denied for user {}. Superuser privilege is required for operation {}",
            caller.user,
            self.name()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn superusers_may_and_others_hear_hadoop_s_sentence() {
        let policy = AccessPolicy::default();
        let check = |policy: &AccessPolicy, user: &str, groups: &[&str]| {
            Privileged::RollEditLog.check(policy, &Caller::simple(user, groups))
        };
        assert_eq!(check(&policy, "hdfs", &[]), Ok(()));
        assert_eq!(check(&policy, "bob", &["staff", "supergroup"]), Ok(()));
        let denied = "Access denied for user bob. Superuser privilege is required for operation rollEditLog";
        assert_eq!(check(&policy, "bob", &["staff"]), Err(FsError::AccessDenied(denied.into())));
        // Where permissions are not checked, everybody may.
        let unchecked = AccessPolicy { enabled: false, ..policy };
        assert_eq!(check(&unchecked, "bob", &["staff"]), Ok(()));
    }

    #[test]
    fn each_operation_has_a_name_of_its_own() {
        for operation in Privileged::ALL {
            assert_eq!(Privileged::named(operation.name()), Some(*operation));
        }
        // Those that everybody may ask for have no row.
        for open in ["versionRequest", "safemode_get", "getEZForPath", "listCachePools"] {
            assert_eq!(Privileged::named(open), None);
        }
    }
}
