//! Prints shell completions: the options of every command, and for `clover fs` the paths of the file system.
//!
//! Clap writes the completions of all that is known beforehand. The rest is a few lines for each shell, which ask
//! `clover fs complete-path`.

use crate::{Cli, exit_code};
use clap::CommandFactory;
use clap_complete::Shell;
use std::{io::Write, process::ExitCode};

const BASH: &str = include_str!("completions/paths.bash");
const ZSH: &str = include_str!("completions/paths.zsh");
const FISH: &str = include_str!("completions/paths.fish");

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell that will read them, as in `source <(clover completions bash)`.
    shell: Shell,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(script(args.shell).as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            Ok(ExitCode::from(exit_code::NOBODY_READS))
        }
        written => written.map(|()| ExitCode::SUCCESS).map_err(Into::into),
    }
}

fn script(shell: Shell) -> String {
    let mut root = Cli::command();
    let mut static_part = Vec::new();
    clap_complete::generate(shell, &mut root, "clover", &mut static_part);
    let mut text = without_own_question(&String::from_utf8_lossy(&static_part));
    let commands = commands_of_fs(&root);
    match shell {
        Shell::Bash => text += &format!("\n_clover_fs_commands=\"{commands}\"\n{BASH}"),
        Shell::Fish => text += &format!("\nset -l _clover_fs_commands {commands}\n{FISH}"),
        Shell::Zsh => {
            // Words that are called so are paths of the file system; files of this machine are said to be files.
            let lines =
                text.lines().map(|line| match line.contains(":path -- ") || line.contains(":paths -- ") {
                    true => line.replace(":_default'", ":_clover_paths'"),
                    false => line.to_owned(),
                });
            let text = lines.collect::<Vec<_>>().join("\n");
            // The script ends with what runs it: all functions stand before.
            return match text.split_once("\n\n") {
                Some((head, rest)) => format!("{head}\n{ZSH}\n{rest}\n"),
                None => text,
            };
        }
        _ => {}
    }
    text
}

/// Removes the hidden command that the scripts themselves run: nobody types it.
fn without_own_question(text: &str) -> String {
    let is_offer = |line: &str| line.starts_with("'complete-path:") || line.contains("-a \"complete-path\"");
    let lines = text.lines().filter(|line| !is_offer(line));
    lines.map(|line| line.replace(" complete-path ", " ") + "\n").collect()
}

/// The commands of `clover fs`, by all their names.
fn commands_of_fs(root: &clap::Command) -> String {
    let fs = root.find_subcommand("fs").into_iter().flat_map(clap::Command::get_subcommands);
    let names = fs
        .filter(|command| !command.is_hide_set())
        .flat_map(|command| std::iter::once(command.get_name()).chain(command.get_visible_aliases()));
    names.collect::<Vec<_>>().join(" ")
}
