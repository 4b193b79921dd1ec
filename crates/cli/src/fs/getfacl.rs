//! `getfacl`: prints access control lists.

use super::{failure::Outcome, item::Item, shell::Shell, walk};
use client::acl::{AclEntry, AclKind, AclStatus, symbol};
use serde_json::json;

/// Print the access control list of a file or directory, default entries included.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Everything below directories, too.
    #[arg(short = 'R')]
    recursive: bool,
    /// The file or directory.
    paths: Vec<String>,
}

pub async fn run(shell: &mut Shell, args: Args) -> Outcome {
    walk::only_path(&args.paths)?;
    for item in shell.expand_all(&args.paths).await {
        walk::each(shell, item, args.recursive, async |shell, item| print(shell, item).await).await;
    }
    Ok(())
}

async fn print(shell: &mut Shell, item: &Item) -> Outcome {
    let status = item.existing()?;
    let acl = match status.has_acl {
        true => item.fs.acl_status(&item.path).await?,
        false => AclStatus {
            owner: status.owner.clone(),
            group: status.group.clone(),
            mode: status.mode,
            entries: Vec::new(),
        },
    };
    if shell.is_json {
        let entries: Vec<String> = acl.whole().iter().map(AclEntry::to_string).collect();
        let object = json!({
            "path": item.shown, "owner": acl.owner, "group": acl.group,
            "permission": format!("{:o}", acl.mode), "entries": entries,
        });
        return shell.say(object.to_string());
    }
    lines(&item.shown, &acl).into_iter().try_for_each(|line| shell.say(line))
}

fn lines(shown: &str, acl: &AclStatus) -> Vec<String> {
    let mut lines = vec![
        format!("# file: {shown}"),
        format!("# owner: {}", acl.owner),
        format!("# group: {}", acl.group),
    ];
    if acl.mode & client::status::STICKY != 0 {
        lines.push(format!("# flags: --{}", if acl.mode & 1 != 0 { 't' } else { 'T' }));
    }
    let (default, access): (Vec<_>, Vec<_>) = acl.whole().into_iter().partition(|entry| entry.is_default);
    for entries in [access, default] {
        let mask = entries.iter().find(|entry| entry.kind == AclKind::Mask).map_or(7, |mask| mask.permission);
        lines.extend(entries.iter().map(|entry| line(entry, mask)));
    }
    lines.push(String::new());
    lines
}

/// An entry, with what the mask leaves of it where that is less.
fn line(entry: &AclEntry, mask: u8) -> String {
    let is_masked = entry.name.is_some() || entry.kind == AclKind::Group;
    match entry.permission & mask {
        effective if is_masked && effective != entry.permission => {
            format!("{entry}\t#effective:{}", symbol(effective))
        }
        _ => entry.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_printed_as_hadoop_prints_it() {
        let entries = "user:ann:rwx,group::r-x,default:user::rwx,default:user:ann:rwx,default:group::r-x,\
                       default:mask::r--,default:other::---";
        let acl = AclStatus {
            owner: "olga".into(),
            group: "staff".into(),
            mode: 0o1750,
            entries: AclEntry::parse_list(entries, true).unwrap(),
        };
        let expected = "# file: /d\n# owner: olga\n# group: staff\n# flags: --T\nuser::rwx\n\
                        user:ann:rwx\t#effective:r-x\ngroup::r-x\nmask::r-x\nother::---\ndefault:user::rwx\n\
                        default:user:ann:rwx\t#effective:r--\ndefault:group::r-x\t#effective:r--\n\
                        default:mask::r--\ndefault:other::---\n";
        assert_eq!(lines("/d", &acl).join("\n"), expected);
        let plain = AclStatus { mode: 0o640, entries: Vec::new(), ..acl };
        assert_eq!(lines("/f", &plain)[3..], ["user::rw-", "group::r--", "other::---", ""]);
    }
}
