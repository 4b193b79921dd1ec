use super::*;
use crate::page::tests::{HOSTILE, frame, text};
use web::settings::HadoopSetting;

fn setting(key: &str, value: &str, hadoop: &str, source: Source) -> Setting {
    let hadoop = HadoopSetting { key: hadoop.to_owned(), value: value.to_owned() };
    Setting {
        key: key.to_owned(),
        value: value.to_owned(),
        default: "3000".to_owned(),
        source,
        hadoop: (!hadoop.key.is_empty()).then_some(hadoop),
        range: "a time".to_owned(),
        help: format!("How {key} is."),
    }
}

fn settings() -> Vec<Setting> {
    let file = || Source::File("/etc/meta.toml".to_owned());
    vec![
        setting("heartbeat_interval_ms", "2000", "dfs.heartbeat.interval", file()),
        setting("member", "1", "", Source::Default),
        setting("zookeeper_password", "hush", "ha.zookeeper.auth", file()),
        setting("superuser", HOSTILE, "", Source::CommandLine),
    ]
}

fn page(filter: &str, is_set_only: bool) -> Page {
    Page::new(
        frame(),
        settings(),
        filter.to_owned(),
        is_set_only,
        vec![(2, "http://m2:9870/configuration".into())],
    )
}

#[test]
fn every_setting_has_its_value_its_default_and_its_source() {
    let shown = text(&page("", false));
    for part in [
        "4 of 4",
        "heartbeat_interval_ms",
        "dfs.heartbeat.interval",
        "2000",
        "/etc/meta.toml",
        "command line",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.contains("href=\"http://m2:9870/configuration\""), "{shown}");
}

#[test]
fn settings_are_found_by_all_their_words() {
    let found = |filter, is_set_only| {
        let page = page(filter, is_set_only);
        page.rows.into_iter().map(|row| row.key).collect::<Vec<_>>()
    };
    assert_eq!(found("DFS.Heartbeat", false), ["heartbeat_interval_ms"]);
    assert_eq!(found(" how member ", false), ["member"]);
    assert_eq!(found("", true), ["heartbeat_interval_ms", "zookeeper_password", "superuser"]);
    assert!(found("no such thing", false).is_empty());
    assert!(text(&page("no such thing", false)).contains("No setting matches."));
}

#[test]
fn a_secret_is_neither_shown_nor_found() {
    let shown = text(&page("", false));
    assert!(!shown.contains("hush") && shown.contains("&#60;redacted&#62;"), "{shown}");
    assert!(page("hush", false).rows.is_empty());
}

#[test]
fn members_of_a_group_are_linked_and_a_lone_one_is_not() {
    let member = |number| MemberProto {
        member: number,
        http_address: Some(format!("m{number}:9870")),
        ..MemberProto::default()
    };
    let linked = |members| {
        let known = GetGroupResponseProto { members, ..GetGroupResponseProto::default() };
        super::members(&known).into_iter().map(|(_, href)| href).collect::<Vec<_>>()
    };
    let nameless = MemberProto { member: 3, ..MemberProto::default() };
    assert_eq!(
        linked(vec![member(1), member(2), nameless]),
        ["http://m1:9870/configuration", "http://m2:9870/configuration"]
    );
    assert!(linked(vec![member(1)]).is_empty());
}
