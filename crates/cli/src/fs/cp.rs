//! `cp`: copies within the file system, or from one to another.

use super::{
    destination::{Destination, check_not_within},
    failure::{Failure, Outcome},
    get,
    item::Item,
    local, path, put,
    shell::Shell,
    transfer::{Options, Transfer, read_remote, upload},
};
use client::FileStatus;

/// Copy files and directories within the file system, or from one to another.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    options: Options,
    /// Keep t(imes), o(wner and group), p(ermission), a(cl) and x(attrs); the first three if not said.
    #[arg(short = 'p', long, value_name = "WHAT", num_args = 0..=1, default_missing_value = "top",
          require_equals = true)]
    preserve: Option<String>,
    /// What to copy, and last where to.
    #[arg(required = true, num_args = 2..)]
    paths: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Preserve {
    times: bool,
    owner: bool,
    permission: bool,
    acl: bool,
    xattrs: bool,
}

impl Preserve {
    fn parse(letters: &str) -> Outcome<Self> {
        let mut preserve = Self::default();
        for letter in letters.chars() {
            match letter.to_ascii_lowercase() {
                't' => preserve.times = true,
                'o' => preserve.owner = true,
                'p' => preserve.permission = true,
                'a' => preserve.acl = true,
                'x' => preserve.xattrs = true,
                _ => return Err(Failure::Usage(format!("No attribute for {letter}"))),
            }
        }
        Ok(preserve)
    }

    async fn apply(self, source: &Item, target: &Item) -> Outcome {
        let status = source.existing()?;
        let (fs, path) = (&target.fs, &*target.path);
        if self.times {
            let accessed = (status.accessed_ms > 0).then_some(status.accessed_ms);
            fs.set_times(path, Some(status.modified_ms), accessed).await?;
        }
        if self.owner {
            fs.set_owner(path, Some(&status.owner), Some(&status.group)).await?;
        }
        // The mask of an ACL is among the permission bits.
        if self.permission || self.acl {
            fs.set_permission(path, status.mode).await?;
        }
        if self.acl && status.has_acl {
            fs.set_acl(path, &source.fs.acl_status(&source.path).await?.whole()).await?;
        }
        if self.xattrs {
            for xattr in source.fs.xattrs(&source.path).await? {
                let value = Some(xattr.value).filter(|value| !value.is_empty());
                fs.set_xattr(path, &xattr.name, value).await?;
            }
        }
        Ok(())
    }
}

pub async fn run(shell: &mut Shell, mut args: Args) -> Outcome {
    let preserve = Preserve::parse(args.preserve.as_deref().unwrap_or_default())?;
    match Machine::of(&args.paths)? {
        Machine::None => {}
        Machine::Source => {
            let args = put::Args::of_copy(args.options, args.preserve.is_some(), args.paths);
            return put::put(shell, args).await;
        }
        Machine::Destination => {
            let args = get::Args::of_copy(args.options, args.preserve.is_some(), args.paths);
            return get::get(shell, args).await;
        }
    }
    let destination = Destination::take(shell, &mut args.paths).await?;
    let sources = shell.expand_all(&args.paths).await;
    if sources.is_empty() {
        return Ok(());
    }
    destination.accepts(sources.len(), args.options.force).await?;
    let transfer = Transfer::new(&args.options);
    let mut copy = Copy { options: args.options, preserve, transfer, after: Vec::new() };
    for source in sources {
        let target = target_of(&source, &destination).await;
        if let Some(target) = shell.check(target) {
            copy.copy(shell, source, target).await;
        }
    }
    copy.transfer.finish(shell).await;
    while let Some((source, target)) = copy.after.pop() {
        let outcome = preserve.apply(&source, &target).await;
        shell.check(outcome);
    }
    Ok(())
}

/// Whether files of this machine (`file:///a`) take part.
enum Machine {
    None,
    Source,
    Destination,
}

impl Machine {
    fn of(paths: &[String]) -> Outcome<Self> {
        let Some((last, sources)) = paths.split_last() else { return Ok(Self::None) };
        let local = sources.iter().filter(|path| local::is_uri(path)).count();
        match (local::is_uri(last), local) {
            (false, 0) => Ok(Self::None),
            (false, local) if local == sources.len() => Ok(Self::Source),
            (true, 0) => Ok(Self::Destination),
            (true, local) if local == sources.len() => {
                Err(Failure::path(last, "and what is to be copied are on this machine: cp without clover copies that"))
            }
            _ => Err(Failure::Other(
                "some paths to be copied are of this machine and some are not: copy them one kind after the other".into(),
            )),
        }
    }
}

async fn target_of(source: &Item, destination: &Destination) -> Outcome<Item> {
    source.existing()?;
    let target = destination.target(path::name(&source.path)).await?;
    check_not_within(source, &target)?;
    Ok(target)
}

struct Copy {
    options: Options,
    preserve: Preserve,
    transfer: Transfer,
    /// Directories whose times and modes are set at the end.
    after: Vec<(Item, Item)>,
}

impl Copy {
    async fn copy(&mut self, shell: &mut Shell, source: Item, target: Item) {
        let mut waiting = vec![(source, target)];
        while let Some((source, target)) = waiting.pop() {
            let existing = source.existing().cloned();
            let Some(status) = shell.check(existing) else { continue };
            if !status.is_dir() {
                self.start(shell, source, status, target).await;
                continue;
            }
            let below = enter(&source, &target).await;
            if let Some(below) = shell.check(below) {
                waiting.extend(below.into_iter().rev());
                self.after.push((source, target));
            }
        }
    }

    async fn start(&mut self, shell: &mut Shell, source: Item, status: FileStatus, target: Item) {
        if target.exists() && (target.is_dir() || !self.options.force) {
            return shell.fail(&Failure::exists(&target.shown));
        }
        let progress = self.transfer.expect(status.length);
        let (options, preserve) = (self.options.clone(), self.preserve);
        let copy = async move {
            let bytes = read_remote(source.fs.clone(), source.path.clone());
            upload(&target.fs, &target.path, &source.shown, bytes, &options, &progress).await?;
            preserve.apply(&source, &target).await
        };
        self.transfer.start(shell, copy).await;
    }
}

/// Makes a directory and says what is to be copied into it.
async fn enter(source: &Item, target: &Item) -> Outcome<Vec<(Item, Item)>> {
    match &target.status {
        Some(status) if !status.is_dir() => return Err(Failure::not_directory(&target.shown)),
        Some(_) => {}
        None => target.fs.mkdirs(&target.path).await?,
    }
    let mut below = Vec::new();
    for child in source.children().await? {
        let mut inner = target.child_named(path::name(&child.path));
        if target.exists() {
            inner.refresh().await?;
        }
        below.push((child, inner));
    }
    Ok(below)
}
