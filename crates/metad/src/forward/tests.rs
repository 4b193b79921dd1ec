//! Members that answer, forward and hold, over real sockets; what they are is the tests' to say.

use super::{
    envelope::{self, Seal},
    forwarder::{Fate, Forwarder, Parts},
    hold::HoldLimits,
    recipient::Recipient,
    service::{self, Look},
};
use crate::member::Standing;
use base::{CallId, CallOrigin, Caller, ClientId, Epoch, FsError, Level, MemberId};
use bytes::Bytes;
use group::Role;
use parking_lot::Mutex;
use prost::Message;
use proto::{
    clover::forward::{ForwardRequestProto, ForwardResponseProto},
    exception,
    hdfs::{FsPermissionProto, MkdirsRequestProto, MkdirsResponseProto},
    protocol,
    rpc_frame::{ErrorCode, Status},
};
use rpc::{
    Call, CallError, CallIdentity, Client, ClientOptions, Replier, RpcError, Server, ServerConfig, Service,
};
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::watch;

const SECRET: &[u8] = b"a secret of sixteen bytes or more";
const CLUSTER: &str = "CID-test";

type Addresses = Arc<Mutex<BTreeMap<MemberId, String>>>;

/// A call that a member was asked to carry out itself.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Done {
    path: String,
    user: String,
    origin: CallOrigin,
}

struct Fake {
    forwarder: Forwarder,
    recipient: Recipient,
    done: Mutex<Vec<Done>>,
    /// Calls that are never answered, like those of a frozen process.
    swallowed: Mutex<Vec<Replier>>,
}

impl Fake {
    fn answer(self: &Arc<Self>, call: Call, reply: Replier) {
        if !self.recipient.is_serving() {
            let serving = self.clone();
            let serve = Box::new(move |call: Call, reply: Replier| serving.answer(call, reply));
            return self.forwarder.take(call, reply, Fate::NotBegun, serve);
        }
        let request: MkdirsRequestProto = call.decode().unwrap();
        let (path, user) = (request.src, call.caller.to_string());
        self.done.lock().push(Done { path: path.clone(), user, origin: call.origin });
        match &*path {
            "/exists" => reply.fs_error(&FsError::AlreadyExists("/exists\nis there".into())),
            "/fatal" => reply.error(RpcError::fatal(
                ErrorCode::FatalDeserializingRequest,
                exception::RPC_SERVER,
                "no message at all",
            )),
            "/frozen" => self.swallowed.lock().push(reply),
            _ => reply.ok(&MkdirsResponseProto { result: true }),
        }
    }
}

struct Port(Arc<Fake>);

impl Service for Port {
    fn protocols(&self) -> &[(&'static str, u64)] {
        &[(protocol::CLIENT_NAMENODE, 1), (protocol::FORWARD, 1)]
    }

    fn call(&self, call: Call, reply: Replier) {
        if call.protocol != protocol::FORWARD {
            return self.0.answer(call, reply);
        }
        let resolve = |opened: &envelope::Opened, look: Look| {
            // Unknown at first, as for a user that nobody has asked about.
            (look == Look::Everywhere).then(|| {
                let caller = Caller::simple(&opened.user, &["staff"]);
                Arc::new(Caller { real_user: opened.real_user.as_deref().map(Arc::from), ..caller })
            })
        };
        let fake = self.0.clone();
        service::open(Some(&self.0.recipient), call, reply, resolve, move |call, reply| {
            fake.answer(call, reply)
        });
    }
}

struct Member {
    id: MemberId,
    fake: Arc<Fake>,
    standing: watch::Sender<Standing>,
    server: Server,
}

impl Member {
    fn start(id: u32, addresses: &Addresses, limits: HoldLimits) -> Self {
        let id = MemberId(id);
        let first = Standing { role: Role::Following, epoch: Epoch(1), active: None };
        let (standing, seen) = watch::channel(first);
        let located = (addresses.clone(), seen.clone());
        let serving = seen.clone();
        let is_serving: Arc<dyn Fn() -> bool + Send + Sync> = Arc::new(move || serving.borrow().is_serving());
        let recipient = Recipient {
            me: id,
            scope: CLUSTER.into(),
            seal: Seal::new(SECRET),
            standing: seen.clone(),
            is_serving: is_serving.clone(),
            runtime: tokio::runtime::Handle::current(),
        };
        let forwarder = Forwarder::new(Parts {
            me: id,
            other_group: None,
            scope: CLUSTER.into(),
            seal: Some(Seal::new(SECRET)),
            limits,
            hold: Arc::default(),
            standing: seen,
            is_serving,
            locate: Arc::new(move || {
                let active = located.1.borrow().active?;
                Some((active, located.0.lock().get(&active)?.clone()))
            }),
            level: Arc::new(|| Level::NEWEST),
            runtime: tokio::runtime::Handle::current(),
        });
        let fake =
            Arc::new(Fake { forwarder, recipient, done: Mutex::default(), swallowed: Mutex::default() });
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = Server::bind(ServerConfig::new(address, Arc::new(Port(fake.clone())))).unwrap();
        addresses.lock().insert(id, server.local_addr().to_string());
        Self { id, fake, standing, server }
    }

    fn serves(&self, epoch: u64) {
        let role = Role::Serving { epoch: Epoch(epoch) };
        self.standing.send_replace(Standing { role, epoch: Epoch(epoch), active: Some(self.id) });
    }

    fn starts(&self, epoch: u64) {
        let role = Role::Starting { epoch: Epoch(epoch) };
        self.standing.send_replace(Standing { role, epoch: Epoch(epoch), active: Some(self.id) });
    }

    fn follows(&self, active: &Member, epoch: u64) {
        let role = Role::Following;
        self.standing.send_replace(Standing { role, epoch: Epoch(epoch), active: Some(active.id) });
    }

    fn client(&self) -> Client {
        Client::connect(self.server.local_addr(), protocol::CLIENT_NAMENODE, "ann", ClientOptions::default())
    }

    fn done(&self) -> Vec<Done> {
        self.fake.done.lock().clone()
    }

    fn paths(&self) -> Vec<String> {
        self.done().into_iter().map(|done| done.path).collect()
    }
}

fn patient() -> HoldLimits {
    HoldLimits { wait_ms: 20_000, ..HoldLimits::default() }
}

fn mkdirs(path: &str) -> MkdirsRequestProto {
    MkdirsRequestProto {
        src: path.into(),
        masked: FsPermissionProto { perm: 0o755 },
        create_parent: true,
        unmasked: None,
    }
}

async fn make(client: &Client, path: &str) -> Result<bool, CallError> {
    client.call::<_, MkdirsResponseProto>("mkdirs", &mkdirs(path)).await.map(|answer| answer.result)
}

/// A call that has been sent, and whose answer is not awaited yet.
fn begin(client: &Client, path: &'static str) -> tokio::task::JoinHandle<Result<bool, CallError>> {
    let client = client.clone();
    tokio::spawn(async move { make(&client, path).await })
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn two(limits: HoldLimits) -> (Member, Member) {
    let addresses = Addresses::default();
    (Member::start(1, &addresses, limits), Member::start(2, &addresses, limits))
}

#[tokio::test]
async fn a_standby_hands_a_call_to_the_active_as_the_client_has_made_it() {
    let (active, standby) = two(patient());
    active.serves(1);
    standby.follows(&active, 1);
    let client = standby.client();
    let identity = CallIdentity { call_id: CallId(77), retry_count: 3 };
    let answer: MkdirsResponseProto = client.call_as(identity, "mkdirs", &mkdirs("/a")).await.unwrap();
    assert!(answer.result);
    let origin = CallOrigin {
        client_id: client.client_id(),
        call_id: CallId(77),
        retry_count: 3,
        repeats: 0,
        address: Some(Ipv4Addr::LOCALHOST.into()),
    };
    assert_eq!(active.done(), [Done { path: "/a".into(), user: "ann".into(), origin }]);
    assert_eq!(standby.done(), []);
    assert_eq!(standby.fake.forwarder.numbers().forwarded, 1);
}

/// Where an answer goes says nothing about the way that its call has come.
#[tokio::test]
async fn a_call_whose_answer_goes_to_no_connection_is_passed_on_unless_it_was_passed_on_before() {
    let (active, standby) = two(patient());
    active.serves(1);
    standby.follows(&active, 1);
    let ask = |is_forwarded| {
        let (answer, heard) = tokio::sync::oneshot::channel();
        let reply = Replier::captured(move |told: rpc::Answer| drop(answer.send(told.result)));
        standby.fake.answer(Call { is_forwarded, ..sample() }, reply);
        heard
    };
    assert!(ask(false).await.unwrap().is_ok());
    assert_eq!(active.paths(), ["/a"]);
    assert!(
        ask(true).await.unwrap().is_err(),
        "the member that passed the call on is told to look elsewhere"
    );
    assert_eq!(active.paths(), ["/a"]);
}

#[tokio::test]
async fn a_refusal_passes_unchanged() {
    let (active, standby) = two(patient());
    active.serves(1);
    standby.follows(&active, 1);
    let client = standby.client();
    match make(&client, "/exists").await.unwrap_err() {
        CallError::Remote { class, message } => {
            assert_eq!(class, exception::FILE_ALREADY_EXISTS);
            assert_eq!(message, "/exists\nis there");
        }
        other => panic!("{other}"),
    }
    assert!(make(&client, "/fine").await.unwrap(), "the connection goes on");
    // And one that ends a connection ends the client's, not the one between the members.
    let fatal = make(&client, "/fatal").await.unwrap_err();
    assert_eq!(fatal.class(), Some(exception::RPC_SERVER), "{fatal}");
    assert!(make(&client, "/again").await.unwrap());
    assert_eq!(active.paths(), ["/exists", "/fine", "/fatal", "/again"]);
}

#[tokio::test]
async fn while_nobody_leads_a_call_is_held_and_goes_on_the_moment_somebody_does() {
    let (first, second) = two(patient());
    let client = second.client();
    let here = begin(&client, "/here");
    until("held", || second.fake.forwarder.numbers().held == 1).await;
    let began = Instant::now();
    second.serves(1);
    assert!(here.await.unwrap().unwrap());
    // Far below the pause after which a held call would look by itself.
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    assert_eq!(second.paths(), ["/here"]);

    second.standing.send_modify(|standing| {
        (standing.role, standing.active) = (Role::Following, None);
    });
    let there = begin(&client, "/there");
    until("held", || second.fake.forwarder.numbers().held == 1).await;
    first.serves(2);
    second.follows(&first, 2);
    assert!(there.await.unwrap().unwrap());
    assert_eq!(first.paths(), ["/there"]);
    assert_eq!(second.fake.forwarder.numbers().pending, 0);
}

#[tokio::test]
async fn a_call_that_comes_while_the_active_is_about_to_serve_waits_over_there() {
    let (active, standby) = two(patient());
    active.starts(2);
    standby.follows(&active, 2);
    let call = begin(&standby.client(), "/early");
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(active.done(), []);
    active.serves(2);
    assert!(call.await.unwrap().unwrap());
    assert_eq!(active.paths(), ["/early"]);
}

#[tokio::test]
async fn patience_and_room_end_in_the_refusal_that_makes_clients_go_elsewhere() {
    let limits = HoldLimits { count_max: 1, wait_ms: 3_000, ..HoldLimits::default() };
    let (lonely, _) = two(limits);
    let client = lonely.client();
    let waiting = begin(&client, "/waits");
    until("held", || lonely.fake.forwarder.numbers().held == 1).await;
    let began = Instant::now();
    let refused = make(&client, "/too-many").await.unwrap_err();
    assert_eq!(refused.class(), Some(exception::STANDBY), "{refused}");
    assert!(began.elapsed() < Duration::from_millis(2_500), "refused at once");
    let refused = waiting.await.unwrap().unwrap_err();
    assert_eq!(refused.class(), Some(exception::STANDBY), "{refused}");
    assert!(refused.to_string().contains("Operation mkdirs is not supported in state standby"), "{refused}");
    assert_eq!(lonely.fake.forwarder.numbers().refused, 2);
}

#[tokio::test]
async fn a_call_under_way_at_an_active_that_dies_is_repeated_under_its_name_at_the_next() {
    let addresses = Addresses::default();
    let [first, second, standby] = [1, 2, 3].map(|id| Member::start(id, &addresses, patient()));
    first.serves(1);
    standby.follows(&first, 1);
    let client = standby.client();
    let call = begin(&client, "/frozen");
    until("under way", || first.paths() == ["/frozen"]).await;
    let sent_first = first.done()[0].origin;
    first.server.shutdown().await;
    second.serves(2);
    standby.follows(&second, 2);
    until("repeated", || !second.done().is_empty()).await;
    second.fake.swallowed.lock().pop().unwrap().ok(&MkdirsResponseProto { result: true });
    assert!(call.await.unwrap().unwrap());
    let sent_again = second.done()[0].origin;
    assert_eq!((sent_again.client_id, sent_again.call_id), (sent_first.client_id, sent_first.call_id));
    assert!(sent_again.copy() > sent_first.copy(), "{sent_first:?} {sent_again:?}");
    assert_eq!(sent_again.retry_count, sent_first.retry_count, "the client has sent it once");
}

#[tokio::test]
async fn a_frozen_active_is_not_waited_for_once_another_leads() {
    let addresses = Addresses::default();
    let [frozen, next, standby] = [1, 2, 3].map(|id| Member::start(id, &addresses, patient()));
    frozen.serves(1);
    standby.follows(&frozen, 1);
    let call = begin(&standby.client(), "/frozen");
    until("under way", || frozen.paths() == ["/frozen"]).await;
    next.serves(2);
    standby.follows(&next, 2);
    until("repeated", || next.paths() == ["/frozen"]).await;
    next.fake.swallowed.lock().pop().unwrap().ok(&MkdirsResponseProto { result: true });
    assert!(call.await.unwrap().unwrap());
}

#[tokio::test]
async fn two_that_take_each_other_for_the_active_do_not_send_a_call_in_circles() {
    let (first, second) = two(HoldLimits { wait_ms: 300, ..HoldLimits::default() });
    first.follows(&second, 1);
    second.follows(&first, 1);
    let refused = make(&first.client(), "/circle").await.unwrap_err();
    assert_eq!(refused.class(), Some(exception::STANDBY), "{refused}");
    assert_eq!(second.fake.forwarder.numbers().pending, 0, "the other has kept nothing");
    assert_eq!((first.done(), second.done()), (vec![], vec![]));
}

#[tokio::test]
async fn a_call_whose_client_has_left_is_not_sent_on() {
    let (member, _) = two(patient());
    let leaving = member.client();
    let call = begin(&leaving, "/late");
    until("held", || member.fake.forwarder.numbers().held == 1).await;
    call.abort();
    let _ = call.await;
    leaving.disconnect();
    // The socket's end is noticed by the connection's task.
    tokio::time::sleep(Duration::from_millis(100)).await;
    member.serves(1);
    until("dropped", || member.fake.forwarder.numbers().dropped == 1).await;
    assert_eq!(member.done(), []);
}

#[tokio::test]
async fn a_member_that_stops_lets_go_of_what_it_holds() {
    let (member, _) = two(patient());
    let held = begin(&member.client(), "/held");
    until("held", || member.fake.forwarder.numbers().held == 1).await;
    member.fake.forwarder.close();
    until("let go", || member.fake.forwarder.numbers().pending == 0).await;
    assert!(held.await.unwrap().is_err());
    assert!(make(&member.client(), "/later").await.is_err());
    // Only the service itself still has it.
    until("nobody keeps the member", || Arc::strong_count(&member.fake) == 2).await;
}

fn sample() -> Call {
    Call {
        protocol: protocol::CLIENT_NAMENODE,
        method: "mkdirs",
        request: mkdirs("/a").encode_to_vec().into(),
        caller: Arc::new(Caller { real_user: Some("knox".into()), ..Caller::simple("ann", &[]) }),
        origin: CallOrigin {
            client_id: ClientId([7; 16]),
            call_id: CallId(5),
            retry_count: -1,
            repeats: 0,
            address: Some(Ipv4Addr::new(10, 0, 0, 9).into()),
        },
        peer: SocketAddr::from((Ipv4Addr::LOCALHOST, 4000)),
        connection: 0,
        state_id: None,
        caller_context: Some("job_7".into()),
        is_forwarded: false,
        is_part: false,
        redirects: 0,
        read_point: None,
    }
}

fn open(request: ForwardRequestProto) -> Result<Call, RpcError> {
    let outer = Call { protocol: protocol::FORWARD, method: "forward", ..sample() };
    let opened = envelope::open(&Seal::new(SECRET), CLUSTER, &[protocol::CLIENT_NAMENODE], &outer, request)?;
    let caller = Caller {
        real_user: opened.real_user.as_deref().map(Arc::from),
        ..Caller::simple(&opened.user, &["staff"])
    };
    Ok(opened.into_call(Arc::new(caller)))
}

#[test]
fn what_is_put_into_an_envelope_comes_out_of_it() {
    let call = sample();
    let request = envelope::close(&Seal::new(SECRET), CLUSTER, MemberId(3), &call, Level::NEWEST);
    let wire = ForwardRequestProto::decode(Bytes::from(request.encode_to_vec())).unwrap();
    let out = open(wire).unwrap();
    assert_eq!((out.protocol, out.method, &out.request), (call.protocol, call.method, &call.request));
    assert_eq!(out.origin, call.origin);
    assert_eq!(out.peer.ip(), call.origin.address.unwrap());
    assert_eq!(out.caller.to_string(), "ann via knox");
    assert_eq!(out.caller_context.as_deref(), Some("job_7"));
    assert!(out.caller.is_member_of("staff"));
    assert!(!call.is_forwarded && out.is_forwarded);
    assert!(!out.is_part);
    let part = Call { is_part: true, ..sample() };
    let request = envelope::close(&Seal::new(SECRET), CLUSTER, MemberId(3), &part, Level::NEWEST);
    assert!(open(request).unwrap().is_part);
}

#[test]
fn what_members_have_repeated_is_told_apart_from_what_the_client_has_once_all_members_know_how() {
    let opened = |retry_count, repeats, level| {
        let mut call = sample();
        (call.origin.retry_count, call.origin.repeats) = (retry_count, repeats);
        let request = envelope::close(&Seal::new(SECRET), CLUSTER, MemberId(3), &call, level);
        let origin = open(request.clone()).unwrap().origin;
        (origin.retry_count, origin.repeats, request.client_retry_count)
    };
    let told = Level::NOTED_ANSWERS;
    assert_eq!(opened(2, 3, told), (2, 3, Some(2)));
    assert_eq!(opened(-1, 1, told), (-1, 1, Some(-1)));
    assert_eq!(opened(2, 0, told), (2, 0, None));
    assert_eq!(opened(2, 3, Level::EPOCH_LEADERS), (5, 0, None));
}

#[test]
fn a_count_of_retries_rises_only_with_our_own() {
    assert_eq!((envelope::raised(-1, 0), envelope::raised(0, 0), envelope::raised(4, 0)), (-1, 0, 4));
    assert_eq!(
        (envelope::raised(-1, 1), envelope::raised(0, 2), envelope::raised(i32::MAX, 1)),
        (1, 2, i32::MAX)
    );
}

#[test]
fn an_envelope_that_was_changed_anywhere_or_made_without_the_secret_is_refused() {
    let whole = || envelope::close(&Seal::new(SECRET), CLUSTER, MemberId(3), &sample(), Level::NEWEST);
    type Change = fn(&mut ForwardRequestProto);
    let changes: [(&str, Change); 18] = [
        ("cluster", |it| it.cluster_id.push('x')),
        ("from", |it| it.from += 1),
        ("user", |it| it.user = "root".into()),
        ("real user", |it| it.real_user = None),
        ("empty real user", |it| it.real_user = Some(String::new())),
        ("address", |it| it.address = Some(Bytes::from_static(&[127, 0, 0, 1]))),
        ("no address", |it| it.address = None),
        ("client id", |it| it.client_id = Bytes::from_static(&[8; 16])),
        ("call id", |it| it.call_id += 1),
        ("retry count", |it| it.retry_count += 1),
        ("client's retry count", |it| it.client_retry_count = Some(0)),
        ("protocol", |it| it.protocol = protocol::NAMENODE.into()),
        ("method", |it| it.method = "delete".into()),
        ("request", |it| it.request = Bytes::from_static(b"")),
        ("state", |it| it.state_id = Some(0)),
        ("context", |it| it.caller_context = None),
        ("a part", |it| it.is_part = Some(true)),
        ("no part", |it| it.is_part = Some(false)),
    ];
    for (what, change) in changes {
        let mut request = whole();
        change(&mut request);
        let error = open(request).unwrap_err();
        assert_eq!(error.class, exception::ACCESS_CONTROL, "{what}: {error}");
    }
    let forged = envelope::close(
        &Seal::new(b"another secret, not this one"),
        CLUSTER,
        MemberId(3),
        &sample(),
        Level::NEWEST,
    );
    assert_eq!(open(forged).unwrap_err().class, exception::ACCESS_CONTROL);
    let mut bare = whole();
    bare.mac = Bytes::new();
    assert_eq!(open(bare).unwrap_err().class, exception::ACCESS_CONTROL);
}

#[test]
fn an_envelope_of_a_member_with_nonsense_in_it_is_refused_without_harm() {
    let seal = Seal::new(SECRET);
    let with = |change: fn(&mut Call)| {
        let mut call = sample();
        change(&mut call);
        open(envelope::close(&seal, CLUSTER, MemberId(3), &call, Level::NEWEST))
    };
    assert!(with(|call| call.method = "frobnicate").unwrap_err().message.contains("method"));
    assert!(with(|call| call.protocol = protocol::DATANODE).unwrap_err().message.contains("protocol"));
    let other = open(envelope::close(&seal, "CID-other", MemberId(3), &sample(), Level::NEWEST)).unwrap_err();
    assert!(other.message.contains("CID-other"), "{other}");
}

#[test]
fn a_refusal_comes_back_as_it_went_in() {
    let errors = [
        RpcError::application("com.example.OwnException", "line one\nline two"),
        RpcError::fatal(ErrorCode::FatalInvalidRpcHeader, exception::RPC_SERVER, ""),
        RpcError::no_such_method("m", "p"),
    ];
    for error in errors {
        let wire = ForwardResponseProto {
            refusal: Some(envelope::refusal_to_proto(&error)),
            ..ForwardResponseProto::default()
        };
        let back = ForwardResponseProto::decode(Bytes::from(wire.encode_to_vec())).unwrap();
        assert_eq!(envelope::refusal_from_proto(back.refusal.unwrap()), error);
    }
    assert_eq!(RpcError::no_such_method("m", "p").status, Status::Error);
}
