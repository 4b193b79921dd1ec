//! A gateway: takes requests, decides who may, and has them carried out.

use crate::{
    change,
    error::{Refusal, Result},
    fsck::{self, page as fsck_page},
    identity::Identity,
    json, listing,
    operation::{Operation, Question, Transfer},
    parameters::Parameters,
    path, question,
    servers::Servers,
    shared::{Config, Role, Shared},
    target::{self, Excluded},
    transfer,
};
use axum::{
    Extension, Router,
    body::{Body, HttpBody},
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
    routing::{any, get},
};
use client::Location;
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::runtime::Runtime;
use web::{Connection, Limit, Pages, Peer, Permit, origin::Origin};

/// Threads of a gateway. They wait for others most of the time.
const THREADS: usize = 2;
/// How long a transfer, or a check of the file system, waits for another one to end.
const PLACE_WAIT: Duration = Duration::from_secs(10);
/// Clients' modes are taken as they are: they have their own umask.
const NO_UMASK: &str = "000";
/// Marks a request whose body is the file, where a server streams bytes itself; HttpFS's name.
const DATA: &str = "data";
/// The metadata server that sends a client to a data server.
const SERVER: &str = "namenoderpcaddress";

/// A gateway and its threads.
pub struct Gateway {
    shared: Arc<Shared>,
    connections_max: usize,
    runtime: Option<Runtime>,
}

impl Gateway {
    /// Starts the threads. `servers`: those to ask, `host:port`. Of none, [`Gateway::locate`] has to name one.
    ///
    /// # Errors
    /// The system starts no thread, or the user of this process has no name.
    pub fn start(config: Config, servers: Vec<String>) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("webhdfs")
            .enable_all()
            .build()?;
        let location = servers.first().cloned().map(|authority| Location { authority, servers });
        let servers = Servers::new(location, NO_UMASK).map_err(io::Error::other)?;
        let transfers = Limit::new(config.transfers_max, PLACE_WAIT);
        let connections_max = config.connections_max;
        let checks = Limit::new(fsck::CHECKS_MAX, PLACE_WAIT);
        let shared = Arc::new(Shared { config, servers, checks, transfers });
        Ok(Self { shared, connections_max, runtime: Some(runtime) })
    }

    /// Says which metadata server to ask from now on, and by which name others know it; the name may be empty. Both are `host:port`.
    pub fn locate(&self, name: String, server: String) {
        self.shared.servers.locate(Location { authority: name, servers: vec![server] });
    }

    /// The pages of the HTTP port.
    pub fn pages(&self) -> Pages {
        let router = Router::new().route(path::PREFIX, any(handle)).route("/webhdfs/{*rest}", any(handle));
        let router = match self.shared.config.role {
            Role::Metadata { .. } => router.route(fsck_page::PATH, get(fsck_page::handle)),
            Role::Data => router,
        };
        let router = router.with_state(self.shared.clone());
        let runtime = self.runtime.as_ref().map(|runtime| runtime.handle().clone());
        Pages { router, runtime, connections_max: self.connections_max, ..Pages::default() }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // It may be dropped on a thread that must not wait.
            runtime.shutdown_background();
        }
    }
}

/// A request, taken apart and checked.
struct Asked {
    parameters: Parameters,
    path: String,
    identity: Identity,
    client: SocketAddr,
    connection: Connection,
    /// The host that the client has called, as it stands in `Host`.
    host: Option<String>,
}

async fn handle(
    State(shared): State<Arc<Shared>>,
    Extension(Peer(client)): Extension<Peer>,
    Extension(connection): Extension<Connection>,
    request: Request,
) -> Response {
    let origin = shared.config.origins.judge(request.headers());
    let (parts, body) = request.into_parts();
    let answer = match Asked::of(&parts, client, connection) {
        Ok((asked, operation)) => shared.answer(asked, operation, body, &origin).await,
        Err(refusal) => Err(refusal),
    };
    let mut response = answer.unwrap_or_else(IntoResponse::into_response);
    origin.tell(response.headers_mut());
    let headers = response.headers_mut();
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache"));
    response
}

impl Asked {
    fn of(parts: &Parts, client: SocketAddr, connection: Connection) -> Result<(Self, Operation)> {
        let path = path::decode(parts.uri.path())?;
        let parameters = Parameters::parse(parts.uri.query().unwrap_or_default())?;
        let operation = Operation::parse(&parts.method, &parameters)?;
        let identity = Identity::of(&parameters)?;
        let host = host(&parts.headers)?;
        Ok((Self { parameters, path, identity, client, connection, host }, operation))
    }
}

/// The value of `Host`, which goes into addresses that are told to clients.
fn host(headers: &HeaderMap) -> Result<Option<String>> {
    let Some(host) = headers.get(header::HOST) else { return Ok(None) };
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(byte);
    match host.as_bytes().iter().all(is_plain) {
        true => Ok(host.to_str().ok().map(str::to_owned)),
        false => Err(Refusal::illegal("the header Host is no host and port")),
    }
}

impl Shared {
    async fn answer(
        &self,
        asked: Asked,
        operation: Operation,
        body: Body,
        origin: &Origin,
    ) -> Result<Response> {
        if operation.changes() || operation == Operation::Preflight {
            origin.check_change()?;
        }
        if operation == Operation::Preflight {
            let mut response = transfer::empty(StatusCode::OK);
            origin.tell_preflight(response.headers_mut());
            return Ok(response);
        }
        let is_data_server = self.config.role == Role::Data;
        if is_data_server && !asked.parameters.has(SERVER) {
            return Err(Refusal::illegal(format!(
                "{SERVER} is missing: a data server is called where a metadata server says"
            )));
        }
        let named = asked.parameters.get(SERVER).filter(|_| is_data_server);
        let location = self.servers.location(named).await?;
        if asked.identity.is_proxy() {
            self.check_proxy(&asked.identity, asked.client, &location).await?;
        }
        if let Operation::Transfer(transfer) = operation {
            return self.transfer(asked, transfer, body, &location).await;
        }
        if is_data_server {
            return Err(Refusal::illegal(
                "a data server has OPEN, CREATE, APPEND and GETFILECHECKSUM only; ask a metadata server",
            ));
        }
        let fs = self.servers.shared(&location, &asked.identity.effective);
        match operation {
            Operation::Ask(Question::List) => {
                let mut response = Response::new(listing::list(fs, asked.path).await?);
                let json = HeaderValue::from_static("application/json");
                response.headers_mut().insert(header::CONTENT_TYPE, json);
                Ok(response)
            }
            Operation::Ask(question) => Ok(as_response(question::answer(&fs, &asked.path, &question).await?)),
            Operation::Change(change) => Ok(as_response(change::carry_out(&fs, &asked.path, change).await?)),
            Operation::Transfer(_) | Operation::Preflight => Err(Refusal::unsupported("answered above")),
        }
    }

    async fn transfer(
        &self,
        asked: Asked,
        transfer: Transfer,
        body: Body,
        location: &Location,
    ) -> Result<Response> {
        let Role::Metadata { redirects } = self.config.role else {
            return self.stream(asked, transfer, body, location).await;
        };
        let wants_word = asked.parameters.flag("noredirect")?.unwrap_or(false);
        // The body is the file; otherwise the client waits for the word where to send it.
        let has_data = asked.parameters.flag(DATA)?.unwrap_or(false) || !body.is_end_stream();
        let elsewhere = match redirects {
            true => self.data_server(&asked, &transfer, location).await?,
            // A client that writes asks first, and sends the bytes where it is told to; to this very server here.
            false if wants_word || (transfer.writes() && !has_data) => self.here(&asked),
            false => return self.stream(asked, transfer, body, location).await,
        };
        if wants_word {
            return Ok(json(serde_json::json!({ "Location": elsewhere })));
        }
        let mut response = transfer::empty(StatusCode::TEMPORARY_REDIRECT);
        let elsewhere = HeaderValue::from_str(&elsewhere)
            .map_err(|_| Refusal::io("a data server has a name that is no host's"))?;
        response.headers_mut().insert(header::LOCATION, elsewhere);
        Ok(response)
    }

    /// The address of a data server that does it.
    async fn data_server(&self, asked: &Asked, transfer: &Transfer, location: &Location) -> Result<String> {
        let fs = self.servers.shared(location, &asked.identity.effective);
        let operator = self.servers.shared(location, &self.config.operator);
        let excluded = Excluded::parse(asked.parameters.get("excludedatanodes").unwrap_or_default());
        let server =
            target::choose(&fs, &operator, &asked.path, transfer, asked.client.ip(), &excluded).await?;
        let mut parameters = asked.parameters.clone();
        parameters.remove("noredirect");
        parameters.remove("excludedatanodes");
        // Without a name that others know it is empty: the data server asks the servers in its own configuration.
        parameters.set(SERVER, &location.authority);
        if let Transfer::Create(create) = transfer {
            parameters.set_default("overwrite", if create.overwrite { "true" } else { "false" });
        }
        Ok(format!("http://{server}{}{}?{}", path::PREFIX, path::encode(&asked.path), parameters.encode()))
    }

    /// The address of this server, for the second request of a client.
    fn here(&self, asked: &Asked) -> String {
        let mut parameters = asked.parameters.clone();
        parameters.remove("noredirect");
        parameters.set(DATA, "true");
        let base = asked.host.as_ref().map(|host| format!("http://{host}")).unwrap_or_default();
        format!("{base}{}{}?{}", path::PREFIX, path::encode(&asked.path), parameters.encode())
    }

    async fn stream(
        &self,
        asked: Asked,
        transfer: Transfer,
        body: Body,
        location: &Location,
    ) -> Result<Response> {
        let place = self.place(&asked.connection).await?;
        let user = &asked.identity.effective;
        let shared = self.servers.shared(location, user);
        // A file that is written has a lease that no other request of the user renews.
        let fs = if transfer.writes() { shared.as_another_client() } else { shared };
        transfer::carry_out(fs, asked.path, transfer, body, place).await
    }

    async fn place(&self, connection: &Connection) -> Result<Permit> {
        self.transfers.take(connection).await.ok_or_else(|| {
            Refusal::busy(format!(
                "{} files are being read and written here, which are as many as there may be; try again",
                self.transfers.count_max()
            ))
        })
    }
}

fn as_response(answer: Option<serde_json::Value>) -> Response {
    answer.map_or_else(|| transfer::empty(StatusCode::OK), json)
}
