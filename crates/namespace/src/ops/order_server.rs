//! Orders a data server out of service, or takes such an order back.

use crate::{
    Context, Namespace, Reply,
    codec::{DecodeError, Field, Reader, Writer},
    edit::{Edit, Planned},
    operation::{Applying, Operation, rules_without_inodes},
    server_orders::{Leave, NAME_BYTES_MAX, ORDERS_MAX, ServerOrder, is_name},
    store::inode::TIME_LIMIT_MS,
};
use base::{FsError, FsResult, Level};
use std::{net::SocketAddr, sync::Arc};

#[derive(Clone, Debug, PartialEq)]
pub struct OrderServerEdit {
    /// The address and port at which the server takes data.
    pub server: SocketAddr,
    /// `None`: nothing is ordered for it any more.
    pub order: Option<ServerOrder>,
}

impl Field for OrderServerEdit {
    fn encode(&self, out: &mut Writer<'_>) {
        self.server.encode(out);
        self.order.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { server: Field::decode(input)?, order: Field::decode(input)? })
    }
}

/// An operator's wish for one data server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub server: SocketAddr,
    /// The server as the operator named it.
    pub named: Arc<str>,
    /// `None`: it is to be in service again.
    pub leave: Option<Leave>,
}

/// The service has checked before that the caller may give this order, and that there is such a server: this is no call on the tree.
///
/// # Errors
/// [`FsError::Unsupported`] if the members of the group do not all know how to write this. [`FsError::InvalidArgument`] if a name is empty,
/// too long or not printable, the end of the maintenance has passed or is no time, or too many servers have an order.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, request: &Request) -> FsResult<Planned<OrderServerEdit>> {
    check_level(ns)?;
    let orders = &ns.tree.server_orders;
    let known = orders.get(request.server);
    let order = match request.leave {
        None => None,
        Some(leave) => {
            let order = ServerOrder {
                leave,
                named: request.named.clone(),
                by: ctx.caller.user.clone(),
                at: base::Timestamp::from_ms(ctx.now.ms.min(TIME_LIMIT_MS - 1)),
            };
            check(&order)?;
            if known.is_none() && orders.len() >= ORDERS_MAX {
                return Err(FsError::InvalidArgument(format!(
                    "{ORDERS_MAX} data servers have an order, and more are not kept. `clover admin recommission` takes orders back that are over."
                )));
            }
            Some(order)
        }
    };
    if known.map(|known| known.leave) == request.leave {
        return Ok(Planned::NoChange(Reply::Unit));
    }
    Ok(Planned::Edit(Edit::plan(ns, ctx, OrderServerEdit { server: request.server, order })?))
}

/// Whether the group may write orders for data servers.
///
/// # Errors
/// [`FsError::Unsupported`] if it may not: the text says what makes it able to.
pub fn check_level(ns: &Namespace) -> FsResult<()> {
    let (level, needed) = (ns.tree.level.level, Level::SERVER_ORDERS);
    if level >= needed {
        return Ok(());
    }
    let release = needed.release().unwrap_or_default();
    Err(FsError::Unsupported(format!(
        "Group {} is at level {level}, and orders for data servers need level {needed}, which came with release {release}: raise it with `clover \
         admin upgrade finalize`. Until then, name the data server in the files of each metadata server (data_servers_file, \
         excluded_data_servers_file).",
        ns.group()
    )))
}

fn check(order: &ServerOrder) -> FsResult<()> {
    let refuse = |text: String| Err(FsError::InvalidArgument(text));
    for (what, name) in [("data server", &order.named), ("user", &order.by)] {
        if !is_name(name) {
            return refuse(format!(
                "The name of the {what} has {} bytes: 1 to {NAME_BYTES_MAX} are taken, of characters that can be printed.",
                name.len()
            ));
        }
    }
    match order.leave {
        Leave::Maintenance { until: Some(until) } if until.ms >= TIME_LIMIT_MS => {
            refuse("The maintenance would end at a time that no clock here will show.".into())
        }
        leave if !leave.holds_at(order.at) => refuse("The end of the maintenance has passed already.".into()),
        _ => Ok(()),
    }
}

impl Operation for OrderServerEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    // No read of the tree tells of orders for data servers.
    rules_without_inodes!();

    fn apply(&self, ns: &mut Namespace, _: &mut Applying<'_>) -> Reply {
        ns.tree.server_orders.set(self.server, self.order.clone());
        Reply::Unit
    }
}
