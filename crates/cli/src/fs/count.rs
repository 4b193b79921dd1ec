//! `count`: directories, files and bytes below paths, and quotas.

use super::{failure::Outcome, format, json, shell::Shell};
use base::StorageType;
use client::{ContentSummary, QuotaUsage};

/// Count directories, files and bytes.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// Print quotas and what is left of them, too.
    #[arg(short)]
    quotas: bool,
    /// Print quotas and what is left of them, and nothing else.
    #[arg(short = 'u')]
    only_quotas: bool,
    /// Print sizes as 1.5 K.
    #[arg(short = 'h')]
    human: bool,
    /// Print a header.
    #[arg(short = 'v')]
    header: bool,
    /// Do not count what only snapshots hold.
    #[arg(short = 'x')]
    exclude_snapshots: bool,
    /// Print the erasure coding policy, too.
    #[arg(short = 'e')]
    policy: bool,
    /// With -q or -u: print the quotas of storage types, as ssd,disk; `all` for each of them.
    #[arg(short = 't', value_name = "TYPES", num_args = 0..=1, default_missing_value = "all", value_parser = storage_types)]
    types: Option<Types>,
    /// Print what only snapshots hold, too.
    #[arg(short = 's')]
    snapshots: bool,
    /// Print help.
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// What to count.
    #[arg(required = true)]
    paths: Vec<String>,
}

#[derive(Clone, Debug)]
struct Types(Vec<StorageType>);

fn storage_types(text: &str) -> Result<Types, String> {
    if text.is_empty() || text.eq_ignore_ascii_case("all") {
        return Ok(Types(StorageType::WITH_QUOTA.to_vec()));
    }
    let named =
        |name: &str| StorageType::named(name).ok_or_else(|| format!("No storage type is called {name}"));
    text.split(',').map(named).collect::<Result<_, _>>().map(Types)
}

impl Args {
    /// The storage types that are asked for; none without -q and -u, because only quotas have types.
    fn types(&self) -> Option<&[StorageType]> {
        let has_quotas = self.quotas || self.only_quotas;
        self.types.as_ref().filter(|_| has_quotas).map(|types| &*types.0)
    }
}

/// The name that servers give to the absence of erasure coding.
const REPLICATED: &str = "Replicated";

pub async fn run(shell: &mut Shell, args: Args) -> Outcome {
    if args.exclude_snapshots && (args.quotas || args.only_quotas) && !shell.is_json {
        shell.say("q or u option is given, the -x option is ignored.")?;
    }
    if args.header && !shell.is_json {
        shell.say(format!("{}PATHNAME", header(&args)))?;
    }
    for item in shell.expand_all(&args.paths).await {
        let is_json = shell.is_json;
        let outcome = async {
            item.existing()?;
            let asks_usage = args.only_quotas || args.types().is_some();
            if asks_usage && !is_json {
                let usage = item.fs.quota_usage(&item.path).await?;
                let mut line = usage_columns(&args, &usage);
                if args.policy || args.snapshots {
                    line += &last_columns(&args, &item.fs.content_summary(&item.path).await?);
                }
                return Ok(format!("{line}{}", item.shown));
            }
            let summary = item.fs.content_summary(&item.path).await?;
            Ok(match is_json {
                true => json::of_summary(&item.shown, &summary).to_string(),
                false => {
                    format!("{}{}{}", columns(&args, &summary), last_columns(&args, &summary), item.shown)
                }
            })
        };
        let outcome = outcome.await;
        let Some(line) = shell.check(outcome) else { continue };
        shell.say(line)?;
    }
    Ok(())
}

fn header(args: &Args) -> String {
    let mut line = String::new();
    if let Some(types) = args.types() {
        for kind in types {
            line += &type_columns([format!("{kind}_QUOTA"), format!("REM_{kind}_QUOTA")]);
        }
    } else if args.quotas || args.only_quotas {
        line += &quota_columns(["QUOTA", "REM_QUOTA", "SPACE_QUOTA", "REM_SPACE_QUOTA"].map(str::to_owned));
    }
    if !args.only_quotas && args.types().is_none() {
        line += &summary_columns(["DIR_COUNT", "FILE_COUNT", "CONTENT_SIZE"].map(str::to_owned));
    }
    if args.policy {
        line += &policy_column("ERASURECODING_POLICY");
    }
    if args.snapshots {
        let names =
            ["SNAPSHOT_LENGTH", "SNAPSHOT_FILE_COUNT", "SNAPSHOT_DIR_COUNT", "SNAPSHOT_SPACE_CONSUMED"];
        line += &snapshot_columns(names.map(str::to_owned));
    }
    line
}

/// A limit and what is left of it; Hadoop shows what is over as a negative number.
fn limit_and_rest(args: &Args, quota: Option<u64>, used: u64) -> (String, String) {
    let size = |value| format::size(value, args.human);
    match quota {
        None => ("none".to_owned(), "inf".to_owned()),
        Some(quota) if used > quota => (size(quota), format!("-{}", size(used - quota))),
        Some(quota) => (size(quota), size(quota - used)),
    }
}

fn usage_columns(args: &Args, usage: &QuotaUsage) -> String {
    if let Some(types) = args.types() {
        let column = |kind: &StorageType| {
            let known = usage.of_type(*kind);
            let consumed = known.map_or(0, |usage| usage.consumed);
            type_columns(limit_and_rest(args, known.and_then(|usage| usage.quota), consumed).into())
        };
        return types.iter().map(column).collect();
    }
    let (names, names_left) = limit_and_rest(args, usage.name_quota, usage.files_and_directories);
    let (space, space_left) = limit_and_rest(args, usage.space_quota, usage.space_consumed);
    quota_columns([names, names_left, space, space_left])
}

fn columns(args: &Args, summary: &ContentSummary) -> String {
    let size = |value| format::size(value, args.human);
    let mut line = String::new();
    if args.quotas {
        let used = summary.files + summary.directories;
        let (names, names_left) = limit_and_rest(args, summary.name_quota, used);
        let (space, space_left) = limit_and_rest(args, summary.space_quota, summary.space_consumed);
        line += &quota_columns([names, names_left, space, space_left]);
    }
    let snapshot = match args.exclude_snapshots && !args.quotas {
        true => summary.snapshot,
        false => Default::default(),
    };
    line += &summary_columns([
        size(summary.directories.saturating_sub(snapshot.directories)),
        size(summary.files.saturating_sub(snapshot.files)),
        size(summary.length.saturating_sub(snapshot.length)),
    ]);
    line
}

/// The columns behind the figures, in either form.
fn last_columns(args: &Args, summary: &ContentSummary) -> String {
    let mut line = String::new();
    if args.policy {
        line += &match &*summary.erasure_coding {
            REPLICATED => policy_column(REPLICATED),
            policy => policy_column(&format!("EC:{policy}")),
        };
    }
    if args.snapshots {
        let snapshot = &summary.snapshot;
        let numbers = [snapshot.length, snapshot.files, snapshot.directories, snapshot.space_consumed];
        line += &snapshot_columns(numbers.map(|number| format::size(number, args.human)));
    }
    line
}

fn type_columns([quota, left]: [String; 2]) -> String {
    format!("{quota:>14} {left:>18} ")
}

fn snapshot_columns([length, files, directories, space]: [String; 4]) -> String {
    format!("{length:>18} {files:>24} {directories:>24} {space:>28} ")
}

fn quota_columns([names, names_left, space, space_left]: [String; 4]) -> String {
    format!("{names:>12} {names_left:>15} {space:>15} {space_left:>15} ")
}

fn summary_columns([directories, files, bytes]: [String; 3]) -> String {
    format!("{directories:>12} {files:>12} {bytes:>18} ")
}

fn policy_column(policy: &str) -> String {
    format!("{policy:>20} ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn columns_are_hadoops() {
        let args = |words: &[&str]| Cli::parse_from([&["count"], words, &["/a"]].concat()).args;
        let summary = ContentSummary {
            length: 2048,
            files: 3,
            directories: 2,
            name_quota: Some(4),
            ..Default::default()
        };
        assert_eq!(columns(&args(&[]), &summary), "           2            3               2048 ");
        assert_eq!(columns(&args(&["-h"]), &summary), "           2            3                2 K ");
        let usage = QuotaUsage { files_and_directories: 5, name_quota: Some(4), ..Default::default() };
        let quotas = "           4              -1            none             inf ";
        assert_eq!(usage_columns(&args(&["-u"]), &usage), quotas);
        assert_eq!(columns(&args(&["-q"]), &summary), format!("{quotas}{}", columns(&args(&[]), &summary)));
        // Hadoop takes what follows -t for types unless it is another option.
        assert_eq!(args(&["-q", "-t", "-v"]).types().map(<[_]>::len), Some(5));
        let types = args(&["-q", "-t", "ssd"]);
        assert_eq!(header(&types), "     SSD_QUOTA      REM_SSD_QUOTA ");
        assert_eq!(usage_columns(&types, &usage), "          none                inf ");
        assert_eq!(header(&args(&["-v"])), "   DIR_COUNT   FILE_COUNT       CONTENT_SIZE ");
    }
}
