//! The page on monitoring names every metric that servers show, and no other.

mod demo;

use demo::{Demo, clover};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(60);
const PAGE: &str = "docs/operating/monitoring.md";

/// The type of each metric (`counter`, `gauge`, `histogram`) with the names of its labels, by the metric's name.
type Metrics = BTreeMap<String, String>;

#[test]
fn the_page_on_monitoring_names_every_metric_and_no_other() {
    let demo = Demo::of_members(3);
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap();

    let members = pages_of_a_whole_group(&demo, 3);
    // Refusals are counted once there is one.
    assert_eq!(demo.fs(None, &["-cat", "/nowhere"]).code, 1);
    let mut shown: Metrics = members.iter().flat_map(|page| metrics(&ask(page))).collect();
    // Some numbers are there only where several groups share a namespace.
    shown.extend({
        let groups = Demo::of_groups(2, 1);
        metrics(&ask(&pages_of_a_whole_group(&groups, 1)[0]))
    });
    assert_eq!(named(&page, "## Metrics of a metadata server"), shown);

    let shown = metrics(&ask_a_data_server(&demo));
    assert_eq!(named(&page, "## Metrics of a data server"), shown);
}

#[test]
fn no_document_speaks_of_a_metric_that_the_page_on_monitoring_does_not_name() {
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap();
    let named = names(&page);
    let mut strangers = Vec::new();
    for path in documents(&root().join("docs")).into_iter().chain([root().join("README.md")]) {
        let text = std::fs::read_to_string(&path).unwrap();
        let unknown = metrics_in(&text).filter(|word| !named.contains(*word));
        strangers.extend(unknown.map(|word| format!("{}: {word}", path.display())));
    }
    assert!(strangers.is_empty(), "{strangers:#?}");
}

#[test]
fn generated_rules_and_dashboards_ask_for_metrics_that_servers_show() {
    let named = names(&std::fs::read_to_string(root().join(PAGE)).unwrap());
    for what in [&["alerts"][..], &["alerts", "--groups", "3"], &["dashboard"]] {
        let text = generated(what);
        let found: Vec<&str> = metrics_in(&text).collect();
        assert!(found.len() > 20, "{what:?}: {found:?}");
        for metric in found {
            assert!(named.contains(metric), "{what:?} asks for {metric}, which no server shows");
        }
    }
    let dashboard: Value = serde_json::from_str(&generated(&["dashboard"])).unwrap();
    assert!(dashboard["panels"].as_array().unwrap().len() > 20);
}

#[test]
fn the_page_on_monitoring_has_each_generated_alert_with_its_severity_and_no_other() {
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `Clover"));
    let told: Vec<(String, String)> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            (cells[1].trim_matches('`').to_owned(), cells[2].to_owned())
        })
        .collect();
    let text = generated(&["alerts"]);
    let word = |rule: &str, mark: &str| {
        let (_, rest) = rule.split_once(mark).unwrap_or_else(|| panic!("{mark}: {rule}"));
        rest.split(|letter: char| !letter.is_ascii_alphanumeric()).next().unwrap_or_default().to_owned()
    };
    let written: Vec<_> =
        text.split("- alert: ").skip(1).map(|rule| (word(rule, ""), word(rule, "severity: "))).collect();
    assert_eq!(told, written);
}

#[test]
fn the_page_on_conditions_has_a_section_for_each_code_and_no_other() {
    let page = std::fs::read_to_string(root().join("docs/operating/conditions.md")).unwrap();
    let sections: Vec<(&str, &str)> = page
        .split("\n## ")
        .skip(1)
        .map(|section| section.split_once('\n').expect("a heading has a text below it"))
        .collect();
    let headings: Vec<&str> = sections.iter().map(|(heading, _)| *heading).collect();
    assert_eq!(headings, verdict::Code::ALL.iter().map(|code| code.as_str()).collect::<Vec<_>>());
    for ((heading, text), code) in sections.iter().zip(verdict::Code::ALL) {
        let opening = text.trim_start().split(['.', '\n']).next().unwrap_or_default().to_lowercase();
        let first = opening.split(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default();
        assert_eq!(first, code.severities()[0].as_str(), "{heading} begins with its severity");
    }
}

#[test]
fn the_page_on_errors_has_each_exception_that_a_client_may_get() {
    let page = std::fs::read_to_string(root().join("docs/operating/errors.md")).unwrap();
    let exceptions = page.split("\n## ").find(|part| part.starts_with("Exceptions\n")).unwrap();
    let rows = exceptions.lines().filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    let told: BTreeSet<&str> = rows.flat_map(|cell| cell.split(['`', ',', ' '])).collect();
    let source = std::fs::read_to_string(root().join("crates/proto/src/exception.rs")).unwrap();
    let classes = source.split('"').filter(|text| text.ends_with("Exception") && !text.contains(' '));
    let names: BTreeSet<&str> = classes.filter_map(|class| class.rsplit(['.', '$']).next()).collect();
    assert!(names.len() > 30, "{names:?}");
    // Users do not meet these: data servers and the tools of operators do.
    let others = [
        "DiskBalancerException",
        "HealthCheckFailedException",
        "ReplicaAlreadyExistsException",
        "ServiceFailedException",
    ];
    let lacking: Vec<&&str> =
        names.iter().filter(|name| !told.contains(**name) && !others.contains(name)).collect();
    assert!(lacking.is_empty(), "{lacking:?}");
}

fn generated(what: &[&str]) -> String {
    let mut command = clover(&root());
    let output = command.arg("generate").args(what).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The names under which the metrics of the page are asked for.
fn names(page: &str) -> BTreeSet<String> {
    named(page, "## Metrics of a metadata server")
        .into_keys()
        .chain(named(page, "## Metrics of a data server").into_keys())
        .map(|metric| metric.split('{').next().unwrap_or_default().to_owned())
        .flat_map(|metric| ["_bucket", "_sum", "_count", ""].map(|end| format!("{metric}{end}")))
        .collect()
}

/// The words of a text that look like metrics of Clover.
fn metrics_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("clover_"))
}

#[test]
fn a_server_shows_its_settings_and_sets_the_levels_of_its_log() {
    let demo = Demo::of_members(3);
    let address = &pages_of_a_whole_group(&demo, 3)[0];
    let ask = |path: &str, headers: &str| try_to_get(address, path, headers).unwrap();

    let one = ask("/conf?name=dfs.heartbeat.interval", "Accept: application/json\r\n");
    let expected = r#"{"property":{"key":"dfs.heartbeat.interval","value":"1","isFinal":false,"resource":"command line"}}"#;
    assert!(one.ends_with(expected), "{one}");
    let all = ask("/conf", "");
    assert!(
        all.contains("<property><name>name_dir</name>") && !all.contains("<name>data_dirs</name>"),
        "{all}"
    );
    assert!(ask("/conf?name=nope", "").starts_with("HTTP/1.0 404"));

    assert!(ask("/logLevel?log=metad", "").contains("Effective Level: <b>WARN</b>"));
    let foreign = ask("/logLevel?log=metad&level=debug", "Origin: http://evil.example\r\n");
    assert!(foreign.starts_with("HTTP/1.0 403"), "{foreign}");
    assert!(ask("/logLevel?log=metad", "").contains("Effective Level: <b>WARN</b>"));
    let set = ask("/logLevel?log=metad&level=debug", "");
    assert!(set.contains("Effective Level: <b>DEBUG</b>"), "{set}");
    assert!(ask("/logLevel?log=datad", "").contains("Effective Level: <b>WARN</b>"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn documents(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(documents(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found
}

/// The first two columns of the tables in a part of the page: `name` or `name{label}`, and what kind it is.
fn named(page: &str, part: &str) -> Metrics {
    let (_, text) = page.split_once(part).unwrap_or_else(|| panic!("{PAGE} has no `{part}`"));
    let text = text.split("\n## ").next().unwrap_or_default();
    let mut found = Metrics::new();
    for row in text.lines().filter(|line| line.starts_with("| `clover_")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let kind = cells[2].split(',').next().unwrap_or_default();
        let before = found.insert(cells[1].trim_matches('`').to_owned(), kind.to_owned());
        assert!(before.is_none(), "{} stands there twice", cells[1]);
    }
    found
}

/// The metrics in a page of `/metrics`, in the words of the operating page.
fn metrics(text: &str) -> Metrics {
    let kinds: BTreeMap<&str, &str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    let mut found = Metrics::new();
    for line in text.lines().filter(|line| line.starts_with("clover_")) {
        let (sample, _) = line.rsplit_once(' ').unwrap();
        let (name, labels) = sample.split_once('{').unwrap_or((sample, ""));
        let labels = labels.trim_end_matches('}').split(',').filter_map(|label| label.split_once('='));
        // The ranges of a histogram are no label of its own.
        let labels: Vec<&str> = labels.map(|(label, _)| label).filter(|label| *label != "le").collect();
        let histogram = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        let name = histogram.filter(|name| kinds.get(name) == Some(&"histogram")).unwrap_or(name);
        let kind = kinds[name.strip_suffix("_total").filter(|name| kinds.contains_key(name)).unwrap_or(name)];
        let metric =
            if labels.is_empty() { name.to_owned() } else { format!("{name}{{{}}}", labels.join(",")) };
        found.insert(metric, kind.to_owned());
    }
    found
}

/// The addresses of the members' pages. It waits until all members are in sync, because only then each of them reports
/// on all others.
fn pages_of_a_whole_group(demo: &Demo, size: usize) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let output = demo.run_for_group(&["admin", "group", "--json"]);
        let group: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let in_sync = group["view"]["in_sync"].as_array().map_or(0, Vec::len);
        if in_sync == size && !group["takeovers"].as_array().is_none_or(Vec::is_empty) {
            let members = group["members"].as_array().unwrap();
            return members
                .iter()
                .map(|member| member["http_address"].as_str().unwrap().to_owned())
                .collect();
        }
        assert!(begun.elapsed() < PATIENCE, "{}", output.text);
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn ask(address: &str) -> String {
    try_to_ask(address).unwrap_or_else(|error| panic!("{address}: {error}"))
}

fn try_to_ask(address: &str) -> std::io::Result<String> {
    try_to_get(address, "/metrics", "")
}

/// The answer, head and all. Each further line of headers ends in `\r\n`.
fn try_to_get(address: &str, path: &str, headers: &str) -> std::io::Result<String> {
    let mut connection = TcpStream::connect(address)?;
    write!(connection, "GET {path} HTTP/1.0\r\nHost: {address}\r\n{headers}\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    Ok(answer)
}

/// A data server of the demo's in a process of its own, whose pages are at a known address.
struct DataServer {
    process: Child,
    address: String,
    rpc_address: String,
}

impl DataServer {
    fn start(demo: &Demo) -> Self {
        // Free now. Another connection may take them before the server does: then the server ends.
        let [address, rpc_address] = [TcpListener::bind("127.0.0.1:0"), TcpListener::bind("127.0.0.1:0")]
            .map(|listener| listener.unwrap().local_addr().unwrap().to_string());
        let directory = demo.local().join("data-of-its-own");
        std::fs::create_dir_all(&directory).unwrap();
        let mut command = clover(&demo.local());
        command.arg("data");
        for setting in [
            format!("data_dirs={}", directory.display()),
            format!("metadata_servers={}", demo.uri().trim_start_matches("hdfs://")),
            "transfer_address=127.0.0.1:0".into(),
            format!("ipc_address={rpc_address}"),
            format!("data_http_address={address}"),
        ] {
            command.args(["--set", &setting]);
        }
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { process, address, rpc_address }
    }

    fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }
}

/// What a data server shows, once it serves.
fn ask_a_data_server(demo: &Demo) -> String {
    let begun = Instant::now();
    let mut server = DataServer::start(demo);
    loop {
        match try_to_ask(&server.address) {
            Ok(_) => break,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
        if server.has_ended() {
            server = DataServer::start(demo);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    // Calls and their refusals are counted once there are some. A stranger gives no orders.
    let mut order = clover(&demo.local());
    order.env("HADOOP_USER_NAME", "stranger").args(["admin", "reconfigure", &server.rpc_address]);
    assert_ne!(demo::run(order).code, 0);
    ask(&server.address)
}

impl Drop for DataServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
