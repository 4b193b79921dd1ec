//! Help that is shown, and commands that the manual tells people to type, are understood by this program.

use super::{EXAMPLES, command};
use clap::{Command, error::ErrorKind};
use std::{ffi::OsString, path::Path};

/// All commands of the program except `help` and `bench`, each with its words.
fn every_command() -> Vec<(String, Command)> {
    let mut root = command();
    root.build();
    let mut found = Vec::new();
    let mut waiting = vec![(String::new(), root)];
    while let Some((path, command)) = waiting.pop() {
        let below = command.get_subcommands().filter(|below| !matches!(below.get_name(), "help" | "bench"));
        waiting.extend(
            below.map(|below| (format!("{path} {}", below.get_name()).trim().to_owned(), below.clone())),
        );
        found.push((path, command));
    }
    found
}

#[test]
fn every_command_has_an_example_and_says_what_each_of_its_words_means() {
    for (path, command) in every_command() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let name = path.split(' ').next_back().unwrap_or_default();
        assert!(help.contains("clover") && help.contains(name), "clover {path} has no example");
        assert!(command.get_about().is_some(), "clover {path} does not say what it is for");
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            assert!(argument.get_help().is_some(), "clover {path}: {} has no help", argument.get_id());
            for value in argument.get_possible_values() {
                let is_plain = argument.get_id() == "shell" || argument.get_id() == "role";
                assert!(
                    is_plain || value.get_help().is_some() || !argument.is_positional(),
                    "clover {path}: {value:?}"
                );
            }
        }
    }
}

/// Splits as a shell does, as far as examples go: quotes, and what ends a command.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote, mut is_word) = (String::new(), None, false);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), letter) => word.push(letter),
            (None, '\'' | '"') => (quote, is_word) = (Some(letter), true),
            (None, '#') if !is_word => break,
            (None, ' ') => {
                words.extend(is_word.then(|| std::mem::take(&mut word)));
                is_word = false;
            }
            (None, '|' | ';' | '>' | '<' | ')') => break,
            (None, '&') => break,
            (None, letter) => {
                word.push(letter);
                is_word = true;
            }
        }
    }
    words.extend(is_word.then_some(word));
    words
}

/// The words of the command in a line, if it is one of this program.
fn ours(line: &str) -> Option<Vec<OsString>> {
    // `meta-1$ clover …`, `$ clover …`, `… | clover …`, `<(clover …)`, `KEY=VALUE clover …`, `kubectl exec POD -- clover …`
    let start = line.match_indices("clover ").map(|(at, _)| at).find(|at| {
        let before = line[..*at].trim_end();
        let is_first = before.is_empty() || before.ends_with(['$', '|', '(']) || before.ends_with(" --");
        // The end of a longer word is no command.
        let is_word =
            !line[..*at].ends_with(|letter: char| letter.is_alphanumeric() || "/._-".contains(letter));
        let has_setting =
            before.rsplit(' ').next().is_some_and(|word| word.contains('=') && !word.contains('"'));
        is_word && (is_first || has_setting)
    })?;
    Some(words(&line[start..]).into_iter().map(OsString::from).collect())
}

fn check(place: &str, line: &str) {
    let Some(words) = ours(line) else { return };
    let words = crate::fs::spelling::from_hadoop(words);
    if let Err(error) = command().try_get_matches_from(&words) {
        // The text of a page may name a command without saying what to do with it.
        let is_name = !place.ends_with("--help")
            && matches!(
                error.kind(),
                ErrorKind::MissingRequiredArgument | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            );
        assert!(
            is_name || error.kind() == ErrorKind::DisplayHelp,
            "{place}: `{line}` is not understood: {error}"
        );
    }
}

#[test]
fn every_example_is_understood() {
    for (path, lines) in EXAMPLES {
        for line in *lines {
            check(&format!("clover {path} --help"), line);
        }
    }
}

#[test]
fn what_the_manual_says_to_type_is_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    for directory in ["docs", "docs/operating"] {
        let entries = std::fs::read_dir(root.join(directory)).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    let mut commands = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for line in typed(&text) {
            commands += usize::from(ours(&line).is_some());
            check(&page.display().to_string(), &line);
        }
    }
    assert!(commands > 60, "only {commands} commands were found: has the manual's layout changed?");
}

/// The commands that `clover status`, `clover doctor` and the alerts tell a person to type.
#[test]
fn what_conditions_and_alerts_say_to_type_is_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut commands = 0;
    for directory in ["crates/verdict/src", "crates/verdict/src/judge", "crates/cli/src/doctor"] {
        for entry in std::fs::read_dir(root.join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            // Not the comments, which are for readers of the source.
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            for line in code {
                for word in line.split('`').skip(1).step_by(2).filter(|word| word.starts_with("clover ")) {
                    commands += 1;
                    check(&path.display().to_string(), word);
                }
            }
        }
    }
    let rules = std::fs::read_to_string(root.join("crates/cli/src/generate/alerts.yml")).unwrap();
    for rule in rules.split("next: \"").skip(1) {
        commands += 1;
        check("alerts.yml", rule.split('"').next().unwrap());
    }
    assert!(commands > 50, "only {commands} commands were found");
}

/// The lines of code blocks, and code within the text that is whole: no `[optional]` parts, no `…`.
fn typed(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut is_block = false;
    for line in text.lines() {
        if line.starts_with("```") {
            is_block = !is_block;
        } else if is_block {
            // Two spaces begin the explanation beside a command.
            lines.push(line.trim().split("  ").next().unwrap_or_default().to_owned());
        } else {
            let code = line.split('`').skip(1).step_by(2);
            let is_whole = |code: &&str| code.contains(' ') && !code.contains(['[', '…', '\\']);
            lines.extend(code.filter(is_whole).map(str::to_owned));
        }
    }
    lines
}

#[test]
fn commands_are_found_in_lines_as_people_write_them() {
    let joined =
        |line: &str| ours(line).map(|words| words.join(std::ffi::OsStr::new(" ")).into_string().unwrap());
    for (line, expected) in [
        ("meta-1$ clover meta format   # once", Some("clover meta format")),
        ("$ clover fs -ls '/a b'", Some("clover fs -ls /a b")),
        ("HADOOP_CONF_DIR=/x clover admin group", Some("clover admin group")),
        ("a | clover fs put - /b > c", Some("clover fs put - /b")),
        ("source <(clover completions bash)", Some("clover completions bash")),
        ("clover fs -test -d /a && echo", Some("clover fs -test -d /a")),
        ("the clover fs of old", None),
        ("name_dir = \"/var/lib/clover/meta\"", None),
    ] {
        assert_eq!(joined(line).as_deref(), expected, "{line}");
    }
}
