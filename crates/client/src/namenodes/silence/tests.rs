use super::*;
use crate::{Config, Error, Location, config::Settings};
use base::{CallId, ClientId, FsError};
use parking_lot::Mutex;
use proto::common::HaServiceStateProto::{Active, Standby};
use std::sync::Arc;

/// A metadata server as a client sees it.
struct Member {
    state: Mutex<HaServiceStateProto>,
    /// It answers nothing, as a frozen process.
    is_silent: bool,
    /// How long it is at work on a mkdirs.
    work: Duration,
    /// How long the question waits behind other calls.
    queue: Duration,
    /// The names of the mkdirs that have come.
    mkdirs: Mutex<Vec<(ClientId, CallId)>>,
    unanswered: Mutex<Vec<rpc::Replier>>,
}

impl Member {
    fn new(state: HaServiceStateProto) -> Self {
        Self {
            state: Mutex::new(state),
            is_silent: false,
            work: Duration::ZERO,
            queue: Duration::ZERO,
            mkdirs: Mutex::default(),
            unanswered: Mutex::default(),
        }
    }

    fn frozen() -> Self {
        Self { is_silent: true, ..Self::new(Active) }
    }

    fn calls(&self) -> usize {
        self.mkdirs.lock().len()
    }
}

struct Port(Arc<Member>);

impl rpc::Service for Port {
    fn protocols(&self) -> &[(&'static str, u64)] {
        &[(protocol::CLIENT_NAMENODE, 1)]
    }

    fn call(&self, call: rpc::Call, reply: rpc::Replier) {
        let member = Arc::clone(&self.0);
        let is_question = call.method == "getHAServiceState";
        if !is_question {
            member.mkdirs.lock().push((call.origin.client_id, call.origin.call_id));
        }
        if member.is_silent {
            member.unanswered.lock().push(reply);
        } else if is_question {
            tokio::spawn(async move {
                time::sleep(member.queue).await;
                reply.ok(&p::HaServiceStateResponseProto { state: *member.state.lock() as i32 });
            });
        } else if *member.state.lock() == Standby {
            reply.fs_error(&FsError::NotActive("it is a standby".into()));
        } else {
            tokio::spawn(async move {
                time::sleep(member.work).await;
                reply.ok(&p::MkdirsResponseProto { result: true });
            });
        }
    }
}

/// These members behind real ports, and a client whose calls time out after a minute: a test that waits for that fails.
fn client_of(members: &[&Arc<Member>]) -> (Vec<rpc::Server>, Arc<Namenodes>) {
    let mut config = Config::new();
    let names: Vec<String> = (1..=members.len()).map(|number| format!("m{number}")).collect();
    config.set("dfs.nameservices", "prod");
    config.set("dfs.ha.namenodes.prod", &names.join(","));
    let mut servers = Vec::new();
    for (name, member) in names.iter().zip(members) {
        let port = Arc::new(Port(Arc::clone(member)));
        let server = rpc::Server::bind(rpc::ServerConfig::new("127.0.0.1:0".parse().unwrap(), port)).unwrap();
        config.set(&format!("dfs.namenode.rpc-address.prod.{name}"), &server.local_addr().to_string());
        servers.push(server);
    }
    let location = Location::resolve("hdfs://prod", &config).unwrap();
    let mut settings = Settings::new(&config).unwrap();
    settings.rpc_timeout = Some(Duration::from_secs(60));
    (servers, Arc::new(Namenodes::new(location, &settings)))
}

async fn mkdirs(namenodes: Arc<Namenodes>) -> Result<bool, Error> {
    let request = p::MkdirsRequestProto { src: "/a".into(), ..Default::default() };
    let asked = namenodes.call::<_, p::MkdirsResponseProto>("mkdirs", &request);
    Ok(time::timeout(Duration::from_secs(30), asked).await.expect("it has waited for the time-out")?.result)
}

#[tokio::test]
async fn a_frozen_active_is_left_once_another_member_leads() {
    let (frozen, next) = (Arc::new(Member::frozen()), Arc::new(Member::new(Standby)));
    let (_servers, namenodes) = client_of(&[&frozen, &next]);
    let asked = tokio::spawn(mkdirs(namenodes));
    time::sleep(SILENCE * 2).await;
    assert_eq!(next.calls(), 0, "no member leads yet");
    *next.state.lock() = Active;
    assert!(asked.await.unwrap().unwrap());
    assert_eq!(*frozen.mkdirs.lock(), *next.mkdirs.lock(), "it is the same call");
}

#[tokio::test]
async fn all_calls_that_wait_for_a_frozen_active_leave_it() {
    let (frozen, cut, next) =
        (Arc::new(Member::frozen()), Arc::new(Member::frozen()), Arc::new(Member::new(Active)));
    let (_servers, namenodes) = client_of(&[&frozen, &cut, &next]);
    let asked: Vec<_> = (0..32).map(|_| tokio::spawn(mkdirs(Arc::clone(&namenodes)))).collect();
    for one in asked {
        assert!(one.await.unwrap().unwrap());
    }
    assert_eq!((frozen.calls(), cut.calls(), next.calls()), (32, 0, 32));
}

/// Two groups have two actives, and each serves all calls: one that takes its time is no reason to burden the other.
async fn is_waited_for_beside_an_idle_one(busy: Member) {
    let (busy, idle) = (Arc::new(busy), Arc::new(Member::new(Active)));
    let (_servers, namenodes) = client_of(&[&busy, &idle]);
    assert!(mkdirs(namenodes).await.unwrap());
    assert_eq!((busy.calls(), idle.calls()), (1, 0));
}

#[tokio::test]
async fn a_member_that_is_at_work_is_waited_for() {
    is_waited_for_beside_an_idle_one(Member { work: SILENCE * 6, ..Member::new(Active) }).await;
}

#[tokio::test]
async fn a_member_that_answers_the_question_later_than_the_other_one_is_waited_for() {
    let busy = Member { work: SILENCE * 6, queue: GRACE / 2, ..Member::new(Active) };
    is_waited_for_beside_an_idle_one(busy).await;
}

/// Nobody would serve it sooner than the frozen member that wakes up.
#[tokio::test]
async fn a_silent_member_is_waited_for_while_no_other_leads() {
    let (frozen, standby) = (Arc::new(Member::frozen()), Arc::new(Member::new(Standby)));
    let (_servers, namenodes) = client_of(&[&frozen, &standby]);
    let asked = tokio::spawn(mkdirs(namenodes));
    time::sleep(SILENCE * 3).await;
    let unanswered = std::mem::take(&mut *frozen.unanswered.lock());
    for reply in unanswered {
        reply.ok(&p::MkdirsResponseProto { result: true });
    }
    assert!(asked.await.unwrap().unwrap());
    assert_eq!(standby.calls(), 0);
}

/// A question that had the name of a call would end it, or its answer would be taken for the call's.
#[tokio::test]
async fn a_question_has_a_name_that_no_call_has() {
    let standby = Arc::new(Member::new(Standby));
    let busy = Arc::new(Member { work: SILENCE * 6, ..Member::new(Active) });
    let (_servers, namenodes) = client_of(&[&standby, &busy]);
    assert!(mkdirs(namenodes).await.unwrap());
    assert_eq!((standby.calls(), busy.calls()), (1, 1), "it is asked once, and waited for");
}

/// One call asks for all that wait. Its user may give it up meanwhile.
#[tokio::test]
async fn a_call_that_is_given_up_while_it_asks_holds_nobody_up() {
    let (frozen, next) = (Arc::new(Member::frozen()), Arc::new(Member::new(Standby)));
    let (_servers, namenodes) = client_of(&[&frozen, &next]);
    let first = tokio::spawn(mkdirs(Arc::clone(&namenodes)));
    time::sleep(SILENCE / 2).await;
    let second = tokio::spawn(mkdirs(namenodes));
    time::sleep(SILENCE).await;
    first.abort();
    *next.state.lock() = Active;
    assert!(second.await.unwrap().unwrap());
}
