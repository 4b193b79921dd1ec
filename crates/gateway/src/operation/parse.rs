//! Reads an operation from a request. One table for each method.

use super::{Change, Create, Operation, Question, RenameOptions, Transfer};
use crate::{
    error::{Refusal, Result},
    parameters::{Parameters, invalid},
    path,
};
use axum::http::{Method, StatusCode};
use base::StorageType;
use client::{acl::AclEntry, xattr::Encoding};
use proto::hdfs::acl_entry_proto::FsActionProto;

/// The modes of what is made, where the request has none.
const DIRECTORY_MODE: u16 = 0o755;
const FILE_MODE: u16 = 0o644;
/// A quota that stays as it is.
const KEEP: i64 = i64::MAX;
/// Files that are put behind another one at once.
const SOURCES_MAX: usize = 10_000;

/// Flags of an extended attribute: it may be new, it may be there.
const XATTR_FLAGS: &[(&str, u32)] = &[("CREATE", 1), ("REPLACE", 2)];
const RENAME_OPTIONS: &[(&str, RenameOptions)] = &[
    ("NONE", RenameOptions { overwrite: false, to_trash: false }),
    ("OVERWRITE", RenameOptions { overwrite: true, to_trash: false }),
    ("TO_TRASH", RenameOptions { overwrite: false, to_trash: true }),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum CreateFlag {
    Create,
    Overwrite,
    LazyPersist,
    /// It says how the client writes, or where replicas had better not be.
    Hint,
    Append,
}

const CREATE_FLAGS: &[(&str, CreateFlag)] = &[
    ("CREATE", CreateFlag::Create),
    ("OVERWRITE", CreateFlag::Overwrite),
    ("APPEND", CreateFlag::Append),
    ("SYNC_BLOCK", CreateFlag::Hint),
    ("LAZY_PERSIST", CreateFlag::LazyPersist),
    ("NEW_BLOCK", CreateFlag::Hint),
    ("NO_LOCAL_WRITE", CreateFlag::Hint),
    ("SHOULD_REPLICATE", CreateFlag::Hint),
    ("IGNORE_CLIENT_LOCALITY", CreateFlag::Hint),
    ("NO_LOCAL_RACK", CreateFlag::Hint),
];

impl Operation {
    /// # Errors
    /// There is no such operation of this method, or a parameter is missing or makes no sense.
    pub fn parse(method: &Method, parameters: &Parameters) -> Result<Self> {
        let name = parameters.get("op").unwrap_or("NULL").to_ascii_uppercase();
        let known = match *method {
            Method::GET => get(&name, parameters)?,
            Method::PUT => put(&name, parameters)?,
            Method::POST => post(&name, parameters)?,
            Method::DELETE => delete(&name, parameters)?,
            Method::OPTIONS => Some(Self::Preflight),
            _ => {
                let message = format!("WebHDFS has no {method}; it has GET, PUT, POST, DELETE and OPTIONS");
                return Err(Refusal::no_such(StatusCode::METHOD_NOT_ALLOWED, message));
            }
        };
        known.ok_or_else(|| match &*name {
            "NULL" => Refusal::unsupported("op=NULL is not supported"),
            _ => {
                let op = parameters.get("op").unwrap_or_default();
                let shown: String = op.chars().take(40).collect();
                invalid("op", format!("{shown} is not a valid {method} operation."))
            }
        })
    }
}

fn get(name: &str, given: &Parameters) -> Result<Option<Operation>> {
    let range = || -> Result<(u64, Option<u64>)> {
        let offset = given.number("offset", 0_i64)?.unwrap_or(0);
        Ok((offset as u64, given.number("length", 0_i64)?.map(|length| length as u64)))
    };
    let snapshots = || {
        (given.text("oldsnapshotname").unwrap_or_default(), given.text("snapshotname").unwrap_or_default())
    };
    let question = match name {
        "OPEN" => {
            let (offset, length) = range()?;
            return Ok(Some(Operation::Transfer(Transfer::Open { offset, length })));
        }
        "GETFILECHECKSUM" => return Ok(Some(Operation::Transfer(Transfer::Checksum))),
        "GETFILESTATUS" => Question::FileStatus,
        "GETFILELINKSTATUS" => Question::LinkStatus,
        "GETLINKTARGET" => Question::LinkTarget,
        "LISTSTATUS" => Question::List,
        "LISTSTATUS_BATCH" => {
            Question::ListBatch { start_after: given.text("startafter").unwrap_or_default() }
        }
        "GETCONTENTSUMMARY" => Question::ContentSummary,
        "GETQUOTAUSAGE" => Question::QuotaUsage,
        "GETHOMEDIRECTORY" => Question::HomeDirectory,
        "GETTRASHROOT" => Question::TrashRoot,
        "GETTRASHROOTS" => Question::TrashRoots { of_all_users: given.flag("allusers")?.unwrap_or(false) },
        "GET_BLOCK_LOCATIONS" => {
            let (offset, length) = range()?;
            Question::LocatedBlocks { offset, length: length.unwrap_or(i64::MAX as u64) }
        }
        "GETFILEBLOCKLOCATIONS" => {
            let (offset, length) = range()?;
            Question::BlockLocations { offset, length: length.unwrap_or(i64::MAX as u64) }
        }
        "GETACLSTATUS" => Question::AclStatus,
        "GETXATTRS" => Question::Xattrs {
            names: given.all("xattr.name").map(str::to_owned).collect(),
            encoding: xattr_encoding(name, given)?,
        },
        "LISTXATTRS" => Question::XattrNames,
        "CHECKACCESS" => Question::CheckAccess(action(given.required(name, "fsaction")?)?),
        "GETALLSTORAGEPOLICY" => Question::StoragePolicies,
        "GETSTORAGEPOLICY" => Question::StoragePolicy,
        "GETECPOLICY" => Question::ErasureCodingPolicy,
        "GETECPOLICIES" => Question::ErasureCodingPolicies,
        "GETECCODECS" => Question::ErasureCodingCodecs,
        "GETSERVERDEFAULTS" => Question::ServerDefaults,
        "GETSTATUS" => Question::FsStatus,
        "GETSNAPSHOTDIFF" => {
            let (from, to) = snapshots();
            Question::SnapshotDiff { from, to }
        }
        "GETSNAPSHOTDIFFLISTING" => {
            let (from, to) = snapshots();
            let start_path = given.text("snapshotdiffstartpath").unwrap_or_default();
            let index = given.number("snapshotdiffindex", -1_i32)?.unwrap_or(-1);
            Question::SnapshotDiffPage { from, to, start_path, index }
        }
        "GETSNAPSHOTTABLEDIRECTORYLIST" => Question::SnapshottableDirectories,
        "GETSNAPSHOTLIST" => Question::Snapshots,
        "GETDELEGATIONTOKEN" => {
            if given.get("delegation").is_some() {
                return Err(Refusal::illegal("delegation parameter is not null."));
            }
            Question::DelegationToken { renewer: given.text("renewer").unwrap_or_default() }
        }
        _ => return Ok(None),
    };
    Ok(Some(Operation::Ask(question)))
}

fn put(name: &str, given: &Parameters) -> Result<Option<Operation>> {
    let policy = || given.required(name, "ecpolicy").map(str::to_owned);
    let change = match name {
        "CREATE" => return Ok(Some(Operation::Transfer(Transfer::Create(Box::new(create(given)?))))),
        "MKDIRS" => Change::MakeDirectories {
            mode: given.mode("permission")?.unwrap_or(DIRECTORY_MODE),
            unmasked: given.mode("unmaskedpermission")?,
        },
        "CREATESYMLINK" => Change::MakeSymlink {
            target: given.path(name, "destination")?,
            make_parents: given.flag("createparent")?.unwrap_or(true),
        },
        "RENAME" => Change::Rename { to: given.path(name, "destination")?, options: rename_options(given)? },
        "SETREPLICATION" => {
            Change::SetReplication(given.number("replication", 1_i16)?.map(|count| count as u16))
        }
        "SETOWNER" => {
            let (owner, group) = (given.text("owner"), given.text("group"));
            if owner.is_none() && group.is_none() {
                return Err(Refusal::illegal("Both owner and group are empty."));
            }
            Change::SetOwner { owner, group }
        }
        "SETPERMISSION" => Change::SetPermission(given.mode("permission")?.unwrap_or(DIRECTORY_MODE)),
        "SETTIMES" => Change::SetTimes {
            modified: given.number("modificationtime", -1_i64)?.unwrap_or(-1),
            accessed: given.number("accesstime", -1_i64)?.unwrap_or(-1),
        },
        "SETACL" => Change::SetAcl(acl(name, given, true)?),
        "MODIFYACLENTRIES" => Change::ModifyAcl(acl(name, given, true)?),
        "REMOVEACLENTRIES" => Change::RemoveAclEntries(acl(name, given, false)?),
        "REMOVEDEFAULTACL" => Change::RemoveDefaultAcl,
        "REMOVEACL" => Change::RemoveAcl,
        "SETXATTR" => Change::SetXattr {
            name: given.required(name, "xattr.name")?.to_owned(),
            value: xattr_value(given.get("xattr.value").unwrap_or_default())?,
            flags: xattr_flags(name, given)?,
        },
        "REMOVEXATTR" => Change::RemoveXattr { name: given.required(name, "xattr.name")?.to_owned() },
        "ALLOWSNAPSHOT" => Change::AllowSnapshot,
        "DISALLOWSNAPSHOT" => Change::DisallowSnapshot,
        "CREATESNAPSHOT" => Change::CreateSnapshot { name: given.text("snapshotname") },
        "RENAMESNAPSHOT" => Change::RenameSnapshot {
            old: given.required(name, "oldsnapshotname")?.to_owned(),
            new: given.required(name, "snapshotname")?.to_owned(),
        },
        "SETSTORAGEPOLICY" => match given.text("storagepolicy") {
            Some(name) => Change::SetStoragePolicy { name },
            None => return Err(Refusal::illegal("Storage policy name is empty.")),
        },
        "SATISFYSTORAGEPOLICY" => Change::SatisfyStoragePolicy,
        "SETQUOTA" => Change::SetQuota {
            names: given.number("namespacequota", -1_i64)?.unwrap_or(KEEP),
            space: given.number("storagespacequota", -1_i64)?.unwrap_or(KEEP),
        },
        "SETQUOTABYSTORAGETYPE" => {
            let medium = given.required(name, "storagetype")?;
            let Some(medium) = StorageType::named(&medium.to_ascii_uppercase()) else {
                return Err(Refusal::illegal(format!("No enum constant StorageType.{medium}")));
            };
            Change::SetTypeQuota { medium, space: given.number("storagespacequota", -1_i64)?.unwrap_or(KEEP) }
        }
        "ENABLEECPOLICY" => Change::EnableErasureCodingPolicy { name: policy()? },
        "DISABLEECPOLICY" => Change::DisableErasureCodingPolicy { name: policy()? },
        "SETECPOLICY" => Change::SetErasureCodingPolicy { name: policy()? },
        "RENEWDELEGATIONTOKEN" => {
            given.required(name, "token")?;
            Change::RenewToken
        }
        "CANCELDELEGATIONTOKEN" => {
            given.required(name, "token")?;
            Change::CancelToken
        }
        _ => return Ok(None),
    };
    Ok(Some(Operation::Change(change)))
}

fn post(name: &str, given: &Parameters) -> Result<Option<Operation>> {
    let change = match name {
        "APPEND" => return Ok(Some(Operation::Transfer(Transfer::Append))),
        "CONCAT" => {
            let sources = given.required(name, "sources")?;
            let sources: Vec<String> =
                sources.split(',').take(SOURCES_MAX + 1).map(path::check).collect::<Result<_>>()?;
            if sources.len() > SOURCES_MAX {
                return Err(Refusal::illegal(format!("more than {SOURCES_MAX} sources")));
            }
            Change::Concat { sources }
        }
        "TRUNCATE" => {
            given.required(name, "newlength")?;
            Change::Truncate { length: given.number("newlength", 0_i64)?.unwrap_or(0) as u64 }
        }
        "UNSETSTORAGEPOLICY" => Change::UnsetStoragePolicy,
        "UNSETECPOLICY" => Change::UnsetErasureCodingPolicy,
        _ => return Ok(None),
    };
    Ok(Some(Operation::Change(change)))
}

fn delete(name: &str, given: &Parameters) -> Result<Option<Operation>> {
    let change = match name {
        "DELETE" => Change::Delete { recursive: given.flag("recursive")?.unwrap_or(false) },
        "DELETESNAPSHOT" => Change::DeleteSnapshot { name: given.required(name, "snapshotname")?.to_owned() },
        _ => return Ok(None),
    };
    Ok(Some(Operation::Change(change)))
}

fn create(given: &Parameters) -> Result<Create> {
    let flags = given.set_of("createflag", CREATE_FLAGS)?;
    let has = |flag| flags.contains(&flag);
    if has(CreateFlag::Append) {
        return Err(Refusal::illegal("APPEND is an operation of its own, not a way to create a file"));
    }
    if !flags.is_empty() && !has(CreateFlag::Create) && !has(CreateFlag::Overwrite) {
        return Err(Refusal::illegal("createflag has neither CREATE nor OVERWRITE"));
    }
    Ok(Create {
        overwrite: given.flag("overwrite")?.unwrap_or(false) || has(CreateFlag::Overwrite),
        block_size: given.number("blocksize", 1_i64)?.map(|size| size as u64),
        replication: given.number("replication", 1_i16)?.map(|count| count as u16),
        mode: Some(given.mode("permission")?.unwrap_or(FILE_MODE)),
        unmasked: given.mode("unmaskedpermission")?,
        parent_must_exist: !given.flag("createparent")?.unwrap_or(true),
        storage_policy: given.text("storagepolicy"),
        erasure_coding: given.text("ecpolicy"),
        lazy_persist: has(CreateFlag::LazyPersist),
    })
}

fn rename_options(given: &Parameters) -> Result<Option<RenameOptions>> {
    let options = given.set_of("renameoptions", RENAME_OPTIONS)?;
    let all = |all: RenameOptions, one: RenameOptions| RenameOptions {
        overwrite: all.overwrite || one.overwrite,
        to_trash: all.to_trash || one.to_trash,
    };
    Ok(options.into_iter().reduce(all))
}

fn acl(operation: &str, given: &Parameters, with_permission: bool) -> Result<Vec<AclEntry>> {
    let entries = given.required(operation, "aclspec")?;
    AclEntry::parse_list(entries, with_permission).map_err(|error| invalid("aclspec", error))
}

/// `rwx` with a dash for what is not asked.
fn action(text: &str) -> Result<FsActionProto> {
    (0..8)
        .find(|bits| client::acl::symbol(*bits) == text)
        .and_then(|bits| FsActionProto::try_from(i32::from(bits)).ok())
        .ok_or_else(|| {
            invalid(
                "fsaction",
                format!("Invalid value: \"{text}\" does not belong to the domain [r-][w-][x-]"),
            )
        })
}

fn xattr_encoding(operation: &str, given: &Parameters) -> Result<Encoding> {
    use Encoding::{Base64, Hex, Text};
    given.required(operation, "encoding")?;
    let named = given.set_of("encoding", &[("TEXT", Text), ("HEX", Hex), ("BASE64", Base64)])?;
    Ok(named.last().copied().unwrap_or(Text))
}

fn xattr_flags(operation: &str, given: &Parameters) -> Result<u32> {
    given.required(operation, "flag")?;
    Ok(given.set_of("flag", XATTR_FLAGS)?.into_iter().fold(0, |all, flag| all | flag))
}

/// A value in one of the encodings of [`client::xattr`]. Base64 with other characters in it is refused: the value was damaged on its way.
fn xattr_value(text: &str) -> Result<Vec<u8>> {
    let nonsense =
        |what: &str| Refusal::illegal(format!("the value of the extended attribute is not {what}"));
    let is_base64 = text.get(..2).is_some_and(|prefix| prefix.eq_ignore_ascii_case("0s"));
    if is_base64 && !is_sound_base64(&text[2..]) {
        return Err(nonsense("base64"));
    }
    client::xattr::decode(text).map_err(|_| nonsense("hexadecimal"))
}

/// Padding may be left out.
fn is_sound_base64(digits: &str) -> bool {
    let unpadded = digits.strip_suffix("==").or(digits.strip_suffix('=')).unwrap_or(digits);
    let is_padded = unpadded.len() < digits.len();
    let is_digit = |digit: u8| digit.is_ascii_alphanumeric() || b"+/".contains(&digit);
    let is_whole = !is_padded || digits.len().is_multiple_of(4);
    unpadded.bytes().all(is_digit) && unpadded.len() % 4 != 1 && is_whole
}
