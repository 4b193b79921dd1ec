//! Inodes and their attributes as messages.

use crate::datanodes::wire;
use base::StorageType;
use bytes::Bytes;
use namespace::{
    acl::{Kind, Scope},
    tour::{State, Stop},
    xattr::Space,
};
use proto::{
    fsimage::{AttributeSpace, EntryKind, STORAGE_POLICY, Strings},
    hdfs::{
        BlockTypeProto, StorageTypeProto,
        fsimage::i_node_section::{
            AclFeatureProto, FileUnderConstructionFeature, INode, INodeDirectory, INodeFile,
            QuotaByStorageTypeEntryProto, QuotaByStorageTypeFeatureProto, XAttrCompactProto,
            XAttrFeatureProto, i_node::Type,
        },
    },
};
use std::io;

/// An inode as it is now.
///
/// # Errors
/// There are more texts than the format can number; likewise below.
pub fn inode_proto(stop: &Stop<'_>, strings: &mut Strings) -> io::Result<INode> {
    let mut inode =
        INode { id: stop.id().0, name: Some(Bytes::copy_from_slice(stop.name())), ..INode::default() };
    if stop.is_directory() {
        inode.r#type = Type::Directory as i32;
        inode.directory = Some(directory_proto(&stop.state(), strings)?);
        return Ok(inode);
    }
    inode.r#type = Type::File as i32;
    let mut file = file_proto(&stop.state(), strings)?;
    file.blocks = stop.blocks().map(wire::block).collect();
    file.file_uc = stop.writer().map(|(holder, machine)| FileUnderConstructionFeature {
        client_name: Some(holder.to_owned()),
        client_machine: Some(machine.to_owned()),
    });
    inode.file = Some(file);
    Ok(inode)
}

/// The attributes of a file.
///
/// # Errors
/// As above.
pub fn file_proto(state: &State<'_>, strings: &mut Strings) -> io::Result<INodeFile> {
    Ok(INodeFile {
        replication: Some(state.replication.into()),
        modification_time: Some(state.modified.ms),
        access_time: Some(state.accessed.ms),
        preferred_block_size: Some(state.block_size),
        permission: Some(strings.permission(state.owner, state.group, state.mode)?),
        blocks: Vec::new(),
        file_uc: None,
        acl: acl(state, strings)?,
        x_attrs: attributes(state, strings, false)?,
        storage_policy_id: Some(state.storage_policy.into()),
        block_type: Some(BlockTypeProto::Contiguous as i32),
        erasure_coding_policy_id: None,
    })
}

/// The attributes of a directory.
///
/// # Errors
/// As above.
pub fn directory_proto(state: &State<'_>, strings: &mut Strings) -> io::Result<INodeDirectory> {
    let limit_of = |kind: StorageType| Some(state.limits.of_type(kind)).filter(|limit| *limit >= 0);
    let quotas: Vec<_> = StorageType::WITH_QUOTA
        .into_iter()
        .filter_map(|kind| {
            let storage_type = StorageTypeProto::from(kind) as i32;
            Some(QuotaByStorageTypeEntryProto { storage_type, quota: limit_of(kind)? as u64 })
        })
        .collect();
    Ok(INodeDirectory {
        modification_time: Some(state.modified.ms),
        // Without a limit it is -1, as an unsigned number.
        ns_quota: Some(state.limits.inodes as u64),
        ds_quota: Some(state.limits.bytes as u64),
        permission: Some(strings.permission(state.owner, state.group, state.mode)?),
        acl: acl(state, strings)?,
        x_attrs: attributes(state, strings, true)?,
        type_quotas: (!quotas.is_empty()).then_some(QuotaByStorageTypeFeatureProto { quotas }),
    })
}

fn acl(state: &State<'_>, strings: &mut Strings) -> io::Result<Option<AclFeatureProto>> {
    let mut entries = Vec::with_capacity(state.acl.len());
    for entry in state.acl {
        let kind = match entry.kind {
            Kind::User => EntryKind::User,
            Kind::Group => EntryKind::Group,
            Kind::Mask => EntryKind::Mask,
            Kind::Other => EntryKind::Other,
        };
        let is_default = entry.scope == Scope::Default;
        entries.push(strings.acl_entry(is_default, kind, entry.name.as_deref(), entry.permission)?);
    }
    Ok((!entries.is_empty()).then_some(AclFeatureProto { entries }))
}

/// HDFS keeps the storage policy of a directory as an attribute of the file system's own.
fn attributes(
    state: &State<'_>,
    strings: &mut Strings,
    is_directory: bool,
) -> io::Result<Option<XAttrFeatureProto>> {
    let mut x_attrs = Vec::new();
    for xattr in state.xattrs {
        let space = match xattr.name.space {
            Space::User => AttributeSpace::User,
            Space::Trusted => AttributeSpace::Trusted,
            Space::Security => AttributeSpace::Security,
            Space::System => AttributeSpace::System,
            Space::Raw => AttributeSpace::Raw,
        };
        x_attrs.push(XAttrCompactProto {
            name: strings.attribute(space, &xattr.name.name)?,
            value: Some(Bytes::copy_from_slice(&xattr.value)),
        });
    }
    if is_directory && state.storage_policy != base::POLICY_UNSPECIFIED {
        x_attrs.push(XAttrCompactProto {
            name: strings.attribute(AttributeSpace::System, STORAGE_POLICY)?,
            value: Some(Bytes::copy_from_slice(&[state.storage_policy])),
        });
    }
    Ok((!x_attrs.is_empty()).then_some(XAttrFeatureProto { x_attrs }))
}
