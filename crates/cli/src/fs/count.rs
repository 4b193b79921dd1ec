//! `count`: directories, files and bytes below paths, and quotas.

use super::{failure::Outcome, format, json, shell::Shell};
use client::ContentSummary;

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
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
    #[arg(required = true)]
    paths: Vec<String>,
}

/// What servers call the absence of erasure coding.
const REPLICATED: &str = "Replicated";

pub async fn run(shell: &mut Shell, args: Args) -> Outcome {
    if args.header && !shell.is_json {
        shell.say(format!("{}PATHNAME", header(&args)))?;
    }
    for item in shell.expand_all(&args.paths).await {
        let outcome = async {
            item.existing()?;
            Ok(item.fs.content_summary(&item.path).await?)
        };
        let outcome = outcome.await;
        let Some(summary) = shell.check(outcome) else { continue };
        let line = match shell.is_json {
            true => json::of_summary(&item.shown, &summary).to_string(),
            false => format!("{}{}", columns(&args, &summary), item.shown),
        };
        shell.say(line)?;
    }
    Ok(())
}

fn header(args: &Args) -> String {
    let mut line = String::new();
    if args.quotas || args.only_quotas {
        line += &quota_columns(["QUOTA", "REM_QUOTA", "SPACE_QUOTA", "REM_SPACE_QUOTA"].map(str::to_owned));
    }
    if !args.only_quotas {
        line += &summary_columns(["DIR_COUNT", "FILE_COUNT", "CONTENT_SIZE"].map(str::to_owned));
    }
    if args.policy {
        line += &policy_column("ERASURECODING_POLICY");
    }
    line
}

fn columns(args: &Args, summary: &ContentSummary) -> String {
    let size = |value| format::size(value, args.human);
    let mut line = String::new();
    if args.quotas || args.only_quotas {
        let quota = |quota: Option<u64>, used: u64| match quota {
            None => ("none".to_owned(), "inf".to_owned()),
            Some(quota) if used > quota => (size(quota), format!("-{}", size(used - quota))),
            Some(quota) => (size(quota), size(quota - used)),
        };
        let (names, names_left) = quota(summary.name_quota, summary.files + summary.directories);
        let (space, space_left) = quota(summary.space_quota, summary.space_consumed);
        line += &quota_columns([names, names_left, space, space_left]);
    }
    if !args.only_quotas {
        let snapshot = match args.exclude_snapshots && !args.quotas {
            true => summary.snapshot,
            false => Default::default(),
        };
        line += &summary_columns([
            size(summary.directories.saturating_sub(snapshot.directories)),
            size(summary.files.saturating_sub(snapshot.files)),
            size(summary.length.saturating_sub(snapshot.length)),
        ]);
    }
    if args.policy {
        line += &match &*summary.erasure_coding {
            REPLICATED => policy_column(REPLICATED),
            policy => policy_column(&format!("EC:{policy}")),
        };
    }
    line
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
        let quotas = "           4              -1            none             inf ";
        assert_eq!(columns(&args(&["-u"]), &summary), quotas);
        assert_eq!(header(&args(&["-v"])), "   DIR_COUNT   FILE_COUNT       CONTENT_SIZE ");
    }
}
