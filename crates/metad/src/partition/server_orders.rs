//! The orders for data servers that the journal has, on the way to the block map: the rules are those of [`serving::server_orders`].

use super::Partition;
use namespace::server_orders::ServerOrders;

/// The orders, as far as this member has applied the journal.
pub fn of_the_journal(partition: &Partition) -> ServerOrders {
    partition.tree().namespace.server_orders()
}

/// Before this member commands: see [`serving::server_orders::take_out`].
pub fn take_out(partition: &Partition) {
    let orders = of_the_journal(partition);
    let (now, moment) = (partition.env.clock.timestamp(), partition.moment());
    serving::server_orders::take_out(&mut partition.blocks.lock(), &orders, now, moment);
}
