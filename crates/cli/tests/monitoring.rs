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
    let named: BTreeSet<String> = named(&page, "## Metrics of a metadata server")
        .into_keys()
        .chain(named(&page, "## Metrics of a data server").into_keys())
        .map(|metric| metric.split('{').next().unwrap_or_default().to_owned())
        .flat_map(|metric| ["_bucket", "_sum", "_count", ""].map(|end| format!("{metric}{end}")))
        .collect();
    let mut strangers = Vec::new();
    for path in documents(&root().join("docs")).into_iter().chain([root().join("README.md")]) {
        let text = std::fs::read_to_string(&path).unwrap();
        for word in text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_') {
            if word.starts_with("clover_") && !named.contains(word) {
                strangers.push(format!("{}: {word}", path.display()));
            }
        }
    }
    assert!(strangers.is_empty(), "{strangers:#?}");
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
    let mut connection = TcpStream::connect(address)?;
    write!(connection, "GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    Ok(answer)
}

/// A data server of the demo's in a process of its own, whose pages are at a known address.
struct DataServer {
    process: Child,
    address: String,
}

impl DataServer {
    fn start(demo: &Demo) -> Self {
        // Free now. Another connection may take it before the server does: then the server ends.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let directory = demo.local().join("data-of-its-own");
        std::fs::create_dir_all(&directory).unwrap();
        let mut command = clover(&demo.local());
        command.arg("data");
        for setting in [
            format!("data_dirs={}", directory.display()),
            format!("metadata_servers={}", demo.uri().trim_start_matches("hdfs://")),
            "transfer_address=127.0.0.1:0".into(),
            "ipc_address=127.0.0.1:0".into(),
            format!("data_http_address={address}"),
        ] {
            command.args(["--set", &setting]);
        }
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { process, address }
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
            Ok(answer) => return answer,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
        if server.has_ended() {
            server = DataServer::start(demo);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl Drop for DataServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
