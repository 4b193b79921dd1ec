//! The state that all commands share: connections, the meaning of paths, the output, and the count of failures.

use super::{
    failure::{Failure, Outcome},
    glob::{self, Pattern},
    item::Item,
    local,
    path::{self, Written},
};
use crate::exit_code;
use client::{Config, FileSystem};
use std::{
    collections::BTreeMap,
    io::{BufWriter, Write},
    process::ExitCode,
};

pub struct Shell {
    /// The command's name, which begins each complaint.
    command: &'static str,
    config: Config,
    default_fs: String,
    /// The connections by authority.
    connections: BTreeMap<String, FileSystem>,
    pub is_json: bool,
    out: BufWriter<std::io::Stdout>,
    exit_code: u8,
}

impl Shell {
    /// `default_fs` is where paths are that do not say it themselves.
    pub fn new(command: &'static str, config: Config, default_fs: String, is_json: bool) -> Self {
        Self {
            command,
            default_fs,
            config,
            connections: BTreeMap::new(),
            is_json,
            out: BufWriter::with_capacity(64 * 1024, std::io::stdout()),
            exit_code: 0,
        }
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Prints a line.
    pub fn say(&mut self, line: impl AsRef<str>) -> Outcome {
        self.write(line.as_ref().as_bytes())?;
        self.write(b"\n")
    }

    pub fn write(&mut self, bytes: &[u8]) -> Outcome {
        self.out.write_all(bytes).map_err(Failure::Output)
    }

    pub fn flush(&mut self) -> Outcome {
        self.out.flush().map_err(Failure::Output)
    }

    /// Prints a complaint without counting it.
    pub fn warn(&mut self, text: impl std::fmt::Display) {
        // Lines that were printed before must not appear after it.
        let _ = self.out.flush();
        eprintln!("{}: {text}", self.command);
    }

    /// Takes the outcome for one argument: a failure is told, and the command goes on.
    pub fn check<T>(&mut self, outcome: Outcome<T>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(failure) => {
                self.fail(&failure);
                None
            }
        }
    }

    pub fn fail(&mut self, failure: &Failure) {
        if let Failure::Output(error) = failure
            && error.kind() == std::io::ErrorKind::BrokenPipe
        {
            std::process::exit(exit_code::NOBODY_READS.into());
        }
        self.warn(failure);
        match failure {
            Failure::Usage(_) => {
                self.exit_code = exit_code::USAGE_OF_SHELL;
                super::usage::of_command(self.command);
            }
            _ => self.exit_code = self.exit_code.max(1),
        }
    }

    /// Says "no" by the exit code alone, as `test` does.
    pub fn answer_no(&mut self) {
        self.exit_code = self.exit_code.max(1);
    }

    /// Ends the command.
    pub fn finish(mut self) -> ExitCode {
        let flushed = self.flush();
        self.check(flushed);
        ExitCode::from(self.exit_code)
    }

    /// The file system that an authority names; an empty one means the default.
    pub fn connect(&mut self, authority: &str) -> Outcome<FileSystem> {
        let uri = match authority {
            "" => self.default_fs.clone(),
            authority => format!("hdfs://{authority}"),
        };
        if let Some(fs) = self.connections.get(&uri) {
            return Ok(fs.clone());
        }
        let fs = FileSystem::connect(&uri, &self.config)?;
        self.connections.insert(uri, fs.clone());
        Ok(fs)
    }

    /// The path that `text` means, without asking whether anything is there.
    pub fn locate(&mut self, text: &str) -> Outcome<Item> {
        let written = Written::parse(text)?;
        let fs = match written.scheme.as_deref() {
            _ if local::is_uri(text) => return Err(Failure::path(text, &not_here(self.command))),
            None | Some("hdfs") => self.connect(&written.authority)?,
            Some(scheme) => return Err(Failure::Other(format!("No FileSystem for scheme \"{scheme}\""))),
        };
        let path = match written.is_absolute() {
            true => written.path.clone(),
            false => path::resolve(&format!("{}/{}", home(&fs), written.path)),
        };
        Ok(Item {
            fs,
            path,
            shown: text.to_owned(),
            is_directory_like: written.is_directory_like,
            status: None,
        })
    }

    /// The path that `text` means, without wildcards, with its status.
    pub async fn look_up(&mut self, text: &str) -> Outcome<Item> {
        let mut item = self.locate(text)?;
        item.refresh().await?;
        Ok(item)
    }

    /// The items that the arguments mean, wildcards included. A failure to look one up is told at once.
    pub async fn expand_all(&mut self, arguments: &[String]) -> Vec<Item> {
        let mut items = Vec::new();
        for argument in arguments {
            let expanded = self.expand(argument).await;
            items.extend(self.check(expanded).unwrap_or_default());
        }
        items
    }

    /// The items that one argument means. A path without wildcards always means itself; one with wildcards means all
    /// that matches, and is an error if nothing does.
    pub async fn expand(&mut self, argument: &str) -> Outcome<Vec<Item>> {
        let items = self.expand_glob(argument).await?;
        match items.is_empty() {
            true => Err(Failure::not_found(argument)),
            false => Ok(items),
        }
    }

    pub async fn expand_glob(&mut self, argument: &str) -> Outcome<Vec<Item>> {
        let written = Written::parse(argument)?;
        if !glob::has_wildcards(argument) {
            let mut item = self.look_up(&glob::unescape(argument)).await?;
            // A path that exists is printed without detours: `/a/b` for `/a//c/../b/`. A path that does not exist is printed as the user
            // wrote it.
            if item.exists() {
                item.shown = shown(&written, &item.fs, &item.path);
            }
            return Ok(vec![item]);
        }
        let mut items: Vec<Item> = Vec::new();
        for expanded in glob::expand_braces(argument)? {
            let pattern = self.locate(&expanded)?;
            for path in matching(&pattern.fs, &pattern.path).await? {
                let shown = shown(&written, &pattern.fs, &path.path);
                items.push(Item {
                    fs: pattern.fs.clone(),
                    path: path.path.clone(),
                    shown,
                    is_directory_like: false,
                    status: Some(path),
                });
            }
        }
        items.sort_by(|a, b| a.path.cmp(&b.path));
        items.dedup_by(|a, b| a.path == b.path);
        Ok(items)
    }
}

/// Why a command refuses a path of this machine, and what does its work there.
fn not_here(command: &str) -> String {
    let instead = match command {
        "ls" | "mkdir" | "rm" | "rmdir" | "du" | "df" | "stat" | "touch" | "chmod" | "chown" | "chgrp"
        | "find" | "test" | "head" | "tail" | "truncate" | "getfacl" | "setfacl" | "getfattr"
        | "setfattr" => {
            format!("{command} without clover works on that")
        }
        "touchz" => "touch without clover makes that".to_owned(),
        "mv" => {
            "mv without clover moves that, and moveFromLocal and moveToLocal move between the two".to_owned()
        }
        "count" => "find and du without clover count that".to_owned(),
        "checksum" => "sha256sum or its like sums that up".to_owned(),
        _ => "the machine's own commands work on that".to_owned(),
    };
    format!("is a path of this machine: {instead}. put, get, cp, cat and text take such paths")
}

/// How a path that is there is shown to somebody who wrote an argument in this way.
fn shown(written: &Written, fs: &FileSystem, path: &str) -> String {
    match (&written.scheme, written.is_absolute()) {
        (Some(scheme), _) => format!("{scheme}://{}{path}", written.authority),
        (None, true) => path.to_owned(),
        (None, false) => path::relative_to(&home(fs), path),
    }
}

/// The directory in which relative paths begin.
pub fn home(fs: &FileSystem) -> String {
    format!("/user/{}", fs.user())
}

/// Everything that a path with wildcards, but without braces, matches.
async fn matching(fs: &FileSystem, pattern: &str) -> Outcome<Vec<client::FileStatus>> {
    let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    let Some((last, above)) = parts.split_last() else { return Ok(vec![fs.status("/").await?]) };
    let mut directories = vec!["/".to_owned()];
    for part in above {
        let pattern = Pattern::parse(part)?;
        let mut below = Vec::new();
        for directory in directories {
            match pattern.literal() {
                // Whether this name exists shows when the last part is looked for.
                Some(name) => below.push(path::join(&directory, &name)),
                None => {
                    let found = matching_in(fs, &directory, &pattern).await?;
                    below.extend(found.into_iter().filter(|found| !found.is_file()).map(|found| found.path));
                }
            }
        }
        directories = below;
    }
    let pattern = Pattern::parse(last)?;
    let mut found = Vec::new();
    for directory in directories {
        match pattern.literal() {
            Some(name) => found.extend(fs.find(&path::join(&directory, &name)).await?),
            None => found.extend(matching_in(fs, &directory, &pattern).await?),
        }
    }
    Ok(found)
}

async fn matching_in(
    fs: &FileSystem,
    directory: &str,
    pattern: &Pattern,
) -> Outcome<Vec<client::FileStatus>> {
    let mut found = Vec::new();
    let mut listing = fs.list(directory);
    loop {
        match listing.next().await {
            // The listing of a file is the file itself, which is not in itself.
            Ok(Some(status)) if status.path.trim_end_matches('/') == directory => {}
            Ok(Some(status)) if pattern.matches(status.name()) => found.push(status),
            Ok(Some(_)) => {}
            Ok(None) => return Ok(found),
            // A file that was deleted a moment ago does not match.
            Err(error) if error.is_not_found() => return Ok(found),
            Err(error) => return Err(error.into()),
        }
    }
}
