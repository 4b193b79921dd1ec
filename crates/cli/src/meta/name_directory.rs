//! `clover meta name-directory`: the names of a backup as a directory from which a Hadoop NameNode starts.

use super::{
    backup::{Point, rebuilt, which},
    opened::open,
};
use anyhow::{Context, bail};
use blockstore::version_file::Version;
use data_encoding::HEXLOWER;
use env::Env;
use proto::fsimage::{LAYOUT_VERSION, file_name};
use std::{
    fs::{self, DirBuilder, File},
    io::{BufWriter, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Make a directory from which a Hadoop NameNode starts, with the names of a backup.
///
/// The backup is one of `clover admin backup`. With DataNodes on the directories of the data servers, the cluster goes on as an HDFS.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The directory of the backup.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// A directory that does not exist: the NameNode's `dfs.namenode.name.dir`.
    #[arg(value_name = "TO")]
    to: PathBuf,
    #[command(flatten)]
    point: Point,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    // Quick checks come before the replay of the backup, which may take minutes.
    let making = beside(&args.to);
    for path in [&args.to, &making] {
        if path.exists() {
            bail!("{}: it is there already, and nothing in it is touched", path.display());
        }
    }
    let backup = open(&args.directory)?;
    let rebuilt = rebuilt(&backup, args.point.until())?;
    eprintln!("As of {}.", which(&rebuilt));
    let name = file_name(rebuilt.namespace.applied().sn.0);
    // A directory that is being filled has another name. If the command is broken off, it can be given again.
    let made =
        fill(&making.join("current"), &name, &rebuilt.namespace, &backup.manifest().whose).and_then(|()| {
            fs::rename(&making, &args.to).with_context(|| format!("{}: it cannot be made", args.to.display()))
        });
    if made.is_err() {
        drop(fs::remove_dir_all(&making));
    }
    made?;
    println!("{}", args.to.join("current").join(name).display());
    Ok(ExitCode::SUCCESS)
}

/// `TO.making`.
fn beside(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(".making");
    name.into()
}

fn fill(
    current: &Path,
    name: &str,
    namespace: &namespace::Namespace,
    whose: &journal::archive::Whose,
) -> anyhow::Result<()> {
    let written = |path: &Path| format!("{}: it cannot be written", path.display());
    DirBuilder::new().recursive(true).mode(0o700).create(current).with_context(|| written(current))?;
    let image = current.join(name);
    let digest = write_image(namespace, whose.namespace_id, &image).with_context(|| written(&image))?;
    let digest = HEXLOWER.encode(&digest);
    let transaction = namespace.applied().sn.0;
    let texts = [
        (format!("{name}.md5"), format!("{digest} *{name}\n")),
        ("seen_txid".to_owned(), format!("{transaction}\n")),
    ];
    for (name, text) in texts {
        let path = current.join(name);
        let put = || {
            File::create_new(&path)?.write_all(text.as_bytes()).and_then(|()| File::open(&path)?.sync_all())
        };
        put().with_context(|| written(&path))?;
    }
    // The last: a NameNode takes a directory without it for none of its own.
    Version::default()
        .with("namespaceID", whose.namespace_id)
        .with("clusterID", &whose.cluster_id)
        .with("cTime", whose.created_ms)
        .with("storageType", "NAME_NODE")
        .with("blockpoolID", &whose.block_pool)
        .with("layoutVersion", LAYOUT_VERSION)
        .write(&*Env::production().disk, &current.join("VERSION"))?;
    Ok(())
}

fn write_image(
    namespace: &namespace::Namespace,
    namespace_id: u32,
    path: &Path,
) -> std::io::Result<[u8; 16]> {
    let file = File::create_new(path)?;
    let mut sink = BufWriter::new(&file);
    let digest = metad::write_image(namespace, namespace_id, &mut sink)?;
    sink.flush()?;
    file.sync_all()?;
    Ok(digest)
}
