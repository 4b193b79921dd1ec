//! `appendToFile`: local files behind what a file has.

use super::{
    failure::{Failure, Outcome},
    local,
    shell::Shell,
    transfer::{Source, read_local},
};
use client::{CreateOptions, FileWriter};
use std::fs::File;

/// Append local files to a file; make the file if it does not exist.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Begin a new block, whether or not the last one has room.
    #[arg(short = 'n')]
    new_block: bool,
    /// Local files, or `-` for the standard input, and last the file to append to.
    paths: Vec<String>,
}

pub async fn run(shell: &mut Shell, mut args: Args) -> Outcome {
    let target = args.paths.pop().unwrap_or_default();
    if args.paths.is_empty() {
        return Err(Failure::Other("missing destination argument".into()));
    }
    let reads_input = args.paths.iter().any(|path| path == "-");
    if reads_input && args.paths.len() > 1 {
        return Err(Failure::Other("stdin (-) must be the sole input argument when present".into()));
    }
    // All of them are opened before anything is changed.
    let mut sources = Vec::new();
    for path in args.paths.iter().filter(|path| *path != "-") {
        let path = local::path_of(path)?;
        let file = File::open(&path).map_err(|error| Failure::local(&path, error))?;
        if local::metadata(&path)?.is_dir() {
            return Err(Failure::is_directory(&path.display().to_string()));
        }
        sources.push((path.display().to_string(), file));
    }
    let target = shell.look_up(&target).await?;
    if !target.exists() {
        target.fs.create(&target.path, &CreateOptions::default()).await?.close().await?;
    }
    let mut writer = target.fs.append(&target.path, args.new_block).await?;
    if reads_input {
        copy(&mut writer, "-", read_local(std::io::stdin())).await?;
    }
    for (name, file) in sources {
        copy(&mut writer, &name, read_local(file)).await?;
    }
    writer.close().await?;
    Ok(())
}

async fn copy(writer: &mut FileWriter, name: &str, mut source: Source) -> Outcome {
    while let Some(chunk) = source.recv().await {
        let chunk = chunk.map_err(|error| Failure::local(name, error))?;
        writer.write(&chunk).await?;
    }
    Ok(())
}
