//! `config check`: whether a server would start with a file, and all that is wrong with it.

use super::{Role, in_order, settings::Settings};
use crate::user;
use serde_json::json;
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

#[derive(Debug, clap::Args)]
pub struct Check {
    /// The servers' files.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Which server the files are for; without it, the keys in them decide.
    #[arg(long)]
    role: Option<Role>,
    /// One JSON object a file.
    #[arg(long)]
    json: bool,
}

pub fn run(args: Check) -> anyhow::Result<ExitCode> {
    let mut all_good = true;
    for file in &args.files {
        let (role, problems) = check(file, args.role)?;
        all_good &= problems.is_empty();
        let command = format!("clover {}", role.name());
        if args.json {
            println!(
                "{}",
                json!({ "file": file, "role": role.name(), "good": problems.is_empty(), "problems": problems })
            );
            continue;
        }
        problems.iter().for_each(|problem| println!("{problem}"));
        match problems.len() {
            0 => println!("{}: good for `{command} --config {}`", file.display(), file.display()),
            1 => println!("{}: NOT good for `{command}`: 1 thing to mend", file.display()),
            count => println!("{}: NOT good for `{command}`: {count} things to mend", file.display()),
        }
    }
    Ok(if all_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn check(file: &Path, role: Option<Role>) -> anyhow::Result<(Role, Vec<String>)> {
    let text = Settings::text_of(file)?;
    let role = role.unwrap_or_else(|| role_of(&text));
    let mut settings = Settings::defaults(role.tables());
    let mut problems = settings.take_toml(&text, &file.display().to_string());
    // The rules between keys are checked only if every single key is right.
    if problems.is_empty() {
        let user = user::of_this_process()?;
        let whole = match role {
            Role::Meta => super::meta::config(&settings, &user).map(drop),
            Role::Data => super::data::config(&settings, &user).map(drop),
        };
        problems.extend(whole.err().map(|error| format!("{}: {error:#}", file.display())));
    }
    Ok((role, problems))
}

/// The role that has more of a file's keys; a metadata server's where nothing says it.
pub(super) fn role_of(text: &str) -> Role {
    let Ok(table) = toml::de::DeTable::parse(text) else { return Role::Meta };
    let known = |role: Role| {
        let has = |name: &str| {
            in_order(role.tables())
                .any(|key| key.name == name || key.hadoop.is_some_and(|(hadoop, _)| hadoop == name))
        };
        table.get_ref().iter().filter(|(key, _)| has(key.get_ref())).count()
    };
    if known(Role::Data) > known(Role::Meta) { Role::Data } else { Role::Meta }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_keys() {
        assert!(matches!(role_of("data_dirs = ['/a']\ninsecure_simple_auth = true\n"), Role::Data));
        assert!(matches!(role_of("'dfs.namenode.name.dir' = '/a'\n"), Role::Meta));
        assert!(matches!(role_of("="), Role::Meta));
        // Both have this; there is nothing else to go by.
        assert!(matches!(role_of("insecure_simple_auth = true\n"), Role::Meta));
    }
}
