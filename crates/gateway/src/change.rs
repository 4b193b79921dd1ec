//! Carries out changes of the tree.

use crate::{
    error::{Refusal, Result},
    operation::Change,
    question::done,
};
use bytes::Bytes;
use client::FileSystem;
use proto::hdfs as p;
use serde_json::{Value, json};

/// The mode of directories above a symbolic link.
const LINK_MODE: u16 = 0o777;

fn permission(mode: u16) -> p::FsPermissionProto {
    p::FsPermissionProto { perm: u32::from(mode) }
}

/// The JSON that answers a change; `None` for an answer without a body.
///
/// # Errors
/// The file system refuses, or does not answer.
pub async fn carry_out(fs: &FileSystem, path: &str, change: Change) -> Result<Option<Value>> {
    let src = || path.to_owned();
    let boolean = |flag: bool| Ok(Some(json!({ "boolean": flag })));
    match change {
        Change::MakeDirectories { mode, unmasked } => {
            let request = p::MkdirsRequestProto {
                src: src(),
                masked: permission(mode),
                create_parent: true,
                unmasked: unmasked.map(permission),
            };
            let answer: p::MkdirsResponseProto = fs.call("mkdirs", &request).await?;
            return boolean(answer.result);
        }
        Change::MakeSymlink { target, make_parents } => {
            let request = p::CreateSymlinkRequestProto {
                target,
                link: src(),
                dir_perm: permission(LINK_MODE),
                create_parent: make_parents,
            };
            done::<_, p::CreateSymlinkResponseProto>(fs, "createSymlink", &request).await?;
        }
        Change::Rename { to, options: None } => return boolean(fs.rename_or_move_into(path, &to).await?),
        Change::Rename { to, options: Some(options) } => {
            let request = p::Rename2RequestProto {
                src: src(),
                dst: to,
                overwrite_dest: options.overwrite,
                move_to_trash: Some(options.to_trash),
            };
            done::<_, p::Rename2ResponseProto>(fs, "rename2", &request).await?;
        }
        Change::SetReplication(count) => {
            let count = match count {
                Some(count) => count,
                None => fs.defaults().await?.replication,
            };
            return boolean(fs.set_replication(path, count).await?);
        }
        Change::SetOwner { owner, group } => fs.set_owner(path, owner.as_deref(), group.as_deref()).await?,
        Change::SetPermission(mode) => fs.set_permission(path, mode).await?,
        Change::SetTimes { modified, accessed } => {
            let request =
                p::SetTimesRequestProto { src: src(), mtime: modified as u64, atime: accessed as u64 };
            done::<_, p::SetTimesResponseProto>(fs, "setTimes", &request).await?;
        }
        Change::SetAcl(entries) => fs.set_acl(path, &entries).await?,
        Change::ModifyAcl(entries) => fs.modify_acl(path, &entries).await?,
        Change::RemoveAclEntries(entries) => fs.remove_acl_entries(path, &entries).await?,
        Change::RemoveDefaultAcl => fs.remove_default_acl(path).await?,
        Change::RemoveAcl => fs.remove_acl(path).await?,
        Change::SetXattr { name, value, flags } => {
            let value = (!value.is_empty()).then(|| Bytes::from(value));
            let x_attr = Some(client::xattr::to_wire(&name, value)?);
            let request = p::SetXAttrRequestProto { src: src(), x_attr, flag: Some(flags) };
            done::<_, p::SetXAttrResponseProto>(fs, "setXAttr", &request).await?;
        }
        Change::RemoveXattr { name } => fs.remove_xattr(path, &name).await?,
        Change::AllowSnapshot => fs.allow_snapshot(path).await?,
        Change::DisallowSnapshot => fs.disallow_snapshot(path).await?,
        Change::CreateSnapshot { name } => {
            let made = fs.create_snapshot(path, name.as_deref()).await?;
            return Ok(Some(json!({ "Path": made })));
        }
        Change::RenameSnapshot { old, new } => fs.rename_snapshot(path, &old, &new).await?,
        Change::DeleteSnapshot { name } => fs.delete_snapshot(path, &name).await?,
        Change::SetStoragePolicy { name } => {
            let request = p::SetStoragePolicyRequestProto { src: src(), policy_name: name };
            done::<_, p::SetStoragePolicyResponseProto>(fs, "setStoragePolicy", &request).await?;
        }
        Change::UnsetStoragePolicy => {
            let request = p::UnsetStoragePolicyRequestProto { src: src() };
            done::<_, p::UnsetStoragePolicyResponseProto>(fs, "unsetStoragePolicy", &request).await?;
        }
        Change::SatisfyStoragePolicy => {
            let request = p::SatisfyStoragePolicyRequestProto { src: src() };
            done::<_, p::SatisfyStoragePolicyResponseProto>(fs, "satisfyStoragePolicy", &request).await?;
        }
        Change::SetQuota { names, space } => set_quota(fs, path, names, space, None).await?,
        Change::SetTypeQuota { medium, space } => {
            set_quota(fs, path, i64::MAX, space, Some(p::StorageTypeProto::from(medium))).await?;
        }
        Change::EnableErasureCodingPolicy { name } => {
            let request = p::EnableErasureCodingPolicyRequestProto { ec_policy_name: name };
            done::<_, p::EnableErasureCodingPolicyResponseProto>(fs, "enableErasureCodingPolicy", &request)
                .await?;
        }
        Change::DisableErasureCodingPolicy { name } => {
            let request = p::DisableErasureCodingPolicyRequestProto { ec_policy_name: name };
            done::<_, p::DisableErasureCodingPolicyResponseProto>(fs, "disableErasureCodingPolicy", &request)
                .await?;
        }
        Change::SetErasureCodingPolicy { name } => {
            let request = p::SetErasureCodingPolicyRequestProto { src: src(), ec_policy_name: Some(name) };
            done::<_, p::SetErasureCodingPolicyResponseProto>(fs, "setErasureCodingPolicy", &request).await?;
        }
        Change::UnsetErasureCodingPolicy => {
            let request = p::UnsetErasureCodingPolicyRequestProto { src: src() };
            done::<_, p::UnsetErasureCodingPolicyResponseProto>(fs, "unsetErasureCodingPolicy", &request)
                .await?;
        }
        Change::Concat { sources } => fs.concat(path, &sources).await?,
        Change::Truncate { length } => return boolean(fs.truncate(path, length).await?),
        Change::Delete { recursive } => return boolean(fs.delete(path, recursive).await?),
        Change::RenewToken | Change::CancelToken => {
            return Err(Refusal::io("there are no delegation tokens, because clients are not authenticated"));
        }
    }
    Ok(None)
}

async fn set_quota(
    fs: &FileSystem,
    path: &str,
    names: i64,
    space: i64,
    medium: Option<p::StorageTypeProto>,
) -> Result<()> {
    let request = p::SetQuotaRequestProto {
        path: path.to_owned(),
        namespace_quota: names as u64,
        storagespace_quota: space as u64,
        storage_type: medium.map(|medium| medium as i32),
    };
    done::<_, p::SetQuotaResponseProto>(fs, "setQuota", &request).await
}
