//! The console beside a real metadata server and a real data server, asked as a browser asks.

use client::{CreateOptions, FileSystem};
use console::{
    Config, Console, Keys, Program,
    login::{Link, PURPOSE},
};
use datad::{DataConfig, DataServer};
use env::Env;
use metad::{MetaConfig, MetaServer, peers::Secret};
use std::{
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use web::{
    LogLine, Pages,
    log_levels::Level,
    origin::Origins,
    settings::{Setting, Source},
};

const PATIENCE: Duration = Duration::from_secs(60);
const HOSTILE: &str = "<script>alert('1')<&\"> % ?#;+ä";
const TRANSFERS_MAX: usize = 8;
const ROUTES: [&str; 14] = [
    "/",
    "/group",
    "/data-servers",
    "/files/",
    "/blocks",
    "/snapshots",
    "/open-files",
    "/calls",
    "/start",
    "/usage",
    "/configuration",
    "/logs",
    "/login",
    "/explorer.html",
];

struct Cluster {
    http: SocketAddr,
    fs: FileSystem,
    secret: Secret,
    console: Console,
    _meta: MetaServer,
    _data: DataServer,
    _directory: tempfile::TempDir,
}

impl Cluster {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let env = Env::production();
        let user = client::Settings::new(&client::Config::new()).unwrap().user;
        let mut config = MetaConfig::new(directory.path().join("meta"));
        config.http_address = Some("127.0.0.1:0".parse().unwrap());
        config.limits.access.superuser = user.as_str().into();
        config.blocks.heartbeat_interval_ms = 100;
        let wanted = Config {
            operator: user,
            program: program(),
            origins: Origins::new(&["https://friend.example".to_owned()]),
            connections_max: 64,
            transfers_max: TRANSFERS_MAX,
        };
        let (console, pages) = Console::start(wanted, Pages::default()).unwrap();
        config.pages = pages;
        metad::format(&env, &config.name_directory, None, config.rpc_address.ip(), &config.group).unwrap();
        let meta = MetaServer::start(env.clone(), config.clone()).await.unwrap();
        let cluster = metad::read_cluster(&env, &config.name_directory).unwrap();
        let secret = cluster.secret.expect("a new cluster has a secret");
        let verifying = secret.clone();
        console.locate(meta.rpc_address().to_string());
        console.take_links(Keys {
            group: format!("{} {}", cluster.cluster_id, cluster.block_pool),
            member: config.group.member.0,
            verify: Arc::new(move |signed, proof| verifying.verifies(PURPOSE, &[signed], proof)),
        });
        let data = data_server(&env, directory.path(), meta.rpc_address()).await;
        let fs =
            FileSystem::connect(&format!("hdfs://{}", meta.rpc_address()), &client::Config::new()).unwrap();
        let cluster = Self {
            http: meta.http_address().unwrap(),
            fs,
            secret,
            console,
            _meta: meta,
            _data: data,
            _directory: directory,
        };
        cluster.wait_until("/data-servers", "1 of 1 data servers").await;
        cluster
    }

    async fn store(&self, path: &str, bytes: &[u8]) {
        let options = CreateOptions { replication: Some(1), ..CreateOptions::default() };
        let mut file = self.fs.create(path, &options).await.unwrap();
        file.write(bytes).await.unwrap();
        file.close().await.unwrap();
    }

    /// The head and the body of an answer.
    async fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.http).await.unwrap();
        let length =
            if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let http = self.http;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n{length}{headers}\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_lowercase(), body.to_owned())
    }

    /// Asks for a large file, of which nothing is read.
    async fn begin_download(&self) -> TcpStream {
        let mut stream = TcpStream::connect(self.http).await.unwrap();
        let request = format!("GET /download/large HTTP/1.1\r\nHost: {}\r\n\r\n", self.http);
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn page(&self, path: &str) -> String {
        let (head, body) = self.ask("GET", path, "", "").await;
        assert!(head.starts_with("http/1.1 200"), "{path}: {head}");
        body
    }

    async fn wait_until(&self, path: &str, text: &str) {
        self.wait_with("", path, text).await;
    }

    async fn wait_with(&self, cookie: &str, path: &str, text: &str) {
        let begun = std::time::Instant::now();
        loop {
            let page = self.ask("GET", path, cookie, "").await.1;
            if page.contains(text) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{path} never says {text}: {page}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// A login link as the command line makes it, and the cookie that it brings.
    async fn sign_in(&self, user: &str) -> String {
        let made_ms =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
        let link = Link { member: 1, made_ms, nonce: console::random(), user: user.to_owned() };
        let key = link.text(&self.secret.sign(PURPOSE, &[link.signed().as_bytes()]));
        let (head, _) = self.ask("POST", "/login", "", &format!("key={key}")).await;
        assert!(head.starts_with("http/1.1 303"), "{head}");
        let (_, cookie) = head.split_once("set-cookie: ").unwrap();
        let cookie = cookie.lines().next().unwrap();
        assert!(cookie.contains("httponly") && cookie.contains("samesite=strict"), "{cookie}");
        let (head, again) = self.ask("POST", "/login", "", &format!("key={key}")).await;
        assert!(head.starts_with("http/1.1 401") && again.contains("used already"), "{head}");
        format!("Cookie: {}\r\n", cookie.split(';').next().unwrap())
    }
}

/// A program that has two settings and two lines of a log.
fn program() -> Program {
    let setting = |key: &str, value: &str| Setting {
        key: key.to_owned(),
        value: value.to_owned(),
        default: String::new(),
        source: Source::File("meta.toml".to_owned()),
        hadoop: None,
        range: String::new(),
        help: String::new(),
    };
    let settings = vec![setting("heartbeat_interval_ms", "2000"), setting("zookeeper_password", "hush")];
    let line = |level, text: &str| {
        Arc::new(LogLine { time_ms: 1_000, level, log: "metad".to_owned(), text: text.to_owned() })
    };
    let lines = vec![line(Level::Info, "all is well"), line(Level::Warn, HOSTILE)];
    Program { settings: Some(Arc::new(move || settings.clone())), log: Some(Arc::new(move || lines.clone())) }
}

async fn data_server(env: &Env, directory: &Path, meta: SocketAddr) -> DataServer {
    let volume = directory.join("data").to_str().unwrap().parse().unwrap();
    let mut config = DataConfig::new(vec![volume], vec![meta.to_string()]);
    config.heartbeat_interval_ms = 100;
    let server = DataServer::start(env.clone(), config).await.unwrap();
    server.wait_registered().await.unwrap();
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_whole_and_keeps_the_browser_to_this_server() {
    let cluster = Cluster::start().await;
    cluster.store("/a", b"hello").await;
    for path in ROUTES {
        let (head, body) = cluster.ask("GET", path, "", "").await;
        assert!(head.starts_with("http/1.1 200"), "{path}: {head}");
        assert!(head.contains("content-security-policy: default-src 'none'"), "{path}: {head}");
        assert!(
            head.contains("x-content-type-options: nosniff") && head.contains("cache-control: no-store"),
            "{path}: {head}"
        );
        assert!(body.contains("</html>"), "{path}: {body}");
    }
    for asset in ["/assets/console.css", "/assets/console.js", "/assets/icon.svg"] {
        assert!(cluster.ask("GET", asset, "", "").await.0.starts_with("http/1.1 200"), "{asset}");
    }
    let (head, _) = cluster.ask("GET", "/files", "", "").await;
    assert!(head.starts_with("http/1.1 303") && head.contains("location: /files/"), "{head}");
    // The pages beside the console are as they were.
    assert!(cluster.ask("GET", "/health", "", "").await.1.contains("\"role\":\"metadata\""));
    assert!(cluster.ask("GET", "/jmx", "", "").await.1.contains("NameNodeInfo"));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_show_the_true_figures_of_the_cluster() {
    let cluster = Cluster::start().await;
    cluster.fs.mkdirs("/dir").await.unwrap();
    let name = HOSTILE.replace('/', "");
    cluster.store(&format!("/dir/{name}"), b"first line\nsecond <b>line</b>\n").await;
    cluster.store("/dir/bytes", &[0, 1, 2, 255]).await;

    cluster.wait_until("/", "Member 1 is active in epoch").await;
    let overview = cluster.page("/").await;
    assert!(overview.contains("1 of 1"), "{overview}");
    let group = cluster.page("/group").await;
    assert!(group.contains("answers this") && group.contains("1 of 1 members in sync"), "{group}");
    let servers = cluster.page("/data-servers?state=live&filter=127.0.0.1").await;
    assert!(servers.contains("1 of 1 data servers") && servers.contains("in use"), "{servers}");
    let none = cluster.page("/data-servers?state=dead").await;
    assert!(none.contains("0 of 1 data servers"), "{none}");

    let listing = cluster.page("/files/dir").await;
    assert!(listing.contains("&#60;script&#62;alert") && !listing.contains("<script>alert"), "{listing}");
    let href = listing.split("href=\"").find(|part| part.starts_with("/files/dir/%3Cscript")).unwrap();
    let href = href.split('"').next().unwrap();
    let file = cluster.page(href).await;
    assert!(file.contains("second &#60;b&#62;line") && file.contains("blk_"), "{file}");
    assert!(file.contains("user::rw-") && file.contains("30 bytes"), "{file}");
    let bytes = cluster.page("/files/dir/bytes").await;
    assert!(bytes.contains("00 01 02 ff"), "{bytes}");
    let details = cluster.page("/files/dir?details").await;
    assert!(details.contains("no quota") && details.contains("user::rwx"), "{details}");
    let (head, body) = cluster.ask("GET", &href.replace("/files/", "/download/"), "", "").await;
    assert!(head.starts_with("http/1.1 200") && head.contains("content-disposition: attachment"), "{head}");
    assert_eq!(body, "first line\nsecond <b>line</b>\n");

    let usage = cluster.page("/usage?of=/dir").await;
    assert!(usage.contains("30 B") && usage.contains("4 B") && usage.contains(">dir</a>"), "{usage}");
    let calls = cluster.page("/calls").await;
    assert!(calls.contains("addBlock") && calls.contains("mkdirs"), "{calls}");
    assert!(cluster.page("/start").await.contains("This server: active."));
    let open = cluster.page("/open-files").await;
    assert!(open.contains("Their names are for superusers"), "{open}");
    // A file that is not there, one that may not be read, and paths that are none.
    for (path, status) in
        [("/files/none", 404), ("/files/a/../b", 400), ("/files/%ff", 400), ("/download/none", 404)]
    {
        let (head, body) = cluster.ask("GET", path, "", "").await;
        assert!(
            head.starts_with(&format!("http/1.1 {status}")) && body.contains("</html>"),
            "{path}: {head}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_directory_is_paged_and_rights_hold_for_strangers() {
    let cluster = Cluster::start().await;
    cluster.fs.mkdirs("/many").await.unwrap();
    for number in 0..205 {
        cluster.fs.mkdirs(&format!("/many/{number:03}")).await.unwrap();
    }
    let first = cluster.page("/files/many").await;
    assert!(first.contains(">199/<") && !first.contains(">200/<"), "{first}");
    assert!(first.contains("href=\"/files/many?after=199\""), "{first}");
    let second = cluster.page("/files/many?after=199").await;
    assert!(second.contains(">204/<") && !second.contains("Next page"), "{second}");

    cluster.fs.set_permission("/many", 0o700).await.unwrap();
    let (head, body) = cluster.ask("GET", "/files/many", "", "").await;
    assert!(head.starts_with("http/1.1 403") && body.contains("dr.who"), "{head} {body}");
    let cookie = cluster.sign_in(cluster.fs.user()).await;
    assert!(cluster.ask("GET", "/files/many", &cookie, "").await.0.starts_with("http/1.1 200"));
}

#[tokio::test(flavor = "multi_thread")]
async fn users_who_have_signed_in_change_files_and_nobody_else_does() {
    let cluster = Cluster::start().await;
    cluster.fs.mkdirs("/user/ann").await.unwrap();
    cluster.fs.set_owner("/user/ann", Some("ann"), None).await.unwrap();
    let cookie = cluster.sign_in("ann").await;
    let mkdir = "path=/user/ann&name=new";
    // Without a session, and with one from a foreign page.
    let foreign = [
        String::new(),
        format!("{cookie}Origin: http://evil.example\r\n"),
        format!("{cookie}Sec-Fetch-Site: cross-site\r\n"),
        format!("{cookie}Origin: null\r\n"),
        cookie.replace('=', "=0"),
    ];
    for headers in &foreign {
        for (method, path) in
            [("POST", "/changes/mkdir"), ("PUT", "/upload/user/ann/file"), ("POST", "/changes/delete")]
        {
            let (head, _) = cluster.ask(method, path, headers, mkdir).await;
            assert!(head.starts_with("http/1.1 403"), "{path} {headers}: {head}");
        }
    }
    assert!(
        !cluster.fs.exists("/user/ann/new").await.unwrap()
            && !cluster.fs.exists("/user/ann/file").await.unwrap()
    );
    // A GET changes nothing.
    assert!(
        cluster
            .ask("GET", "/changes/mkdir?path=/user/ann&name=x", &cookie, "")
            .await
            .0
            .starts_with("http/1.1 405")
    );

    let own = format!("{cookie}Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\n", cluster.http);
    let (head, _) = cluster.ask("POST", "/changes/mkdir", &own, mkdir).await;
    assert!(head.starts_with("http/1.1 303"), "{head}");
    assert!(cluster.fs.status("/user/ann/new").await.unwrap().is_dir());
    let (head, _) = cluster.ask("PUT", "/upload/user/ann/new/file%20%C3%A4", &own, "the bytes").await;
    assert!(head.starts_with("http/1.1 201"), "{head}");
    let stored = cluster.fs.status("/user/ann/new/file ä").await.unwrap();
    assert_eq!((stored.length, stored.owner.as_str(), stored.mode), (9, "ann", 0o644));
    let (head, body) = cluster.ask("PUT", "/upload/user/ann/new/file%20%C3%A4", &own, "others").await;
    assert!(!head.starts_with("http/1.1 201") && body.contains("banner error"), "{head}");
    let (head, _) =
        cluster.ask("POST", "/changes/rename", &own, "path=/user/ann/new/file%20%C3%A4&to=plain").await;
    assert!(head.starts_with("http/1.1 303"), "{head}");
    let (head, _) =
        cluster.ask("POST", "/changes/rights", &own, "path=/user/ann/new/plain&mode=0600&owner=").await;
    assert!(head.starts_with("http/1.1 303"), "{head}");
    assert_eq!(cluster.fs.status("/user/ann/new/plain").await.unwrap().mode, 0o600);

    // Into the trash and back; what the page offers is what brings it back.
    let (head, _) = cluster.ask("POST", "/changes/delete", &own, "path=/user/ann/new/plain").await;
    let (_, address) = head.split_once("location: ").unwrap();
    let told = cluster.ask("GET", address.lines().next().unwrap(), &cookie, "").await.1;
    assert!(told.contains("is in the trash") && told.contains("/changes/undo"), "{told}");
    assert!(!cluster.fs.exists("/user/ann/new/plain").await.unwrap());
    let undo = "path=/user/ann/new/plain&trash=/user/ann/.Trash/Current/user/ann/new/plain";
    let (head, _) = cluster
        .ask("POST", "/changes/undo", &own, &undo.replace("trash=/user/ann/.Trash", "trash=/user/ann"))
        .await;
    assert!(head.starts_with("http/1.1 400"), "{head}");
    assert!(cluster.ask("POST", "/changes/undo", &own, undo).await.0.starts_with("http/1.1 303"));
    assert_eq!(cluster.fs.status("/user/ann/new/plain").await.unwrap().length, 9);

    // Rights are those of the file system.
    let (head, body) = cluster.ask("POST", "/changes/mkdir", &own, "path=/&name=ann").await;
    assert!(head.starts_with("http/1.1 403") && body.contains("Permission denied"), "{head} {body}");
    assert!(cluster.ask("POST", "/logout", &own, "x=").await.0.starts_with("http/1.1 303"));
    assert!(cluster.ask("POST", "/changes/mkdir", &own, mkdir).await.0.starts_with("http/1.1 403"));
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_quotas_access_lists_and_snapshots_are_changed_by_forms() {
    let cluster = Cluster::start().await;
    cluster.fs.mkdirs("/user/ann").await.unwrap();
    cluster.fs.set_owner("/user/ann", Some("ann"), None).await.unwrap();
    cluster.store("/user/ann/file", b"bytes").await;
    cluster.fs.set_owner("/user/ann/file", Some("ann"), None).await.unwrap();
    let own = |cookie: String| {
        format!("{cookie}Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\n", cluster.http)
    };
    let (ann, superuser) = (own(cluster.sign_in("ann").await), own(cluster.sign_in(cluster.fs.user()).await));
    let post = async |headers: &str, change: &str, form: &str| {
        let (head, body) = cluster.ask("POST", &format!("/changes/{change}"), headers, form).await;
        (head.split(' ').nth(1).unwrap_or_default().to_owned(), body)
    };

    let done = async |headers: &str, change: &str, form: &str| {
        let (status, body) = post(headers, change, form).await;
        assert_eq!(status, "303", "{change} {form}: {body}");
    };
    let refused = async |headers: &str, change: &str, form: &str, expected: (&str, &str)| {
        let (status, body) = post(headers, change, form).await;
        assert!(
            status == expected.0 && body.to_lowercase().contains(&expected.1.to_lowercase()),
            "{change} {form}: {status} {body}"
        );
    };
    done(&ann, "replication", "path=/user/ann/file&replication=2").await;
    assert_eq!(cluster.fs.status("/user/ann/file").await.unwrap().replication, 2);
    refused(&ann, "replication", "path=/user/ann/file&replication=0", ("400", "from 1 on")).await;
    done(&ann, "acl", "path=/user/ann/file&entries=user:bob:r--&do=modify").await;
    assert!(cluster.fs.status("/user/ann/file").await.unwrap().has_acl);
    refused(&ann, "acl", "path=/user/ann/file&entries=user:bob:rwz&do=modify", ("400", "Invalid permission"))
        .await;
    refused(&ann, "acl", "path=/user/ann/file&entries=&do=remove", ("400", "names no entry")).await;
    refused(&ann, "acl", "path=/user/ann/file&entries=user:bob:r--", ("400", "what to do")).await;
    done(&ann, "acl", "path=/user/ann/file&do=clear").await;
    assert!(!cluster.fs.status("/user/ann/file").await.unwrap().has_acl);

    // Quotas, and which directories may have snapshots, are for superusers.
    refused(&ann, "quota", "path=/user/ann&names=9", ("403", "superuser")).await;
    done(&superuser, "quota", "path=/user/ann&names=9&space=10g").await;
    let usage = cluster.fs.quota_usage("/user/ann").await.unwrap();
    assert_eq!((usage.name_quota, usage.space_quota), (Some(9), Some(10 << 30)));
    done(&superuser, "quota", "path=/user/ann&names=none").await;
    let usage = cluster.fs.quota_usage("/user/ann").await.unwrap();
    assert_eq!((usage.name_quota, usage.space_quota), (None, Some(10 << 30)));
    refused(&superuser, "quota", "path=/user/ann&names=many", ("400", "many is no quota")).await;

    refused(&ann, "snapshots/allow", "path=/user/ann", ("403", "superuser")).await;
    done(&superuser, "snapshots/allow", "path=/user/ann").await;
    done(&ann, "snapshots/create", "path=/user/ann&name=one").await;
    done(&ann, "snapshots/create", "path=/user/ann&name=").await;
    done(&ann, "snapshots/rename", "path=/user/ann&name=one&to=first").await;
    let (_, shown) = cluster.ask("GET", "/snapshots?of=/user/ann", &ann, "").await;
    assert!(shown.contains(">first</a>") && shown.contains("/changes/snapshots/delete"), "{shown}");
    refused(&ann, "snapshots/delete", "path=/user/ann&name=first&again=one", ("400", "does not come back"))
        .await;
    done(&ann, "snapshots/delete", "path=/user/ann&name=first&again=first").await;
    assert_eq!(cluster.fs.snapshots("/user/ann").await.unwrap().len(), 1);
    refused(&superuser, "snapshots/disallow", "path=/user/ann", ("403", "snapshot")).await;
    let (_, details) = cluster.ask("GET", "/files/user/ann?details", &ann, "").await;
    assert!(
        details.contains("/changes/quota") && details.contains("/snapshots?of=%2Fuser%2Fann"),
        "{details}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn all_see_the_settings_and_superusers_the_log() {
    let cluster = Cluster::start().await;
    let all = cluster.page("/configuration").await;
    assert!(all.contains("2 of 2 settings") && all.contains("heartbeat_interval_ms"), "{all}");
    assert!(!all.contains("hush"), "{all}");
    let found = cluster.page("/configuration?filter=HEART&set=1").await;
    assert!(found.contains("1 of 2 settings") && found.contains("value=\"HEART\""), "{found}");
    assert!(cluster.page("/configuration?filter=hush").await.contains("No setting matches."));

    let (superuser, ann) = (cluster.sign_in(cluster.fs.user()).await, cluster.sign_in("ann").await);
    for cookie in ["", &ann] {
        let (head, body) = cluster.ask("GET", "/logs", cookie, "").await;
        assert!(head.starts_with("http/1.1 200") && body.contains("for superusers"), "{head} {body}");
        assert!(!body.contains("all is well"), "{body}");
    }
    let (_, log) = cluster.ask("GET", "/logs", &superuser, "").await;
    assert!(log.contains("2 of 2 lines") && log.contains("all is well"), "{log}");
    assert!(!log.contains("<script>alert"), "{log}");
    let (_, warnings) = cluster.ask("GET", "/logs?level=warn&filter=ALERT", &superuser, "").await;
    assert!(warnings.contains("1 of 2 lines") && !warnings.contains("all is well"), "{warnings}");
}

#[tokio::test(flavor = "multi_thread")]
async fn superusers_see_which_files_have_too_few_replicas() {
    let cluster = Cluster::start().await;
    let options = CreateOptions { replication: Some(2), ..CreateOptions::default() };
    let mut file = cluster.fs.create("/few", &options).await.unwrap();
    file.write(b"some bytes").await.unwrap();
    file.close().await.unwrap();
    cluster.store("/enough", b"other bytes").await;
    let superuser = cluster.sign_in(cluster.fs.user()).await;
    cluster.wait_with(&superuser, "/blocks", "href=\"/files/few\"").await;
    let (_, named) = cluster.ask("GET", "/blocks", &superuser, "").await;
    assert!(!named.contains("/enough"), "{named}");
    let ann = cluster.sign_in("ann").await;
    for cookie in ["", &ann] {
        let (_, told) = cluster.ask("GET", "/blocks", cookie, "").await;
        assert!(told.contains("Their names are for superusers") && !told.contains("/files/few"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hand_over_is_for_superusers_and_wants_another_member() {
    let cluster = Cluster::start().await;
    let ordered = Arc::new(AtomicUsize::new(0));
    let counted = ordered.clone();
    cluster.console.take_orders(Arc::new(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok("Member 2 is active.".to_owned()) })
    }));
    let (superuser, ann) = (cluster.sign_in(cluster.fs.user()).await, cluster.sign_in("ann").await);
    let order = "to=any&epoch=1";
    let own = format!("Origin: http://{}\r\n", cluster.http);
    for headers in
        ["", &*own, &*ann, &format!("{ann}{own}"), &format!("{superuser}Origin: http://evil.example\r\n")]
    {
        let (head, body) = cluster.ask("POST", "/group/hand-over", headers, order).await;
        assert!(head.starts_with("http/1.1 403"), "{headers}: {head} {body}");
    }
    for cookie in ["", &ann] {
        let (head, _) = cluster.ask("GET", "/group/hand-over", cookie, "").await;
        assert!(head.starts_with("http/1.1 403"), "{cookie}: {head}");
    }
    // This group has one member.
    assert!(!cluster.ask("GET", "/group", &superuser, "").await.1.contains("hand-over"));
    let (head, body) = cluster.ask("GET", "/group/hand-over", &superuser, "").await;
    assert!(
        head.starts_with("http/1.1 200") && body.contains("The group has no other member."),
        "{head} {body}"
    );
    let (head, body) = cluster.ask("POST", "/group/hand-over", &format!("{superuser}{own}"), order).await;
    assert!(head.starts_with("http/1.1 409") && body.contains("No other member is in sync"), "{head} {body}");
    assert_eq!(ordered.load(Ordering::SeqCst), 0);
}

/// As many as there are places for pages, and more.
const MANY: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn forms_that_do_not_come_hold_no_page_up() {
    let cluster = Cluster::start().await;
    let cookie = cluster.sign_in("ann").await;
    let mut slow = Vec::new();
    for (path, headers) in [("/login", ""), ("/changes/mkdir", cookie.as_str())] {
        for _ in 0..MANY {
            let mut stream = TcpStream::connect(cluster.http).await.unwrap();
            let request = format!(
                "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: 100\r\nExpect: 100-continue\r\n{headers}\r\n",
                cluster.http
            );
            stream.write_all(request.as_bytes()).await.unwrap();
            // The server says so when it begins to wait for the form.
            let mut answer = [0; 12];
            tokio::time::timeout(PATIENCE, stream.read_exact(&mut answer)).await.unwrap().unwrap();
            assert_eq!(&answer, b"HTTP/1.1 100");
            slow.push(stream);
        }
    }
    cluster.page("/").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn downloads_that_wait_hold_up_neither_pages_nor_uploads() {
    let cluster = Cluster::start().await;
    cluster.fs.mkdirs("/user/ann").await.unwrap();
    cluster.fs.set_owner("/user/ann", Some("ann"), None).await.unwrap();
    let cookie = cluster.sign_in("ann").await;
    // More than what the buffers between this server and a client take.
    cluster.store("/large", &vec![7; 16 << 20]).await;
    let mut begun = Vec::new();
    for _ in 0..TRANSFERS_MAX {
        let mut stream = cluster.begin_download().await;
        let mut answer = [0; 12];
        tokio::time::timeout(PATIENCE, stream.read_exact(&mut answer)).await.unwrap().unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        begun.push(stream);
    }
    // These wait for their turn.
    for _ in 0..MANY {
        begun.push(cluster.begin_download().await);
    }
    cluster.page("/").await;
    let (head, _) = cluster.ask("PUT", "/upload/user/ann/file", &cookie, "the bytes").await;
    assert!(head.starts_with("http/1.1 201"), "{head}");
}
