//! `getmerge`: many files into one of this machine.

use super::{
    failure::{Failure, Outcome},
    item::Item,
    local,
    local_file::LocalFile,
    shell::Shell,
    transfer::Progress,
};
use std::io::{self, BufWriter, Write};

/// Copy the files that match, and those in the directories that match, into one local file, in order of their names.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A new line after each file.
    #[arg(long = "nl")]
    newline: bool,
    /// No new line after empty files.
    #[arg(long = "skip-empty-file")]
    skip_empty_file: bool,
    /// What to copy, and last the local file; `-` for the standard output.
    #[arg(required = true, num_args = 2..)]
    paths: Vec<String>,
}

/// Bytes that are fetched at once.
const PIECE: usize = 1 << 20;

pub async fn run(shell: &mut Shell, mut args: Args) -> Outcome {
    let written = args.paths.pop().unwrap_or_default();
    let target = local::path_of(&written)?;
    if target.is_dir() {
        return Err(Failure::is_directory(&target.display().to_string()));
    }
    // Nothing is written before all is known to be there.
    let mut sources = Vec::new();
    let mut is_whole = true;
    for item in shell.expand_all(&args.paths).await {
        let files = files_of(&item).await;
        match shell.check(files) {
            Some(files) => sources.extend(files),
            None => is_whole = false,
        }
    }
    if !is_whole {
        return Ok(());
    }
    let progress =
        Progress::of_bytes(sources.iter().filter_map(|item| item.status.as_ref()).map(|s| s.length).sum());
    let merged = async {
        if written == "-" {
            // No bar between the lines of what is printed.
            return merge(&args, &sources, io::stdout(), &Progress::hidden(), Failure::Output).await;
        }
        let (unfinished, file) = LocalFile::create(&target, false)?;
        let path = unfinished.path().to_owned();
        merge(&args, &sources, file, &progress, |error| Failure::local(&path, error)).await?;
        unfinished.finish()
    };
    let merged = merged.await;
    progress.clear();
    merged
}

/// The file itself, or the files right below the directory.
async fn files_of(item: &Item) -> Outcome<Vec<Item>> {
    if !item.existing()?.is_dir() {
        return Ok(vec![item.clone()]);
    }
    let children = item.children().await?;
    Ok(children.into_iter().filter(|child| !child.is_dir()).collect())
}

async fn merge(
    args: &Args,
    sources: &[Item],
    out: impl Write,
    progress: &Progress,
    wrong: impl Fn(io::Error) -> Failure,
) -> Outcome {
    let mut out = BufWriter::new(out);
    for item in sources {
        let mut reader = item.fs.open(&item.path).await?;
        progress.begin(&item.path);
        let mut is_empty = true;
        while let Some(bytes) = reader.read(PIECE).await? {
            is_empty = false;
            out.write_all(&bytes).map_err(&wrong)?;
            progress.advance(bytes.len());
        }
        if args.newline && !(is_empty && args.skip_empty_file) {
            out.write_all(b"\n").map_err(&wrong)?;
        }
    }
    out.flush().map_err(wrong)
}
