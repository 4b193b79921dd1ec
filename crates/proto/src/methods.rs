//! The methods of `ClientProtocol`, one row each: what it does, where its paths stand, and which line of the audit log tells of it.
//!
//! Code that needs a fact about a method by its name finds it here. The definitions of the protocol have the same
//! methods; a test holds the two against each other, so that a new method does not go without its row.

/// The facts about a method that the rest of the program uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    pub name: &'static str,
    pub kind: Kind,
    pub class: Class,
    pub paths: Paths,
    /// `None`: HDFS's audit log does not tell of it either.
    pub logged: Option<Logged>,
}

/// The effect of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Every member answers it about itself, the active or not.
    Own,
    /// A look at the namespace, or at what is the same on every member. It is answered below the minimum of members in sync as well,
    /// once what it saw is certain.
    Look,
    /// A look that only an active answers which serves: it needs the data servers' reports, or walks the tree.
    Read,
    /// A change of the namespace, or of what the server knows of files that are being written.
    Edit,
    /// An order about the service itself.
    Administration,
}

/// The groups that can answer a call, when several groups share one namespace. With one group there is no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The member that is asked.
    Member,
    /// Any group: the answer is the same everywhere.
    Any,
    /// The home of the file. A change of a directory is one in the order of all directories instead.
    Home,
    /// The group whose pool the block is in.
    Pool,
    /// The group that keeps the order of all changes of directories.
    Ordered,
    /// The group of the root as well, for a look.
    Root,
    /// All groups; their answers are put together.
    Every,
    /// All groups, each with a stream of its own.
    Stream,
}

/// The fields of a request that are paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    None,
    /// Field 1.
    One,
    /// Field 2.
    Second,
    /// Each of field 1.
    Many,
    /// Fields 1 and 2.
    Two,
    /// Field 2 is the list of sources, field 1 the target.
    Concat,
    /// Field 1 and `.snapshot`, and the name in field 2.
    Snapshot,
    /// Field 1 and the names in fields 2 and 3, of which none may mean the directory itself.
    TwoSnapshots,
}

/// The line of the audit log. The names are those of HDFS's `FSNamesystem`, which people's reports know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged {
    pub command: &'static str,
    pub shows: Shows,
    pub verdict: Verdict,
}

/// The path whose permission the audit log shows for a successful call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    Nothing,
    Source,
    Destination,
}

/// How the audit log reads the answer of a call that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allowed,
    /// `delete`: false is written down as not allowed.
    TheAnswer,
    /// An answer of false leaves no line.
    AllowedIfTrue,
    /// `createSnapshot`: the destination is what the answer says.
    AllowedAndNamed,
}

/// The row of this method; `None` for a name that the protocol does not have.
pub fn method(name: &str) -> Option<&'static Method> {
    METHODS.binary_search_by(|method| method.name.cmp(name)).ok().map(|index| &METHODS[index])
}

const fn row(name: &'static str, kind: Kind, class: Class, paths: Paths, logged: Option<Logged>) -> Method {
    Method { name, kind, class, paths, logged }
}

const fn logged(command: &'static str, shows: Shows, verdict: Verdict) -> Option<Logged> {
    Some(Logged { command, shows, verdict })
}

const NOT_LOGGED: Option<Logged> = None;

use Class::{Any, Every, Home, Member, Ordered, Pool, Root, Stream};
use Kind::{Administration, Edit, Look, Own, Read};
use Paths::{Concat, Many, None as NoPath, One, Second, Snapshot, Two, TwoSnapshots};
use Shows::{Destination, Nothing, Source};
use Verdict::{Allowed, AllowedAndNamed, AllowedIfTrue, TheAnswer};

/// All methods, sorted by name.
#[rustfmt::skip]
pub const METHODS: &[Method] = &[
    row("abandonBlock", Edit, Home, Second, NOT_LOGGED),
    row("addBlock", Edit, Home, One, NOT_LOGGED),
    row("addCacheDirective", Edit, Ordered, NoPath, NOT_LOGGED),
    row("addCachePool", Edit, Ordered, NoPath, NOT_LOGGED),
    row("addErasureCodingPolicies", Edit, Ordered, NoPath, NOT_LOGGED),
    row("allowSnapshot", Edit, Ordered, One, logged("allowSnapshot", Nothing, Allowed)),
    row("append", Edit, Home, One, logged("append", Nothing, Allowed)),
    row("cancelDelegationToken", Edit, Ordered, NoPath, NOT_LOGGED),
    row("checkAccess", Look, Home, One, logged("checkAccess", Nothing, Allowed)),
    row("complete", Edit, Home, One, NOT_LOGGED),
    row("concat", Edit, Home, Concat, logged("concat", Destination, Allowed)),
    row("create", Edit, Home, One, logged("create", Source, Allowed)),
    row("createEncryptionZone", Edit, Ordered, One, NOT_LOGGED),
    row("createSnapshot", Edit, Ordered, One, logged("createSnapshot", Nothing, AllowedAndNamed)),
    row("createSymlink", Edit, Home, Second, NOT_LOGGED),
    row("delete", Edit, Home, One, logged("delete", Nothing, TheAnswer)),
    row("deleteSnapshot", Edit, Ordered, Snapshot, logged("deleteSnapshot", Nothing, Allowed)),
    row("disableErasureCodingPolicy", Edit, Ordered, NoPath, NOT_LOGGED),
    row("disallowSnapshot", Edit, Ordered, One, logged("disallowSnapshot", Nothing, Allowed)),
    row("enableErasureCodingPolicy", Edit, Ordered, NoPath, NOT_LOGGED),
    row("finalizeUpgrade", Administration, Every, NoPath, logged("finalizeUpgrade", Nothing, Allowed)),
    row("fsync", Edit, Home, One, NOT_LOGGED),
    row("getAclStatus", Look, Home, One, logged("getAclStatus", Nothing, Allowed)),
    row("getAdditionalDatanode", Read, Home, One, NOT_LOGGED),
    row("getBatchedListing", Look, Home, Many, logged("listStatus", Nothing, Allowed)),
    row("getBlockLocations", Look, Home, One, logged("open", Nothing, Allowed)),
    row("getContentSummary", Read, Every, One, logged("contentSummary", Nothing, Allowed)),
    row("getCurrentEditLogTxid", Read, Stream, NoPath, NOT_LOGGED),
    row("getDataEncryptionKey", Read, Any, NoPath, NOT_LOGGED),
    row("getDatanodeReport", Read, Every, NoPath, logged("datanodeReport", Nothing, Allowed)),
    row("getDatanodeStorageReport", Read, Every, NoPath, logged("getDatanodeStorageReport", Nothing, Allowed)),
    row("getDelegationToken", Edit, Ordered, NoPath, NOT_LOGGED),
    row("getECTopologyResultForPolicies", Read, Root, NoPath, NOT_LOGGED),
    row("getEZForPath", Read, Home, One, logged("getEZForPath", Nothing, Allowed)),
    row("getEditsFromTxid", Read, Stream, NoPath, NOT_LOGGED),
    row("getEnclosingRoot", Look, Home, One, NOT_LOGGED),
    row("getErasureCodingCodecs", Read, Root, NoPath, logged("getErasureCodingCodecs", Nothing, Allowed)),
    row("getErasureCodingPolicies", Read, Root, NoPath, logged("getErasureCodingPolicies", Nothing, Allowed)),
    row("getErasureCodingPolicy", Read, Home, One, logged("getErasureCodingPolicy", Nothing, Allowed)),
    row("getFileInfo", Look, Home, One, logged("getfileinfo", Nothing, Allowed)),
    row("getFileLinkInfo", Look, Home, One, logged("getfileinfo", Nothing, Allowed)),
    row("getFsECBlockGroupStats", Read, Every, NoPath, NOT_LOGGED),
    row("getFsReplicatedBlockStats", Read, Every, NoPath, NOT_LOGGED),
    row("getFsStats", Read, Every, NoPath, NOT_LOGGED),
    row("getHAServiceState", Own, Member, NoPath, NOT_LOGGED),
    row("getLinkTarget", Look, Home, One, NOT_LOGGED),
    row("getListing", Look, Home, One, logged("listStatus", Nothing, Allowed)),
    row("getLocatedFileInfo", Look, Home, One, logged("open", Nothing, Allowed)),
    row("getPreferredBlockSize", Look, Home, One, NOT_LOGGED),
    row("getQuotaUsage", Read, Every, One, logged("quotaUsage", Nothing, Allowed)),
    row("getServerDefaults", Look, Any, NoPath, NOT_LOGGED),
    row("getSlowDatanodeReport", Read, Every, NoPath, logged("slowDataNodesReport", Nothing, Allowed)),
    row("getSnapshotDiffReport", Read, Every, TwoSnapshots, logged("computeSnapshotDiff", Nothing, Allowed)),
    row("getSnapshotDiffReportListing", Read, Every, TwoSnapshots, logged("computeSnapshotDiff", Nothing, Allowed)),
    row("getSnapshotListing", Look, Home, One, logged("ListSnapshot", Nothing, Allowed)),
    row("getSnapshottableDirListing", Read, Root, NoPath, logged("listSnapshottableDirectory", Nothing, Allowed)),
    row("getStoragePolicies", Read, Any, NoPath, NOT_LOGGED),
    row("getStoragePolicy", Look, Home, One, NOT_LOGGED),
    row("getXAttrs", Look, Home, One, logged("getXAttrs", Nothing, Allowed)),
    row("isFileClosed", Look, Home, One, logged("isFileClosed", Nothing, Allowed)),
    row("listCacheDirectives", Read, Root, NoPath, NOT_LOGGED),
    row("listCachePools", Read, Root, NoPath, NOT_LOGGED),
    row("listCorruptFileBlocks", Read, Every, One, logged("listCorruptFileBlocks", Nothing, Allowed)),
    row("listEncryptionZones", Read, Root, NoPath, logged("listEncryptionZones", Nothing, Allowed)),
    row("listOpenFiles", Read, Every, NoPath, logged("listOpenFiles", Nothing, Allowed)),
    row("listReencryptionStatus", Read, Root, NoPath, NOT_LOGGED),
    row("listXAttrs", Look, Home, One, logged("listXAttrs", Nothing, Allowed)),
    row("metaSave", Administration, Every, NoPath, logged("metaSave", Nothing, Allowed)),
    row("mkdirs", Edit, Ordered, One, logged("mkdirs", Source, Allowed)),
    row("modifyAclEntries", Edit, Home, One, logged("modifyAclEntries", Source, Allowed)),
    row("modifyCacheDirective", Edit, Ordered, NoPath, NOT_LOGGED),
    row("modifyCachePool", Edit, Ordered, NoPath, NOT_LOGGED),
    row("msync", Read, Any, NoPath, NOT_LOGGED),
    row("recoverLease", Edit, Home, One, NOT_LOGGED),
    row("reencryptEncryptionZone", Edit, Ordered, Second, NOT_LOGGED),
    row("refreshNodes", Own, Every, NoPath, logged("refreshNodes", Nothing, Allowed)),
    row("removeAcl", Edit, Home, One, logged("removeAcl", Source, Allowed)),
    row("removeAclEntries", Edit, Home, One, logged("removeAclEntries", Source, Allowed)),
    row("removeCacheDirective", Edit, Ordered, NoPath, NOT_LOGGED),
    row("removeCachePool", Edit, Ordered, NoPath, NOT_LOGGED),
    row("removeDefaultAcl", Edit, Home, One, logged("removeDefaultAcl", Source, Allowed)),
    row("removeErasureCodingPolicy", Edit, Ordered, NoPath, NOT_LOGGED),
    row("removeXAttr", Edit, Home, One, logged("removeXAttr", Source, Allowed)),
    row("rename", Edit, Home, Two, logged("rename", Destination, AllowedIfTrue)),
    row("rename2", Edit, Home, Two, logged("rename", Destination, Allowed)),
    row("renameSnapshot", Edit, Ordered, TwoSnapshots, logged("renameSnapshot", Nothing, Allowed)),
    row("renewDelegationToken", Edit, Ordered, NoPath, NOT_LOGGED),
    row("renewLease", Edit, Every, NoPath, NOT_LOGGED),
    row("reportBadBlocks", Edit, Pool, NoPath, NOT_LOGGED),
    row("restoreFailedStorage", Administration, Every, NoPath, NOT_LOGGED),
    row("rollEdits", Administration, Every, NoPath, logged("rollEditLog", Nothing, Allowed)),
    row("rollingUpgrade", Administration, Every, NoPath, NOT_LOGGED),
    row("satisfyStoragePolicy", Edit, Home, One, logged("satisfyStoragePolicy", Source, Allowed)),
    row("saveNamespace", Administration, Every, NoPath, logged("saveNamespace", Nothing, Allowed)),
    row("setAcl", Edit, Home, One, logged("setAcl", Source, Allowed)),
    row("setBalancerBandwidth", Administration, Every, NoPath, logged("setBalancerBandwidth", Nothing, Allowed)),
    row("setErasureCodingPolicy", Edit, Home, One, logged("setErasureCodingPolicy", Source, Allowed)),
    row("setOwner", Edit, Home, One, logged("setOwner", Source, Allowed)),
    row("setPermission", Edit, Home, One, logged("setPermission", Source, Allowed)),
    row("setQuota", Edit, Ordered, One, logged("setQuota", Nothing, Allowed)),
    row("setReplication", Edit, Home, One, logged("setReplication", Nothing, AllowedIfTrue)),
    row("setSafeMode", Administration, Every, NoPath, logged("safemode_get", Nothing, Allowed)),
    row("setStoragePolicy", Edit, Home, One, logged("setStoragePolicy", Source, Allowed)),
    row("setTimes", Edit, Home, One, logged("setTimes", Source, Allowed)),
    row("setXAttr", Edit, Home, One, logged("setXAttr", Source, Allowed)),
    row("truncate", Edit, Home, One, logged("truncate", Source, Allowed)),
    row("unsetErasureCodingPolicy", Edit, Home, One, logged("unsetErasureCodingPolicy", Source, Allowed)),
    row("unsetStoragePolicy", Edit, Home, One, logged("unsetStoragePolicy", Source, Allowed)),
    row("updateBlockForPipeline", Edit, Pool, NoPath, NOT_LOGGED),
    row("updatePipeline", Edit, Pool, NoPath, NOT_LOGGED),
    row("upgradeStatus", Administration, Every, NoPath, NOT_LOGGED),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol;

    #[test]
    fn every_method_of_the_protocol_has_a_row_and_none_else() {
        let names: Vec<&str> = METHODS.iter().map(|method| method.name).collect();
        assert_eq!(names, protocol::methods(protocol::CLIENT_NAMENODE));
    }

    #[test]
    fn a_method_is_found_by_its_exact_name() {
        assert_eq!(method("mkdirs").map(|method| method.kind), Some(Edit));
        assert_eq!(method("mkdir"), None);
        assert_eq!(method(""), None);
    }

    /// A member that is not certain yet of what has committed answers looks only.
    #[test]
    fn only_methods_that_change_nothing_are_looks() {
        for method in METHODS.iter().filter(|method| method.kind == Look) {
            let is_look = ["get", "list", "is", "check"].iter().any(|verb| method.name.starts_with(verb));
            assert!(is_look, "{}", method.name);
        }
    }
}
