//! An operator's orders that take data servers out of service, as the journal has them. All members have them alike.
//!
//! What becomes of an order is for the block map to say. Here stands only which server is meant, by the address and port at which it takes data, and
//! what is wanted of it. An order for a maintenance that is over stays here, without an effect, until another order comes for that server: each
//! member sees by its own clock that it is over, as with the files that list data servers.

use crate::{
    codec::{DecodeError, Field, Reader, Writer},
    digest::Digester,
    store::inode::TIME_LIMIT_MS,
};
use base::Timestamp;
use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

/// So many servers may have an order at one time. Six times what the largest cluster has.
pub const ORDERS_MAX: usize = 65_536;
/// The name of a server or of a user has at most so many bytes in an order.
pub const NAME_BYTES_MAX: usize = 255;

/// The way in which a data server is to leave service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// For good.
    Decommission,
    /// For a while.
    Maintenance {
        /// The wall-clock time at which it ends; `None`: another order ends it.
        until: Option<Timestamp>,
    },
}

impl Leave {
    /// Whether the order still wants the server out of service.
    pub fn holds_at(self, now: Timestamp) -> bool {
        !matches!(self, Self::Maintenance { until: Some(until) } if until <= now)
    }
}

/// An order that holds for one data server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOrder {
    pub leave: Leave,
    /// The server as the operator named it, for people.
    pub named: Arc<str>,
    /// The user who gave the order.
    pub by: Arc<str>,
    /// When it was given.
    pub at: Timestamp,
}

/// The orders of a group by the address and port of each server. A copy of it costs nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerOrders(Arc<BTreeMap<SocketAddr, ServerOrder>>);

impl ServerOrders {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The order for the server at this place, which may be over.
    pub fn get(&self, place: SocketAddr) -> Option<&ServerOrder> {
        self.0.get(&place)
    }

    /// In the order of addresses.
    pub fn iter(&self) -> impl Iterator<Item = (SocketAddr, &ServerOrder)> {
        self.0.iter().map(|(place, order)| (*place, order))
    }

    /// Whether this is a copy of the other one, or nothing has changed since.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn set(&mut self, place: SocketAddr, order: Option<ServerOrder>) {
        let orders = Arc::make_mut(&mut self.0);
        match order {
            Some(order) => drop(orders.insert(place, order)),
            None => drop(orders.remove(&place)),
        }
    }

    pub(crate) fn digest(&self) -> u64 {
        let mut digester = Digester::new(b'o');
        let mut bytes = Vec::new();
        for (place, order) in self.iter() {
            bytes.clear();
            place.encode(&mut Writer(&mut bytes));
            order.encode(&mut Writer(&mut bytes));
            digester.bytes(&bytes);
        }
        digester.finish()
    }
}

/// The place of a data server as all members write it: IPv4 addresses in their own form, and nothing but address and port.
pub fn place(ip: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(ip.to_canonical(), port)
}

/// Whether this may name a server or a user in an order: it is printed to people.
pub fn is_name(text: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}

const V4: u8 = 4;
const V6: u8 = 6;
const DECOMMISSION: u8 = 1;
const MAINTENANCE: u8 = 2;
const MAINTENANCE_UNTIL: u8 = 3;

impl Field for SocketAddr {
    fn encode(&self, out: &mut Writer<'_>) {
        let mut put = |family, octets: &[u8]| {
            out.byte(family);
            octets.iter().for_each(|octet| out.byte(*octet));
        };
        match self.ip() {
            IpAddr::V4(ip) => put(V4, &ip.octets()),
            IpAddr::V6(ip) => put(V6, &ip.octets()),
        }
        out.number(self.port().into());
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let ip = match input.byte()? {
            V4 => IpAddr::from(input.octets::<4>()?),
            V6 => IpAddr::from(input.octets::<16>()?),
            _ => return Err(input.malformed("an address that is neither of IPv4 nor of IPv6")),
        };
        let port = input.number_below(1 << 16, "a port above 65535")? as u16;
        if port == 0 || ip != ip.to_canonical() {
            return Err(input.malformed("a place that no data server has"));
        }
        Ok(place(ip, port))
    }
}

impl Field for Leave {
    fn encode(&self, out: &mut Writer<'_>) {
        match self {
            Self::Decommission => out.byte(DECOMMISSION),
            Self::Maintenance { until: None } => out.byte(MAINTENANCE),
            Self::Maintenance { until: Some(until) } => {
                out.byte(MAINTENANCE_UNTIL);
                out.number(until.ms);
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match input.byte()? {
            DECOMMISSION => Ok(Self::Decommission),
            MAINTENANCE => Ok(Self::Maintenance { until: None }),
            MAINTENANCE_UNTIL => Ok(Self::Maintenance { until: Some(time(input)?) }),
            _ => Err(input.malformed("a way to leave service that is not known")),
        }
    }
}

impl Field for ServerOrder {
    fn encode(&self, out: &mut Writer<'_>) {
        self.leave.encode(out);
        self.named.encode(out);
        self.by.encode(out);
        out.number(self.at.ms);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let leave = Leave::decode(input)?;
        let (named, by) = (name(input)?, name(input)?);
        Ok(Self { leave, named, by, at: time(input)? })
    }
}

fn time(input: &mut Reader<'_>) -> Result<Timestamp, DecodeError> {
    input.number_below(TIME_LIMIT_MS, "a time that no clock shows").map(Timestamp::from_ms)
}

fn name(input: &mut Reader<'_>) -> Result<Arc<str>, DecodeError> {
    let name: Arc<str> = Field::decode(input)?;
    if is_name(&name) {
        Ok(name)
    } else {
        Err(input.malformed("a name that is empty, too long or not printable"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(leave: Leave) -> ServerOrder {
        ServerOrder { leave, named: "worker-7".into(), by: "hdfs".into(), at: Timestamp::from_ms(5) }
    }

    fn bytes_of(value: &impl Field) -> Vec<u8> {
        let mut bytes = Vec::new();
        value.encode(&mut Writer(&mut bytes));
        bytes
    }

    #[test]
    fn a_maintenance_ends_at_its_time_and_a_decommission_never() {
        let at = Timestamp::from_ms;
        assert!(
            Leave::Decommission.holds_at(at(u64::MAX))
                && Leave::Maintenance { until: None }.holds_at(at(u64::MAX))
        );
        let until = Leave::Maintenance { until: Some(at(50)) };
        assert!(until.holds_at(at(49)) && !until.holds_at(at(50)));
    }

    #[test]
    fn an_order_is_read_back_and_bad_bytes_are_refused() {
        for leave in [
            Leave::Decommission,
            Leave::Maintenance { until: None },
            Leave::Maintenance { until: Some(Timestamp::from_ms(1_796_000_000_000)) },
        ] {
            let bytes = bytes_of(&order(leave));
            assert_eq!(ServerOrder::decode(&mut Reader::new(&bytes)), Ok(order(leave)));
            for length in 0..bytes.len() {
                assert!(ServerOrder::decode(&mut Reader::new(&bytes[..length])).is_err(), "{length}");
            }
        }
        let long = ServerOrder { by: "u".repeat(NAME_BYTES_MAX + 1).into(), ..order(Leave::Decommission) };
        let line = ServerOrder { named: "a\nb".into(), ..order(Leave::Decommission) };
        for bad in [long, line] {
            assert!(ServerOrder::decode(&mut Reader::new(&bytes_of(&bad))).is_err());
        }
    }

    #[test]
    fn places_have_one_form() {
        let mapped = "::ffff:10.0.0.1".parse().unwrap();
        assert_eq!(place(mapped, 9866).to_string(), "10.0.0.1:9866");
        for text in ["10.0.0.1:9866", "[2001:db8::7]:50"] {
            let there: SocketAddr = text.parse().unwrap();
            assert_eq!(SocketAddr::decode(&mut Reader::new(&bytes_of(&there))), Ok(there));
        }
        let no_port = bytes_of(&place([10, 0, 0, 1].into(), 0));
        let not_canonical = bytes_of(&SocketAddr::new(mapped, 9866));
        for bad in [no_port, not_canonical, vec![5, 1, 2, 3, 4, 1]] {
            assert!(SocketAddr::decode(&mut Reader::new(&bad)).is_err());
        }
    }
}
