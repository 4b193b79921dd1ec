//! A console: takes requests, and has pages made.

use crate::{
    asked::{Asked, Config, Shared},
    assets, attributes, blocks, calls,
    changes::{self, Form},
    configuration, data_servers, file, files, group, hand_over,
    history::{self, Calls},
    login_page, logs, old_links, open_files,
    orders::HandOver,
    overview,
    page::{self, Visitor},
    refusal::Refusal,
    sessions::Keys,
    snapshot_changes, snapshots, start, text, usage,
};
use axum::{
    Extension, Router,
    body::Body,
    extract::{Request, State},
    response::Response,
    routing::{get, post, put},
};
use client::Location;
use std::{future::Future, io, sync::Arc, time::Duration};
use tokio::runtime::Runtime;
use web::{Connection, Facts, Pages};

/// Threads of a console that has no gateway beside it. They wait for others most of the time.
const THREADS: usize = 2;
/// How long a page may take: some calls, each of which may try again.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a form may take to come.
const FORM_PATIENCE: Duration = Duration::from_secs(30);

/// A console, and its threads if it has some of its own.
pub struct Console {
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

impl Console {
    /// `beside` are the pages with which it shares the port and, if they have some, the threads. Otherwise it starts its own. Until
    /// [`Console::locate`] names a server to ask, pages say that it is not ready.
    ///
    /// # Errors
    /// The system starts no thread, or the user of this process has no name.
    pub fn start(config: Config, beside: Pages) -> io::Result<(Self, Pages)> {
        let runtime = match &beside.runtime {
            Some(_) => None,
            None => Some(
                tokio::runtime::Builder::new_multi_thread()
                    .worker_threads(THREADS)
                    .thread_name("console")
                    .enable_all()
                    .build()?,
            ),
        };
        let shared = Arc::new(Shared::new(config)?);
        let mut pages = beside;
        if let Some(own) = &runtime {
            pages.runtime = Some(own.handle().clone());
            pages.connections_max = shared.connections_max();
        }
        pages.router = pages.router.merge(router(&shared));
        let watching = shared.clone();
        pages.watch = Some(Arc::new(move |facts| Box::pin(watch(watching.clone(), facts))));
        Ok((Self { shared, runtime }, pages))
    }

    /// Says which metadata server to ask from now on: `host:port`.
    pub fn locate(&self, server: String) {
        self.shared.locate(Location { authority: server.clone(), servers: vec![server] });
    }

    /// From now on superusers can have another member become active.
    pub fn take_orders(&self, hand_over: HandOver) {
        self.shared.set_hand_over(hand_over);
    }

    /// From now on login links are taken that hold by these keys.
    pub fn take_links(&self, keys: Keys) {
        self.shared.sessions.set_keys(keys);
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // It may be dropped on a thread that must not wait.
            runtime.shutdown_background();
        }
    }
}

/// Takes note of the server's calls as long as it runs.
async fn watch(shared: Arc<Shared>, facts: Facts) {
    let Some(calls) = facts.sources.calls else { return };
    let bounds = history::bounds_ns();
    let mut ticks = tokio::time::interval(history::PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let mut counts = vec![0; bounds.len() + 1];
        for method in calls().iter().filter(|method| calls::is_of_clients(method.protocol)) {
            let total = method.stages[calls::TOTAL].between(&bounds);
            counts.iter_mut().zip(total).for_each(|(sum, count)| *sum += count);
        }
        shared.history.note(text::now_ms(), Calls { counts });
    }
}

/// A request that is taken apart, and its body.
fn take(shared: Arc<Shared>, facts: Facts, request: Request) -> (Asked, Body) {
    let visitor = shared.visitor(request.headers());
    let (parts, body) = request.into_parts();
    (Asked { shared, facts, visitor, parts }, body)
}

/// Makes an answer of what was made, or of the reason why not.
async fn told(visitor: Visitor, made: impl Future<Output = Result<Response, Refusal>>) -> Response {
    made.await.unwrap_or_else(|refusal| page::refused(&refusal, &visitor))
}

/// Makes a page, in its turn and within its time. Nothing in it waits for the client: a slow one would hold the place.
async fn in_turn(
    shared: &Shared,
    page: impl Future<Output = Result<Response, Refusal>>,
) -> Result<Response, Refusal> {
    let _place = shared.page_place().await?;
    in_time(page).await
}

async fn in_time(page: impl Future<Output = Result<Response, Refusal>>) -> Result<Response, Refusal> {
    match tokio::time::timeout(PATIENCE, page).await {
        Ok(made) => made,
        Err(_) => Err(Refusal::too_slow(PATIENCE)),
    }
}

async fn answer<F>(
    shared: Arc<Shared>,
    facts: Facts,
    request: Request,
    page: impl FnOnce(Asked) -> F,
) -> Response
where
    F: Future<Output = Result<Response, Refusal>>,
{
    let (asked, _) = take(shared.clone(), facts, request);
    told(asked.visitor.clone(), in_turn(&shared, page(asked))).await
}

/// What a form has to pass before it is read, and how long it may be.
struct FormRule {
    check: fn(&Asked) -> Result<(), Refusal>,
    bytes_max: usize,
}

/// The form asks for a change.
const CHANGES: FormRule = FormRule { check: Asked::check_change, bytes_max: changes::FORM_BYTES_MAX };
/// By the form users come and go.
const SIGNS: FormRule = FormRule { check: Asked::check_origin, bytes_max: login_page::FORM_BYTES_MAX };

/// Carries out what a form asks for.
async fn carry_out<F>(
    shared: Arc<Shared>,
    facts: Facts,
    request: Request,
    rule: FormRule,
    make: impl FnOnce(Asked, Form) -> F,
) -> Response
where
    F: Future<Output = Result<Response, Refusal>>,
{
    let (asked, body) = take(shared.clone(), facts, request);
    told(asked.visitor.clone(), async {
        (rule.check)(&asked)?;
        let form = Form::read(body, rule.bytes_max, FORM_PATIENCE).await?;
        in_turn(&shared, make(asked, form)).await
    })
    .await
}

/// Takes a file, for as long as that takes.
async fn upload(
    State(shared): State<Arc<Shared>>,
    Extension(facts): Extension<Facts>,
    Extension(connection): Extension<Connection>,
    request: Request,
) -> Response {
    let (asked, body) = take(shared, facts, request);
    told(asked.visitor.clone(), async {
        asked.check_change()?;
        changes::upload(asked, body, &connection).await
    })
    .await
}

/// Sends a file. Only its beginning has to come in time.
async fn download(
    State(shared): State<Arc<Shared>>,
    Extension(facts): Extension<Facts>,
    Extension(connection): Extension<Connection>,
    request: Request,
) -> Response {
    let (asked, _) = take(shared, facts, request);
    told(asked.visitor.clone(), in_time(file::download(asked, &connection))).await
}

/// A handler that makes a page.
macro_rules! page {
    ($make:expr) => {
        get(|State(shared): State<Arc<Shared>>, Extension(facts): Extension<Facts>, request: Request| {
            answer(shared, facts, request, $make)
        })
    };
}

/// A handler of a form that changes something.
macro_rules! change {
    ($make:expr) => {
        post(|State(shared): State<Arc<Shared>>, Extension(facts): Extension<Facts>, request: Request| {
            carry_out(shared, facts, request, CHANGES, $make)
        })
    };
}

/// A handler of a form by which users come and go.
macro_rules! sign {
    ($make:expr) => {
        post(|State(shared): State<Arc<Shared>>, Extension(facts): Extension<Facts>, request: Request| {
            carry_out(shared, facts, request, SIGNS, $make)
        })
    };
}

fn router(shared: &Arc<Shared>) -> Router {
    let guarded = |mut response: Response| async {
        page::guard(response.headers_mut());
        response
    };
    Router::new()
        .route("/", page!(overview::page))
        .route("/index.html", page!(to_overview))
        .route("/group", page!(group::page))
        .route("/group/hand-over", page!(hand_over::look).merge(change!(hand_over::carry_out)))
        .route("/data-servers", page!(data_servers::page))
        .route("/files", page!(files::home))
        .route("/files/", page!(files::page))
        .route("/files/{*path}", page!(files::page))
        .route("/download/{*path}", get(download))
        .route("/blocks", page!(blocks::page))
        .route("/snapshots", page!(snapshots::page))
        .route("/open-files", page!(open_files::page))
        .route("/calls", page!(calls::page))
        .route("/start", page!(start::page))
        .route("/usage", page!(usage::page))
        .route("/configuration", page!(configuration::page))
        .route("/logs", page!(logs::page))
        // Where a NameNode lists its log files.
        .route("/logs/", page!(to_logs))
        .route("/changes/mkdir", change!(changes::make_directory))
        .route("/changes/rename", change!(changes::rename))
        .route("/changes/delete", change!(changes::delete))
        .route("/changes/undo", change!(changes::undo))
        .route("/changes/rights", change!(changes::rights))
        .route("/changes/replication", change!(attributes::replication))
        .route("/changes/quota", change!(attributes::quota))
        .route("/changes/acl", change!(attributes::acl))
        .route("/changes/snapshots/create", change!(snapshot_changes::create))
        .route("/changes/snapshots/rename", change!(snapshot_changes::rename))
        .route("/changes/snapshots/delete", change!(snapshot_changes::delete))
        .route("/changes/snapshots/allow", change!(snapshot_changes::allow))
        .route("/changes/snapshots/disallow", change!(snapshot_changes::disallow))
        .route("/upload/{*path}", put(upload))
        .route("/login", page!(login_page::offer).merge(sign!(login_page::open)))
        .route("/logout", sign!(login_page::close))
        .route("/dfshealth.html", page!(old_links::health))
        .route("/explorer.html", page!(old_links::explorer))
        .route("/assets/console.css", get(assets::style))
        .route("/assets/console.js", get(assets::script))
        .route("/assets/icon.svg", get(assets::icon))
        .layer(axum::middleware::map_response(guarded))
        .with_state(shared.clone())
}

async fn to_logs(_: Asked) -> Result<Response, Refusal> {
    Ok(page::elsewhere("/logs"))
}

async fn to_overview(_: Asked) -> Result<Response, Refusal> {
    Ok(page::elsewhere("/"))
}
