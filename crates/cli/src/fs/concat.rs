//! `concat`: the blocks of files behind those of another.

use super::{
    failure::{Failure, Outcome},
    shell::Shell,
};

const USAGE: &str = "<target path> <src path> <src path> ...";

/// Append files to another file of the same directory without copying, and remove them.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file that grows, and the files that go into it.
    paths: Vec<String>,
}

pub async fn run(shell: &mut Shell, args: Args) -> Outcome {
    let mut items = shell.expand_all(&args.paths).await.into_iter();
    let Some(target) = items.next() else {
        return Err(Failure::Other(format!("Target path not specified. {USAGE}")));
    };
    if items.len() < 2 {
        return Err(Failure::Other(format!("The number of source paths is less than 2. {USAGE}")));
    }
    if target.file().is_err() {
        let text = format!("Target path {} does not exist or is not file.", target.shown);
        return Err(Failure::Other(text));
    }
    let mut sources = Vec::new();
    for source in items {
        if source.file().is_err() {
            return Err(Failure::Other(format!("{} does not exist or is not file.", source.shown)));
        }
        sources.push(source.path);
    }
    target.fs.concat(&target.path, &sources).await?;
    Ok(())
}
