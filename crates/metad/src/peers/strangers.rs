//! Connections that have proved nothing yet: how many there may be, and which one gives way to another.

use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    net::{IpAddr, Shutdown, TcpStream},
    sync::Arc,
};

/// The connections from an address of members that are always let in, however many come from elsewhere.
const OF_A_MEMBER: usize = 8;

/// Connections that have proved nothing yet, the oldest first.
#[derive(Clone)]
pub struct Strangers(Arc<Mutex<Table>>);

struct Table {
    waiting: Vec<Waiting>,
    count_max: usize,
    count: u64,
}

struct Waiting {
    number: u64,
    from: IpAddr,
    stream: Arc<TcpStream>,
}

/// The place of one that waits: free again when this is dropped.
pub struct Place {
    strangers: Strangers,
    number: u64,
}

/// The outcome for a connection that was just made.
pub enum Entry {
    /// The connection has a place. The address is that of a connection that had to give up its own.
    Taken(Place, Option<IpAddr>),
    Refused,
}

impl Strangers {
    /// A handshake takes a few round trips, so members are never more than a few of `count_max`.
    pub fn new(count_max: usize) -> Self {
        Self(Arc::new(Mutex::new(Table { waiting: Vec::new(), count_max: count_max.max(1), count: 0 })))
    }

    /// Gives a new connection a place, if need be that of another.
    pub fn enter(
        &self,
        stream: Arc<TcpStream>,
        from: IpAddr,
        is_of_members: impl Fn(IpAddr) -> bool,
    ) -> Entry {
        let mut table = self.0.lock();
        let mut given_up = None;
        if table.waiting.len() >= table.count_max {
            let addresses: Vec<IpAddr> = table.waiting.iter().map(|waiting| waiting.from).collect();
            let Some(index) = least_wanted(&addresses, from, is_of_members) else { return Entry::Refused };
            let waiting = table.waiting.remove(index);
            // Its thread finds the connection ended.
            let _ = waiting.stream.shutdown(Shutdown::Both);
            given_up = Some(waiting.from);
        }
        table.count += 1;
        let number = table.count;
        table.waiting.push(Waiting { number, from, stream });
        Entry::Taken(Place { strangers: self.clone(), number }, given_up)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.strangers.0.lock().waiting.retain(|waiting| waiting.number != self.number);
    }
}

/// The index of the connection that gives way to a new one: among those that wait, the oldest of the address that has
/// the most, the new one counted. Addresses of members are looked at only when nobody else waits, or where one of them
/// has more than its members need. `None`: the new one itself is the least wanted.
fn least_wanted(
    waiting: &[IpAddr],
    newcomer: IpAddr,
    is_of_members: impl Fn(IpAddr) -> bool,
) -> Option<usize> {
    let mut counts = BTreeMap::<IpAddr, usize>::new();
    for from in waiting.iter().chain([&newcomer]) {
        *counts.entry(*from).or_default() += 1;
    }
    let is_wanted = |from: IpAddr| is_of_members(from) && counts[&from] <= OF_A_MEMBER;
    let candidates = waiting.iter().chain([&newcomer]).copied().enumerate();
    let (index, _) =
        candidates.min_by_key(|(index, from)| (is_wanted(*from), usize::MAX - counts[from], *index))?;
    (index < waiting.len()).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    const MEMBER: u8 = 1;

    fn gives_way(waiting: &[u8], newcomer: u8) -> Option<usize> {
        let waiting: Vec<IpAddr> = waiting.iter().copied().map(address).collect();
        least_wanted(&waiting, address(newcomer), |from| from == address(MEMBER))
    }

    #[test]
    fn whoever_has_the_most_gives_its_oldest_up() {
        assert_eq!(gives_way(&[7, 8, 9, 8], 5), Some(1));
        assert_eq!(gives_way(&[7, 8, 9, 8], 9), Some(1), "of two with as many the oldest");
        assert_eq!(gives_way(&[7, 8, 9], 9), Some(2), "its own");
    }

    #[test]
    fn a_member_gives_way_to_nobody_and_takes_the_place_of_a_stranger() {
        assert_eq!(gives_way(&[MEMBER, MEMBER, 7], 8), Some(2), "although the member has more");
        assert_eq!(gives_way(&[7, MEMBER, MEMBER], MEMBER), Some(0));
        assert_eq!(gives_way(&[MEMBER, MEMBER], 7), None, "the new one is refused");
        assert_eq!(gives_way(&[MEMBER, MEMBER], MEMBER), Some(0), "among themselves the oldest");
    }

    #[test]
    fn somebody_hostile_at_an_address_of_members_does_not_take_all_places() {
        let mut waiting = vec![7];
        waiting.extend([MEMBER; OF_A_MEMBER]);
        assert_eq!(gives_way(&waiting, MEMBER), Some(1));
        assert_eq!(gives_way(&waiting, 8), Some(0), "as many as members need they keep");
    }
}
