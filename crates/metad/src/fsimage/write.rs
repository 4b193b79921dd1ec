//! A tour of the tree, written section by section.

use super::{
    inodes::{directory_proto, file_proto, inode_proto},
    references::{References, snapshot_number},
};
use crate::{client_protocol::policy_proto, datanodes::wire};
use bytes::Bytes;
use namespace::{
    erasure_coding::POLICIES,
    tour::{Link, Stop, Tour},
};
use proto::{
    fsimage::{ImageWriter, Section, name_order, put_delimited},
    hdfs::fsimage::{
        self as p, files_under_construction_section::FileUnderConstructionEntry,
        i_node_directory_section::DirEntry, i_node_section, snapshot_diff_section as diff, snapshot_section,
    },
};
use std::io;

/// The stamp below which blocks had random ids, in times before Clover's: none was ever given out.
const LEGACY_STAMP: u64 = 1_000;
const LEGACY_STAMP_LIMIT: u64 = 0;
/// HDFS numbers erasure-coded groups of blocks from the smallest number on.
const NO_STRIPED_BLOCK: u64 = i64::MIN as u64;
/// No path is cached, and directives are numbered from 1.
const FIRST_DIRECTIVE: u64 = 1;

/// Writes the image. The tree is walked a few times. In memory are only the children of one directory at a time, references, open files and texts.
///
/// # Errors
/// Those of the sink; `InvalidData` if the format cannot number something.
pub fn image(tour: &Tour<'_>, namespace_id: u32, sink: &mut dyn io::Write) -> io::Result<()> {
    let mut image = ImageWriter::new(sink);
    let mut references = References::default();
    name_system(tour, namespace_id, &mut image)?;
    image.put(&p::ErasureCodingSection { policies: POLICIES.iter().map(policy_proto).collect() })?;
    image.end(Section::ErasureCoding);
    inodes(tour, &mut image)?;
    directories(tour, &mut image, &mut references)?;
    snapshots(tour, &mut image)?;
    differences(tour, &mut image, &mut references)?;
    image.put_encoded(references.encoded())?;
    image.end(Section::References);
    // No tokens are given out, and no path is cached.
    let none = Some(0);
    image.put(&p::SecretManagerSection {
        current_id: none,
        token_sequence_number: none,
        num_keys: none,
        num_tokens: none,
    })?;
    image.end(Section::Secrets);
    image.put(&p::CacheManagerSection {
        next_directive_id: FIRST_DIRECTIVE,
        num_pools: 0,
        num_directives: 0,
    })?;
    image.end(Section::Caches);
    image.finish()
}

fn name_system(tour: &Tour<'_>, namespace_id: u32, image: &mut ImageWriter<'_>) -> io::Result<()> {
    let figures = tour.figures();
    image.put(&p::NameSystemSection {
        namespace_id: Some(namespace_id),
        genstamp_v1: Some(LEGACY_STAMP),
        genstamp_v2: Some(figures.last_stamp.0),
        genstamp_v1_limit: Some(LEGACY_STAMP_LIMIT),
        last_allocated_block_id: Some(figures.last_block.0),
        transaction_id: Some(figures.applied.sn.0),
        rolling_upgrade_start_time: None,
        last_allocated_striped_block_id: Some(NO_STRIPED_BLOCK),
    })?;
    image.end(Section::NameSystem);
    Ok(())
}

fn inodes(tour: &Tour<'_>, image: &mut ImageWriter<'_>) -> io::Result<()> {
    let figures = tour.figures();
    image.put(&p::INodeSection {
        last_inode_id: Some(figures.last_inode.0),
        num_inodes: Some(figures.inodes),
    })?;
    let mut open = Vec::new();
    tour.each(&mut |stop| {
        let inode = inode_proto(&stop, &mut image.strings)?;
        if stop.writer().is_some()
            && let Some(path) = stop.path()
        {
            let entry = FileUnderConstructionEntry { inode_id: Some(stop.id().0), full_path: Some(path) };
            put_delimited(&mut open, &entry);
        }
        image.put(&inode)
    })?;
    image.end(Section::Inodes);
    image.put_encoded(&open)?;
    image.end(Section::UnderConstruction);
    Ok(())
}

/// The children of each directory that has any, in the order in which a NameNode looks for them.
fn directories(tour: &Tour<'_>, image: &mut ImageWriter<'_>, references: &mut References) -> io::Result<()> {
    tour.each(&mut |stop| {
        let mut children: Vec<_> = stop.children().collect();
        if children.is_empty() {
            return Ok(());
        }
        children.sort_by(|(one, _), (other, _)| name_order(one, other));
        let mut entry = DirEntry { parent: Some(stop.id().0), ..DirEntry::default() };
        for (_, link) in children {
            match link {
                Link::Only(child) => entry.children.push(child.0),
                moved => entry.ref_children.push(references.number(&moved)?),
            }
        }
        image.put(&entry)
    })?;
    image.end(Section::Directories);
    Ok(())
}

fn snapshots(tour: &Tour<'_>, image: &mut ImageWriter<'_>) -> io::Result<()> {
    let figures = tour.figures();
    image.put(&p::SnapshotSection {
        // HDFS counts from 0 and keeps the next number; ours begin with 1.
        snapshot_counter: Some(figures.last_snapshot.0),
        snapshottable_dir: tour.snapshottable().map(|(root, _)| root.0).collect(),
        num_snapshots: Some(figures.snapshots),
    })?;
    for (root, taken) in tour.snapshottable() {
        for snapshot in taken {
            let inode = i_node_section::INode {
                r#type: i_node_section::i_node::Type::Directory as i32,
                id: root.0,
                name: Some(Bytes::copy_from_slice(snapshot.name.as_bytes())),
                directory: Some(directory_proto(&snapshot.state, &mut image.strings)?),
                ..i_node_section::INode::default()
            };
            let snapshot_id = Some(snapshot_number(snapshot.id));
            image.put(&snapshot_section::Snapshot { snapshot_id, root: Some(inode) })?;
        }
    }
    image.end(Section::Snapshots);
    Ok(())
}

fn differences(tour: &Tour<'_>, image: &mut ImageWriter<'_>, references: &mut References) -> io::Result<()> {
    if tour.has_past() {
        tour.each(&mut |stop| match stop.is_directory() {
            true => directory_differences(&stop, image, references),
            false => file_differences(&stop, image),
        })?;
    }
    image.end(Section::SnapshotDiffs);
    Ok(())
}

fn directory_differences(
    stop: &Stop<'_>,
    image: &mut ImageWriter<'_>,
    references: &mut References,
) -> io::Result<()> {
    let diffs = stop.directory_diffs();
    if diffs.is_empty() {
        return Ok(());
    }
    image.put(&diff::DiffEntry {
        r#type: diff::diff_entry::Type::Directorydiff as i32,
        inode_id: Some(stop.id().0),
        num_of_diff: Some(diffs.len() as u32),
    })?;
    for mut one in diffs {
        one.created.sort_by(|one, other| name_order(one, other));
        let mut message = diff::DirectoryDiff {
            snapshot_id: Some(snapshot_number(one.snapshot)),
            children_size: Some(one.children as u32),
            is_snapshot_root: Some(one.is_root),
            created_list_size: Some(one.created.len() as u32),
            ..diff::DirectoryDiff::default()
        };
        if let Some((name, state)) = one.state {
            message.name = Some(Bytes::copy_from_slice(name));
            message.snapshot_copy = Some(directory_proto(&state, &mut image.strings)?);
        }
        for link in &one.deleted {
            match link {
                Link::Only(inode) => message.deleted_i_node.push(inode.0),
                moved => message.deleted_i_node_ref.push(references.number(moved)?),
            }
        }
        image.put(&message)?;
        for name in one.created {
            image.put(&diff::CreatedListEntry { name: Some(Bytes::copy_from_slice(name)) })?;
        }
    }
    Ok(())
}

fn file_differences(stop: &Stop<'_>, image: &mut ImageWriter<'_>) -> io::Result<()> {
    let diffs = stop.file_diffs();
    if diffs.is_empty() {
        return Ok(());
    }
    image.put(&diff::DiffEntry {
        r#type: diff::diff_entry::Type::Filediff as i32,
        inode_id: Some(stop.id().0),
        num_of_diff: Some(diffs.len() as u32),
    })?;
    for one in diffs {
        let message = diff::FileDiff {
            snapshot_id: Some(snapshot_number(one.snapshot)),
            file_size: Some(one.length),
            name: Some(Bytes::copy_from_slice(one.name)),
            snapshot_copy: Some(file_proto(&one.state, &mut image.strings)?),
            blocks: one.blocks.into_iter().map(wire::block).collect(),
        };
        image.put(&message)?;
    }
    Ok(())
}
