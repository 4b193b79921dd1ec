//! `ls`: what is in a directory.

use super::{failure::Outcome, format, item::Item, shell::Shell};
use client::FileStatus;
use std::{cmp::Ordering, future::Future, pin::Pin};

/// List directories, one line an entry: mode, copies, owner, group, size, time and path.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// Print the paths only.
    #[arg(short = 'C')]
    paths_only: bool,
    /// List directories themselves instead of what is in them.
    #[arg(short = 'd')]
    directories_themselves: bool,
    /// Print sizes as 1.5 K.
    #[arg(short = 'h')]
    human: bool,
    /// Print ? instead of characters that do not print.
    #[arg(short = 'q')]
    hide_unprintable: bool,
    /// List everything below, too.
    #[arg(short = 'R')]
    recursive: bool,
    /// The latest first.
    #[arg(short = 't')]
    by_time: bool,
    /// The largest first.
    #[arg(short = 'S')]
    by_size: bool,
    /// Reverse the order.
    #[arg(short = 'r')]
    reverse: bool,
    /// Show, and order by, the time of access instead of modification.
    #[arg(short = 'u')]
    access_time: bool,
    /// Show how files are kept safe: by copies, or by which erasure coding.
    #[arg(short = 'e')]
    erasure_coding: bool,
    /// Print help.
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// What to list; your home directory if not given.
    paths: Vec<String>,
}

/// Entries whose columns are lined up together when a whole tree is listed.
const GROUP_SIZE: usize = 100;

pub async fn run(shell: &mut Shell, mut args: Args) -> Outcome {
    if args.paths.is_empty() {
        args.paths.push(".".into());
    }
    args.recursive &= !args.directories_themselves;
    let paths = std::mem::take(&mut args.paths);
    let mut list = List { args, widths: Widths::default() };
    for item in shell.expand_all(&paths).await {
        let outcome = list.argument(shell, &item).await;
        shell.check(outcome);
    }
    Ok(())
}

struct List {
    args: Args,
    widths: Widths,
}

/// The widest entry of each column so far; the first ones are Hadoop's.
struct Widths {
    replication: usize,
    owner: usize,
    group: usize,
    erasure_coding: usize,
    length: usize,
}

impl Default for Widths {
    fn default() -> Self {
        Self { replication: 3, owner: 0, group: 0, erasure_coding: 0, length: 10 }
    }
}

impl List {
    async fn argument(&mut self, shell: &mut Shell, item: &Item) -> Outcome {
        let status = item.existing()?;
        if !status.is_dir() || self.args.directories_themselves {
            self.widen([status]);
            return self.print(shell, item);
        }
        if self.args.recursive && self.args.order().is_none() {
            return self.tree(shell, item).await;
        }
        self.directory(shell, item).await
    }

    /// A directory in the order wanted, which takes all of it in memory.
    fn directory<'a>(
        &'a mut self,
        shell: &'a mut Shell,
        directory: &'a Item,
    ) -> Pin<Box<dyn Future<Output = Outcome> + Send + 'a>> {
        Box::pin(async move {
            let mut items = directory.children().await?;
            if let Some(order) = self.args.order() {
                items.sort_by(|a, b| order(a, b));
            }
            if !self.args.recursive && !items.is_empty() && !self.args.paths_only && !shell.is_json {
                shell.say(format!("Found {} items", items.len()))?;
            }
            self.widen(items.iter().filter_map(|item| item.status.as_ref()));
            for item in &items {
                self.print(shell, item)?;
                if self.args.recursive && item.is_dir() {
                    let outcome = self.directory(shell, item).await;
                    shell.check(outcome);
                }
            }
            Ok(())
        })
    }

    /// A directory and everything below, with a group of entries in memory at each level.
    fn tree<'a>(
        &'a mut self,
        shell: &'a mut Shell,
        directory: &'a Item,
    ) -> Pin<Box<dyn Future<Output = Outcome> + Send + 'a>> {
        Box::pin(async move {
            let mut listing = directory.fs.list(&directory.path);
            loop {
                let mut group = Vec::new();
                while group.len() < GROUP_SIZE
                    && let Some(status) = listing.next().await?
                {
                    group.push(directory.child(status));
                }
                if group.is_empty() {
                    return Ok(());
                }
                self.widen(group.iter().filter_map(|item| item.status.as_ref()));
                for item in &group {
                    self.print(shell, item)?;
                    if item.is_dir() {
                        let outcome = self.tree(shell, item).await;
                        shell.check(outcome);
                    }
                }
            }
        })
    }

    fn widen<'a>(&mut self, statuses: impl IntoIterator<Item = &'a FileStatus>) {
        let widths = &mut self.widths;
        for status in statuses {
            widths.replication = widths.replication.max(status.replication.to_string().len());
            widths.owner = widths.owner.max(status.owner.chars().count());
            widths.group = widths.group.max(status.group.chars().count());
            widths.erasure_coding = widths.erasure_coding.max(erasure_coding(status).chars().count());
            // Hadoop measures the number even where it prints `1.5 K`.
            widths.length = widths.length.max(status.length.to_string().len());
        }
    }

    fn print(&self, shell: &mut Shell, item: &Item) -> Outcome {
        let status = item.existing()?;
        let shown = match self.args.hide_unprintable {
            true => item.shown.chars().map(|c| if c.is_control() { '?' } else { c }).collect(),
            false => item.shown.clone(),
        };
        if shell.is_json {
            return shell.say(super::json::of_status(&shown, status).to_string());
        }
        if self.args.paths_only {
            return shell.say(shown);
        }
        shell.say(self.line(status, &shown))
    }

    fn line(&self, status: &FileStatus, shown: &str) -> String {
        let widths = &self.widths;
        let acl = if status.has_acl { '+' } else { ' ' };
        let replication = if status.is_file() { status.replication.to_string() } else { "-".into() };
        let ms = if self.args.access_time { status.accessed_ms } else { status.modified_ms };
        let column = |text: &str, width: usize| match width {
            0 => text.to_owned(),
            width => format!("{text:<width$} "),
        };
        format!(
            "{}{acl}{replication:>replication_width$} {}{}{}{:>length_width$} {} {shown}",
            format::kind_and_mode(status),
            column(&status.owner, widths.owner),
            column(&status.group, widths.group),
            if self.args.erasure_coding {
                column(erasure_coding(status), widths.erasure_coding)
            } else {
                String::new()
            },
            format::size(status.length, self.args.human),
            format::minute(ms),
            replication_width = widths.replication,
            length_width = widths.length,
        )
    }
}

/// The name of a file's erasure coding.
fn erasure_coding(status: &FileStatus) -> &str {
    match &status.erasure_coding {
        Some(name) => name,
        None if status.is_file() => "Replicated",
        None => "",
    }
}

type Order = Box<dyn Fn(&Item, &Item) -> Ordering + Send>;

impl Args {
    /// How entries are put in order, where it is not the order of names in which they come.
    fn order(&self) -> Option<Order> {
        fn by<K: Ord>(key: impl Fn(&FileStatus) -> K + Send + 'static, reverse: bool) -> Option<Order> {
            Some(Box::new(move |a, b| {
                let order = a.status.as_ref().map(&key).cmp(&b.status.as_ref().map(&key));
                if reverse { order.reverse() } else { order }
            }))
        }
        let access = self.access_time;
        match (self.by_time, self.by_size, self.reverse) {
            (true, _, reverse) => {
                by(move |status| if access { status.accessed_ms } else { status.modified_ms }, !reverse)
            }
            (_, true, reverse) => by(|status| status.length, !reverse),
            (_, _, true) => by(|status| status.path.clone(), true),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::FileKind;

    fn status(name: &str, kind: FileKind, length: u64) -> FileStatus {
        FileStatus {
            path: format!("/{name}"),
            kind,
            length,
            mode: 0o644,
            owner: "alice".into(),
            group: "staff".into(),
            modified_ms: 0,
            accessed_ms: 0,
            replication: if kind == FileKind::File { 3 } else { 0 },
            block_size: 0,
            file_id: 1,
            children: None,
            has_acl: false,
            erasure_coding: None,
            storage_policy: 0,
        }
    }

    fn list(option: &str) -> List {
        #[derive(clap::Parser)]
        struct Cli {
            #[command(flatten)]
            args: Args,
        }
        let args = <Cli as clap::Parser>::parse_from(["ls", option]).args;
        List { args, widths: Widths::default() }
    }

    #[test]
    fn erasure_coding_has_a_column_as_hadoops() {
        let mut list = list("-e");
        let (file, dir) = (status("f", FileKind::File, 4), status("d", FileKind::Directory, 0));
        list.widen([&file, &dir]);
        let date = format::minute(0);
        assert_eq!(
            list.line(&file, "/f"),
            format!("-rw-r--r--   3 alice staff Replicated          4 {date} /f")
        );
        assert_eq!(
            list.line(&dir, "/d"),
            format!("drw-r--r--   - alice staff                     0 {date} /d")
        );
    }

    #[test]
    fn a_line_is_hadoops() {
        let mut list = list("-h");
        let file = status("f", FileKind::File, 12_345_678_901);
        let dir = status("d", FileKind::Directory, 0);
        list.widen([&file, &dir]);
        let date = format::minute(0);
        assert_eq!(list.line(&dir, "/d"), format!("drw-r--r--   - alice staff           0 {date} /d"));
        assert_eq!(list.line(&file, "/f"), format!("-rw-r--r--   3 alice staff      11.5 G {date} /f"));
    }
}
