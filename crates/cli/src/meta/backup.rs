//! `clover meta backup`: what a backup holds, whether it is sound, and the names in it as of then. No server is needed.

use super::opened::{explained, moment, open};
use crate::{
    admin::size,
    fs::format::{minute, mode},
    table,
};
use anyhow::Context;
use base::{FsError, GroupId, Sn, directory_log::Dix};
use env::Env;
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use journal::archive::{Backup, Span};
use metad::backup::{Blocks, Look, Rebuilt, Until, rebuild};
use namespace::FileStatus;
use serde_json::json;
use std::{
    io::{BufWriter, Write},
    path::PathBuf,
    process::ExitCode,
};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show which entries and which times can be restored; of several groups, which place all of them can be restored at.
    List(List),
    /// Read all of it, and say whether it is sound.
    Verify(Verify),
    /// List the files and directories as of an entry or a time, without a server.
    Look(LookAt),
}

#[derive(Debug, clap::Args)]
struct List {
    /// The directory of the backup. Of a namespace that several groups hold: those of all groups.
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,
    /// Show the places in the directory log at which the group can be restored together with others, and the newest one that all backups have. Reads
    /// their whole logs. Several directories mean this.
    #[arg(long)]
    dix: bool,
    /// With the backups of all groups: the last place before this time.
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Option<u64>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Verify {
    /// The directory of the backup.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Also make the names of each range from it, as a restore does; that takes as much memory as in a server.
    #[arg(long)]
    deep: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The options that choose a state of a backup.
#[derive(Debug, clap::Args)]
pub struct Point {
    /// The state at this time: 2026-11-23T04:05:06.5Z, with another offset as +01:00, without one in this machine's time zone, or in milliseconds since 1970.
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Option<u64>,
    /// The state after the entry with this serial number.
    #[arg(long, value_name = "SN", conflicts_with = "at")]
    entry: Option<u64>,
    /// Where several groups hold the namespace: the state when the group had just come to this place in the directory log. `clover meta backup list` shows the places.
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["at", "entry"])]
    dix: Option<u64>,
}

#[derive(Debug, clap::Args)]
struct LookAt {
    /// The directory of the backup.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// A directory or file as it was then.
    #[arg(value_name = "PATH", default_value = "/")]
    path: String,
    #[command(flatten)]
    point: Point,
    /// All below as well.
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Only count: directories, files, bytes, and bytes with all copies.
    #[arg(long, conflicts_with = "recursive")]
    summary: bool,
    /// Only the files with a block that a later change in the backup has removed or written anew: its copies as of then are gone, most likely.
    #[arg(long, conflicts_with = "summary")]
    gone_since: bool,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
}

impl Point {
    pub fn until(&self) -> Until {
        match (self.at, self.entry, self.dix) {
            (Some(ms), ..) => Until::Time(ms),
            (_, Some(sn), _) => Until::Entry(Sn(sn)),
            (.., Some(dix)) => Until::Place(Dix(dix)),
            (None, None, None) => Until::End,
        }
    }
}

/// A time as people and programs write it, in milliseconds since 1970.
fn time(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "{text} is no time as 2026-11-23T04:05:06Z, \"2026-11-23 04:05:06\" or milliseconds since 1970"
        )
    };
    if text.len() >= 10 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map_err(|_| wrong());
    }
    let found = text.parse::<Timestamp>().or_else(|_| {
        let here = text.parse::<DateTime>()?;
        Ok::<_, jiff::Error>(here.to_zoned(TimeZone::system())?.timestamp())
    });
    found.ok().and_then(|found| u64::try_from(found.as_millisecond()).ok()).ok_or_else(wrong)
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::List(args) => list(args),
        Command::Verify(args) => verify(args),
        Command::Look(args) => look(args),
    }
}

fn list(args: &List) -> anyhow::Result<ExitCode> {
    if args.dix || args.at.is_some() || args.directories.len() > 1 {
        return super::places::list(&args.directories, args.at, args.json);
    }
    let backup = open(&args.directories[0])?;
    let manifest = backup.manifest();
    if args.json {
        let ranges: Vec<_> = manifest.spans.iter().map(as_json).collect();
        let told = json!({
            "cluster_id": manifest.whose.cluster_id,
            "block_pool": manifest.whose.block_pool,
            "group": manifest.whose.group.0,
            "epoch": manifest.epoch.0,
            "ranges": ranges,
        });
        println!("{}", serde_json::to_string_pretty(&told)?);
        return Ok(ExitCode::SUCCESS);
    }
    let of = match manifest.whose.group {
        GroupId::ROOT => String::new(),
        group => format!("group {group} of "),
    };
    println!("Backup of {of}cluster {}, block pool {}", manifest.whose.cluster_id, manifest.whose.block_pool);
    if manifest.spans.is_empty() {
        println!(
            "It holds nothing yet: its first run was interrupted. `clover admin backup` goes on with it."
        );
        return Ok(ExitCode::SUCCESS);
    }
    let headings = ["FIRST SN", "LAST SN", "FROM", "TO", "COMPLETE UP TO", "IMAGE"];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    rows.extend(manifest.spans.iter().map(row));
    println!("{}", table::lines(&rows).join("\n"));
    for pair in manifest.spans.windows(2) {
        println!(
            "Nothing between entries {} and {} can be restored: the members had removed them before they were archived.",
            pair[0].end.id.sn, pair[1].begin.id.sn
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn row(span: &Span) -> Vec<String> {
    let time = |ms: Option<u64>| ms.map_or_else(|| "-".to_owned(), moment);
    vec![
        span.begin.id.sn.to_string(),
        span.end.id.sn.to_string(),
        time(span.begin_ms),
        time(span.end_ms),
        time(span.complete_ms),
        span.image.map_or_else(|| "-".to_owned(), |image| size(image.file_bytes)),
    ]
}

fn as_json(span: &Span) -> serde_json::Value {
    json!({
        "first_sn": span.begin.id.sn.0,
        "last_sn": span.end.id.sn.0,
        "last_epoch": span.end.id.epoch.0,
        "from_ms": span.begin_ms,
        "to_ms": span.end_ms,
        "complete_ms": span.complete_ms,
        "image": span.image.map(|image| image.file_name()),
        "image_bytes": span.image.map(|image| image.file_bytes),
    })
}

fn verify(args: &Verify) -> anyhow::Result<ExitCode> {
    let backup = match Backup::open(Env::production().disk, &args.directory) {
        Err(error) if error.is_damage() => return Ok(unsound(args, &[error.to_string()])),
        opened => opened?,
    };
    let mut damage: Vec<String> = backup.finding().map(str::to_owned).into_iter().collect();
    let mut lines = Vec::new();
    for span in &backup.manifest().spans {
        let range = format!("entries {} to {}", span.begin.id.sn, span.end.id.sn);
        match backup.check(span) {
            Ok(checked) => {
                let line = json!({
                    "first_sn": span.begin.id.sn.0, "last_sn": span.end.id.sn.0, "entries": checked.entries,
                    "log_bytes": checked.log_bytes, "files": checked.files, "image_bytes": checked.image_bytes,
                });
                let text = format!(
                    "{range}: {} entries in {} files, {}; image {}",
                    checked.entries,
                    checked.files,
                    size(checked.log_bytes),
                    size(checked.image_bytes)
                );
                lines.push((line, text));
            }
            Err(error) if error.is_damage() => {
                damage.push(format!("{range}: {error}"));
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        if args.deep {
            let rebuilt = rebuild(&backup, Until::Entry(span.end.id.sn), SEED);
            match rebuilt {
                Ok(rebuilt) => {
                    let counts = rebuilt.namespace.counts();
                    lines.push((
                        json!({
                            "sn": rebuilt.at.id.sn.0, "files": counts.files, "directories": counts.directories,
                            "blocks": counts.blocks, "digest": format!("{:016x}", rebuilt.namespace.digest()),
                        }),
                        format!(
                            "as of entry {}: {} files, {} directories, {} blocks",
                            rebuilt.at.id.sn, counts.files, counts.directories, counts.blocks
                        ),
                    ));
                }
                Err(error) => damage.push(format!("{range}: {error}")),
            }
        }
    }
    for (line, text) in &lines {
        match args.json {
            true => println!("{line}"),
            false => println!("{text}"),
        }
    }
    if !damage.is_empty() {
        return Ok(unsound(args, &damage));
    }
    match args.json {
        true => println!("{}", json!({ "sound": true })),
        false => println!("verdict: sound"),
    }
    Ok(ExitCode::SUCCESS)
}

fn unsound(args: &Verify, damage: &[String]) -> ExitCode {
    match args.json {
        true => println!("{}", json!({ "sound": false, "damage": damage })),
        false => {
            damage.iter().for_each(|what| println!("DAMAGED {what}"));
            println!(
                "verdict: NOT SOUND. Begin another backup, in another directory. What is before a damaged place can still be restored \
                 with --entry or --at."
            );
        }
    }
    ExitCode::FAILURE
}

/// The order of a hash table decides nothing that is shown.
pub const SEED: u64 = 1;

/// Makes the names as of then, and says which entry that is.
pub fn rebuilt(backup: &Backup, until: Until) -> anyhow::Result<Rebuilt> {
    let rebuilt = rebuild(backup, until, SEED).map_err(explained)?;
    if let Some((sn, ms)) = rebuilt.found.straggler {
        eprintln!(
            "WARNING: a clock has gone back: entries up to {sn} carry times up to then as well (the last one {}), and are left out. \
             --entry names an exact one.",
            moment(ms)
        );
    }
    Ok(rebuilt)
}

/// The text that says which state was taken.
pub fn which(rebuilt: &Rebuilt) -> String {
    let last = rebuilt
        .found
        .last_ms
        .map_or_else(String::new, |ms| format!(", whose last change is of {}", moment(ms)));
    let next = rebuilt
        .found
        .next
        .map_or_else(String::new, |(sn, ms)| format!("; the next change is entry {sn} of {}", moment(ms)));
    let place = rebuilt
        .found
        .place
        .map_or_else(String::new, |place| format!(" (place {} in the directory log)", place.dix));
    format!("entry {}{place}{last}{next}", rebuilt.at.id)
}

fn look(args: &LookAt) -> anyhow::Result<ExitCode> {
    let backup = open(&args.directory)?;
    // First, and then forgotten: two trees at once would take twice the memory.
    let later = match args.gone_since {
        true => Some(Blocks::at_the_end(&backup, SEED).map_err(explained)?),
        false => None,
    };
    let rebuilt = rebuilt(&backup, args.point.until())?;
    if !args.json {
        eprintln!("As of {}.", which(&rebuilt));
    }
    let look = Look::new(&rebuilt.namespace);
    let path = &args.path;
    let of = || format!("{path} as of entry {}", rebuilt.at.id.sn);
    let mut out = BufWriter::new(std::io::stdout().lock());
    if args.summary {
        let found = look.summary(path).with_context(of)?;
        match args.json {
            true => writeln!(
                out,
                "{}",
                json!({
                    "path": path, "directories": found.directory_count, "files": found.file_count,
                    "bytes": found.length, "bytes_with_copies": found.space_consumed,
                })
            )?,
            false => writeln!(
                out,
                "{} directories, {} files, {} bytes, {} with all copies",
                found.directory_count, found.file_count, found.length, found.space_consumed
            )?,
        }
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut shown = 0u64;
    let is_recursive = args.recursive || later.is_some();
    let walked = look.walk::<anyhow::Error>(path, is_recursive, &mut |path, status| {
        let mut blocks = None;
        if let Some(later) = &later {
            if status.is_directory() {
                return Ok(());
            }
            let all = look.blocks(path)?.blocks;
            // This backup does not tell which blocks of other groups are still there.
            let own = all.iter().filter(|one| !rebuilt.namespace.is_foreign(one.block.id));
            let gone = own.filter(|one| !later.have(&one.block, one.committed)).count();
            if gone == 0 {
                return Ok(());
            }
            blocks = Some((gone, all.len()));
        }
        shown += 1;
        write_one(&mut out, path, status, blocks, args.json)
    });
    // The program that reads this command's output, such as `head`, has closed the pipe.
    let is_over = |error: &anyhow::Error| {
        error.downcast_ref::<std::io::Error>().is_some_and(|it| it.kind() == std::io::ErrorKind::BrokenPipe)
    };
    match walked {
        Err(error) if is_over(&error) => return Ok(ExitCode::SUCCESS),
        Err(error) if error.is::<FsError>() => return Err(error.context(of())),
        walked => walked?,
    }
    out.flush()?;
    if later.is_some() && shown == 0 && !args.json {
        eprintln!("No later change in the backup has removed a block of a file that is there.");
    }
    Ok(ExitCode::SUCCESS)
}

fn write_one(
    out: &mut impl Write,
    path: &str,
    status: &FileStatus<'_>,
    gone: Option<(usize, usize)>,
    is_json: bool,
) -> anyhow::Result<()> {
    let kind = if status.is_directory() { 'd' } else { '-' };
    if is_json {
        let mut line = json!({
            "path": path,
            "type": if status.is_directory() { "directory" } else { "file" },
            "length": status.length,
            "replication": status.replication,
            "owner": status.owner,
            "group": status.group,
            "permission": format!("{:o}", status.permission),
            "modification_time": status.modified.ms,
            "being_written": status.under_construction,
        });
        if let Some((gone, all)) = gone {
            line["gone_blocks"] = gone.into();
            line["blocks"] = all.into();
        }
        writeln!(out, "{line}")?;
        return Ok(());
    }
    let replication = if status.is_directory() { "-".to_owned() } else { status.replication.to_string() };
    let note = gone.map_or_else(String::new, |(gone, all)| format!("  ({gone} of {all} blocks gone)"));
    writeln!(
        out,
        "{kind}{} {replication:>3} {:<10} {:<12} {:>14} {} {path}{note}",
        mode(status.permission),
        status.owner,
        status.group,
        status.length,
        minute(status.modified.ms)
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{moment, time};

    #[test]
    fn times_are_read_as_they_are_shown_and_as_people_write_them() {
        for ms in [1_763_829_600_000, 1_763_829_600_123] {
            assert_eq!(time(&moment(ms)), Ok(ms));
            assert_eq!(time(&ms.to_string()), Ok(ms));
        }
        assert_eq!(time("2025-11-22T16:40:00Z"), Ok(1_763_829_600_000));
        assert_eq!(time("2025-11-22T17:40:00+01:00"), Ok(1_763_829_600_000));
        assert!(time("2025-11-22 16:40:00").is_ok() && time("2025-11-22T16:40").is_ok());
        for wrong in ["", "yesterday", "12", "2025-13-01T00:00:00Z", "1925-01-01T00:00:00Z"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
