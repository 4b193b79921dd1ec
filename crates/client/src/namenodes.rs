//! Calls to whichever metadata server of a file system is active.
//!
//! A call goes to the server that answered last. If that server is not active or cannot be reached, the call goes to
//! the next; if it asks for patience, it is asked again. Where a connection broke after a call went out, nobody knows
//! whether it was carried out, and the very same call (client id and call id) goes out again: the servers remember
//! what they answered.
//!
//! A server that says nothing is left as soon as another one leads ([`silence`]).
//!
//! If only one server is named and it does not serve, it is asked for the other members of its group, and calls go to
//! them as well.

mod silence;

use crate::{
    Error, Location, Result,
    config::{Settings, high_availability},
};
use base::{ClientId, FsError};
use parking_lot::{Mutex, RwLock};
use prost::{Message, Name};
use proto::{
    clover::admin::{GetGroupRequestProto, GetGroupResponseProto},
    exception, protocol,
};
use rpc::{CallError, CallIdentity, Client, ClientOptions};
use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

/// Attempts when no server has answered yet: a wrong address should be told soon.
const FIRST_ATTEMPTS_MAX: u32 = 4;
/// How long the only metadata server of a file system may take to answer.
const LONE_TIMEOUT: Duration = Duration::from_secs(60);
/// After so long without an answer it is told why, and again from time to time.
const FIRST_WORD: Duration = Duration::from_secs(3);
const NEXT_WORD: Duration = Duration::from_secs(10);
/// Rounds of asking every server, where no number of attempts is set: Hadoop's number of failovers, whose pauses double as the
/// pauses between rounds do here.
const ROUNDS_MAX: u32 = 15;
/// How long a server is asked again that does not serve, and does not say who else could. The limit does not hold for
/// a member that names the other members of its group: calls go to those. A standby of HDFS names none, and does not
/// begin to serve by being asked.
const LONE_PATIENCE: Duration = Duration::from_secs(15);
/// How long a member may take to name the others, and how soon it is asked again.
const GROUP_TIMEOUT: Duration = Duration::from_secs(3);
const GROUP_PERIOD: Duration = Duration::from_secs(5);
/// The pause after such an attempt; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// All metadata servers of one file system.
pub struct Namenodes {
    location: Location,
    /// Clients for the servers in the order of [`Location::servers`]. Behind them stand the servers that a lone server
    /// has named.
    clients: RwLock<Vec<Client>>,
    /// The options for clients of servers that are named later.
    options: ClientOptions,
    protocol: &'static str,
    user: String,
    lone: Mutex<Lone>,
    lone_patience: Duration,
    /// The index of the server that is asked first: the one that answered last.
    current: AtomicUsize,
    /// A server has answered at least once, so that the address is right.
    is_known: AtomicBool,
    /// Held by the call that asks whether its silent server is to be left.
    left: tokio::sync::Mutex<Option<silence::Left>>,
    failovers_max: Option<u32>,
    pause: Duration,
    pause_max: Duration,
}

/// The next step after an attempt that brought no answer.
enum Next {
    /// Ask another server.
    Elsewhere(Error),
    /// Ask the same one again.
    Again(Error),
}

/// The state of asking the only server that was named for the other members of its group.
#[derive(Default)]
struct Lone {
    asked: Option<Instant>,
    /// The server has told which members its group has.
    is_told: bool,
}

/// How often one of so many servers is asked before the call is given up.
fn attempts_max(failovers_max: Option<u32>, servers: usize) -> u32 {
    failovers_max.unwrap_or(ROUNDS_MAX * servers.max(1) as u32)
}

/// The pause after so many attempts. The others are asked at once; pauses begin when all have said no.
fn pause_after(attempts: u32, servers: usize, elsewhere: bool, first: Duration) -> Option<Duration> {
    let rounds = attempts / servers as u32;
    (rounds > 0 || !elsewhere).then(|| first.saturating_mul(1 << rounds.saturating_sub(1).min(10)))
}

impl Namenodes {
    pub fn new(location: Location, settings: &Settings) -> Self {
        Self::speaking(protocol::CLIENT_NAMENODE, location, settings)
    }

    /// The same servers, spoken to in another protocol than that of clients.
    pub fn speaking(protocol: &'static str, location: Location, settings: &Settings) -> Self {
        // One name for all servers: a call that moves on to another is still the same call there.
        let client_id = Some(ClientId(*uuid::Uuid::new_v4().as_bytes()));
        let default_timeout = match location.servers.len() {
            0 | 1 => LONE_TIMEOUT,
            _ => Duration::from_millis(high_availability::RPC_TIMEOUT_MS),
        };
        let options = ClientOptions {
            client_id,
            call_timeout: settings.rpc_timeout.unwrap_or(default_timeout),
            real_user: settings.real_user.clone(),
            ..options(settings.connect_timeout)
        };
        let client =
            |address: &String| Client::connect(address.as_str(), protocol, &settings.user, options.clone());
        Self {
            clients: RwLock::new(location.servers.iter().map(client).collect()),
            options,
            protocol,
            user: settings.user.clone(),
            lone: Mutex::default(),
            lone_patience: LONE_PATIENCE,
            failovers_max: settings.retries.failovers_max,
            location,
            current: AtomicUsize::new(0),
            is_known: AtomicBool::new(false),
            left: tokio::sync::Mutex::default(),
            pause: settings.retries.failover_pause,
            pause_max: settings.retries.failover_pause_max,
        }
    }

    /// Calls a method until a server answers it, or until there is no more hope.
    ///
    /// # Errors
    /// Those of [`FileSystem::call`](crate::FileSystem::call).
    pub async fn call<Q, A>(&self, method: &str, request: &Q) -> Result<A>
    where
        Q: Message + Name,
        A: Message + Default + Name,
    {
        let first = self.clients.read()[0].new_call();
        let mut attempts: u32 = 0;
        let began = Instant::now();
        let mut word_due = began + FIRST_WORD;
        loop {
            let (index, client) = {
                let clients = self.clients.read();
                let index = self.current.load(Ordering::Relaxed) % clients.len();
                (index, clients[index].clone())
            };
            let identity = CallIdentity { retry_count: attempts as i32, ..first };
            let call = client.call_as::<Q, A>(identity, method, request);
            let error = match self.unless_silent(index, &client, call).await {
                Ok(answer) => {
                    self.is_known.store(true, Ordering::Relaxed);
                    return Ok(answer);
                }
                Err(error) => error,
            };
            if matches!(error, CallError::Timeout { .. }) {
                // Frozen or cut off: when it comes back, it is spoken to on a connection that lives.
                client.disconnect();
            }
            let (error, elsewhere) = match self.judge(client.address(), method, error)? {
                Next::Elsewhere(error) => (error, true),
                Next::Again(error) => (error, false),
            };
            attempts += 1;
            let is_answer = matches!(error, Error::Fs(_));
            if is_answer && self.location.servers.len() == 1 {
                self.ask_for_others().await;
                if elsewhere && !self.lone.lock().is_told && began.elapsed() >= self.lone_patience {
                    return Err(Error::NotServing {
                        server: client.address().to_owned(),
                        reason: error.to_string(),
                    });
                }
            }
            let servers = self.clients.read().len();
            let is_known = self.is_known.load(Ordering::Relaxed) || is_answer;
            let (pause, attempts_max) = match is_known {
                true => (self.pause, attempts_max(self.failovers_max, servers)),
                // Each of several servers gets its turn.
                false => (FIRST_PAUSE, FIRST_ATTEMPTS_MAX.max(servers as u32 + 1)),
            };
            if attempts > attempts_max {
                return Err(error);
            }
            if Instant::now() < word_due {
                tracing::info!("{method}: {error}; trying again");
            } else {
                // A person who waits at a terminal wants to know the reason.
                tracing::warn!("{method}: {error}; still trying");
                word_due = Instant::now() + NEXT_WORD;
            }
            // Unless the one that leads was named meanwhile.
            if elsewhere {
                let next = (index + 1) % servers;
                let _ = self.current.compare_exchange(index, next, Ordering::Relaxed, Ordering::Relaxed);
            }
            if let Some(pause) = pause_after(attempts, servers, elsewhere, pause) {
                tokio::time::sleep(pause.min(self.pause_max)).await;
            }
        }
    }

    /// The only server that was named has not served this call: it names the other members of its group, unless it did before.
    async fn ask_for_others(&self) {
        {
            let mut lone = self.lone.lock();
            if lone.is_told || lone.asked.is_some_and(|asked| asked.elapsed() < GROUP_PERIOD) {
                return;
            }
            lone.asked = Some(Instant::now());
        }
        let named = &self.location.servers[0];
        let options = ClientOptions { call_timeout: GROUP_TIMEOUT, ..self.options.clone() };
        let admin = Client::connect(named.as_str(), protocol::ADMIN, &self.user, options);
        let answer: GetGroupResponseProto = match admin
            .call("getGroup", &GetGroupRequestProto::default())
            .await
        {
            Ok(answer) => answer,
            Err(error) => return tracing::debug!(server = named, %error, "it does not say who else serves"),
        };
        let address = |member: &u32| {
            let known = answer.members.iter().find(|one| one.member == *member)?;
            known.rpc_address.clone().filter(|address| !address.is_empty())
        };
        let others: Vec<u32> =
            answer.members.iter().map(|one| one.member).filter(|one| *one != answer.answered_by).collect();
        // A frozen one is not waited for as the only one would be.
        let call_timeout =
            Duration::from_millis(high_availability::RPC_TIMEOUT_MS).min(self.options.call_timeout);
        let mut clients = self.clients.write();
        for member in others {
            let Some(address) = address(&member) else { continue };
            if clients.iter().all(|client| client.address() != address) {
                let options = ClientOptions { call_timeout, ..self.options.clone() };
                clients.push(Client::connect(address, self.protocol, &self.user, options));
            }
        }
        tracing::info!(
            server = named,
            servers = clients.len(),
            "this server has named the members of its group"
        );
        // The one that leads is asked next.
        let active = answer.view.as_ref().and_then(|view| view.active).and_then(|member| address(&member));
        let at = clients.iter().position(|client| Some(client.address()) == active.as_deref());
        if let Some(at) = at {
            self.current.store(at, Ordering::Relaxed);
        }
        self.lone.lock().is_told = true;
    }

    fn judge(&self, server: &str, method: &str, error: CallError) -> Result<Next> {
        match error {
            CallError::Remote { class, message, .. } => {
                match exception::from_remote(&class, &message) {
                    // "Not active" is an answer, too: the address is right.
                    error @ FsError::NotActive(_) => Ok(Next::Elsewhere(Error::Fs(error))),
                    error @ FsError::Retry(_) => Ok(Next::Again(Error::Fs(error))),
                    error => {
                        self.is_known.store(true, Ordering::Relaxed);
                        Err(Error::Fs(error))
                    }
                }
            }
            CallError::Decode(reason) => Err(Error::Nonsense {
                address: server.to_owned(),
                method: method.to_owned(),
                reason: reason.to_string(),
            }),
            error => Ok(Next::Elsewhere(Error::Unreachable {
                target: self.location.uri(),
                tried: self.location.servers.join(", "),
                reason: match error {
                    CallError::Connect(error) => error.to_string(),
                    error => error.to_string(),
                },
            })),
        }
    }
}

impl Namenodes {
    /// Calls a method of every server, for what each has of its own: its address, and the answer or why there is none.
    pub async fn call_each<Q, A>(
        &self,
        method: &str,
        request: &Q,
    ) -> Vec<(String, std::result::Result<A, String>)>
    where
        Q: Message + Name,
        A: Message + Default + Name,
    {
        let mut answers = Vec::new();
        let clients: Vec<Client> = self.clients.read().clone();
        for client in &clients {
            // Named like all other calls: two of one name on one connection would get each other's answers.
            let identity = clients[0].new_call();
            let answer =
                client.call_as::<Q, A>(identity, method, request).await.map_err(|error| match error {
                    CallError::Remote { message, .. } => exception::without_stack_trace(&message).to_owned(),
                    other => other.to_string(),
                });
            answers.push((client.address().to_owned(), answer));
        }
        answers
    }
}

/// A client of a data server's RPC port.
pub(crate) fn to_data_server(address: &str, user: &str, connect_timeout: Duration) -> Client {
    Client::connect(address, protocol::CLIENT_DATANODE, user, options(connect_timeout))
}

fn options(connect_timeout: Duration) -> ClientOptions {
    ClientOptions { connect_timeout, ..ClientOptions::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    /// The shortest time after which a call fails while every server asks for patience or, if `elsewhere`, names
    /// another server.
    fn shortest_patience(settings: &Settings, servers: usize, elsewhere: bool) -> Duration {
        let retries = &settings.retries;
        let pause = |attempts| pause_after(attempts, servers, elsewhere, retries.failover_pause);
        (1..=attempts_max(retries.failovers_max, servers))
            .filter_map(pause)
            .map(|pause| pause.min(retries.failover_pause_max))
            .sum()
    }

    #[test]
    fn the_longest_takeover_is_outlasted_with_any_number_of_servers() {
        for servers in 1..=7 {
            for elsewhere in [false, true] {
                let settings = Settings::new(&Config::new()).unwrap();
                let patience = shortest_patience(&settings, servers, elsewhere);
                let longest = Duration::from_millis(high_availability::TAKEOVER_MAX_MS);
                assert!(patience > longest * 3 / 2, "{servers} servers: {patience:?}");
            }
        }
    }

    /// A server that is never active, of protocols other than Clover's own.
    struct Standby;

    impl rpc::Service for Standby {
        fn protocols(&self) -> &[(&'static str, u64)] {
            &[(protocol::CLIENT_NAMENODE, 1)]
        }

        fn call(&self, _: rpc::Call, reply: rpc::Replier) {
            reply.fs_error(&FsError::NotActive(
                "Operation category WRITE is not supported in state standby".into(),
            ));
        }
    }

    #[tokio::test]
    async fn the_only_server_that_serves_nobody_and_names_nobody_is_given_up_with_its_reason() {
        let config = rpc::ServerConfig::new("127.0.0.1:0".parse().unwrap(), std::sync::Arc::new(Standby));
        let server = rpc::Server::bind(config).unwrap();
        let config = Config::new();
        let location = Location::resolve(&format!("hdfs://{}", server.local_addr()), &config).unwrap();
        let settings = Settings::new(&config).unwrap();
        let patience = Duration::from_millis(600);
        let namenodes = Namenodes { lone_patience: patience, ..Namenodes::new(location, &settings) };
        let request = proto::hdfs::MkdirsRequestProto { src: "/a".into(), ..Default::default() };
        let refused = namenodes.call::<_, proto::hdfs::MkdirsResponseProto>("mkdirs", &request).await;
        let text = refused.unwrap_err().to_string();
        let words = [server.local_addr().to_string(), "does not serve".into(), "state standby".into()];
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
}
