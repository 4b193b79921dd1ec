//! Reads the section about orders that take data servers out of service.

use super::{
    SERVER_ORDERS_VERSION, Section,
    read::{Image, Result},
};
use crate::{
    codec::{Field, Reader},
    server_orders::{ORDERS_MAX, ServerOrder},
};
use std::net::SocketAddr;

/// More than an address and two names take.
const ORDER_BYTES_LIMIT: u64 = 1 << 10;

impl Image<'_> {
    pub(super) fn server_orders(&mut self) -> Result<()> {
        self.section = Section::ServerOrders;
        let version = self.byte()?;
        if version != SERVER_ORDERS_VERSION {
            return Err(self.malformed(format!("version {version} is not known; {SERVER_ORDERS_VERSION} is")));
        }
        let mut last: Option<SocketAddr> = None;
        let count = self.below(ORDERS_MAX as u64 + 1, "number of orders")?;
        if count == 0 {
            return Err(self.malformed("no order"));
        }
        for _ in 0..count {
            let mut bytes = Vec::new();
            for _ in 0..self.below(ORDER_BYTES_LIMIT, "length of an order")? {
                bytes.push(self.byte()?);
            }
            let mut input = Reader::new(&bytes);
            let read = SocketAddr::decode(&mut input)
                .and_then(|server| Ok((server, ServerOrder::decode(&mut input)?)))
                .and_then(|read| input.finish().map(|()| read));
            let (server, order) = read.map_err(|error| self.malformed(format!("an order: {error}")))?;
            if last.is_some_and(|last| last >= server) {
                return Err(self.malformed(format!("the order for {server} is not in its place")));
            }
            last = Some(server);
            self.ns.tree.server_orders.set(server, Some(order));
        }
        Ok(())
    }
}
