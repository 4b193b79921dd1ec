use super::*;
use prometheus_client::metrics::counter::Counter;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

async fn ask(addr: SocketAddr, path: &str) -> String {
    send(addr, &format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")).await
}

async fn send(addr: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn serve(ok: bool) -> Web {
    let mut registry = Registry::default();
    let calls: Counter = Counter::default();
    calls.inc_by(3);
    registry.register("calls", "Calls answered", calls);
    let health: HealthSource = Arc::new(move || Health { ok, state: "active".into(), ..Health::default() });
    Web::bind("127.0.0.1:0".parse().unwrap(), Arc::new(registry), health).await.unwrap()
}

#[tokio::test]
async fn health_and_metrics_are_served() {
    let web = serve(true).await;
    let health = ask(web.local_addr(), "/health").await;
    assert!(health.starts_with("HTTP/1.1 200"), "{health}");
    assert!(health.ends_with("{\"ok\":true,\"state\":\"active\"}\n"), "{health}");
    let metrics = ask(web.local_addr(), "/metrics").await;
    assert!(metrics.contains("calls_total 3"), "{metrics}");
    assert!(ask(web.local_addr(), "/nothing").await.starts_with("HTTP/1.1 404"));
    web.shutdown().await;
}

#[tokio::test]
async fn who_is_well_and_serves_nobody_is_not_ready() {
    let web = serve(true).await;
    let ready = ask(web.local_addr(), "/ready").await;
    assert!(ready.starts_with("HTTP/1.1 200") && ready.contains("\"ready\":true"), "{ready}");
    web.shutdown().await;

    let health: HealthSource = Arc::new(|| Health {
        ok: true,
        state: "standby".into(),
        not_ready: Some("nobody leads".into()),
        // A cluster that is not well makes no server unwell.
        cluster: Some(crate::FurtherFacts(Arc::new(|| serde_json::json!({"verdict": "error"})))),
        ..Health::default()
    });
    let address = "127.0.0.1:0".parse().unwrap();
    let web = Web::bind(address, Arc::new(Registry::default()), health).await.unwrap();
    let told = ask(web.local_addr(), "/health").await;
    assert!(told.starts_with("HTTP/1.1 200") && told.ends_with("\"verdict\":\"error\"}\n"), "{told}");
    let ready = ask(web.local_addr(), "/ready").await;
    assert!(ready.starts_with("HTTP/1.1 503") && ready.contains("nobody leads"), "{ready}");
    web.shutdown().await;
}

/// The process answers, also where its role has failed: a restart may not help, and who asks this would restart it.
#[tokio::test]
async fn who_answers_is_live_however_ill_it_is() {
    for ok in [true, false] {
        let web = serve(ok).await;
        let live = ask(web.local_addr(), "/live").await;
        assert!(live.starts_with("HTTP/1.1 200") && live.ends_with("{\"live\":true}\n"), "{ok}: {live}");
        web.shutdown().await;
    }
}

#[tokio::test]
async fn a_member_says_whether_it_is_in_sync() {
    let now = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let asked = now.clone();
    let router = crate::in_sync::in_sync(Arc::new(move || crate::in_sync::InSync {
        is_in_sync: asked.load(std::sync::atomic::Ordering::SeqCst),
        state: "standby",
    }));
    let health: HealthSource = Arc::new(|| Health { ok: true, ..Health::default() });
    let address = "127.0.0.1:0".parse().unwrap();
    let pages = Pages { router, ..Pages::default() };
    let web = Web::bind_with(address, Arc::new(Registry::default()), health, pages).await.unwrap();
    let answer = ask(web.local_addr(), "/in-sync").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with("{\"in_sync\":true,\"state\":\"standby\"}\n"), "{answer}");
    now.store(false, std::sync::atomic::Ordering::SeqCst);
    let answer = ask(web.local_addr(), "/in-sync").await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("\"in_sync\":false"), "{answer}");
    web.shutdown().await;
    // A server that is no member of a group has no such page.
    let web = serve(true).await;
    assert!(ask(web.local_addr(), "/in-sync").await.starts_with("HTTP/1.1 404"));
    web.shutdown().await;
}

#[tokio::test]
async fn a_page_that_is_not_there_names_some_that_are() {
    let web = serve(true).await;
    let answer = ask(web.local_addr(), "/nowhere?path=%2F").await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("/health"), "{answer}");
    web.shutdown().await;
}

#[tokio::test]
async fn ill_health_is_503() {
    let web = serve(false).await;
    assert!(ask(web.local_addr(), "/health").await.starts_with("HTTP/1.1 503"));
    web.shutdown().await;
}

#[tokio::test]
async fn few_connections_are_open_at_a_time_and_the_next_one_waits_for_one_to_end() {
    let web = serve(true).await;
    let mut idle = Vec::new();
    for _ in 0..crate::connections::CONNECTIONS_MAX {
        idle.push(TcpStream::connect(web.local_addr()).await.unwrap());
    }
    let asked = tokio::spawn({
        let address = web.local_addr();
        async move { ask(address, "/health").await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!asked.is_finished(), "one more than may be was served");
    idle.pop();
    assert!(asked.await.unwrap().starts_with("HTTP/1.1 200"));
    web.shutdown().await;
}

/// Connections with a byte of a header now and then take all places. They lose them to clients that ask.
#[tokio::test]
async fn connections_that_never_finish_a_request_give_their_places_up_to_those_that_ask() {
    let web = serve(true).await;
    let address = web.local_addr();
    let count = crate::connections::CONNECTIONS_MAX;
    let mut trickling = Vec::new();
    for _ in 0..20 * count {
        trickling.push(tokio::spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let begun = stream.write_all(b"GET /health HTTP/1.1\r\nX-Slow: ").await;
            while begun.is_ok() && stream.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let patience = Duration::from_secs(30);
    for _ in 0..3 {
        let asked = tokio::time::timeout(patience, ask(address, "/health")).await;
        assert!(asked.expect("there is a place in time").starts_with("HTTP/1.1 200"));
    }
    trickling.iter().for_each(|task| task.abort());
    web.shutdown().await;
}

/// An answer that takes its time keeps its place, however many wait.
#[tokio::test]
async fn a_request_that_is_being_answered_keeps_its_place() {
    let (sender, body) = crate::body::pieces(None);
    let body = Arc::new(parking_lot::Mutex::new(Some(body)));
    let slow = move || {
        let body = body.lock().take().unwrap();
        async move { body }
    };
    let router = Router::new().route("/slow", get(slow));
    let pages = Pages { router, connections_max: 2, ..Pages::default() };
    let health: HealthSource = Arc::new(|| Health { ok: true, ..Health::default() });
    let web = Web::bind_with("127.0.0.1:0".parse().unwrap(), Arc::new(Registry::default()), health, pages);
    let web = web.await.unwrap();
    let address = web.local_addr();
    let answered = tokio::spawn(async move { ask(address, "/slow").await });
    assert!(sender.send("first ".into()).await);
    // Each of these takes the other place for the time of our patience.
    let mut resting = Vec::new();
    for _ in 0..2 {
        resting.push(TcpStream::connect(address).await.unwrap());
        assert!(ask(address, "/health").await.starts_with("HTTP/1.1 200"));
    }
    assert!(sender.send("second".into()).await, "the slow answer was cut");
    sender.end();
    let answer = answered.await.unwrap();
    assert!(answer.contains("first ") && answer.contains("second"), "{answer}");
    web.shutdown().await;
}

/// A server with two connections at most, which takes forms and has a page without an end.
async fn serve_two() -> Web {
    let take = |body: axum::body::Bytes| async move { format!("{} bytes", body.len()) };
    let endless = || async {
        let (sender, body) = crate::body::pieces(None);
        drop(tokio::spawn(async move { while sender.send(vec![b'x'; 64 << 10].into()).await {} }));
        body
    };
    let router = Router::new().route("/form", axum::routing::post(take)).route("/endless", get(endless));
    serve_pages(Pages { router, connections_max: 2, ..Pages::default() }).await
}

async fn serve_pages(pages: Pages) -> Web {
    let health: HealthSource = Arc::new(|| Health { ok: true, ..Health::default() });
    let address = "127.0.0.1:0".parse().unwrap();
    Web::bind_with(address, Arc::new(Registry::default()), health, pages).await.unwrap()
}

const LONG: Duration = Duration::from_secs(60);

/// What a client with a slow form sends at first.
const SLOW_FORM: &[u8] = b"POST /form HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n";

#[tokio::test]
async fn forms_of_a_byte_now_and_then_give_their_places_up_to_those_that_ask() {
    let web = serve_two().await;
    let address = web.local_addr();
    let mut trickling = Vec::new();
    for _ in 0..6 {
        trickling.push(tokio::spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let begun = stream.write_all(SLOW_FORM).await;
            while begun.is_ok() && stream.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    for _ in 0..3 {
        let asked = tokio::time::timeout(LONG, ask(address, "/health")).await;
        assert!(asked.expect("there is a place in time").starts_with("HTTP/1.1 200"));
    }
    trickling.iter().for_each(|task| task.abort());
    web.shutdown().await;
}

#[tokio::test]
async fn answers_that_nobody_takes_give_their_places_up_to_those_that_ask() {
    let web = serve_two().await;
    let address = web.local_addr();
    let mut silent = Vec::new();
    for _ in 0..6 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /endless HTTP/1.1\r\nHost: here\r\n\r\n").await.unwrap();
        silent.push(stream);
    }
    let asked = tokio::time::timeout(LONG, ask(address, "/health")).await;
    assert!(asked.expect("there is a place in time").starts_with("HTTP/1.1 200"));
    web.shutdown().await;
}

/// A client whose form comes at a good pace is none of those that others wait for, though it takes longer in all than they may.
#[tokio::test]
async fn a_form_that_moves_comes_whole_while_slow_ones_give_their_places_up() {
    let web = serve_two().await;
    let address = web.local_addr();
    let pieces = 60;
    let moving = tokio::spawn(async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let length = pieces * (32 << 10);
        let head = format!(
            "POST /form HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..pieces {
            stream.write_all(&[b'x'; 32 << 10]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        (length, answer)
    });
    let mut slow = Vec::new();
    while !moving.is_finished() {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(SLOW_FORM).await.unwrap();
        slow.push(stream);
        assert!(ask(address, "/health").await.starts_with("HTTP/1.1 200"));
    }
    let (length, answer) = moving.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(&format!("{length} bytes")), "{answer}");
    assert!(slow.len() > 1, "nobody was made to wait");
    web.shutdown().await;
}

/// A file that is written is none the worse for a client that has sent all of it and does not wait for the answer.
#[tokio::test]
async fn a_body_that_came_whole_is_read_whole_though_its_client_has_gone() {
    let (sender, mut taken) = tokio::sync::mpsc::unbounded_channel();
    let take = |body: axum::body::Body| async move {
        drop(tokio::spawn(async move {
            // To make a file takes a while.
            tokio::time::sleep(Duration::from_millis(200)).await;
            let bytes = axum::body::to_bytes(body, usize::MAX).await;
            let _ = sender.send(bytes.map(|bytes| bytes.len()).map_err(|error| error.to_string()));
        }));
        std::future::pending::<()>().await;
    };
    let router = Router::new().route("/file", axum::routing::put(take));
    let web = serve_pages(Pages { router, ..Pages::default() }).await;
    for (head, body, whole) in [
        ("Content-Length: 9", "all of it", Some(9)),
        ("Content-Length: 10", "all of it", None),
        ("Transfer-Encoding: chunked", "9\r\nall of it\r\n0\r\n\r\n", Some(9)),
        ("Transfer-Encoding: chunked", "9\r\nall of it\r\n", None),
    ] {
        let mut stream = TcpStream::connect(web.local_addr()).await.unwrap();
        let request = format!("PUT /file HTTP/1.1\r\nHost: here\r\n{head}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).await.unwrap();
        drop(stream);
        let taken = taken.recv().await.unwrap();
        assert_eq!(taken.as_ref().ok().copied(), whole, "{head}: {taken:?}");
    }
    web.shutdown().await;
}

/// Answers wait for each other, and the first one for the client: the server makes none of them meanwhile.
#[tokio::test]
async fn clients_that_ask_ahead_and_take_no_answer_give_their_places_up_to_those_that_ask() {
    let router = Router::new().route("/page", get(|| async { "x".repeat(64 << 10) }));
    let web = serve_pages(Pages { router, connections_max: 2, ..Pages::default() }).await;
    let address = web.local_addr();
    let mut silent = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all("GET /page HTTP/1.1\r\nHost: here\r\n\r\n".repeat(500).as_bytes()).await.unwrap();
        silent.push(stream);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let asked = tokio::time::timeout(LONG / 3, ask(address, "/health")).await;
    assert!(asked.expect("there is a place in time").starts_with("HTTP/1.1 200"));
    web.shutdown().await;
}

/// A connection on which one request follows the other makes nobody wait, and would keep its place for ever.
#[tokio::test]
async fn connections_that_always_ask_give_their_places_up_between_answers_to_those_that_wait() {
    let web = serve_two().await;
    let address = web.local_addr();
    let mut busy = Vec::new();
    for _ in 0..2 {
        busy.push(tokio::spawn(async move {
            let mut connections = 0;
            loop {
                connections += 1;
                let mut stream = TcpStream::connect(address).await.unwrap();
                let mut answer = vec![0; 4096];
                while stream.write_all(b"GET /live HTTP/1.1\r\nHost: here\r\n\r\n").await.is_ok()
                    && matches!(stream.read(&mut answer).await, Ok(count) if count > 0)
                {}
                assert!(connections < 1000, "no connection lasts");
            }
        }));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let asked = tokio::time::timeout(LONG / 3, ask(address, "/health")).await;
    assert!(asked.expect("there is a place in time").starts_with("HTTP/1.1 200"));
    assert!(busy.iter().all(|task| !task.is_finished()));
    busy.iter().for_each(|task| task.abort());
    web.shutdown().await;
}

/// More than the system takes for a slow client at once.
const ANSWER_BYTES: usize = 8 << 20;
const PIECE_BYTES: usize = 64 << 10;

/// Takes an answer with a pause before each piece, and says how many bytes there were. What has not been taken waits at the server, not here.
async fn take_slowly(addr: SocketAddr, path: &str) -> usize {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(PIECE_BYTES as u32).unwrap();
    let mut stream = socket.connect(addr).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut piece, mut taken) = (vec![0; PIECE_BYTES], 0);
    loop {
        tokio::time::sleep(Duration::from_millis(70)).await;
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return taken,
            Ok(count) => taken += count,
        }
    }
}

/// How many bytes come to a client that takes an answer at a megabyte a second or less, while others wait all the time.
async fn taken_while_others_wait(body: fn() -> axum::body::Body) -> usize {
    let router = Router::new().route("/answer", get(move || async move { body() }));
    let web = serve_pages(Pages { router, connections_max: 2, ..Pages::default() }).await;
    let address = web.local_addr();
    let taking = tokio::spawn(take_slowly(address, "/answer"));
    let mut slow = Vec::new();
    while !taking.is_finished() {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /health HTTP/1.1\r\nX-Slow: ").await.unwrap();
        slow.push(stream);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    web.shutdown().await;
    taking.await.unwrap()
}

/// On a slow line, a third of what the system takes for it at once is on its way for longer than a client may make the server wait.
#[tokio::test]
async fn an_answer_that_is_taken_slowly_is_taken_whole_while_others_wait() {
    let pieces = || {
        let (sender, body) = crate::body::pieces(Some(ANSWER_BYTES as u64));
        drop(tokio::spawn(async move {
            for _ in 0..ANSWER_BYTES / PIECE_BYTES {
                if !sender.send(vec![b'x'; PIECE_BYTES].into()).await {
                    return;
                }
            }
            sender.end();
        }));
        body
    };
    let one_piece = || axum::body::Body::from(vec![b'x'; ANSWER_BYTES]);
    let taken = tokio::join!(taken_while_others_wait(pieces), taken_while_others_wait(one_piece));
    assert!(taken.0 > ANSWER_BYTES && taken.1 > ANSWER_BYTES, "{taken:?} bytes came, with the heads");
}

#[tokio::test]
async fn headers_that_are_too_long_or_too_many_are_refused() {
    let web = serve(true).await;
    for headers in [format!("X-Long: {}\r\n", "x".repeat(200_000)), "X-Many: 1\r\n".repeat(200)] {
        let mut stream = TcpStream::connect(web.local_addr()).await.unwrap();
        // The server may close before it has read all of them.
        let _ = stream.write_all(format!("GET /health HTTP/1.1\r\n{headers}\r\n").as_bytes()).await;
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
    assert!(ask(web.local_addr(), "/health").await.starts_with("HTTP/1.1 200"));
    web.shutdown().await;
}

#[tokio::test]
async fn pages_are_served_by_the_threads_that_they_name() {
    let name = "threads-of-pages";
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name(name)
        .enable_all()
        .build()
        .unwrap();
    let thread = || async { std::thread::current().name().unwrap_or_default().to_owned() };
    let router = Router::new().route("/thread", get(thread));
    let pages = Pages { router, runtime: Some(runtime.handle().clone()), ..Pages::default() };
    let health: HealthSource = Arc::new(|| Health { ok: true, ..Health::default() });
    let address = "127.0.0.1:0".parse().unwrap();
    let web = Web::bind_with(address, Arc::new(Registry::default()), health, pages).await.unwrap();
    assert!(ask(web.local_addr(), "/thread").await.ends_with(name));
    web.shutdown().await;
    runtime.shutdown_background();
}

/// Says that it was dropped.
struct Dropped(tokio::sync::mpsc::UnboundedSender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn a_page_and_a_watch_see_the_server_and_the_watch_ends_with_it() {
    let state = |axum::Extension(facts): axum::Extension<crate::Facts>| async move { (facts.health)().state };
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let (dropping, mut dropped) = tokio::sync::mpsc::unbounded_channel();
    let watch: crate::Watch = Arc::new(move |facts| {
        let (told, guard) = (told.clone(), Dropped(dropping.clone()));
        Box::pin(async move {
            let _guard = guard;
            let _ = told.send((facts.health)().state);
            std::future::pending().await
        })
    });
    let router = Router::new().route("/state", get(state));
    let pages = Pages { router, watch: Some(watch), ..Pages::default() };
    let health: HealthSource =
        Arc::new(|| Health { ok: true, state: "active".to_owned(), ..Health::default() });
    let address = "127.0.0.1:0".parse().unwrap();
    let web = Web::bind_with(address, Arc::new(Registry::default()), health, pages).await.unwrap();
    assert_eq!(heard.recv().await.as_deref(), Some("active"));
    assert!(ask(web.local_addr(), "/state").await.ends_with("active"));
    assert!(dropped.try_recv().is_err());
    web.shutdown().await;
    assert_eq!(dropped.recv().await, Some(()));
}

/// A page whose name was led to this server after it was loaded is of this server's origin, as its browser sees it.
#[tokio::test]
async fn a_browser_that_was_led_here_by_a_strangers_name_gets_no_page() {
    let changed = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counting = changed.clone();
    let change = move || async move {
        counting.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    let router = Router::new().route("/change", axum::routing::any(change));
    let hosts = crate::hosts::Hosts::new(&["meta.example".to_owned()], [""; 0]).unwrap();
    let pages = Pages { router, hosts, ..Pages::default() };
    let health: HealthSource = Arc::new(|| Health { ok: true, ..Health::default() });
    let address = "127.0.0.1:0".parse().unwrap();
    let web = Web::bind_with(address, Arc::new(Registry::default()), health, pages).await.unwrap();
    let address = web.local_addr();
    let browser = "Connection: close\r\nUser-Agent: Mozilla/5.0 (X11)\r\nAccept-Language: en\r\n";
    for path in ["/health", "/live", "/ready", "/metrics", "/stacks", "/change", "/nowhere"] {
        for method in ["GET", "PUT", "OPTIONS"] {
            let of = |host: &str| format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{browser}\r\n");
            let refused = send(address, &of("evil.example:9870")).await;
            assert!(refused.starts_with("HTTP/1.1 421 "), "{method} {path}: {refused}");
            assert!(refused.contains("http_hosts"), "{refused}");
            let own = send(address, &of("meta.example:9870")).await;
            assert!(!own.starts_with("HTTP/1.1 421 "), "{method} {path}: {own}");
        }
    }
    assert_eq!(changed.load(std::sync::atomic::Ordering::Relaxed), 3, "one for each method by the own name");
    let program =
        send(address, "GET /health HTTP/1.1\r\nHost: alias.example\r\nConnection: close\r\n\r\n").await;
    assert!(program.starts_with("HTTP/1.1 200"), "{program}");
    let old = send(address, "GET /health HTTP/1.0\r\n\r\n").await;
    assert!(old.starts_with("HTTP/1.0 200") || old.starts_with("HTTP/1.1 200"), "{old}");
    web.shutdown().await;
}
