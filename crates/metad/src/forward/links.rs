//! The connections to the other members' RPC ports.

use base::{ClientId, MemberId};
use parking_lot::Mutex;
use proto::protocol;
use rpc::{Client, ClientOptions};
use std::{collections::BTreeMap, time::Duration};

/// Connections to one member. Each is read by one task over there, so one alone would leave its other
/// processors idle; all calls of one client take the same one, and stay in their order.
const CONNECTIONS: usize = 4;

#[derive(Default)]
pub struct Links {
    by_member: Mutex<BTreeMap<MemberId, Link>>,
}

struct Link {
    address: String,
    clients: [Client; CONNECTIONS],
}

impl Links {
    /// A connection to this member, which is made when it is used.
    pub fn to(&self, me: MemberId, member: MemberId, address: &str, client: ClientId) -> Client {
        let mut by_member = self.by_member.lock();
        let link = by_member.entry(member).or_insert_with(|| Link::new(me, address));
        if link.address != address {
            *link = Link::new(me, address);
        }
        let sum =
            client.0.iter().fold(0usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
        link.clients[sum % CONNECTIONS].clone()
    }
}

impl Link {
    fn new(me: MemberId, address: &str) -> Self {
        // No user of any system has a space in its name: nobody's groups are looked up for the connection.
        let user = format!("clover member {me}");
        let options = || ClientOptions {
            connect_timeout: Duration::from_secs(1),
            // The caller that waits for the answer decides how long.
            call_timeout: Duration::from_secs(24 * 3600),
            ping_interval: None,
            ..ClientOptions::default()
        };
        let clients = std::array::from_fn(|_| Client::connect(address, protocol::FORWARD, &user, options()));
        Self { address: address.to_owned(), clients }
    }
}
