//! `clover bench image`: a metadata directory with as many files as wanted, from which a server starts.
//!
//! The tree is built in memory through the plans and edits of a cluster, and becomes the image of a directory that
//! was formatted and never used. The members that join such a server's group take the image from it, as a new
//! disk would.

use super::tree::{Caching, Tree};
use anyhow::{Context as _, bail, ensure};
use base::{Chain, Epoch, LogPoint, Sn, TxId};
use env::{Env, OpenMode};
use namespace::Namespace;
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many files to make.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    files: u64,
    /// Blocks a file, 0 or 1. No data server will ever report them: a server that starts with blocks stays in safe
    /// mode until told to leave it.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1))]
    blocks: u64,
    /// A metadata directory that `clover meta format` has just made.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

/// Bytes moved at a time.
const CHUNK_BYTES: usize = 4 << 20;
/// The chain of an image that no log leads to: any number that no log begins with.
const CHAIN: Chain = Chain(0x696d_6167_655f_6765);

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let report = generate(&Env::production(), &args.dir, args.files, args.blocks)?;
    println!(
        "{} holds {} files in {} directories now: an image of {} bytes, made in {:.1} s. Start it with `clover meta`.",
        args.dir.display(),
        report.files,
        report.directories,
        report.image_bytes,
        began.elapsed().as_secs_f64()
    );
    Ok(ExitCode::SUCCESS)
}

/// The image that was made, in numbers.
pub struct Report {
    pub files: u64,
    pub directories: u64,
    pub image_bytes: u64,
}

pub fn generate(env: &Env, dir: &Path, files: u64, blocks: u64) -> anyhow::Result<Report> {
    let cluster = metad::read_cluster(env, dir).with_context(|| {
        format!("{} is no metadata directory; `clover meta format` makes one", dir.display())
    })?;
    let store = metad::format::Layout::of(dir, cluster.group).store;
    let mut recovery = journal::open(env, &store, journal::Settings::default())?;
    let image = recovery.load_image(|_| Ok(()))?;
    let (journal, recovered) = recovery.replay(|_| Ok(()))?;
    if image.is_some() || recovered.base != LogPoint::default() || !recovered.tail.is_empty() {
        bail!("{} has been used: only a directory that was just formatted takes another tree", dir.display());
    }

    let mut tree = Tree::new(Caching::Nothing);
    for number in 0..files {
        tree.make_file(number, blocks)?;
    }
    let mut namespace: Namespace = tree.namespace;
    // Before all epochs, and behind more entries than were ever needed for the tree.
    let at = LogPoint { id: TxId { epoch: Epoch(0), sn: Sn(namespace.applied().sn.0 + 1) }, chain: CHAIN };
    namespace.skip_to(at.id);
    let counts = namespace.counts();
    ensure!(counts.files == files, "not all files were made: {counts:?}");

    tracing::debug!(cluster = cluster.cluster_id, %at, "writing the image");
    let frozen = namespace.freeze();
    let checkpoint = journal.write_image(at, |writer| frozen.write(&mut |bytes| writer.write(bytes)))?;
    let image_bytes = checkpoint.file_bytes;
    let written = env.disk.open(&store.join("images").join(checkpoint.file_name()), OpenMode::Read)?;
    let mut staged = journal.stage(checkpoint)?;
    let mut chunk = vec![0; CHUNK_BYTES];
    while !staged.is_complete() {
        let count = (image_bytes - staged.have()).min(CHUNK_BYTES as u64) as usize;
        env::disk::read_exact_at(&*written, &mut chunk[..count], staged.have())?;
        staged.write_chunk(staged.have(), &chunk[..count])?;
    }
    journal.install(staged.finish()?)?;
    Ok(Report { files, directories: counts.directories, image_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use metad::{MetaConfig, MetaServer};

    #[tokio::test(flavor = "multi_thread")]
    async fn a_server_starts_from_what_was_made() -> anyhow::Result<()> {
        let dir = std::env::temp_dir().join(format!("clover-bench-image-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let env = Env::production();
        let config = MetaConfig::new(dir.clone());
        metad::format(&env, &dir, None, config.rpc_address.ip(), &config.group)?;
        let report = generate(&env, &dir, 2_500, 0)?;
        assert_eq!((report.files, report.directories), (2_500, 5), "the root and /bench too");
        let again = generate(&env, &dir, 1, 0).map(|_| ()).unwrap_err().to_string();
        assert!(again.contains("has been used"), "{again}");

        let server = MetaServer::start(env, config).await?;
        let uri = format!("hdfs://{}", server.rpc_address());
        let files = client::FileSystem::connect(&uri, &client::Config::new())?;
        assert_eq!(files.content_summary("/").await?.files, 2_500);
        assert!(files.exists("/bench/000002/file-0000000000000002499").await?);
        server.shutdown().await;
        std::fs::remove_dir_all(&dir)?;
        Ok(())
    }
}
