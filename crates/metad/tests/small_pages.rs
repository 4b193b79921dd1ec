//! The small pages of a NameNode: `/prom`, `/isActive`, `/live`, `/in-sync`, `/topology`, `/startupProgress` and `/stacks`, and the attributes that tools read at `/jmx`.

mod cluster;
#[path = "../../../tests/recorded/jmx.rs"]
mod jmx_record;
#[path = "../../../tests/recorded/monitors.rs"]
mod monitors;
#[path = "../../../tests/recorded/prom.rs"]
mod prom_record;

use cluster::{Cluster, Plan, page, page_with};
use metad::MetaConfig;
use monitors::questions;
use proto::hdfs as p;
use serde_json::Value;
use std::net::SocketAddr;

/// Metrics of Hadoop that are left out whole, by how their names begin, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("http_server", "the threads of Java's HTTP server"),
    ("metrics_system", "the machinery that collects Java's metrics"),
    ("ugi_metrics", "logins by Kerberos, and Java's look-ups of groups"),
    ("delegation_token", "there are no delegation tokens"),
    ("retry_cache", "the retry cache is no cache: it is journaled, and clover_retry_… of /metrics count it"),
    ("jvm_metrics_gc_", "Java's collectors by name"),
];

/// Of these records the numbers are shown that Clover counts. `/jmx` leaves out the same attributes.
const IN_PART: &[&str] = &["namenode_", "rpc_", "rpcdetailed_"];

/// Metrics of records that are shown otherwise, and that describe no part of Clover or are not measured.
const SINGLE: &[&str] = &[
    "fs_namesystem_block_capacity",
    "fs_namesystem_expired_heartbeats",
    "fs_namesystem_lock_queue_length",
    "fs_namesystem_millis_since_last_loaded_edits",
    "fs_namesystem_num_active_clients",
    "fs_namesystem_num_timed_out_pending_reconstructions",
    "fs_namesystem_read_lock_long_hold_count",
    "fs_namesystem_write_lock_long_hold_count",
];

fn with_pages(count: u32) -> Plan {
    Plan::group(count).adjusted(|_, config| show_pages(config))
}

fn show_pages(config: &mut MetaConfig) {
    config.http_address = Some("127.0.0.1:0".parse().unwrap());
}

fn pages_of(cluster: &Cluster, member: u32) -> SocketAddr {
    cluster.server(member).http_address().unwrap()
}

/// The status and the body of a page.
async fn ask(pages: SocketAddr, path: &str) -> (u16, String) {
    parts(&page(pages, path).await.unwrap())
}

fn parts(answer: &str) -> (u16, String) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_have_hadoops_names_types_and_labels() {
    let (mut cluster, _) = with_pages(1).in_sync().await;
    cluster.mkdirs(1, "/a").await;
    let answer = page(pages_of(&cluster, 1), "/prom").await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.to_lowercase().contains("content-type: text/plain"), "{head}");
    for wanted in [
        "fs_namesystem_missing_blocks{",
        "rpc_rpc_queue_time_num_ops{",
        "namenode_create_file_ops{",
        "jvm_metrics_mem_heap_used_m{",
        "rpcdetailed_mkdirs_num_ops{",
        "startup_progress_elapsed_time{",
    ] {
        assert!(body.lines().any(|line| line.starts_with(wanted)), "{wanted}");
    }
    let lacking = prom_record::lacking(body, "NameNode");
    let lacking: Vec<_> = lacking
        .iter()
        .filter(|name| !LEFT_OUT.iter().any(|(start, _)| name.starts_with(start)))
        .filter(|name| !IN_PART.iter().any(|start| name.starts_with(start)))
        .collect();
    assert_eq!(lacking, SINGLE);
    cluster.stop(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_active_says_that_it_is_active() {
    let (mut cluster, active) = with_pages(3).in_sync().await;
    for member in 1..=3 {
        let expected = match member == active {
            true => (200, "I am Active!".to_owned()),
            false => (405, "I am not Active!".to_owned()),
        };
        let pages = pages_of(&cluster, member);
        assert_eq!(ask(pages, "/isActive").await, expected, "member {member}");
        let (_, metrics) = ask(pages, "/prom").await;
        let state = metrics.lines().find(|line| line.starts_with("name_node_name_node_state{")).unwrap();
        assert!(state.ends_with(if member == active { "} 1" } else { "} 2" }), "{state}");
    }
    cluster.stop_all().await;
}

/// The word of one member about itself, until it is the one that is wanted.
async fn until_in_sync(cluster: &Cluster, member: u32, wanted: (u16, &str)) {
    let begun = std::time::Instant::now();
    loop {
        let (status, body) = ask(pages_of(cluster, member), "/in-sync").await;
        let told: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(told["in_sync"], status == 200, "{body}");
        if (status, told["state"].as_str().unwrap()) == wanted {
            return;
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "member {member}: {status} {body}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_is_in_sync_when_it_has_all_and_live_while_it_answers() {
    let (mut cluster, active) = with_pages(3).in_sync().await;
    for member in 1..=3 {
        let wanted = if member == active { (200, "active") } else { (200, "standby") };
        until_in_sync(&cluster, member, wanted).await;
        assert_eq!(ask(pages_of(&cluster, member), "/live").await, (200, "{\"live\":true}\n".to_owned()));
    }
    // One that nobody can renew is not in sync: the active is gone while it is away, and the other one alone may not go on.
    let (late, other) = match active {
        1 => (2, 3),
        2 => (1, 3),
        _ => (1, 2),
    };
    cluster.stop(late).await;
    cluster.mkdirs(active, "/while/it/was/away").await;
    cluster.stop(active).await;
    cluster.stop(other).await;
    cluster.restart(late).await;
    until_in_sync(&cluster, late, (503, "junior")).await;
    assert_eq!(ask(pages_of(&cluster, late), "/live").await.0, 200);
    cluster.restart(other).await;
    cluster.restart(active).await;
    for member in 1..=3 {
        let begun = std::time::Instant::now();
        while ask(pages_of(&cluster, member), "/in-sync").await.0 != 200 {
            assert!(begun.elapsed() < std::time::Duration::from_secs(60), "member {member} is never in sync");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_is_told_in_hadoops_phases() {
    let (mut cluster, _) = with_pages(1).in_sync().await;
    cluster.mkdirs(1, "/a").await;
    cluster.mkdirs(1, "/b").await;
    cluster.stop(1).await;
    cluster.restart(1).await;
    let (status, body) = ask(pages_of(&cluster, 1), "/startupProgress").await;
    let told: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &told["percentComplete"]), (200, &1.0.into()), "{body}");
    let phases = told["phases"].as_array().unwrap();
    let names: Vec<_> = phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["LoadingFsImage", "LoadingEdits", "SavingCheckpoint", "SafeMode"]);
    assert!(
        phases.iter().all(|phase| phase["status"] == "COMPLETE" && phase["elapsedTime"].is_u64()),
        "{body}"
    );
    let edits = &phases[1]["steps"][0];
    assert!(edits["count"].as_u64().unwrap() >= 2 && edits["count"] == edits["total"], "{body}");
    assert_eq!(phases[3]["steps"][0]["name"], "AwaitingReportedBlocks");

    let (_, bean) = ask(
        pages_of(&cluster, 1),
        "/jmx?get=Hadoop:service=NameNode,name=StartupProgress::LoadingEditsCount",
    )
    .await;
    assert!(bean.contains(&format!("\"LoadingEditsCount\" : {}", edits["count"])), "{bean}");
    cluster.stop(1).await;
}

/// The image is on a disk that takes its time. Nobody is refused a connection meanwhile, and the same port has all pages afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_reads_its_image_tells_how_far_it_is() {
    let pages = cluster::free_address();
    let plan = Plan::group(1).adjusted(move |_, config| config.http_address = Some(pages));
    let (mut cluster, _) = plan.in_sync().await;
    cluster.mkdirs(1, "/a").await;
    let files = cluster.client(1);
    cluster::set_safe_mode(&files, p::SafeModeActionProto::SafemodeEnter).await;
    let saved: p::SaveNamespaceResponseProto =
        files.call("saveNamespace", &p::SaveNamespaceRequestProto::default()).await.unwrap();
    assert!(saved.saved());
    cluster.stop(1).await;

    cluster.disk_of(1).hold("/images/");
    let mut starting = cluster.begin_together(&[1]);
    let health = loop {
        match page(pages, "/health").await {
            Ok(health) if health.contains("reads the image") => break health,
            _ => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
        }
    };
    assert!(health.starts_with("HTTP/1.1 503") && health.contains("\"state\":\"loading\""), "{health}");
    assert_eq!(ask(pages, "/live").await.0, 200);
    for (path, status) in [
        ("/ready", 503),
        ("/in-sync", 503),
        ("/isActive", 405),
        ("/topology", 503),
        ("/webhdfs/v1/?op=LISTSTATUS", 403),
    ] {
        assert_eq!(ask(pages, path).await.0, status, "{path}");
    }
    let (status, body) = ask(pages, "/startupProgress").await;
    let told: Value = serde_json::from_str(&body).unwrap();
    let statuses: Vec<_> =
        told["phases"].as_array().unwrap().iter().map(|phase| phase["status"].as_str().unwrap()).collect();
    assert_eq!((status, statuses), (200, vec!["RUNNING", "PENDING", "PENDING", "PENDING"]), "{body}");
    let (_, bean) = ask(pages, "/jmx?qry=Hadoop:service=NameNode,name=StartupProgress").await;
    assert!(bean.contains("\"LoadingFsImagePercentComplete\" : 0.0"), "{bean}");
    assert!(ask(pages, "/metrics").await.1.contains("clover_start_image_ratio 0.0\n"));
    let browser = page_with(pages, "/files/a", "Accept: text/html\r\n").await.unwrap();
    assert!(browser.contains("503") && browser.contains("It reads the image of the namespace."), "{browser}");

    cluster.disk_of(1).let_go();
    cluster.await_start(&mut starting, 1).await;
    assert_eq!(ask(pages, "/health").await.0, 200);
    let (_, body) = ask(pages, "/startupProgress").await;
    let told: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(told["phases"][0]["steps"][0]["name"], "Inodes", "{body}");
    assert!(ask(pages, "/metrics").await.1.contains("clover_start_image_ratio 1.0\n"));
    cluster.stop(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_in_safe_mode_is_not_complete() {
    let plan = Plan::group(1).adjusted(|_, config| {
        show_pages(config);
        config.blocks.safe_mode.min_servers = 1;
    });
    let (mut cluster, _) = plan.in_sync().await;
    let (_, body) = ask(pages_of(&cluster, 1), "/startupProgress").await;
    let told: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(told["phases"][3]["status"], "RUNNING", "{body}");
    assert!(told["percentComplete"].as_f64().unwrap() < 1.0, "{body}");
    cluster.stop(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn topology_and_threads_are_shown() {
    let (mut cluster, _) = with_pages(1).in_sync().await;
    let pages = pages_of(&cluster, 1);
    assert_eq!(ask(pages, "/topology").await, (200, "No DataNodes".into()));
    let json = page_with(pages, "/topology", "Accept: application/json\r\n").await.unwrap();
    assert!(json.to_lowercase().contains("content-type: application/json"), "{json}");
    let (status, threads) = ask(pages, "/stacks").await;
    assert!(status == 200 && threads.contains("(meta-writer):\n  State: "), "{threads}");
    cluster.stop(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_find_each_attribute_that_they_read() {
    let (mut cluster, _) = with_pages(1).in_sync().await;
    let asked = questions("NameNode");
    assert!(asked.len() > 10);
    for question in asked {
        question.check(&page(pages_of(&cluster, 1), &format!("/jmx?{}", question.query)).await.unwrap());
    }
    cluster.stop(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_questions_are_refused() {
    let (mut cluster, _) = with_pages(1).in_sync().await;
    let pages = pages_of(&cluster, 1);
    let long = "x".repeat(20_000);
    for (path, expected) in [
        (format!("/jmx?qry={long}"), 414),
        (format!("/jmx?qry=Hadoop:name={}", "*a".repeat(1_000)), 400),
        ("/jmx?qry=%ff%fe".into(), 400),
        (format!("/jmx?{}", "a=1&".repeat(100)), 400),
        ("/jmx?qry=nonsense".into(), 200),
        ("/jmx?qry=%zz".into(), 200),
        ("/prom?x=%ff".into(), 200),
    ] {
        let (status, body) = ask(pages, &path).await;
        assert_eq!(status, expected, "{} {body}", &path[..path.len().min(60)]);
    }
    let (status, body) = ask(pages, "/jmx").await;
    assert!(status == 200 && body.contains("NameNodeInfo"));
    cluster.stop(1).await;
}
