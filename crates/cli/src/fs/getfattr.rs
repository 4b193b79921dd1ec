//! `getfattr`: prints extended attributes.

use super::{
    failure::{Failure, Outcome},
    item::Item,
    shell::Shell,
    walk,
};
use client::xattr::Encoding;
use serde_json::json;

/// Print extended attributes of a file or directory.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Everything below directories, too.
    #[arg(short = 'R')]
    recursive: bool,
    /// The attribute to print, such as user.checksum.
    #[arg(short = 'n', value_name = "NAME")]
    name: Option<String>,
    /// Print all of them.
    #[arg(short = 'd')]
    dump: bool,
    /// How values are written: text, hex or base64.
    #[arg(short = 'e', value_name = "ENCODING")]
    encoding: Option<String>,
    /// The file or directory.
    paths: Vec<String>,
}

pub async fn run(shell: &mut Shell, args: Args) -> Outcome {
    let encoding = match &args.encoding {
        None => Encoding::Text,
        Some(text) => Encoding::parse(text).ok_or_else(|| {
            Failure::Usage(format!("Invalid/unsupported encoding option specified: {text}"))
        })?,
    };
    if !args.dump && args.name.is_none() {
        return Err(Failure::Usage("Must specify '-n name' or '-d' option.".into()));
    }
    let name = args.name.as_deref().filter(|_| !args.dump);
    walk::only_path(&args.paths)?;
    for item in shell.expand_all(&args.paths).await {
        walk::each(shell, item, args.recursive, async |shell, item| print(shell, item, name, encoding).await)
            .await;
    }
    Ok(())
}

async fn print(shell: &mut Shell, item: &Item, name: Option<&str>, encoding: Encoding) -> Outcome {
    if !shell.is_json {
        shell.say(format!("# file: {}", item.shown))?;
    }
    let xattrs = match name {
        Some(name) => vec![(name.to_owned(), item.fs.xattr(&item.path, name).await?)],
        None => {
            let all = item.fs.xattrs(&item.path).await?;
            all.into_iter().map(|xattr| (xattr.name, xattr.value)).collect()
        }
    };
    if shell.is_json {
        let of_one =
            |(name, value): &(String, bytes::Bytes)| (name.clone(), encoding.for_programs(value).into());
        let values: serde_json::Map<_, _> = xattrs.iter().map(of_one).collect();
        return shell.say(json!({ "path": item.shown, "xattrs": values }).to_string());
    }
    for (name, value) in xattrs {
        shell.say(match value.is_empty() {
            true => name,
            false => format!("{name}={}", encoding.encode(&value)),
        })?;
    }
    Ok(())
}
