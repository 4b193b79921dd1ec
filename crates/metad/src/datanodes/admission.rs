//! The data servers that may take part: those that a file names, if there is one (Hadoop's `dfs.hosts`).
//!
//! A line names hosts or addresses, each alone or with the port of its data transfer; what follows a `#` is a remark.
//! A file that names no server admits all, as in HDFS. Names are resolved when the file is read, and the address that
//! a data server speaks from is what counts: what it calls itself is its own word. The file is read when the server
//! starts and when an operator says so (`hdfs dfsadmin -refreshNodes`).

use base::{FsError, FsResult};
use env::{Disk, OpenMode, disk::read_exact_at};
use parking_lot::RwLock;
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::{IpAddr, ToSocketAddrs},
    path::PathBuf,
};

/// Ten times what the largest cluster needs.
const FILE_BYTES_MAX: u64 = 16 << 20;

pub struct Admission {
    file: Option<PathBuf>,
    named: RwLock<Named>,
}

/// The content of the file when it was last read.
#[derive(Default)]
struct Named {
    /// Every server is admitted: the file names none, or there is no file.
    everybody: bool,
    /// A server at this address with this port of its data transfer, or with any.
    places: BTreeSet<(IpAddr, Option<u32>)>,
    /// The addresses of each host name.
    addresses: BTreeMap<String, Vec<IpAddr>>,
}

/// A function that finds the addresses of a host name.
type Resolve<'a> = &'a dyn Fn(&str) -> io::Result<Vec<IpAddr>>;

impl Admission {
    /// Admits every server until the file is read.
    pub fn new(file: Option<PathBuf>) -> Self {
        Self { file, named: RwLock::new(Named { everybody: true, ..Named::default() }) }
    }

    /// Reads the file again. If it cannot be read, its former content goes on to hold. A name that is not resolved
    /// now keeps the addresses that it had. Waits for the name service: not for the thread that serves others.
    ///
    /// # Errors
    /// [`FsError::Io`] if the file cannot be read.
    pub fn reread(&self, disk: &dyn Disk) -> FsResult<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let text = read(disk, file).map_err(|error| {
            FsError::Io(format!("The list of data servers, {}, cannot be read: {error}", file.display()))
        })?;
        self.take(&text, &resolve);
        Ok(())
    }

    fn take(&self, text: &str, resolve: Resolve<'_>) {
        let words = parse(text);
        let mut named = Named { everybody: words.is_empty(), ..Named::default() };
        for word in &words {
            let (host, port) = split(word);
            for ip in self.addresses_of(host, resolve, &mut named.addresses) {
                named.places.insert((ip, port));
            }
        }
        *self.named.write() = named;
    }

    fn addresses_of(
        &self,
        host: &str,
        resolve: Resolve<'_>,
        known: &mut BTreeMap<String, Vec<IpAddr>>,
    ) -> Vec<IpAddr> {
        if let Ok(ip) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
            return vec![ip.to_canonical()];
        }
        if let Some(addresses) = known.get(host) {
            return addresses.clone();
        }
        let addresses = resolve(host).unwrap_or_else(|error| {
            let before = self.named.read().addresses.get(host).cloned().unwrap_or_default();
            tracing::warn!(
                host, %error, keeps = ?before,
                "a name in the list of data servers is not resolved; when it can be, order the list to be read again \
                 (clover admin refresh-nodes)"
            );
            before
        });
        known.insert(host.to_owned(), addresses.clone());
        addresses
    }

    /// Whether a data server that speaks from `ip` and takes data at `port` may take part.
    pub fn admits(&self, ip: IpAddr, port: u32) -> bool {
        let named = self.named.read();
        let ip = ip.to_canonical();
        named.everybody || [None, Some(port)].iter().any(|port| named.places.contains(&(ip, *port)))
    }
}

fn resolve(host: &str) -> io::Result<Vec<IpAddr>> {
    let found = (host, 0).to_socket_addrs()?;
    Ok(found.map(|address| address.ip().to_canonical()).collect())
}

/// The host and the port of a word. An IPv6 address with a port stands in brackets.
fn split(word: &str) -> (&str, Option<u32>) {
    if word.parse::<IpAddr>().is_ok() {
        return (word, None);
    }
    match word.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
        Some((host, Ok(port))) => (host, Some(port)),
        _ => (word, None),
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

    const ONE: [u8; 4] = [10, 0, 0, 1];

    /// The names that there are.
    fn found(host: &str) -> io::Result<Vec<IpAddr>> {
        match host {
            "one" => Ok(vec![ONE.into(), [10, 1, 0, 1].into()]),
            "three" => Ok(vec![[10, 0, 0, 3].into()]),
            _ => Err(io::Error::other("no such host")),
        }
    }

    fn admission(text: &str) -> Admission {
        let admission = Admission::new(None);
        admission.take(text, &found);
        admission
    }

    #[test]
    fn a_list_that_names_nobody_admits_everybody() {
        assert!(Admission::new(None).admits(ONE.into(), 9866));
        for text in ["", "\n \n", "# none yet\n"] {
            assert!(admission(text).admits(ONE.into(), 9866), "{text:?}");
        }
    }

    #[test]
    fn servers_are_named_by_host_or_address_with_or_without_their_port() {
        let admission = admission("one 10.0.0.2 ::1\nthree:9866 # the new one\n[2001:db8::7]:50\n");
        assert!(admission.admits(ONE.into(), 1));
        assert!(admission.admits([10, 1, 0, 1].into(), 1), "a host may have several addresses");
        assert!(admission.admits([10, 0, 0, 2].into(), 1));
        assert!(admission.admits("::ffff:10.0.0.2".parse().unwrap(), 1));
        assert!(admission.admits([10, 0, 0, 3].into(), 9866));
        assert!(!admission.admits([10, 0, 0, 3].into(), 9867));
        assert!(!admission.admits([10, 0, 0, 4].into(), 1));
        assert!(admission.admits("::1".parse().unwrap(), 1));
        let seventh: IpAddr = "2001:db8::7".parse().unwrap();
        assert!(admission.admits(seventh, 50) && !admission.admits(seventh, 51));
    }

    #[test]
    fn a_name_that_is_not_resolved_admits_nobody_new_and_loses_nobody() {
        let none = admission("nowhere");
        assert!(!none.admits(ONE.into(), 1), "the list names somebody, if nobody who is found");
        let admission = admission("one");
        admission.take("one three", &|_| Err(io::Error::other("the name service is away")));
        assert!(admission.admits(ONE.into(), 1));
        assert!(!admission.admits([10, 0, 0, 3].into(), 1));
    }
}
