use super::*;
use crate::page::tests::{HOSTILE, frame, text};
use std::collections::BTreeMap;

fn server(number: usize) -> DataServer {
    DataServer {
        uuid: format!("uuid-{number}"),
        host_name: format!("data-{number}"),
        address: format!("10.0.0.{number}:9866"),
        is_alive: true,
        capacity: 1000 << 20,
        used: 250 << 20,
        remaining: 600 << 20,
        last_contact_ms: crate::text::now_ms(),
        ..DataServer::default()
    }
}

#[test]
fn a_server_that_tells_nothing_of_itself_has_a_row() {
    let cluster = Cluster { servers: Some(vec![DataServer::default()]), ..Cluster::default() };
    let page = Page::new(frame(), &cluster, String::new(), String::new(), 0);
    assert_eq!((page.rows[0].state, page.rows[0].used_percent), ("dead", None));
    let shown = text(&page);
    assert!(shown.contains("1 of 1 data servers") && !shown.contains("NaN"), "{shown}");
    assert!(!shown.contains("<meter"), "{shown}");
}

#[test]
fn names_of_servers_are_escaped() {
    let hostile = || HOSTILE.to_owned();
    let server = DataServer {
        uuid: hostile(),
        host_name: hostile(),
        address: hostile(),
        rack: hostile(),
        version: hostile(),
        ..server(1)
    };
    let volume = Volume { storage_id: hostile(), is_failed: true, ..Volume::default() };
    let volumes = BTreeMap::from([(hostile(), vec![volume])]);
    let cluster = Cluster { servers: Some(vec![server]), volumes, ..Cluster::default() };
    let shown = text(&Page::new(frame(), &cluster, hostile(), hostile(), 0));
    assert!(shown.contains("0 of 1 data servers"), "{shown}");
    let shown = text(&Page::new(frame(), &cluster, String::new(), String::new(), 0));
    assert!(shown.contains("1, 1 failed") && shown.contains("25.0 %"), "{shown}");
}

#[test]
fn servers_are_found_and_paged() {
    let servers: Vec<_> = (0..ROWS_MAX + 5).map(server).collect();
    let cluster = Cluster { servers: Some(servers), ..Cluster::default() };
    let of =
        |filter: &str, state: &str, skip| Page::new(frame(), &cluster, filter.into(), state.into(), skip);
    let first = of("", "", 0);
    assert_eq!((first.rows.len(), first.matching), (ROWS_MAX, ROWS_MAX + 5));
    assert_eq!(first.next.as_deref(), Some("/data-servers?filter=&state=&skip=200"));
    let last = of("", "", ROWS_MAX);
    assert_eq!((last.rows.len(), last.next.is_none()), (5, true));
    assert_eq!(of("DATA-17", "live", 0).matching, 11);
    assert_eq!(of("", "dead", 0).matching, 0);
    assert_eq!(of("", "", usize::MAX).rows.len(), 0);
    assert!(text(&first).contains("20–30 %"));
}

#[test]
fn what_others_say_of_a_server_stands_in_its_row() {
    use proto::clover::admin::{GetGroupResponseProto, SlowServerProto};
    let slow = SlowServerProto {
        uuid: "uuid-1".into(),
        reporters: 2,
        latency_ms: 30.0,
        median_ms: 1.5,
        ..Default::default()
    };
    let now = crate::text::now_ms();
    let group = GetGroupResponseProto { slow_servers: vec![slow], now_ms: Some(now), ..Default::default() };
    let silent = DataServer { last_contact_ms: now - 60_000, ..server(2) };
    let full = DataServer { remaining: 10, ..server(3) };
    let cluster =
        Cluster { group: Some(group), servers: Some(vec![server(1), silent, full]), ..Cluster::default() };
    let page = Page::new(frame(), &cluster, String::new(), String::new(), 0);
    assert_eq!(page.rows.iter().map(|row| row.state).collect::<Vec<_>>(), ["slow", "stale", "full"]);
    assert!(text(&page).contains("2 data servers say that it is slow: a packet takes 30.0 ms"));
}
