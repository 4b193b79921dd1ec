//! The answers of a member while it waits to take part: its identity, and the reason of the wait. It refuses
//! everything else, so that clients ask another member.

use crate::{
    MetaConfig, StartError,
    admin_protocol::{self, Standstill},
    protocols,
    recover::Waiting,
};
use env::Env;
use proto::{clover::admin as p, exception, protocol};
use rpc::{Call, Replier, RpcError, Service};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::runtime::Handle;
use web::{Health, Web, in_sync::InSync, prometheus_client::registry::Registry};

/// How late the end of the wait may be noticed.
const LOOK_PERIOD: Duration = Duration::from_millis(500);
/// How often the log is told that this member still waits.
const WORD_MS: u64 = 60_000;

/// Answers on this member's addresses until it need not wait any more.
pub async fn wait(env: &Env, config: &MetaConfig, waiting: Box<Waiting>) -> Result<(), StartError> {
    let waiting: Arc<Waiting> = Arc::from(waiting);
    let service = Arc::new(Room { waiting: waiting.clone(), runtime: Handle::current() });
    let address = config.rpc_address;
    let rpc = rpc::Server::bind(rpc::ServerConfig::new(address, service))
        .map_err(|source| StartError::Rpc { address, source })?;
    let asked = waiting.clone();
    let mut pages = config.pages.clone();
    let not_yet = web::in_sync::in_sync(Arc::new(|| InSync { is_in_sync: false, state: "waiting" }));
    pages.router = std::mem::take(&mut pages.router).merge(not_yet);
    let web = match config.http_address {
        None => None,
        Some(address) => Some(
            Web::bind_with(address, Arc::new(Registry::default()), Arc::new(move || health(&asked)), pages)
                .await
                .map_err(|source| StartError::Http { address, source })?,
        ),
    };
    let mut told = None;
    loop {
        let now = env.clock.moment();
        if told.is_none_or(|told| now.ms_since(told) >= WORD_MS) {
            tracing::error!("{waiting}");
            told = Some(now);
        }
        let asked = waiting.clone();
        if tokio::task::spawn_blocking(move || asked.is_over()).await.expect("a question does not panic") {
            break;
        }
        tokio::time::sleep(LOOK_PERIOD).await;
    }
    tracing::info!(member = %waiting.member, "the wait is over");
    rpc.shutdown().await;
    if let Some(web) = web {
        web.shutdown().await;
    }
    Ok(())
}

fn health(waiting: &Waiting) -> Health {
    let details = BTreeMap::from([
        ("role".to_owned(), "metadata".to_owned()),
        ("member".to_owned(), waiting.member.to_string()),
        ("cluster".to_owned(), waiting.cluster_id.clone()),
        ("reason".to_owned(), waiting.reason.clone()),
    ]);
    Health { ok: false, state: "waiting".to_owned(), details, ..Health::default() }
}

struct Room {
    waiting: Arc<Waiting>,
    runtime: Handle,
}

impl Service for Room {
    fn protocols(&self) -> &[(&'static str, u64)] {
        protocols::PROTOCOLS
    }

    fn call(&self, call: Call, reply: Replier) {
        if (call.protocol, call.method) != (protocol::ADMIN, "getGroup") {
            return reply.error(RpcError::application(exception::STANDBY, self.waiting.to_string()));
        }
        let is_local = match call.decode::<p::GetGroupRequestProto>() {
            Ok(request) => request.is_local(),
            Err(error) => return reply.error(error),
        };
        let waiting = self.waiting.clone();
        let standstill = Standstill {
            member: waiting.member,
            cluster_id: waiting.cluster_id.clone(),
            group: waiting.group,
            view: waiting.view.clone(),
            records: waiting.records.clone(),
            end: waiting.end,
            reason: waiting.reason.clone(),
            disk_failed: waiting.disk_failed(),
        };
        if is_local {
            return reply.ok(&standstill.answer());
        }
        drop(self.runtime.spawn(async move {
            reply.ok(&admin_protocol::of_a_standstill(standstill, &call.caller.user).await);
        }));
    }
}
