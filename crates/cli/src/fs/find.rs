//! `find`: what lies below a directory and fits an expression.

use super::{
    failure::{Failure, Outcome},
    glob::{self, Pattern},
    item::Item,
    json, path,
    shell::Shell,
    walk::Walk,
};

/// Print the files and directories below a directory that match an expression, the directory itself included.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to look (your home directory if not given), and then what for: -name PATTERN, -iname PATTERN (in any
    /// case), -print, -print0 (with a NUL at the end), and -a between two of them or nothing, which means the same.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "PATH|EXPRESSION")]
    words: Vec<String>,
}

/// One part of the expression. `find` takes each path through the parts from left to right, and stops at the first part that the
/// path does not fit.
enum Step {
    /// The name fits one of the patterns.
    Name {
        patterns: Vec<Pattern>,
        ignores_case: bool,
    },
    Print {
        end: u8,
    },
}

pub async fn run(shell: &mut Shell, args: Args) -> Outcome {
    if args.words.is_empty() {
        return Err(Failure::Usage("Not enough arguments: expected 1 but got 0".into()));
    }
    // Links are followed in any case.
    let words: Vec<String> = args.words.into_iter().skip_while(|word| word == "-L" || word == "-H").collect();
    let paths_end = words.iter().position(|word| word.starts_with('-')).unwrap_or(words.len());
    let mut paths = words[..paths_end].to_vec();
    let steps = parse(&words[paths_end..])?;
    if paths.is_empty() {
        paths.push(".".into());
    }
    for item in shell.expand_all(&paths).await {
        let existing = item.existing().map(drop);
        if shell.check(existing).is_none() {
            continue;
        }
        let mut walk = Walk::new(item);
        while let Some(item) = walk.next().await {
            if let Some(item) = shell.check(item) {
                apply(shell, &steps, &item)?;
            }
        }
    }
    Ok(())
}

/// Reads an expression. All of its parts are joined by "and", so parentheses change nothing.
fn parse(words: &[String]) -> Outcome<Vec<Step>> {
    let mut steps = Vec::new();
    let mut words = words.iter().map(String::as_str).peekable();
    let mut joined_by = None;
    while let Some(word) = words.next() {
        let step = match word {
            "-name" | "-iname" => {
                let pattern = words.next();
                let pattern = pattern.ok_or_else(|| Failure::Usage(format!("{word} wants a pattern")))?;
                name(pattern, word == "-iname")?
            }
            "-print" => Step::Print { end: b'\n' },
            "-print0" => Step::Print { end: b'\0' },
            "-a" | "-and" if !steps.is_empty() && joined_by.is_none() => {
                joined_by = Some(word);
                continue;
            }
            "-a" | "-and" => return Err(Failure::Usage(format!("{word} wants an expression before it"))),
            "(" | ")" => continue,
            _ => return Err(Failure::Other(format!("Unexpected argument: {word}"))),
        };
        joined_by = None;
        steps.push(step);
    }
    if let Some(word) = joined_by {
        return Err(Failure::Usage(format!("{word} wants an expression after it")));
    }
    if !steps.iter().any(|step| matches!(step, Step::Print { .. })) {
        steps.push(Step::Print { end: b'\n' });
    }
    Ok(steps)
}

fn name(pattern: &str, ignores_case: bool) -> Outcome<Step> {
    let pattern = if ignores_case { pattern.to_lowercase() } else { pattern.to_owned() };
    let patterns = glob::expand_braces(&pattern)?;
    let patterns = patterns.iter().map(|pattern| Pattern::parse(pattern)).collect::<Outcome<_>>()?;
    Ok(Step::Name { patterns, ignores_case })
}

fn apply(shell: &mut Shell, steps: &[Step], item: &Item) -> Outcome {
    for step in steps {
        match step {
            Step::Name { patterns, ignores_case } => {
                let name = path::name(&item.path);
                let fits = match ignores_case {
                    true => matches(patterns, &name.to_lowercase()),
                    false => matches(patterns, name),
                };
                if !fits {
                    return Ok(());
                }
            }
            Step::Print { .. } if shell.is_json => {
                let status = item.existing()?;
                shell.say(json::of_status(&item.shown, status).to_string())?;
            }
            Step::Print { end } => {
                shell.write(item.shown.as_bytes())?;
                shell.write(&[*end])?;
            }
        }
    }
    Ok(())
}

fn matches(patterns: &[Pattern], name: &str) -> bool {
    patterns.iter().any(|pattern| pattern.matches(name))
}
