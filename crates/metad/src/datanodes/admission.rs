//! Which data servers may take part: those that a file names, if there is one (Hadoop's `dfs.hosts`).
//!
//! A line names hosts or addresses, each alone or with the port of its data transfer; what follows a `#` is a
//! remark. A file that names nobody admits everybody, as in HDFS. Names are compared as data servers announce
//! them, and never resolved. The file is read when the server starts and when an operator says so
//! (`hdfs dfsadmin -refreshNodes`).

use base::{FsError, FsResult};
use env::{Disk, OpenMode, disk::read_exact_at};
use parking_lot::RwLock;
use std::{collections::BTreeSet, io, path::PathBuf};

/// Ten times what the largest cluster needs.
const FILE_BYTES_MAX: u64 = 16 << 20;

pub struct Admission {
    file: Option<PathBuf>,
    /// Empty: everybody.
    named: RwLock<BTreeSet<String>>,
}

impl Admission {
    /// Admits everybody until the file is read.
    pub fn new(file: Option<PathBuf>) -> Self {
        Self { file, named: RwLock::default() }
    }

    /// Reads the file again. If it cannot be read, what it said last goes on to hold.
    pub fn reread(&self, disk: &dyn Disk) -> FsResult<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let text = read(disk, file).map_err(|error| {
            FsError::Io(format!("The list of data servers, {}, cannot be read: {error}", file.display()))
        })?;
        *self.named.write() = parse(&text);
        Ok(())
    }

    /// Whether a data server that speaks from `ip`, calls itself `host_name` and takes data at `port` may take part.
    pub fn admits(&self, ip: &str, host_name: &str, port: u32) -> bool {
        let named = self.named.read();
        let is_named = |host: &str| named.contains(host) || named.contains(format!("{host}:{port}").as_str());
        named.is_empty() || is_named(ip) || is_named(host_name)
    }
}

fn read(disk: &dyn Disk, file: &std::path::Path) -> io::Result<String> {
    let file = disk.open(file, OpenMode::Read)?;
    let length = file.length()?;
    if length > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it has {length} bytes; at most {FILE_BYTES_MAX} are read")));
    }
    let mut bytes = vec![0; length as usize];
    read_exact_at(&*file, &mut bytes, 0)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not text"))
}

fn parse(text: &str) -> BTreeSet<String> {
    let without_remark = |line: &str| line.split('#').next().unwrap_or_default().to_owned();
    text.lines()
        .map(without_remark)
        .flat_map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(text: &str) -> Admission {
        Admission { file: None, named: RwLock::new(parse(text)) }
    }

    #[test]
    fn a_list_that_names_nobody_admits_everybody() {
        for text in ["", "\n \n", "# none yet\n"] {
            assert!(admission(text).admits("10.0.0.1", "one", 9866), "{text:?}");
        }
    }

    #[test]
    fn servers_are_named_by_host_or_address_with_or_without_their_port() {
        let admission = admission("one 10.0.0.2\nthree:9866 # the new one\n");
        assert!(admission.admits("10.0.0.1", "one", 1));
        assert!(admission.admits("10.0.0.2", "two", 1));
        assert!(admission.admits("10.0.0.3", "three", 9866));
        assert!(!admission.admits("10.0.0.3", "three", 9867));
        assert!(!admission.admits("10.0.0.4", "new", 1));
    }
}
