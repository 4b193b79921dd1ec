//! `test`: answers a question about a path by the exit code.

use super::{
    failure::{Failure, Outcome},
    item::Item,
    local,
    shell::Shell,
};
use proto::hdfs::acl_entry_proto::FsActionProto;

/// Answer a question about a path: 0 is yes, 1 is no.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Is it a directory?
    #[arg(short)]
    directory: bool,
    /// Is it there?
    #[arg(short)]
    exists: bool,
    /// Is it a file?
    #[arg(short)]
    file: bool,
    /// Has it more than no bytes?
    #[arg(short)]
    size: bool,
    /// May you write it?
    #[arg(short)]
    writable: bool,
    /// May you read it?
    #[arg(short)]
    readable: bool,
    /// Has it no bytes?
    #[arg(short)]
    zero: bool,
    /// The path that the question is about.
    path: String,
}

pub async fn run(shell: &mut Shell, args: Args) -> Outcome {
    let questions =
        [args.directory, args.exists, args.file, args.size, args.writable, args.readable, args.zero];
    match questions.iter().filter(|asked| **asked).count() {
        0 => return Err(Failure::Usage("No test flag given".into())),
        1 => {}
        _ => return Err(Failure::Usage("Only one test flag is allowed".into())),
    }
    // Not a no: a script would go on as if the file were not there.
    if local::is_uri(&args.path) {
        return Err(Failure::Usage(format!(
            "`{}': is a path of this machine: test without clover works on that",
            args.path
        )));
    }
    for item in shell.expand(&args.path).await? {
        if !is_so(&args, &item).await? {
            shell.answer_no();
        }
    }
    Ok(())
}

async fn is_so(args: &Args, item: &Item) -> Outcome<bool> {
    let Some(status) = &item.status else { return Ok(false) };
    let access = |action| async move {
        match item.fs.check_access(&item.path, action).await {
            Ok(()) => Ok(true),
            Err(error) if error.is_access_denied() || error.is_not_found() => Ok(false),
            Err(error) => Err(error.into()),
        }
    };
    match () {
        () if args.directory => Ok(status.is_dir()),
        () if args.file => Ok(status.is_file()),
        () if args.size => Ok(status.length > 0),
        () if args.zero => Ok(status.length == 0),
        () if args.writable => access(FsActionProto::Write).await,
        () if args.readable => access(FsActionProto::Read).await,
        () => Ok(true),
    }
}
