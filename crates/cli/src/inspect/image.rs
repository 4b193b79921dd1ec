//! An image: whether every checksum of it is right, and what is in it.

use super::{Args, REMEDY, open};
use anyhow::Context;
use data_encoding::HEXLOWER;
use env::Disk;
use journal::{ImageReader, image::ImageHeader};
use namespace::Namespace;
use serde_json::json;
use std::{io::Write, path::Path};

/// The order of a hash table decides nothing that is shown.
const SEED: u64 = 1;

/// The result of reading one image.
pub struct Read {
    pub header: ImageHeader,
    pub file_bytes: u64,
    pub sha256: [u8; 32],
    pub namespace: Option<Namespace>,
}

/// Reads an image to its end; `deep` reads the namespace in it as well. The error says what is wrong with it.
pub fn read(disk: &dyn Disk, path: &Path, deep: bool) -> anyhow::Result<Read> {
    let of = || path.display().to_string();
    let mut reader = ImageReader::open(open(disk, path)?).with_context(of)?;
    let (header, file_bytes) = (*reader.header(), reader.file_bytes());
    let namespace = match deep {
        true => Some(Namespace::read_image(SEED, &mut reader, file_bytes).with_context(of)?),
        false => None,
    };
    let sha256 = reader.finish().with_context(of)?;
    Ok(Read { header, file_bytes, sha256, namespace })
}

/// Whether all of it is sound.
pub fn show(disk: &dyn Disk, path: &Path, args: &Args, out: &mut impl Write) -> anyhow::Result<bool> {
    let read = match read(disk, path, args.deep) {
        Ok(read) => read,
        Err(error) => {
            match args.json {
                true => writeln!(
                    out,
                    "{}",
                    json!({ "file": path, "damage": format!("{error:#}"), "sound": false })
                )?,
                false => writeln!(out, "DAMAGED {error:#}\nverdict: NOT SOUND. {REMEDY}")?,
            }
            return Ok(false);
        }
    };
    match args.json {
        true => writeln!(out, "{}", as_json(path, &read))?,
        false => tell(path, &read, out)?,
    }
    Ok(true)
}

fn as_json(path: &Path, read: &Read) -> serde_json::Value {
    let mut line = json!({
        "file": path,
        "sound": true,
        "group": read.header.group.0,
        "epoch": read.header.at.id.epoch.0,
        "sn": read.header.at.id.sn.0,
        "chain": read.header.at.chain.to_string(),
        "store": HEXLOWER.encode(&read.header.store_uuid),
        "bytes": read.file_bytes,
        "sha256": HEXLOWER.encode(&read.sha256),
    });
    if let Some(namespace) = &read.namespace {
        let counts = namespace.counts();
        line["files"] = counts.files.into();
        line["directories"] = counts.directories.into();
        line["blocks"] = counts.blocks.into();
        line["files_under_construction"] = counts.files_under_construction.into();
        line["snapshots"] = counts.snapshots.into();
        line["digest"] = format!("{:016x}", namespace.digest()).into();
    }
    line
}

fn tell(path: &Path, read: &Read, out: &mut impl Write) -> anyhow::Result<()> {
    writeln!(out, "{}", path.display())?;
    writeln!(
        out,
        "group {}, everything up to {}, {} bytes, written by store {}; every checksum is right",
        read.header.group,
        read.header.at,
        read.file_bytes,
        HEXLOWER.encode(&read.header.store_uuid)
    )?;
    writeln!(out, "sha256 {}", HEXLOWER.encode(&read.sha256))?;
    if let Some(namespace) = &read.namespace {
        let counts = namespace.counts();
        writeln!(
            out,
            "{} files ({} being written), {} directories, {} blocks, {} snapshots; digest {:016x}",
            counts.files,
            counts.files_under_construction,
            counts.directories,
            counts.blocks,
            counts.snapshots,
            namespace.digest()
        )?;
    }
    match read.namespace {
        Some(_) => writeln!(out, "verdict: sound, and so is the namespace in it")?,
        None => writeln!(out, "verdict: sound; --deep reads the namespace in it as well")?,
    }
    Ok(())
}
