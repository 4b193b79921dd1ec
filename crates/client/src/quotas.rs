//! Quotas of directories, and storage policies.

use crate::{Error, FileSystem, Result};
use base::{FsError, StorageType};
use proto::hdfs;

/// A change of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Keep,
    Clear,
    /// Inodes, or bytes of all copies.
    Set(i64),
}

impl Limit {
    /// Hadoop's numbers.
    fn to_wire(self) -> u64 {
        let number = match self {
            Self::Keep => i64::MAX,
            Self::Clear => -1,
            Self::Set(number) => number,
        };
        number as u64
    }

    /// Whether the limit is one that Hadoop's client would send. It refuses lower numbers itself; -1 and the greatest
    /// number have a meaning of their own on the wire.
    fn is_number(self, lowest: i64) -> bool {
        !matches!(self, Self::Set(number) if number < lowest && number != -1)
    }
}

/// A number as Hadoop's quotas are written: `500`, `10g`, with a letter for a power of 1024. `None`: it is no such number.
pub fn amount(text: &str) -> Option<i64> {
    let trimmed = text.trim();
    let power = trimmed.chars().last().and_then(|letter| "kmgtpe".find(letter.to_ascii_lowercase()));
    let (digits, power) = match power {
        Some(at) => (&trimmed[..trimmed.len() - 1], at as u32 + 1),
        None => (trimmed, 0),
    };
    digits.trim().parse::<i64>().ok()?.checked_mul(1024i64.pow(power))
}

/// The limits of a directory and what counts against them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaUsage {
    pub files_and_directories: u64,
    /// Bytes of all copies; a block that is being written counts as a full one.
    pub space_consumed: u64,
    pub name_quota: Option<u64>,
    pub space_quota: Option<u64>,
    /// Empty where no storage type has a quota or counts.
    pub types: Vec<TypeUsage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeUsage {
    pub storage_type: StorageType,
    pub quota: Option<u64>,
    pub consumed: u64,
}

impl QuotaUsage {
    pub fn of_type(&self, storage_type: StorageType) -> Option<TypeUsage> {
        self.types.iter().copied().find(|usage| usage.storage_type == storage_type)
    }
}

/// No quota crosses the wire as -1.
pub(crate) fn limit(value: u64) -> Option<u64> {
    (value as i64 >= 0).then_some(value)
}

pub(crate) fn types(infos: Option<hdfs::StorageTypeQuotaInfosProto>) -> Vec<TypeUsage> {
    let infos = infos.map(|infos| infos.type_quota_info).unwrap_or_default();
    let usage = |info: hdfs::StorageTypeQuotaInfoProto| TypeUsage {
        storage_type: info.r#type().into(),
        quota: limit(info.quota),
        consumed: info.consumed,
    };
    infos.into_iter().map(usage).collect()
}

fn invalid(text: String) -> Error {
    Error::Fs(FsError::InvalidArgument(text))
}

impl FileSystem {
    /// Limits the names below a directory, itself included, and the bytes of all their copies. For the superuser.
    ///
    /// # Errors
    /// A limit is out of range ([`FsError::InvalidArgument`]), there is no such directory, or this user is no
    /// superuser; or the call fails: see [`FileSystem::call`].
    pub async fn set_quota(&self, path: &str, names: Limit, space: Limit) -> Result<()> {
        // "A quota is not a positive integer": 0 bytes may be, 0 names would leave no room for the directory.
        if !names.is_number(1) || !space.is_number(0) {
            let (names, space) = (names.to_wire() as i64, space.to_wire() as i64);
            return Err(invalid(format!("Invalid values for quota : {names} and {space}")));
        }
        self.send_quota(path, names, space, None).await
    }

    /// Limits the bytes below a directory whose storage policy puts them on one medium. For the superuser.
    ///
    /// # Errors
    /// The limit is out of range or the medium has no quotas ([`FsError::InvalidArgument`]), there is no such
    /// directory, or this user is no superuser; or the call fails: see [`FileSystem::call`].
    pub async fn set_type_quota(&self, path: &str, storage_type: StorageType, space: Limit) -> Result<()> {
        if !space.is_number(1) {
            return Err(invalid(format!("Invalid values for quota :{}", space.to_wire() as i64)));
        }
        if storage_type.quota_index().is_none() {
            return Err(invalid(format!("Don't support Quota for storage type : {storage_type}")));
        }
        self.send_quota(path, Limit::Keep, space, Some(storage_type)).await
    }

    async fn send_quota(
        &self,
        path: &str,
        names: Limit,
        space: Limit,
        storage_type: Option<StorageType>,
    ) -> Result<()> {
        let request = hdfs::SetQuotaRequestProto {
            path: path.to_owned(),
            namespace_quota: names.to_wire(),
            storagespace_quota: space.to_wire(),
            storage_type: storage_type.map(|kind| hdfs::StorageTypeProto::from(kind) as i32),
        };
        let _: hdfs::SetQuotaResponseProto = self.call("setQuota", &request).await?;
        Ok(())
    }

    /// # Errors
    /// There is no such path, or this user may not read it; or the call fails: see [`FileSystem::call`].
    pub async fn quota_usage(&self, path: &str) -> Result<QuotaUsage> {
        let request = hdfs::GetQuotaUsageRequestProto { path: path.to_owned() };
        let response: hdfs::GetQuotaUsageResponseProto = self.call("getQuotaUsage", &request).await?;
        let usage = response.usage;
        Ok(QuotaUsage {
            files_and_directories: usage.file_and_directory_count,
            space_consumed: usage.space_consumed,
            name_quota: limit(usage.quota),
            space_quota: limit(usage.space_quota),
            types: types(usage.type_quota_infos),
        })
    }

    /// Has the replicas of a file, or of all files below a directory, moved to the media of their storage policies. Returns when that is noted, not
    /// when it is done: until then the path has the extended attribute `user.hdfs.sps`.
    ///
    /// # Errors
    /// There is no such path, this user may not write it, it is a directory that waits already, or the server does not do that. Or the call
    /// fails: see [`FileSystem::call`].
    pub async fn satisfy_storage_policy(&self, path: &str) -> Result<()> {
        let request = hdfs::SatisfyStoragePolicyRequestProto { src: path.to_owned() };
        let _: hdfs::SatisfyStoragePolicyResponseProto = self.call("satisfyStoragePolicy", &request).await?;
        Ok(())
    }

    /// Sets the storage policy of a file or directory, or with `None` lets that of its directory hold.
    ///
    /// # Errors
    /// There is no such path; there is no such policy, or the file's cannot be changed any more
    /// ([`FsError::InvalidArgument`]); or this user may not write the path. Or the call fails: see
    /// [`FileSystem::call`].
    pub async fn set_storage_policy(&self, path: &str, policy: Option<&str>) -> Result<()> {
        let src = path.to_owned();
        match policy {
            Some(name) => {
                let request = hdfs::SetStoragePolicyRequestProto { src, policy_name: name.to_owned() };
                let _: hdfs::SetStoragePolicyResponseProto = self.call("setStoragePolicy", &request).await?;
            }
            None => {
                let request = hdfs::UnsetStoragePolicyRequestProto { src };
                let _: hdfs::UnsetStoragePolicyResponseProto =
                    self.call("unsetStoragePolicy", &request).await?;
            }
        }
        Ok(())
    }

    /// The names and types of the policies that the servers know, as Hadoop's tools print them.
    ///
    /// # Errors
    /// The call fails: see [`FileSystem::call`].
    pub async fn storage_policies(&self) -> Result<Vec<KnownPolicy>> {
        let request = hdfs::GetStoragePoliciesRequestProto {};
        let response: hdfs::GetStoragePoliciesResponseProto =
            self.call("getStoragePolicies", &request).await?;
        Ok(response.policies.into_iter().map(KnownPolicy::from).collect())
    }
}

/// A storage policy as a server describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPolicy {
    pub id: u8,
    pub name: String,
    pub types: Vec<StorageType>,
    pub creation_fallbacks: Vec<StorageType>,
    pub replication_fallbacks: Vec<StorageType>,
}

impl From<hdfs::BlockStoragePolicyProto> for KnownPolicy {
    fn from(wire: hdfs::BlockStoragePolicyProto) -> Self {
        let kinds = |types: hdfs::StorageTypesProto| -> Vec<StorageType> {
            types.storage_types().filter_map(|kind| StorageType::named(kind.as_str_name())).collect()
        };
        Self {
            id: wire.policy_id as u8,
            name: wire.name,
            types: kinds(wire.creation_policy),
            creation_fallbacks: wire.creation_fallback_policy.map(kinds).unwrap_or_default(),
            replication_fallbacks: wire.replication_fallback_policy.map(kinds).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_cross_the_wire_as_hadoops_numbers() {
        assert_eq!(Limit::Keep.to_wire(), i64::MAX as u64);
        assert_eq!(Limit::Clear.to_wire(), u64::MAX);
        assert_eq!(limit(u64::MAX), None);
        assert!(!Limit::Set(-5).is_number(0) && !Limit::Set(0).is_number(1) && Limit::Set(0).is_number(0));
    }
}
