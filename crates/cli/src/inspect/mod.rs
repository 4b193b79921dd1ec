//! Looks into the files that servers write: a metadata server's store, a segment of its log, an image; a data server's
//! directory, and a replica in it.

mod data_directory;
mod entry;
mod image;
mod replica;
mod segment;
mod store;

use anyhow::{Context, bail};
use env::{Disk, Env};
use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

/// Only reads, and needs no server. What a running server is writing may look cut off.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A metadata server's `name_dir` or the store in it, a segment of its log, or an image; a data server's directory, or a
    /// block file or meta file in it.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Show the entries of a segment from this sn on.
    #[arg(long, value_name = "SN", default_value_t = 0)]
    from: u64,
    /// Show the entries of a segment up to this sn.
    #[arg(long, value_name = "SN", default_value_t = u64::MAX, hide_default_value = true)]
    to: u64,
    /// Also read the namespace in an image, which takes as much memory as in a server.
    #[arg(long)]
    deep: bool,
    /// Also read every replica in a data directory and compare it with its checksums. That takes as long as the disk needs.
    #[arg(long)]
    verify: bool,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
}

/// The advice about damage. If a group has another copy, its server mends itself.
const REMEDY: &str =
    "docs/operating/recovery.md says what to do; a member of a group is renewed by the other members";

/// The kind of thing that a path is.
enum Kind {
    Store(PathBuf),
    Segment,
    Image,
    DataDirectory,
    Replica,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let env = Env::production();
    let disk: &dyn Disk = &*env.disk;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut all_sound = true;
    for path in &args.paths {
        all_sound &= match kind(disk, path)? {
            Kind::Store(store) => store::show(disk, &store, &args, &mut out)?,
            Kind::Segment => segment::show(path, &args, &mut out)?,
            Kind::Image => image::show(disk, path, &args, &mut out)?,
            Kind::DataDirectory => data_directory::show(&env, path, &args, &mut out)?,
            Kind::Replica => replica::show(disk, path, &args, &mut out)?,
        };
    }
    out.flush()?;
    Ok(if all_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn kind(disk: &dyn Disk, path: &Path) -> anyhow::Result<Kind> {
    let of = || path.display().to_string();
    // By the name: neither file of a replica tells by its first bytes what it is. Links and pipes of that name are refused there.
    if path.file_name().and_then(|name| blockstore::layout::parse_name(name.to_str()?)).is_some() {
        return Ok(Kind::Replica);
    }
    if disk.is_directory(path).with_context(of)? {
        // A directory that has lost its other files is looked at as one of the root group.
        let below = metad::format::store_of(&Env::production(), path)
            .unwrap_or_else(|_| metad::format::Layout::of(path, base::GroupId::ROOT).store);
        for store in [path, &below] {
            if journal::survey::is_store(disk, store).with_context(of)? {
                return Ok(Kind::Store(store.to_owned()));
            }
        }
        if disk.exists(&path.join("manifest.0")).with_context(of)? {
            bail!(
                "{0} holds a backup: `clover meta backup verify {0}`; its segments and images are told one by one",
                path.display()
            );
        }
        if blockstore::survey::is_data_directory(disk, path)? {
            return Ok(Kind::DataDirectory);
        }
        bail!("{} holds no metadata server's store and is no data server's directory", path.display());
    }
    if let Some(env::FileKind::Special) = disk.kind(path).with_context(of)? {
        bail!("{} is a pipe, a socket or a device, and no file", path.display());
    }
    let file = disk.open(path, env::OpenMode::Read).with_context(of)?;
    let mut magic = [0; 8];
    let read = file.read_at(&mut magic, 0).with_context(of)?;
    match &magic[..read] {
        b"CLOVIMAG" => Ok(Kind::Image),
        b"CLOVSEGM" => Ok(Kind::Segment),
        // Its first block is what is damaged, and the rest may still be told.
        _ if path.file_name().and_then(|name| journal::block::parse_file_name(name.to_str()?)).is_some() => {
            Ok(Kind::Segment)
        }
        _ => bail!(
            "{} is neither a segment nor an image, and has not the name of a block file or a meta file",
            path.display()
        ),
    }
}

/// The bytes as a dump: offset, sixteen bytes, what of them is text.
fn dump(bytes: &[u8], offset: u64) -> Vec<String> {
    let line = |(index, row): (usize, &[u8])| {
        let hex: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
        let text: String =
            row.iter().map(|byte| if byte.is_ascii_graphic() { *byte as char } else { '.' }).collect();
        format!("  {:>10}  {:<47}  {text}", offset + index as u64 * 16, hex.join(" "))
    };
    bytes.chunks(16).enumerate().map(line).collect()
}

/// A file to be read in pieces.
fn open(disk: &dyn Disk, path: &Path) -> anyhow::Result<Arc<dyn env::File>> {
    disk.open(path, env::OpenMode::Read).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests;
