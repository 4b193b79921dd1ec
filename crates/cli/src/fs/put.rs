//! `put`, `copyFromLocal` and `moveFromLocal`: from this machine into the file system.

use super::{
    destination::Destination,
    failure::{Failure, Outcome},
    item::Item,
    local,
    shell::Shell,
    transfer::{Options, Transfer, read_local, upload},
};
use std::{
    fs::{File, Metadata},
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::Arc,
};

/// Copy files and directories of this machine into the file system.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    options: Options,
    /// Keep times, owner, group and mode.
    #[arg(short = 'p')]
    preserve: bool,
    /// Accepted for scripts: one copy is made at once, others follow.
    #[arg(short = 'l', hide = true)]
    lazy: bool,
    /// What to copy, `-` for the standard input, and last where to; your home directory if not given.
    #[arg(required = true)]
    paths: Vec<String>,
}

impl Args {
    /// `cp` from this machine.
    pub fn of_copy(options: Options, preserve: bool, paths: Vec<String>) -> Self {
        Self { options, preserve, lazy: false, paths }
    }
}

/// Something of this machine, and what it is to become.
struct Waiting {
    source: PathBuf,
    metadata: Metadata,
    target: Item,
    above: Option<Arc<Above>>,
}

/// A directory that is being copied, and those above it.
struct Above {
    device: u64,
    inode: u64,
    above: Option<Arc<Above>>,
}

impl Above {
    /// Whether a directory is this one or one above it: a link leads back to it.
    fn has(&self, metadata: &Metadata) -> bool {
        std::iter::successors(Some(self), |above| above.above.as_deref())
            .any(|above| (above.device, above.inode) == (metadata.dev(), metadata.ino()))
    }
}

/// The work that follows a directory's copy.
struct After {
    source: PathBuf,
    metadata: Metadata,
    target: Item,
}

pub async fn put(shell: &mut Shell, args: Args) -> Outcome {
    run(shell, args, false).await
}

pub async fn move_from_local(shell: &mut Shell, args: Args) -> Outcome {
    run(shell, args, true).await
}

async fn run(shell: &mut Shell, mut args: Args, is_move: bool) -> Outcome {
    let destination = Destination::take(shell, &mut args.paths).await?;
    if args.paths == ["-"] {
        destination.accepts(1, args.options.force).await?;
        return from_standard_input(shell, &args, &destination).await;
    }
    let mut sources = Vec::new();
    for argument in &args.paths {
        let source = local::path_of(argument).and_then(|path| Ok((local::metadata(&path)?, path)));
        if let Some((metadata, path)) = shell.check(source) {
            sources.push((path, metadata));
        }
    }
    if sources.is_empty() {
        return Ok(());
    }
    destination.accepts(args.paths.len(), args.options.force).await?;
    let mut put = Put { transfer: Transfer::new(&args.options), args, after: Vec::new(), is_move };
    for (source, metadata) in sources {
        let target = async { destination.target(&local::name_of(&source)?).await };
        let target = target.await;
        if let Some(target) = shell.check(target) {
            put.copy(shell, source, metadata, target).await;
        }
    }
    put.transfer.finish(shell).await;
    // Directories last, the deepest first: what is put into them changes their times.
    while let Some(after) = put.after.pop() {
        let outcome = put.settle_directory(after).await;
        shell.check(outcome);
    }
    Ok(())
}

async fn from_standard_input(shell: &mut Shell, args: &Args, destination: &Destination) -> Outcome {
    let target = destination.target("-").await?;
    if target.exists() && (target.is_dir() || !args.options.force) {
        return Err(Failure::exists(&target.shown));
    }
    target.check_name()?;
    let mut transfer = Transfer::new(&args.options);
    let progress = transfer.expect_unknown();
    let source = read_local(std::io::stdin());
    let outcome = upload(&target.fs, &target.path, "-", source, &args.options, &progress).await;
    transfer.finish(shell).await;
    outcome
}

struct Put {
    args: Args,
    transfer: Transfer,
    after: Vec<After>,
    is_move: bool,
}

impl Put {
    /// Copies a file, or a directory with everything below. Directories are made as they are met. A file that cannot
    /// be read is told of, and the rest is copied.
    async fn copy(&mut self, shell: &mut Shell, source: PathBuf, metadata: Metadata, target: Item) {
        // A list instead of recursion: depth costs no stack.
        let mut waiting = vec![Waiting { source, metadata, target, above: None }];
        while let Some(next) = waiting.pop() {
            if !next.metadata.is_dir() {
                self.start(shell, next.source, next.metadata, next.target).await;
                continue;
            }
            let below = self.enter(shell, &next).await;
            if let Some(below) = shell.check(below) {
                waiting.extend(below.into_iter().rev());
                let Waiting { source, metadata, target, .. } = next;
                self.after.push(After { source, metadata, target });
            }
        }
    }

    /// Makes a directory and says what is to be copied into it.
    async fn enter(&self, shell: &mut Shell, directory: &Waiting) -> Outcome<Vec<Waiting>> {
        let Waiting { source, metadata, target, above } = directory;
        if above.as_ref().is_some_and(|above| above.has(metadata)) {
            let reason = "is a link to a directory above it, whose copy would have no end";
            return Err(Failure::path(&source.display().to_string(), reason));
        }
        if self.is_move && target.is_dir() {
            return Err(Failure::exists(&target.shown));
        }
        match &target.status {
            Some(status) if !status.is_dir() => return Err(Failure::not_directory(&target.shown)),
            Some(_) => {}
            None => target.fs.mkdirs(&target.path).await?,
        }
        let this = Above { device: metadata.dev(), inode: metadata.ino(), above: above.clone() };
        let this = Some(Arc::new(this));
        let mut below = Vec::new();
        for entry in local::entries(source)? {
            let found = local::metadata_in_tree(&entry);
            let found = found.and_then(|metadata| Ok((metadata, local::name_of(&entry)?)));
            let Some((metadata, name)) = shell.check(found) else { continue };
            let mut child = target.child_named(&name);
            if target.exists() {
                child.refresh().await?;
            }
            below.push(Waiting { source: entry, metadata, target: child, above: this.clone() });
        }
        Ok(below)
    }

    async fn start(&mut self, shell: &mut Shell, source: PathBuf, metadata: Metadata, target: Item) {
        if target.exists() && (target.is_dir() || !self.args.options.force) {
            return shell.fail(&Failure::exists(&target.shown));
        }
        let possible = target.check_name();
        if shell.check(possible).is_none() {
            return;
        }
        let progress = self.transfer.expect(metadata.len());
        let (options, preserve, is_move) = (self.args.options.clone(), self.args.preserve, self.is_move);
        let copy = async move {
            let file = File::open(&source).map_err(|error| Failure::local(&source, error))?;
            let name = source.display().to_string();
            upload(&target.fs, &target.path, &name, read_local(file), &options, &progress).await?;
            if preserve {
                local::preserve_remotely(&target.fs, &target.path, &metadata).await?;
            }
            if is_move {
                std::fs::remove_file(&source).map_err(|error| Failure::local(&source, error))?;
            }
            Ok(())
        };
        self.transfer.start(shell, copy).await;
    }

    async fn settle_directory(&self, after: After) -> Outcome {
        if self.args.preserve {
            local::preserve_remotely(&after.target.fs, &after.target.path, &after.metadata).await?;
        }
        if self.is_move {
            std::fs::remove_dir(&after.source).map_err(|error| Failure::local(&after.source, error))?;
        }
        Ok(())
    }
}
