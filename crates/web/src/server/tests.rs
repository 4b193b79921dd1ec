use super::*;
use prometheus_client::metrics::counter::Counter;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

async fn ask(addr: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn serve(ok: bool) -> Web {
    let mut registry = Registry::default();
    let calls: Counter = Counter::default();
    calls.inc_by(3);
    registry.register("calls", "Calls answered", calls);
    let health: HealthSource =
        Arc::new(move || Health { ok, state: "active".into(), details: BTreeMap::new(), not_ready: None });
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
        details: BTreeMap::new(),
        not_ready: Some("nobody leads".into()),
    });
    let address = "127.0.0.1:0".parse().unwrap();
    let web = Web::bind(address, Arc::new(Registry::default()), health).await.unwrap();
    assert!(ask(web.local_addr(), "/health").await.starts_with("HTTP/1.1 200"));
    let ready = ask(web.local_addr(), "/ready").await;
    assert!(ready.starts_with("HTTP/1.1 503") && ready.contains("nobody leads"), "{ready}");
    web.shutdown().await;
}

/// `hdfs dfsadmin -fetchImage` and `hdfs fsck` ask for these.
#[tokio::test]
async fn pages_of_hdfs_that_are_not_built_yet_say_so() {
    let web = serve(true).await;
    for page in ["/imagetransfer?getimage=1&txid=latest", "/fsck?path=%2F"] {
        let answer = ask(web.local_addr(), page).await;
        assert!(answer.starts_with("HTTP/1.1 501") && answer.contains("is not built yet"), "{answer}");
    }
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
    for _ in 0..crate::connection::CONNECTIONS_MAX {
        idle.push(TcpStream::connect(web.local_addr()).await.unwrap());
    }
    let asked = tokio::spawn({
        let address = web.local_addr();
        async move { ask(address, "/health").await }
    });
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert!(!asked.is_finished(), "one more than may be was served");
    idle.pop();
    assert!(asked.await.unwrap().starts_with("HTTP/1.1 200"));
    web.shutdown().await;
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
