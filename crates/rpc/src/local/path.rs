//! The path of a domain socket (`dfs.domain.socket.path`): where it is, whether it is safe, and how it is listened on.

use std::{
    fs, io,
    os::unix::{
        fs::{FileTypeExt, MetadataExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::{Component, Path, PathBuf},
};

/// Every process may connect, as it may connect to a port. The permissions of the directories above decide which processes reach the
/// socket.
const SOCKET_MODE: u32 = 0o666;

/// The path of the server that has this transfer port: `_PORT` stands for the port, so that several servers of a machine
/// have a path each.
pub fn effective(path: &str, transfer_port: u16) -> PathBuf {
    path.replace("_PORT", &transfer_port.to_string()).into()
}

/// Refuses a path at which another user could put a socket of his own: that user's process would get the clients' requests and answer
/// them.
/// These are Hadoop's rules (`validateSocketPathSecurity0`). No directory above the socket may be writable by everybody, by a
/// group other than root's, or by an owner who is neither root nor the user of this process.
///
/// # Errors
/// `InvalidInput` if the path is relative or ends in a slash; `PermissionDenied` if a directory above it is not safe; or a
/// directory cannot be looked at, because it is not there for example. The text names the directory.
pub fn check(path: &Path) -> io::Result<()> {
    let invalid = |what: &str| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{}: a socket's path {what}", path.display()))
    };
    if !path.is_absolute() {
        return Err(invalid("must be absolute"));
    }
    let ends_as_directory = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    if ends_as_directory || !matches!(path.components().next_back(), Some(Component::Normal(_))) {
        return Err(invalid("must not name a directory"));
    }
    let user = rustix::process::geteuid().as_raw();
    for directory in path.ancestors().skip(1) {
        let found = fs::metadata(directory)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", directory.display())))?;
        if let Some(why) = why_unsafe(found.mode(), found.uid(), found.gid(), user) {
            let text = format!("{} {why}: choose another path for the socket", directory.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
    }
    Ok(())
}

/// The reason why a directory with this mode, owner and group is no place for a socket of `user`.
fn why_unsafe(mode: u32, owner: u32, group: u32, user: u32) -> Option<String> {
    let mode = mode & 0o777;
    if mode & 0o002 != 0 {
        return Some(format!("can be written by everybody (mode 0{mode:03o})"));
    }
    if mode & 0o020 != 0 && group != 0 {
        return Some(format!("can be written by group {group}, which is not root's (mode 0{mode:03o})"));
    }
    if mode & 0o200 != 0 && owner != 0 && owner != user {
        return Some(format!("belongs to user {owner}, who is neither root nor {user} (mode 0{mode:03o})"));
    }
    None
}

/// Listens at a path that is safe. A socket that an earlier process has left there is replaced.
///
/// # Errors
/// Those of [`check`]; `AddrInUse` if a process answers there, or if something else than a socket is there; or the system
/// refuses, as for a path of more than 107 bytes.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    check(path)?;
    bind(path)
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    let taken = |what: &str| Err(io::Error::new(io::ErrorKind::AddrInUse, what.to_owned()));
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => return taken("something else than a socket is there"),
        Ok(_) if UnixStream::connect(path).is_ok() => return taken("another process listens there"),
        Ok(_) => fs::remove_file(path)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(SOCKET_MODE))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_stands_in_the_path() {
        assert_eq!(effective("/run/clover/dn._PORT", 9866), Path::new("/run/clover/dn.9866"));
        assert_eq!(effective("/run/clover/dn", 9866), Path::new("/run/clover/dn"));
    }

    #[test]
    fn directories_that_others_can_change_are_unsafe() {
        // Mode, owner, group; the process runs as user 7.
        let safe =
            [(0o755, 0, 0), (0o755, 7, 7), (0o775, 0, 0), (0o700, 7, 9), (0o555, 9, 9), (0o1755, 0, 0)];
        for (mode, owner, group) in safe {
            assert_eq!(why_unsafe(0o40000 | mode, owner, group, 7), None, "{mode:o} {owner} {group}");
        }
        let unsafe_ones = [(0o777, 0, 0), (0o1777, 0, 0), (0o757, 7, 7), (0o775, 7, 7), (0o755, 9, 9)];
        for (mode, owner, group) in unsafe_ones {
            assert!(why_unsafe(0o40000 | mode, owner, group, 7).is_some(), "{mode:o} {owner} {group}");
        }
    }

    #[test]
    fn paths_that_name_no_file_are_refused() {
        for path in ["run/socket", "/run/", "/", "/run/..", ""] {
            assert_eq!(check(Path::new(path)).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{path}");
        }
        assert_eq!(check(Path::new("/no/such/socket")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_socket_that_is_left_is_replaced_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let first = bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, SOCKET_MODE);
        assert_eq!(bind(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse, "somebody listens");
        drop(first);
        let _second = bind(&path).unwrap();
        UnixStream::connect(&path).unwrap();

        let file = directory.path().join("file");
        fs::write(&file, "mine").unwrap();
        assert_eq!(bind(&file).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(fs::read(&file).unwrap(), b"mine");
        let long = directory.path().join("x".repeat(120));
        assert_eq!(bind(&long).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_directory_that_everybody_writes_is_told_by_name() {
        let text = check(Path::new("/tmp/clover.socket")).unwrap_err().to_string();
        assert!(text.starts_with("/tmp can be written by everybody"), "{text}");
    }
}
