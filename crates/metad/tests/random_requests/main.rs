//! Random requests that look valid never harm the server.
//!
//! Every method of `ClientProtocol` is called in random order over a small tree, by two users, with fields made from
//! the definitions. Each call gets an answer, nothing panics, methods are known, and a server that is started again
//! from the journal has the same namespace: whatever was accepted is carried out alike a second time.
//!
//! The long form: `CLOVER_SEED=7 CLOVER_STEPS=1000000 cargo test -p clover-metad --test random_requests -- --ignored`.

mod data_servers;
mod generator;

#[path = "../cluster/mod.rs"]
mod cluster;

use cluster::{Plan, SUPERUSER};
use data_servers::DataServers;
use generator::{Dice, Generator};
use proto::{
    exception::{NO_SUCH_METHOD, NO_SUCH_PROTOCOL},
    hdfs as p, protocol,
};
use rpc::{CallError, CallIdentity, Client, ClientOptions};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

const BUILDERS: &[&str] = &[
    "mkdirs",
    "mkdirs",
    "create",
    "create",
    "addBlock",
    "addBlock",
    "complete",
    "create",
    "rename2",
    "append",
    "createSnapshot",
    "setQuota",
    "setAcl",
];
/// Longer than anything here waits; a call without an answer is a call that was lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// Panics of any thread, counted and printed.
fn count_panics() -> Arc<AtomicUsize> {
    let panics = Arc::new(AtomicUsize::new(0));
    let (count, before) = (panics.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |info| {
        count.fetch_add(1, Ordering::SeqCst);
        before(info);
    }));
    panics
}

/// Words of refusals that are kept for a method.
const REASONS_MAX: usize = 40;

struct Run {
    dice: Dice,
    generator: Generator,
    users: Vec<Client>,
    /// Answers by method: taken and refused.
    answers: BTreeMap<&'static str, (u64, u64)>,
    /// Some words of the refusals of each method.
    reasons: BTreeMap<&'static str, BTreeSet<String>>,
    last: Option<(usize, CallIdentity, &'static str, Vec<u8>)>,
}

impl Run {
    async fn step(&mut self) {
        // Now and then the last call comes again, as after a lost answer.
        if let Some((user, identity, method, request)) = self.last.take()
            && self.dice.one_in(10)
        {
            let again = CallIdentity { retry_count: identity.retry_count + 1, ..identity };
            self.call(user, again, method, &request).await;
        }
        let count = self.generator.methods.len() as u64;
        let mut at = self.dice.below(count) as usize;
        // Half of the calls build the tree that the others meet.
        if self.dice.one_in(2) {
            let wanted = *self.dice.pick(BUILDERS);
            at = self
                .generator
                .methods
                .iter()
                .position(|method| method.name == wanted)
                .expect("it is a method");
        }
        let method = &self.generator.methods[at];
        let request = self.generator.request(&mut self.dice, method);
        let (name, user) = (method.name, usize::from(self.dice.one_in(3)));
        let identity = self.users[user].new_call();
        self.call(user, identity, name, &request).await;
        self.last = Some((user, identity, name, request));
    }

    async fn call(&mut self, user: usize, identity: CallIdentity, method: &'static str, request: &[u8]) {
        let answer = self.users[user].call_encoded_as(identity, method, request, PATIENCE);
        let answer = tokio::time::timeout(2 * PATIENCE, answer).await;
        let answer = answer.unwrap_or_else(|_| panic!("{method} has no answer: {request:02x?}"));
        let counts = self.answers.entry(method).or_default();
        match answer {
            Ok(_) => counts.0 += 1,
            Err(CallError::Remote { class, message, .. }) => {
                counts.1 += 1;
                let reasons = self.reasons.entry(method).or_default();
                if reasons.len() < REASONS_MAX {
                    reasons.insert(message.lines().next().unwrap_or_default().chars().take(100).collect());
                }
                assert!(class != NO_SUCH_METHOD && class != NO_SUCH_PROTOCOL, "{method}: {class}: {message}");
                assert!(!message.contains("gave up the call"), "{method} was not answered: {message}");
            }
            Err(other) => panic!("{method}: {other}: {request:02x?}"),
        }
    }

    async fn leave_safe_mode(&self) {
        let request = p::SetSafeModeRequestProto {
            action: p::SafeModeActionProto::SafemodeForceExit as i32,
            checked: Some(false),
        };
        let _: p::SetSafeModeResponseProto = self.users[0].call("setSafeMode", &request).await.unwrap();
    }
}

async fn run(seed: u64, steps: u64) {
    let panics = count_panics();
    // Reports come at once or never.
    let plan = Plan::alone().adjusted(|_, config| config.complete_wait_ms = 2);
    let mut cluster = plan.start().await;
    let address = cluster.address(1);
    let connect = |user, protocol| {
        let options = ClientOptions { call_timeout: PATIENCE, ..ClientOptions::default() };
        Client::connect(address, protocol, user, options)
    };
    let mut data_servers = DataServers::register(connect(SUPERUSER, protocol::DATANODE), 3).await;
    let mut run = Run {
        dice: Dice::new(seed),
        generator: Generator::new("ClientNamenodeProtocol", &cluster.server(1).cluster().block_pool),
        users: vec![connect(SUPERUSER, protocol::CLIENT_NAMENODE), connect("bob", protocol::CLIENT_NAMENODE)],
        answers: BTreeMap::new(),
        reasons: BTreeMap::new(),
        last: None,
    };
    println!("seed {seed}, {steps} steps, {} methods", run.generator.methods.len());
    for step in 0..steps {
        if step % 40 == 0 {
            run.leave_safe_mode().await;
            data_servers.heartbeat().await;
        }
        if step % 3 == 0 {
            data_servers.report(&mut run.dice).await;
        }
        run.step().await;
        assert_eq!(panics.load(Ordering::SeqCst), 0, "seed {seed}: the server panicked in step {step}");
    }
    let unheard: Vec<_> = run.generator.methods.iter().map(|it| it.name).collect();
    let unheard: Vec<_> = unheard.into_iter().filter(|name| !run.answers.contains_key(name)).collect();
    assert!(steps < 3_000 || unheard.is_empty(), "never called: {unheard:?}");
    let taken: u64 = run.answers.values().map(|(taken, _)| taken).sum();
    let refused: u64 = run.answers.values().map(|(_, refused)| refused).sum();
    println!("{taken} calls answered, {refused} refused");
    // A generator that only makes nonsense tests nothing.
    for method in ["mkdirs", "create", "rename2", "delete", "getListing", "setPermission", "addBlock"] {
        let (taken, _) = run.answers.get(method).copied().unwrap_or_default();
        assert!(
            steps < 3_000 || taken > 0,
            "no {method} was ever accepted, but refused: {:#?}",
            run.reasons.get(method)
        );
    }

    drop((run, data_servers));
    let before = cluster.server(1).content_digest();
    cluster.stop(1).await;
    cluster.restart(1).await;
    assert_eq!(
        cluster.server(1).content_digest(),
        before,
        "seed {seed}: the journal gives another namespace than the calls did"
    );
    cluster.stop(1).await;
    assert_eq!(panics.load(Ordering::SeqCst), 0, "seed {seed}: the server panicked");
}

/// One at a time: the hook that counts panics is the process's.
static TURN: Mutex<()> = Mutex::new(());

fn block_on(future: impl Future<Output = ()>) {
    let _turn = TURN.lock();
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(future);
}

#[test]
fn random_requests_that_look_valid_are_answered_and_replayed() {
    block_on(run(1, 4_000));
}

#[test]
#[ignore = "as long as CLOVER_STEPS says"]
fn many_random_requests() {
    let number =
        |name, default| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    block_on(run(number("CLOVER_SEED", 2), number("CLOVER_STEPS", 100_000)));
}
