//! Orders that take data servers out of service and are kept in the journal.

use super::orders::pass_on;
use crate::{
    audit::lines,
    client_protocol::{
        calls::{self, decode, fingerprint, remembered},
        require_superuser,
    },
    core::Core,
    datanodes::{
        hosts_file,
        orders::{self, Orders},
    },
    partition::server_orders::of_the_journal,
};
use base::{FsError, FsResult, Timestamp};
use blocks::{AdminOrder, DataServer, ServerFilter};
use namespace::{
    Planned, Privileged, Sight,
    ops::order_server::{self, Request},
    server_orders::{Leave, NAME_BYTES_MAX, ServerOrder, ServerOrders, is_name, place},
};
use proto::{clover::admin as p, hdfs::datanode_info_proto::AdminState};
use rpc::{Call, Replier};
use serving::server_orders::place_of;
use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    sync::Arc,
};

/// Servers that an error lists, where the name that an operator gave fits several.
const NAMED_MAX: usize = 10;

/// Tells how a data server stands, and orders it out of service or back if that is confirmed.
pub fn order(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::OrderDataServerRequestProto>(&call, reply) else { return };
    if !core.partition.member.is_serving() {
        return pass_on(core, call, reply);
    }
    let reply = match request.is_confirmed() {
        true => lines::watch_order(core, &call, reply, &request.server, request.wish().as_str_name()),
        false => reply,
    };
    if let Err(error) = require_superuser(core, &call, Privileged::OrderDataServer) {
        return reply.fs_error(&error);
    }
    let core = core.clone();
    // A name may have to be looked up: not on the thread that serves others.
    drop(tokio::task::spawn_blocking(move || {
        let checked = order_server::check_level(&core.partition.tree().namespace);
        match checked.and_then(|()| find(&core, &request)) {
            Err(error) => reply.fs_error(&error),
            Ok(found) if !request.is_confirmed() => reply.ok(&answer(&core, &found, false)),
            Ok(found) => carry_out(&core, call, reply, &request, found),
        }
    }));
}

fn carry_out(
    core: &Arc<Core>,
    call: Call,
    reply: Replier,
    request: &p::OrderDataServerRequestProto,
    found: SocketAddr,
) {
    let (core, request) = (core.clone(), request.clone());
    let side = core.clone();
    calls::turn(&core, call, reply, move |turn, call| {
        if remembered(turn, call)?.is_some() {
            return Ok(answer_with(&side, &found, true, turn.namespace().server_orders()));
        }
        let planned = turn.plan(&call.caller, call.origin, fingerprint(call), |namespace, context, _| {
            let leave = leave_of(&request, context.now)?;
            let request = Request { server: found, named: request.server.as_str().into(), leave };
            order_server::plan(namespace, context, &request)
        })?;
        let is_changed = match planned {
            Planned::NoChange(_) => false,
            Planned::Edit(edit) => {
                let (core, order) = (side.clone(), edit.body.order.clone());
                turn.apply(edit);
                tell(&found, order.as_ref(), &call.caller.user);
                turn.after_commit(move |committed| {
                    if committed.is_ok() {
                        orders::give_one(&core, found, order.as_ref());
                    }
                });
                true
            }
        };
        Ok(answer_with(&side, &found, is_changed, turn.namespace().server_orders()))
    });
}

fn tell(server: &SocketAddr, order: Option<&ServerOrder>, user: &str) {
    let what = match order.map(|order| order.leave) {
        None => "the order for a data server is taken back",
        Some(Leave::Decommission) => "a data server is ordered out of service for good",
        Some(Leave::Maintenance { .. }) => "a data server is ordered out of service for a while",
    };
    tracing::info!(%user, %server, "{what}");
}

/// Tells the data servers that the journal, or the files of the active, order out of service.
pub fn list(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::GetDataServerOrdersRequestProto>(&call, reply) else { return };
    if !core.partition.member.is_serving() {
        return pass_on(core, call, reply);
    }
    if let Err(error) = require_superuser(core, &call, Privileged::GetDataServerOrders) {
        return reply.fs_error(&error);
    }
    let known = known_servers(core);
    let orders = of_the_journal(&core.partition);
    let ordered = Orders::now(core);
    let by_files = known.keys().filter(|server| ordered.sources(**server).files != AdminOrder::InService);
    let mut places: Vec<SocketAddr> =
        by_files.copied().chain(orders.iter().map(|(server, _)| server)).collect();
    places.sort();
    places.dedup();
    let now = core.env.clock.timestamp();
    let servers = places.iter().map(|server| told(core, server, &orders, known.get(server), now)).collect();
    let answer = p::GetDataServerOrdersResponseProto {
        group: core.cluster.group.0,
        member: core.partition.member.me().member.0,
        servers,
        now_ms: Some(now.ms),
    };
    // An order that has just been given may not have committed.
    calls::once_certain(core, &call, reply, Sight::Everything, || Ok(answer));
}

/// The wish of an operator. `None`: the server is to be in service.
fn leave_of(request: &p::OrderDataServerRequestProto, now: Timestamp) -> FsResult<Option<Leave>> {
    let until = match (request.for_ms, request.until_ms) {
        (None, None) => None,
        (Some(duration), None) => Some(Timestamp::from_ms(now.ms.saturating_add(duration))),
        (None, Some(until)) => Some(Timestamp::from_ms(until)),
        (Some(_), Some(_)) => {
            return Err(FsError::InvalidArgument(
                "A maintenance has one end: forMs or untilMs says it.".into(),
            ));
        }
    };
    match request.wish() {
        p::DataServerWishProto::Maintenance => Ok(Some(Leave::Maintenance { until })),
        _ if until.is_some() => Err(FsError::InvalidArgument("Only a maintenance has an end.".into())),
        p::DataServerWishProto::Decommission => Ok(Some(Leave::Decommission)),
        p::DataServerWishProto::InService => Ok(None),
    }
}

/// The data servers that have registered, by the place under which orders know them. Where one has replaced another, the live one.
fn known_servers(core: &Core) -> BTreeMap<SocketAddr, Arc<DataServer>> {
    let mut known: BTreeMap<SocketAddr, Arc<DataServer>> = BTreeMap::new();
    for server in core.partition.blocks.lock().servers(ServerFilter::All) {
        let Some(place) = place_of(&server) else { continue };
        if known.get(&place).is_none_or(|before| !before.alive) {
            known.insert(place, server);
        }
    }
    known
}

/// The one data server that the request means.
fn find(core: &Core, request: &p::OrderDataServerRequestProto) -> FsResult<SocketAddr> {
    let word = &*request.server;
    if !is_name(word) {
        return Err(FsError::InvalidArgument(format!(
            "The name of a data server has 1 to {NAME_BYTES_MAX} bytes, of characters that can be printed."
        )));
    }
    if let Some(found) = &request.place {
        let found: Option<SocketAddr> = found.parse().ok();
        return found
            .filter(|found| found.port() > 0)
            .map(|found| place(found.ip(), found.port()))
            .ok_or_else(|| {
                FsError::InvalidArgument(
                    "The place of a data server is its address and the port of its data transfer.".into(),
                )
            });
    }
    let (known, orders) = (known_servers(core), of_the_journal(&core.partition));
    let meant = meant(word, &known, &orders, &|host| (host, 0).to_socket_addrs());
    match (&meant.places[..], request.is_expected()) {
        ([one], _) => Ok(*one),
        ([], true) => expected(word, &meant),
        ([], false) => Err(FsError::InvalidArgument(format!(
            "No data server {word} has registered here. `clover admin report` lists all that have; `--expected` orders it for one that is yet to \
             come."
        ))),
        (several, _) => {
            let mut names: Vec<String> = several.iter().take(NAMED_MAX).map(SocketAddr::to_string).collect();
            if several.len() > NAMED_MAX {
                names.push("…".into());
            }
            Err(FsError::InvalidArgument(format!(
                "{word} may be any of {} data servers: {}. Name one of them with its port.",
                several.len(),
                names.join(", ")
            )))
        }
    }
}

/// The data servers that a word may mean, and the addresses and the port that it names.
struct Meant {
    places: Vec<SocketAddr>,
    addresses: Vec<IpAddr>,
    port: Option<u32>,
}

fn meant<A: Iterator<Item = SocketAddr>>(
    word: &str,
    known: &BTreeMap<SocketAddr, Arc<DataServer>>,
    orders: &ServerOrders,
    resolve: &dyn Fn(&str) -> io::Result<A>,
) -> Meant {
    let (host, port) = hosts_file::split(word);
    let has_port = |place: &SocketAddr| port.is_none_or(|port| u32::from(place.port()) == port);
    let places = |is_meant: &dyn Fn(&SocketAddr) -> bool| -> Vec<SocketAddr> {
        let ordered = orders.iter().map(|(place, _)| place).filter(|place| !known.contains_key(place));
        let mut found: Vec<SocketAddr> = known.keys().copied().chain(ordered).filter(is_meant).collect();
        found.sort();
        found
    };
    let by_name = places(&|place| {
        let server = known.get(place);
        let is_host = |server: &Arc<DataServer>| server.registration.host_name.eq_ignore_ascii_case(host);
        server.is_some_and(|server| **server.uuid() == *word)
            || (server.is_some_and(is_host) && has_port(place))
            || orders.get(*place).is_some_and(|order| *order.named == *word)
    });
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
    let addresses = match address {
        Some(ip) => vec![ip.to_canonical()],
        None if !by_name.is_empty() => Vec::new(),
        None => {
            resolve(host).map_or(Vec::new(), |found| found.map(|found| found.ip().to_canonical()).collect())
        }
    };
    let places = match by_name.is_empty() {
        true => places(&|place| addresses.contains(&place.ip()) && has_port(place)),
        false => by_name,
    };
    Meant { places, addresses, port }
}

/// The place of a data server that has not registered yet.
fn expected(word: &str, meant: &Meant) -> FsResult<SocketAddr> {
    let port = meant.port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
    match (&meant.addresses[..], port) {
        ([ip], Some(port)) => Ok(place(*ip, port)),
        (_, None) => Err(FsError::InvalidArgument(format!(
            "{word} has not registered here yet: name it with the port of its data transfer, such as {word}:9866."
        ))),
        (addresses, Some(_)) => Err(FsError::InvalidArgument(format!(
            "{word} has {} addresses by the name service of the active: name the one from which it will speak.",
            addresses.len()
        ))),
    }
}

fn answer(core: &Core, server: &SocketAddr, is_changed: bool) -> p::OrderDataServerResponseProto {
    answer_with(core, server, is_changed, of_the_journal(&core.partition))
}

fn answer_with(
    core: &Core,
    server: &SocketAddr,
    is_changed: bool,
    orders: ServerOrders,
) -> p::OrderDataServerResponseProto {
    let known = known_servers(core);
    let others = known
        .iter()
        .filter(|(place, other)| *place != server && other.alive && other.admin_state.is_in_service());
    let settings = &core.partition.config.blocks;
    p::OrderDataServerResponseProto {
        group: core.cluster.group.0,
        server: told(core, server, &orders, known.get(server), core.env.clock.timestamp()),
        is_changed: Some(is_changed),
        others_in_service: Some(others.count() as u32),
        default_replication: Some(settings.default_replication.into()),
        maintenance_replication: Some(settings.maintenance_replication.into()),
    }
}

fn told(
    core: &Core,
    server: &SocketAddr,
    orders: &ServerOrders,
    known: Option<&Arc<DataServer>>,
    now: Timestamp,
) -> p::OrderedServerProto {
    let journal = orders.get(*server);
    let until = match journal.map(|order| order.leave) {
        Some(Leave::Maintenance { until }) => until,
        _ => None,
    };
    let files = core.admission.order_for(server.ip(), server.port().into(), now);
    p::OrderedServerProto {
        address: server.to_string(),
        journal: journal.map(|order| match order.leave {
            Leave::Decommission => p::DataServerWishProto::Decommission.into(),
            Leave::Maintenance { .. } => p::DataServerWishProto::Maintenance.into(),
        }),
        until_ms: until.map(|until| until.ms),
        is_over: Some(journal.is_some_and(|order| !order.leave.holds_at(now))),
        named: journal.map(|order| order.named.to_string()),
        by: journal.map(|order| order.by.to_string()),
        at_ms: journal.map(|order| order.at.ms),
        files: match files {
            AdminOrder::InService => None,
            AdminOrder::Decommission => Some(p::DataServerWishProto::Decommission.into()),
            AdminOrder::Maintenance => Some(p::DataServerWishProto::Maintenance.into()),
        },
        uuid: known.map(|server| server.uuid().to_string()),
        host_name: known.map(|server| server.registration.host_name.to_string()),
        is_alive: Some(known.is_some_and(|server| server.alive)),
        admin_state: known.map(|server| AdminState::from(server.admin_state).as_str_name().to_owned()),
        blocks: known.map(|server| server.blocks),
        blocks_in_need: known.map(|server| server.blocks_in_need),
    }
}
