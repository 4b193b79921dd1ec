//! `setfacl`: changes access control lists.

use super::{
    failure::{Failure, Outcome},
    item::Item,
    shell::Shell,
    walk,
};
use client::acl::AclEntry;

/// Change the access control list of a file or directory.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Remove all but the entries of owner, group and others.
    #[arg(short = 'b')]
    remove_all: bool,
    /// Remove the default entries.
    #[arg(short = 'k')]
    remove_default: bool,
    /// Add entries, or change those that are there.
    #[arg(short = 'm')]
    modify: bool,
    /// Remove entries.
    #[arg(short = 'x')]
    remove: bool,
    /// Replace all entries, or all of the kind given: access, default or both.
    #[arg(long)]
    set: bool,
    /// Everything below directories, too.
    #[arg(short = 'R')]
    recursive: bool,
    /// With -m, -x and --set the entries first, such as user:ann:rw-,default:group::r-x; then the path.
    #[arg(value_name = "ACL_SPEC PATH")]
    words: Vec<String>,
}

enum Change {
    RemoveAll,
    RemoveDefault,
    Modify(Vec<AclEntry>),
    Remove(Vec<AclEntry>),
    Set(Vec<AclEntry>),
}

pub async fn run(shell: &mut Shell, args: Args) -> Outcome {
    let (change, paths) = parse(&args).map_err(Failure::Usage)?;
    for item in shell.expand_all(paths).await {
        let recursive = args.recursive;
        walk::each(shell, item, recursive, async |_, item| apply(item, &change, recursive).await).await;
    }
    Ok(())
}

/// The change, and the paths that it is for. Complaints come in Hadoop's words and order.
fn parse(args: &Args) -> Result<(Change, &[String]), String> {
    let removes = args.remove_all || args.remove_default;
    let modifies = args.modify || args.remove;
    if args.remove_all && args.remove_default
        || args.modify && args.remove
        || removes && modifies
        || args.set && (removes || modifies)
    {
        return Err("Specified flags contains both remove and modify flags".into());
    }
    let (mut entries, mut paths) = (Vec::new(), &args.words[..]);
    if modifies || args.set {
        match &args.words[..] {
            [] => return Err("Missing arguments: <acl_spec> <path>".into()),
            [_] => return Err("Missing either <acl_spec> or <path>".into()),
            [spec, rest @ ..] => {
                entries = AclEntry::parse_list(spec, !args.remove).map_err(|error| error.to_string())?;
                paths = rest;
            }
        }
        if entries.is_empty() {
            return Err("Missing <acl_spec> entry".into());
        }
    }
    match paths {
        [] => return Err("<path> is missing".into()),
        [_] => {}
        _ => return Err("Too many arguments".into()),
    }
    let change = match args {
        Args { remove_all: true, .. } => Change::RemoveAll,
        Args { remove_default: true, .. } => Change::RemoveDefault,
        Args { modify: true, .. } => Change::Modify(entries),
        Args { remove: true, .. } => Change::Remove(entries),
        Args { set: true, .. } => Change::Set(entries),
        _ => return Err("Expected one of -b, -k, -m, -x or --set options".into()),
    };
    Ok((change, paths))
}

async fn apply(item: &Item, change: &Change, recursive: bool) -> Outcome {
    // Below a directory that is changed with all in it are files, which have no default entries.
    let is_file = !item.existing()?.is_dir();
    let fit = |entries: &[AclEntry]| -> Vec<AclEntry> {
        entries.iter().filter(|entry| !(recursive && is_file && entry.is_default)).cloned().collect()
    };
    let (fs, path) = (&item.fs, &*item.path);
    match change {
        Change::RemoveAll => fs.remove_acl(path).await?,
        Change::RemoveDefault => fs.remove_default_acl(path).await?,
        Change::Modify(entries) | Change::Remove(entries) | Change::Set(entries) => {
            let entries = fit(entries);
            match change {
                _ if entries.is_empty() => {}
                Change::Modify(_) => fs.modify_acl(path, &entries).await?,
                Change::Remove(_) => fs.remove_acl_entries(path, &entries).await?,
                _ => fs.set_acl(path, &entries).await?,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn complaint(words: &str) -> Option<String> {
        let words = std::iter::once("setfacl").chain(words.split_whitespace());
        let args = <Cli as clap::Parser>::try_parse_from(words).unwrap().args;
        parse(&args).err()
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_hadoops_words() {
        for words in ["-m user:ann:r-- /f", "-x user:ann /f", "-b /f", "-R -k /f", "--set user::r-- /f"] {
            assert_eq!(complaint(words), None, "{words}");
        }
        let expected = [
            ("-b -k /f", "Specified flags contains both remove and modify flags"),
            ("-b -m user:ann:r-- /f", "Specified flags contains both remove and modify flags"),
            ("--set -k user:ann:r-- /f", "Specified flags contains both remove and modify flags"),
            ("-m", "Missing arguments: <acl_spec> <path>"),
            ("-x /f", "Missing either <acl_spec> or <path>"),
            ("-m , /f", "Missing <acl_spec> entry"),
            ("-b", "<path> is missing"),
            ("-b /f /g", "Too many arguments"),
            ("/f", "Expected one of -b, -k, -m, -x or --set options"),
            ("-m user:ann /f", "Invalid <aclSpec> : user:ann"),
        ];
        for (words, text) in expected {
            assert_eq!(complaint(words).as_deref(), Some(text), "{words}");
        }
    }
}
