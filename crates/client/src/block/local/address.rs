//! Whether a data server is on this machine.

use parking_lot::Mutex;
use std::{
    collections::HashMap,
    net::{IpAddr, UdpSocket},
};

/// Addresses that are remembered; more are looked up each time.
const KNOWN_MAX: usize = 4096;

/// The addresses that were looked up, and whether each is one of this machine.
#[derive(Debug, Default)]
pub struct Addresses {
    known: Mutex<HashMap<IpAddr, bool>>,
}

impl Addresses {
    /// Whether an address is one of this machine. A text that is no address is not.
    pub fn is_local(&self, text: &str) -> bool {
        let Ok(address) = text.parse::<IpAddr>() else { return false };
        if address.is_loopback() {
            return true;
        }
        if let Some(known) = self.known.lock().get(&address) {
            return *known;
        }
        // The system lets a process bind its own addresses only. Nothing is sent.
        let is_local = !address.is_unspecified() && UdpSocket::bind((address, 0)).is_ok();
        let mut known = self.known.lock();
        if known.len() < KNOWN_MAX {
            known.insert(address, is_local);
        }
        is_local
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_local() {
        let addresses = Addresses::default();
        assert!(addresses.is_local("127.0.0.1") && addresses.is_local("::1"));
        // The second is kept for documents, no machine has it.
        for other in ["0.0.0.0", "192.0.2.1", "192.0.2.1", "a host", ""] {
            assert!(!addresses.is_local(other), "{other}");
        }
    }
}
