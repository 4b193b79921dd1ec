//! `stat`: facts about paths in a format of one's own.

use super::{
    failure::{Failure, Outcome},
    format, json, path,
    shell::Shell,
    walk::Walk,
};
use client::{FileKind, FileStatus};

/// Print facts about files and directories.
///
/// The format knows %a mode in octal, %A mode in letters, %b bytes, %F type, %g group, %n name, %o block size,
/// %r copies, %u owner, %x %X time of access, %y %Y time of modification; X and Y in milliseconds since 1970.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Everything below directories, too.
    #[arg(short = 'R')]
    recursive: bool,
    /// A format, if it has a %, and paths.
    #[arg(required = true)]
    arguments: Vec<String>,
}

pub async fn run(shell: &mut Shell, mut args: Args) -> Outcome {
    let format = match args.arguments.first() {
        Some(first) if first.contains('%') => args.arguments.remove(0),
        _ => "%y".to_owned(),
    };
    if args.arguments.is_empty() {
        return Err(Failure::Usage("Not enough arguments: expected 1 but got 0".into()));
    }
    for item in shell.expand_all(&args.arguments).await {
        let outcome = item.existing().map(drop);
        if shell.check(outcome).is_none() {
            continue;
        }
        let mut walk = Walk::new(item);
        while let Some(item) = walk.next().await {
            if let Some(item) = shell.check(item) {
                let status = item.existing()?;
                let line = match shell.is_json {
                    true => json::of_status(&item.shown, status).to_string(),
                    false => fill_in(&format, status),
                };
                shell.say(line)?;
            }
            if !args.recursive {
                break;
            }
        }
    }
    Ok(())
}

fn fill_in(template: &str, status: &FileStatus) -> String {
    let mut text = String::new();
    let mut chars = template.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        // A single % at the end says nothing.
        let Some(letter) = chars.next() else { break };
        text += &match letter {
            'a' => format!("{:o}", status.mode),
            'A' => format::mode(status.mode),
            'b' => status.length.to_string(),
            'F' => match status.kind {
                FileKind::Directory => "directory".into(),
                FileKind::File => "regular file".into(),
                FileKind::Symlink => "symlink".into(),
            },
            'g' => status.group.clone(),
            'n' => path::name(&status.path).to_owned(),
            'o' => status.block_size.to_string(),
            'r' => status.replication.to_string(),
            'u' => status.owner.clone(),
            'x' => format::second(status.accessed_ms),
            'X' => status.accessed_ms.to_string(),
            'y' => format::second(status.modified_ms),
            'Y' => status.modified_ms.to_string(),
            other => other.to_string(),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_of_the_format_is_known() {
        let status = FileStatus {
            path: "/a/b c".into(),
            kind: FileKind::File,
            length: 7,
            mode: 0o1640,
            owner: "me".into(),
            group: "us".into(),
            modified_ms: 1_000,
            accessed_ms: 2_000,
            replication: 3,
            block_size: 512,
            file_id: 1,
            children: None,
            has_acl: false,
            erasure_coding: None,
            storage_policy: 0,
        };
        let all = fill_in("%a %A %b %F %g %n %o %r %u %X %Y %% %q x%", &status);
        assert_eq!(all, "1640 rw-r----T 7 regular file us b c 512 3 me 2000 1000 % q x");
        assert_eq!(fill_in("%y", &status), format::second(1_000));
    }
}
