//! The data servers that may take part, and those that are to leave service: as files list them, if there are any
//! (Hadoop's `dfs.hosts` and `dfs.hosts.exclude`).
//!
//! A list of those that may take part and that names none admits all, as in HDFS. A server that may take part and is in the
//! other list as well is to be decommissioned. The first list may be in JSON, and then says for each server whether it is in
//! service ([`super::hosts_file`]). Names are resolved when the files are read, and the address that a data server speaks
//! from is what counts: what it calls itself is its own word. The files are read when the server starts and when an
//! operator says so (`hdfs dfsadmin -refreshNodes`).

use super::hosts_file::{self, Listed, Wish};
use ::blocks::AdminOrder;
use base::{FsError, FsResult, Timestamp};
use env::{Disk, OpenMode, disk::read_exact_at};
use parking_lot::RwLock;
use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, ToSocketAddrs},
    path::{Path, PathBuf},
};

/// Ten times what the largest cluster needs.
const FILE_BYTES_MAX: u64 = 16 << 20;

pub struct Admission {
    /// The list of servers that may take part.
    file: Option<PathBuf>,
    /// The list of servers that are to be decommissioned.
    excluded_file: Option<PathBuf>,
    named: RwLock<Named>,
}

/// The content of the files when they were last read.
#[derive(Default)]
struct Named {
    /// Every server is admitted: the first file names none that is to be in service, or there is no file.
    everybody: bool,
    /// A server at this address with this port of its data transfer, or with any, and what is wished of it.
    places: BTreeMap<(IpAddr, Option<u32>), Wish>,
    excluded: BTreeMap<(IpAddr, Option<u32>), Wish>,
    /// The addresses of each host name.
    addresses: BTreeMap<String, Vec<IpAddr>>,
    /// The first list, without names that were never resolved.
    listed: Vec<Expected>,
}

/// A data server that the first list names, whether it runs or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// As the list has it.
    pub host: String,
    /// At least one.
    pub addresses: Vec<IpAddr>,
    /// The port of its data transfer; `None`: any.
    pub port: Option<u32>,
    /// It is to be decommissioned.
    pub leaves: bool,
}

/// A function that finds the addresses of a host name.
type Resolve<'a> = &'a dyn Fn(&str) -> io::Result<Vec<IpAddr>>;

impl Admission {
    /// Admits every server, and wants all in service, until the files are read.
    pub fn new(file: Option<PathBuf>, excluded_file: Option<PathBuf>) -> Self {
        let named = RwLock::new(Named { everybody: true, ..Named::default() });
        Self { file, excluded_file, named }
    }

    /// Reads the files again. If one cannot be read, the former content of both goes on to hold. A name that is not resolved
    /// now keeps the addresses that it had. Waits for the name service: not for the thread that serves others.
    ///
    /// # Errors
    /// [`FsError::Io`] if a file cannot be read, or is not understood.
    pub fn reread(&self, disk: &dyn Disk) -> FsResult<()> {
        let list = |file: &Option<PathBuf>| match file {
            Some(file) => read(disk, file).and_then(|text| hosts_file::parse(&text)).map_err(|error| {
                FsError::Io(format!("The list of data servers, {}, cannot be read: {error}", file.display()))
            }),
            None => Ok(Vec::new()),
        };
        self.take(&list(&self.file)?, &list(&self.excluded_file)?, &resolve);
        Ok(())
    }

    fn take(&self, listed: &[Listed], excluded: &[Listed], resolve: Resolve<'_>) {
        let mut named = Named {
            everybody: !listed.iter().any(|server| server.wish == Wish::InService),
            ..Named::default()
        };
        for Listed { host, port, .. } in listed {
            let addresses = self.addresses_of(host, resolve, &mut named.addresses);
            if !addresses.is_empty() {
                named.listed.push(Expected { host: host.clone(), addresses, port: *port, leaves: false });
            }
        }
        for (servers, places) in [(listed, &mut named.places), (excluded, &mut named.excluded)] {
            for Listed { host, port, wish } in servers {
                for ip in self.addresses_of(host, resolve, &mut named.addresses) {
                    places.insert((ip, *port), *wish);
                }
            }
        }
        let (places, excluded) = (&named.places, &named.excluded);
        for server in &mut named.listed {
            let is_out = |ip: &IpAddr| {
                let wish = |places| places_at(places, *ip, server.port);
                wish(excluded).is_some() || wish(places) == Some(Wish::Decommissioned)
            };
            server.leaves = server.addresses.iter().any(is_out);
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
        named.everybody || find(&named.places, ip, port).is_some()
    }

    /// What the files order for this server at this time.
    pub fn order_for(&self, ip: IpAddr, port: u32, now: Timestamp) -> AdminOrder {
        let named = self.named.read();
        if find(&named.excluded, ip, port).is_some() {
            return AdminOrder::Decommission;
        }
        match find(&named.places, ip, port) {
            None | Some(Wish::InService) => AdminOrder::InService,
            Some(Wish::Decommissioned) => AdminOrder::Decommission,
            Some(Wish::InMaintenance { until_ms }) if until_ms.is_some_and(|until| until <= now.ms) => {
                AdminOrder::InService
            }
            Some(Wish::InMaintenance { .. }) => AdminOrder::Maintenance,
        }
    }

    /// The data servers of the list of expected servers that are not running. `running`: the addresses and data transfer ports of those
    /// that are.
    pub fn missing(&self, running: &[(IpAddr, u32)]) -> Vec<Expected> {
        let is_it = |server: &Expected, ip: IpAddr, port: u32| {
            server.addresses.contains(&ip.to_canonical()) && server.port.is_none_or(|its| its == port)
        };
        let named = self.named.read();
        let missing =
            named.listed.iter().filter(|server| !running.iter().any(|(ip, port)| is_it(server, *ip, *port)));
        missing.cloned().collect()
    }

    /// Whether the files order anything but that servers are in service.
    pub fn takes_servers_out(&self) -> bool {
        let named = self.named.read();
        !named.excluded.is_empty() || named.places.values().any(|wish| *wish != Wish::InService)
    }
}

/// The wish that the list has for the server with this port, else for all servers at its address.
fn find(places: &BTreeMap<(IpAddr, Option<u32>), Wish>, ip: IpAddr, port: u32) -> Option<Wish> {
    places_at(places, ip.to_canonical(), Some(port))
}

fn places_at(places: &BTreeMap<(IpAddr, Option<u32>), Wish>, ip: IpAddr, port: Option<u32>) -> Option<Wish> {
    [port, None].iter().find_map(|port| places.get(&(ip, *port))).copied()
}

fn resolve(host: &str) -> io::Result<Vec<IpAddr>> {
    let found = (host, 0).to_socket_addrs()?;
    Ok(found.map(|address| address.ip().to_canonical()).collect())
}

fn read(disk: &dyn Disk, file: &Path) -> io::Result<String> {
    let file = disk.open(file, OpenMode::Read)?;
    let length = file.length()?;
    if length > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it has {length} bytes; at most {FILE_BYTES_MAX} are read")));
    }
    let mut bytes = vec![0; length as usize];
    read_exact_at(&*file, &mut bytes, 0)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not text"))
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
        both(text, "")
    }

    fn both(text: &str, excluded: &str) -> Admission {
        let admission = Admission::new(None, None);
        take(&admission, text, excluded, &found);
        admission
    }

    fn take(admission: &Admission, text: &str, excluded: &str, resolve: Resolve<'_>) {
        let parse = |text| hosts_file::parse(text).unwrap();
        admission.take(&parse(text), &parse(excluded), resolve);
    }

    fn order(admission: &Admission, ip: [u8; 4], port: u32, now_ms: u64) -> AdminOrder {
        admission.order_for(ip.into(), port, Timestamp { ms: now_ms })
    }

    #[test]
    fn a_list_that_names_nobody_admits_everybody() {
        assert!(Admission::new(None, None).admits(ONE.into(), 9866));
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
        take(&admission, "one three", "", &|_| Err(io::Error::other("the name service is away")));
        assert!(admission.admits(ONE.into(), 1));
        assert!(!admission.admits([10, 0, 0, 3].into(), 1));
    }

    #[test]
    fn a_server_in_both_lists_is_to_be_decommissioned() {
        let admission = both("one 10.0.0.2 three", "three 10.0.0.2:50 10.9.9.9");
        assert_eq!(order(&admission, ONE, 1, 0), AdminOrder::InService);
        assert_eq!(order(&admission, [10, 0, 0, 3], 1, 0), AdminOrder::Decommission);
        assert_eq!(order(&admission, [10, 0, 0, 2], 50, 0), AdminOrder::Decommission);
        assert_eq!(order(&admission, [10, 0, 0, 2], 51, 0), AdminOrder::InService);
        assert!(admission.admits([10, 0, 0, 3].into(), 1), "it takes part until it is switched off");
        assert!(!admission.admits([10, 9, 9, 9].into(), 1), "it is in the second list only");
        assert!(both("", "10.9.9.9").admits([10, 9, 9, 9].into(), 1), "the first list names nobody");
    }

    #[test]
    fn servers_of_the_first_list_that_do_not_run_are_missed() {
        let admission = both("one 10.0.0.2:50 10.0.0.2:51 nowhere three", "three 10.9.9.9");
        let missing = |running: &[(IpAddr, u32)]| {
            let missing = admission.missing(running).into_iter();
            missing.map(|it| (it.host, it.port, it.leaves)).collect::<Vec<_>>()
        };
        let at = |host: &str, port, leaves| (host.to_owned(), port, leaves);
        let second = at("10.0.0.2", Some(51), false);
        assert_eq!(
            missing(&[([10, 0, 0, 2].into(), 50)]),
            [at("one", None, false), second.clone(), at("three", None, true)]
        );
        let running = [([10, 0, 0, 2].into(), 50), ([10, 1, 0, 1].into(), 7), ([10, 0, 0, 3].into(), 9866)];
        assert_eq!(missing(&running), [second]);
        assert_eq!(Admission::new(None, None).missing(&[]), []);
    }

    #[test]
    fn a_list_in_json_has_states_and_the_end_of_a_maintenance() {
        let text = r#"[{"hostName": "10.0.0.1", "adminState": "IN_MAINTENANCE", "maintenanceExpireTimeInMS": 50},
            {"hostName": "10.0.0.2", "adminState": "DECOMMISSIONED"}, {"hostName": "10.0.0.3"}]"#;
        let admission = admission(text);
        assert_eq!(order(&admission, ONE, 1, 49), AdminOrder::Maintenance);
        assert_eq!(order(&admission, ONE, 1, 50), AdminOrder::InService, "the maintenance is over");
        assert_eq!(order(&admission, [10, 0, 0, 2], 1, 0), AdminOrder::Decommission);
        assert!(!admission.admits([10, 0, 0, 4].into(), 1), "servers in service are listed, and it is not");
    }

    #[test]
    fn a_list_of_servers_that_leave_admits_the_others() {
        let admission = admission(r#"{"hostName": "10.0.0.2", "adminState": "DECOMMISSIONED"}"#);
        assert!(admission.admits(ONE.into(), 1) && admission.takes_servers_out());
    }

    #[test]
    fn port_0_of_a_word_is_any_port() {
        assert_eq!(order(&both("", "10.0.0.1:0"), ONE, 9866, 0), AdminOrder::Decommission);
    }
}
