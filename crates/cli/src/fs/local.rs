//! Facts about files of this machine, as the file system wants them.

use super::{
    failure::{Failure, Outcome},
    path::Written,
};
use client::{FileStatus, FileSystem};
use env::users;
use std::{
    fs::{File, FileTimes, Metadata},
    io::ErrorKind,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The local path that an argument means: `file:///a`, `file:/a` or simply `a`.
pub fn path_of(argument: &str) -> Outcome<PathBuf> {
    let written = Written::parse(argument)?;
    match written.scheme.as_deref() {
        Some("file") => of_uri(argument, &written),
        None if is_uri(argument) => {
            Err(Failure::path(argument, "what follows `file:' is a whole path, as in file:///data/x"))
        }
        None => Ok(PathBuf::from(argument)),
        // A name like `12:30/x` is no URI if it is there.
        Some(_) if Path::new(argument).symlink_metadata().is_ok() => Ok(PathBuf::from(argument)),
        Some(_) => Err(Failure::path(argument, "is not a path of this machine")),
    }
}

/// Whether an argument says that it is a path of this machine.
pub fn is_uri(argument: &str) -> bool {
    argument.starts_with("file:")
}

/// The path of `file:///a`. A host between the slashes is mostly a slash that was forgotten.
pub fn of_uri(argument: &str, written: &Written) -> Outcome<PathBuf> {
    match &*written.authority {
        "" | "localhost" => Ok(PathBuf::from(&written.path)),
        host => {
            let reason = format!(
                "names the machine {host}; a path of this machine is file:///{host}{}",
                written.path.trim_end_matches('/')
            );
            Err(Failure::path(argument, &reason))
        }
    }
}

/// Opens the file that `file:///a` means.
pub fn open_uri(argument: &str) -> Outcome<File> {
    let path = path_of(argument)?;
    if path.is_dir() {
        return Err(Failure::is_directory(argument));
    }
    File::open(&path).map_err(|error| Failure::local(argument, error))
}

pub fn metadata(path: &Path) -> Outcome<Metadata> {
    std::fs::metadata(path).map_err(|error| Failure::local(path, error))
}

/// The metadata of a file that a copy meets inside a tree. Pipes and devices are refused here, because a copy would read them for
/// ever. A pipe that the user names on the command line is copied: see [`metadata`].
pub fn metadata_in_tree(path: &Path) -> Outcome<Metadata> {
    let wrong = |reason: &str| Err(Failure::path(&path.display().to_string(), reason));
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() || metadata.is_file() => Ok(metadata),
        Ok(_) => wrong("is neither a file nor a directory, and is left out"),
        Err(error) if error.kind() == ErrorKind::NotFound => match std::fs::read_link(path) {
            Ok(to) => wrong(&format!("is a link to `{}', which is not there", to.display())),
            Err(_) => Err(Failure::local(path, error)),
        },
        Err(error) => Err(Failure::local(path, error)),
    }
}

/// Entries of a directory in the order of names.
pub fn entries(directory: &Path) -> Outcome<Vec<PathBuf>> {
    let wrong = |error| Failure::local(directory, error);
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(wrong)? {
        entries.push(entry.map_err(wrong)?.path());
    }
    entries.sort();
    Ok(entries)
}

/// The last name of a path, as it becomes a name of the file system.
pub fn name_of(path: &Path) -> Outcome<String> {
    // `.` and `..` have names, too, behind what they stand for.
    let whole = match path.file_name() {
        Some(_) => path.to_owned(),
        None => path.canonicalize().map_err(|error| Failure::local(path, error))?,
    };
    let name = whole.file_name().unwrap_or_default();
    name.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::path(&path.display().to_string(), "is not UTF-8, and cannot be the name of a file here")
    })
}

/// Gives a file of the file system the times, the owner and the mode of a local one.
pub async fn preserve_remotely(fs: &FileSystem, target: &str, metadata: &Metadata) -> Outcome {
    let modified = ms(metadata.modified().ok());
    let accessed = ms(metadata.accessed().ok());
    fs.set_times(target, modified, accessed).await?;
    // Who has no name here keeps the number.
    let user = users::user_name(metadata.uid()).unwrap_or_else(|| metadata.uid().to_string());
    let group = users::group_name(metadata.gid()).unwrap_or_else(|| metadata.gid().to_string());
    fs.set_owner(target, Some(&user), Some(&group)).await?;
    fs.set_permission(target, (metadata.permissions().mode() & 0o1777) as u16).await?;
    Ok(())
}

/// Gives a local file the times, the owner and the mode of one of the file system.
pub fn preserve_locally(target: &Path, status: &FileStatus) -> Outcome {
    let wrong = |error| Failure::local(target, error);
    let (user, group) = (users::user_id(&status.owner), users::group_id(&status.group));
    // Users that this machine does not know stay as they are.
    if user.is_some() || group.is_some() {
        std::os::unix::fs::chown(target, user, group).map_err(wrong)?;
    }
    let mode = std::fs::Permissions::from_mode(u32::from(status.mode));
    std::fs::set_permissions(target, mode).map_err(wrong)?;
    let time = |ms| UNIX_EPOCH + Duration::from_millis(ms);
    let mut times = FileTimes::new().set_modified(time(status.modified_ms));
    if status.accessed_ms > 0 {
        times = times.set_accessed(time(status.accessed_ms));
    }
    let file = File::open(target).map_err(wrong)?;
    file.set_times(times).map_err(wrong)
}

fn ms(time: Option<SystemTime>) -> Option<u64> {
    time?.duration_since(UNIX_EPOCH).ok().map(|since| since.as_millis() as u64)
}
