//! The desk at which a damaged store answers others meanwhile: for images and entries, for its health, and for
//! operators' orders.

use super::{Error, Means};
use crate::{
    admin_protocol::{self, Challenges, show},
    chronicle::unclean::append,
    client_protocol::decode,
    config::MetaConfig,
    exchange::{
        LOG_BYTES,
        reads::Reads,
        serve::{self, Shelf},
    },
    loading::LoadingPages,
    peers::Secret,
};
use base::{Entry, FsError, GroupId, GroupView, LogPoint, MemberId, MemberStore, Sn};
use coord::MemberRecord;
use env::{Env, File};
use group::repair::Standing;
use journal::{Checkpoint, Repair};
use parking_lot::Mutex;
use proto::{clover::admin as p, protocol};
use rpc::{Call, Replier, Service};
use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::runtime::Handle;
use web::{Health, Web, prometheus_client::registry::Registry};

/// The store, and what is known of the group around it.
pub struct Desk {
    env: Env,
    me: MemberStore,
    cluster_id: String,
    group: GroupId,
    /// Its group in messages between members.
    scope: String,
    secret: Secret,
    challenges: Challenges,
    name_directory: PathBuf,
    /// Gone when the store is being written, and the server about to start.
    repair: Mutex<Option<Repair>>,
    seen: Mutex<Seen>,
    /// An operator has accepted that what is missing is lost.
    is_loss_accepted: AtomicBool,
    reads: Reads,
}

#[derive(Default)]
struct Seen {
    view: Option<GroupView>,
    records: BTreeMap<MemberId, MemberRecord>,
    silent: Vec<MemberId>,
    why: String,
}

impl Desk {
    pub fn new(means: &Means<'_>, me: MemberStore, repair: Repair) -> Self {
        Self {
            env: means.env.clone(),
            me,
            cluster_id: means.cluster.cluster_id.clone(),
            group: means.cluster.group,
            scope: means.cluster.scope(),
            secret: means.secret.clone(),
            challenges: Challenges::new(means.env),
            name_directory: means.config.name_directory.clone(),
            repair: Mutex::new(Some(repair)),
            seen: Mutex::default(),
            is_loss_accepted: AtomicBool::new(false),
            reads: Reads::default(),
        }
    }

    /// Does something with the store, which is there until [`Desk::take`].
    pub fn with<T>(&self, work: impl FnOnce(&mut Repair) -> T) -> T {
        work(self.repair.lock().as_mut().expect("the store is taken only once, by whoever works on it"))
    }

    pub fn take(&self) -> Repair {
        self.repair.lock().take().expect("the store is taken only once")
    }

    pub fn see(&self, view: &GroupView, records: Vec<MemberRecord>) {
        let mut seen = self.seen.lock();
        seen.view = Some(view.clone());
        seen.records = records.into_iter().map(|record| (record.life.store.member, record)).collect();
    }

    /// Notes the members and the reason that the repair waits for from now on. Returns a line about it.
    pub fn note(&self, silent: Vec<MemberId>, why: String) -> String {
        {
            let mut seen = self.seen.lock();
            (seen.silent, seen.why) = (silent, why);
        }
        self.line()
    }

    pub fn take_order(&self) -> Option<MemberId> {
        self.is_loss_accepted.swap(false, Ordering::AcqRel).then_some(self.me.member)
    }

    fn missing(&self) -> String {
        let repair = self.repair.lock();
        let Some(repair) = repair.as_ref() else { return "nothing any more".into() };
        let image = repair.needs_image().then(|| "an image".to_owned());
        let holes = repair.holes().into_iter().filter(|hole| hole.is_needed);
        let mut missing: Vec<String> = image.into_iter().chain(holes.map(|hole| hole.to_string())).collect();
        let more = missing.len().saturating_sub(MISSING_TOLD);
        missing.truncate(MISSING_TOLD);
        if more > 0 {
            missing.push(format!("{more} more"));
        }
        missing.join(", ")
    }

    fn line(&self) -> String {
        let missing = self.missing();
        let seen = self.seen.lock();
        let silent: Vec<String> = seen.silent.iter().map(ToString::to_string).collect();
        let silent =
            if silent.is_empty() { String::new() } else { format!("; silent: member {}", silent.join(", ")) };
        let why = &seen.why;
        format!("the store of member {} is damaged: {missing} cannot be read; {why}{silent}", self.me.member)
    }

    fn health(&self) -> Health {
        let missing = self.missing();
        let seen = self.seen.lock();
        let silent: Vec<String> = seen.silent.iter().map(ToString::to_string).collect();
        let details = BTreeMap::from([
            ("role".to_owned(), "metadata".to_owned()),
            ("member".to_owned(), self.me.member.to_string()),
            ("cluster".to_owned(), self.cluster_id.clone()),
            ("missing".to_owned(), missing),
            ("silent".to_owned(), silent.join(", ")),
            ("reason".to_owned(), seen.why.clone()),
        ]);
        Health { ok: false, state: "damaged".to_owned(), details, ..Health::default() }
    }

    fn group(&self) -> p::GetGroupResponseProto {
        let reason = self.line();
        let (end, committed) = match self.repair.lock().as_ref() {
            Some(repair) => (Some(repair.end()), Some(repair.commit_point().0.0)),
            None => (None, None),
        };
        let seen = self.seen.lock();
        let me = self.me.member;
        let is_in = |stores: &[MemberStore]| stores.contains(&self.me);
        let view = seen.view.as_ref();
        let myself = p::MemberProto {
            end: end.map(show::place),
            committed,
            is_in_sync: view.map(|view| is_in(&view.in_sync)),
            is_eligible: view.map(|view| view.is_eligible(self.me)),
            reason: Some(reason),
            ..show::blank(me, p::RoleProto::Repairing, seen.records.get(&me))
        };
        let others = view.into_iter().flat_map(|view| &view.members).filter(|member| **member != me);
        let others =
            others.map(|member| show::blank(*member, p::RoleProto::Unknown, seen.records.get(member)));
        p::GetGroupResponseProto {
            group: self.group.0,
            cluster_id: self.cluster_id.clone(),
            answered_by: me.0,
            view: view.map(|view| show::view_proto(view, 0)),
            members: std::iter::once(myself).chain(others).collect(),
            is_writable: Some(false),
            silent: seen.silent.iter().map(|member| member.0).collect(),
            ..p::GetGroupResponseProto::default()
        }
    }

    /// Accepts that what is missing is lost, if the operator says so and has made sure that no other member has it.
    fn accept_loss(
        &self,
        call: &Call,
        request: &p::UncleanElectRequestProto,
    ) -> Result<(String, bool), String> {
        let me = self.me.member;
        let hole = self.with_if_there(|repair| {
            let hole = repair.holes().into_iter().find(|hole| hole.is_needed)?;
            Some((repair.before(&hole).id.sn, repair.written()))
        });
        let Some((after, written)) = hole.flatten() else {
            return Err("no image of this store can be read: there is nothing that could lead".into());
        };
        let risk = format!(
            "The log of member {me} can be read up to sn {after}; entries up to sn {written} at least were written behind \
             that: all after {after} would be lost for ever."
        );
        if !request.i_accept_loss() {
            return Ok((risk, false));
        }
        let view = self.seen.lock().view.clone().ok_or("the coordinator's view has not been read yet")?;
        let complete = view.in_sync.iter().chain(&view.exiles).map(|store| store.member);
        let not_off: Vec<String> = complete
            .filter(|it| *it != me && !request.off.contains(&it.0))
            .map(|it| it.to_string())
            .collect();
        if !not_off.is_empty() {
            return Err(format!(
                "members {} may hold everything that was acknowledged: bring one of them back instead, or make sure that \
                 they are off or damaged as well, and say so",
                not_off.join(", ")
            ));
        }
        let line = format!(
            "at_ms={} user={} member={me} after_epoch={} damaged loss_after={after} loss_up_to={written} off={:?}\n",
            self.env.clock.timestamp().ms,
            call.caller,
            view.epoch,
            request.off,
        );
        append(&self.env, &self.name_directory, &line).map_err(|error| {
            format!("nothing was done, since it could not be noted: {error}: {}", error.0)
        })?;
        tracing::error!(
            record = line.trim_end(),
            "UNCLEAN ELECTION ordered: acknowledged changes may be lost"
        );
        self.is_loss_accepted.store(true, Ordering::Release);
        Ok((
            format!(
                "{risk} The log is cut off there, and this member starts with what is left. Give the same order again \
                 when it is up: then it leads."
            ),
            true,
        ))
    }

    fn with_if_there<T>(&self, work: impl FnOnce(&mut Repair) -> T) -> Option<T> {
        self.repair.lock().as_mut().map(work)
    }
}

/// Ranges that are named one by one.
const MISSING_TOLD: usize = 8;

impl Shelf for Desk {
    fn scope(&self) -> &str {
        &self.scope
    }

    fn secret(&self) -> Option<&Secret> {
        Some(&self.secret)
    }

    fn reads(&self) -> &Reads {
        &self.reads
    }

    fn images(&self) -> Vec<Checkpoint> {
        self.with_if_there(|repair| repair.images()).unwrap_or_default()
    }

    fn open_image(&self, checkpoint: &Checkpoint) -> io::Result<Arc<dyn File>> {
        let gone = || io::Error::new(io::ErrorKind::NotFound, "the store is being written");
        self.with_if_there(|repair| repair.open_image(checkpoint)).ok_or_else(gone)?
    }

    fn read_log(&self, after: Sn, up_to: Sn) -> Result<Option<(LogPoint, Vec<Entry>)>, String> {
        let read = self.with_if_there(|repair| repair.read(after, up_to, LOG_BYTES));
        read.ok_or("the store is being written; ask again")?.map_err(|error| error.to_string())
    }

    fn standing(&self, committed: Sn) -> Result<Standing, String> {
        let standing = self.with_if_there(|repair| Standing {
            store: self.me,
            promised: repair.state().promised,
            begins_after: Sn(0),
            end: repair.end(),
            is_end_certain: repair.is_end_certain(),
            is_damaged: true,
            written: repair.written(),
            serves: None,
            at_commit: repair.point_of(committed),
        });
        standing.ok_or_else(|| "the store is being written; ask again".into())
    }

    fn archive(&self) -> Result<proto::clover::pool::AskArchiveResponseProto, String> {
        Err(format!("The store of member {} is damaged and being repaired.", self.me.member))
    }
}

/// The open ports of a server whose store is damaged.
pub struct Open {
    rpc: rpc::Server,
    web: Option<Web>,
}

struct Calls(Arc<Desk>);

const PROTOCOLS: &[(&str, u64)] = &[
    (protocol::CLIENT_NAMENODE, protocol::VERSION),
    (protocol::DATANODE, protocol::VERSION),
    (protocol::DATANODE_LIFELINE, protocol::VERSION),
    (protocol::NAMENODE, protocol::VERSION),
    (protocol::HA_SERVICE, protocol::VERSION),
    (protocol::FORWARD, protocol::VERSION),
    (protocol::ADMIN, protocol::VERSION),
    (protocol::POOL, protocol::VERSION),
];

impl Service for Calls {
    fn protocols(&self) -> &[(&'static str, u64)] {
        PROTOCOLS
    }

    fn call(&self, call: Call, reply: Replier) {
        match (call.protocol, call.method) {
            (protocol::POOL, _) => {
                let shelf: Arc<dyn Shelf> = self.0.clone();
                serve::call(&shelf, call, reply);
            }
            (protocol::ADMIN, "getGroup") => {
                let Some((_, reply)) = decode::<p::GetGroupRequestProto>(&call, reply) else { return };
                reply.ok(&self.0.group());
            }
            (protocol::ADMIN, "challenge") => {
                let Some((_, reply)) = decode::<p::ChallengeRequestProto>(&call, reply) else { return };
                let desk = &self.0;
                reply.ok(&desk.challenges.challenge(&desk.env, &desk.cluster_id, desk.me.member));
            }
            (protocol::ADMIN, "order") => {
                let Some((order, reply)) = decode::<p::OrderRequestProto>(&call, reply) else { return };
                if order.order != "uncleanElect" {
                    return admin_protocol::refuse(reply, self.0.line());
                }
                let (desk, now) = (&self.0, self.0.env.clock.moment());
                let (secret, me) = (Some(&desk.secret), desk.me.member);
                if let Err(error) = desk.challenges.admit(secret, &desk.cluster_id, me, &order, now) {
                    return reply.fs_error(&error);
                }
                let call = Call { request: order.request, ..call };
                let Some((request, reply)) = decode::<p::UncleanElectRequestProto>(&call, reply) else {
                    return;
                };
                match self.0.accept_loss(&call, &request) {
                    Ok((message, is_done)) => reply.ok(&p::UncleanElectResponseProto {
                        message: Some(message),
                        is_done: Some(is_done),
                        ..p::UncleanElectResponseProto::default()
                    }),
                    Err(reason) => admin_protocol::refuse(reply, reason),
                }
            }
            (protocol::ADMIN, "uncleanElect") => reply.fs_error(&admin_protocol::wanted(call.method)),
            (protocol::ADMIN, _) => admin_protocol::refuse(reply, self.0.line()),
            // Another member answers; clients and data servers know them all.
            _ => reply.fs_error(&FsError::NotActive(self.0.line())),
        }
    }
}

/// Opens the ports; `pages` have that of HTTP, and lend it. Within a runtime, on a thread that may block.
pub fn open(desk: &Arc<Desk>, config: &MetaConfig, pages: Option<&LoadingPages>) -> Result<Open, Error> {
    let address = config.rpc_address;
    let mut rpc_config = rpc::ServerConfig::new(address, Arc::new(Calls(desk.clone())));
    rpc_config.limits.frame_bytes_max = config.call_queue.frame_bytes_max;
    let rpc = rpc::Server::bind(rpc_config).map_err(|source| Error::Bind { address, source })?;
    let web = match config.http_address {
        None => None,
        Some(address) => {
            let asked = desk.clone();
            let health = Arc::new(move || asked.health());
            let registry = Arc::new(Registry::default());
            let failed = |source| Error::Bind { address, source };
            let listener = Handle::current().block_on(async {
                match pages {
                    Some(pages) => pages.lend().await,
                    None => web::listen(address).await,
                }
            });
            let listener = listener.map_err(failed)?;
            Some(Web::serve(listener, registry, health, config.pages.clone()).map_err(failed)?)
        }
    };
    Ok(Open { rpc, web })
}

impl Open {
    pub fn rpc_address(&self) -> SocketAddr {
        self.rpc.local_addr()
    }

    pub fn http_address(&self) -> Option<SocketAddr> {
        self.web.as_ref().map(Web::local_addr)
    }

    pub fn close(self, runtime: &Handle) {
        runtime.block_on(async {
            self.rpc.shutdown().await;
            if let Some(web) = self.web {
                web.shutdown().await;
            }
        });
    }
}
