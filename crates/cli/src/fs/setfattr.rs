//! `setfattr`: sets and removes extended attributes.

use super::{
    failure::{Failure, Outcome},
    shell::Shell,
    walk,
};
use bytes::Bytes;

/// Set or remove an extended attribute of a file or directory.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The attribute to set, such as user.checksum.
    #[arg(short = 'n', value_name = "NAME")]
    name: Option<String>,
    /// Its value: text, "text", 0x and hexadecimal digits, or 0s and base64.
    #[arg(short = 'v', value_name = "VALUE", allow_hyphen_values = true)]
    value: Option<String>,
    /// The attribute to remove.
    #[arg(short = 'x', value_name = "NAME")]
    remove: Option<String>,
    /// The file or directory.
    paths: Vec<String>,
}

pub async fn run(shell: &mut Shell, args: Args) -> Outcome {
    let value = args.value.as_deref().map(client::xattr::decode).transpose().map_err(Failure::Other)?;
    match (&args.name, &args.remove) {
        (Some(_), Some(_)) => {
            return Err(Failure::Usage("Can not specify both '-n name' and '-x name' option.".into()));
        }
        (None, None) => {
            return Err(Failure::Usage("Must specify '-n name' or '-x name' option.".into()));
        }
        _ => walk::only_path(&args.paths)?,
    }
    for item in shell.expand_all(&args.paths).await {
        let outcome = async {
            item.existing()?;
            if let Some(name) = &args.name {
                item.fs.set_xattr(&item.path, name, value.clone().map(Bytes::from)).await?;
            }
            if let Some(name) = &args.remove {
                item.fs.remove_xattr(&item.path, name).await?;
            }
            Ok(())
        };
        let outcome = outcome.await;
        shell.check(outcome);
    }
    Ok(())
}
