use super::{hadoop_xml::Properties, *};
use crate::block::{Replacement, ReplacementPolicy};
use std::{path::PathBuf, time::Duration};

fn read(text: &str) -> Result<Properties, String> {
    let mut properties = Properties::default();
    properties.read_text(Path::new("core-site.xml"), text).map_err(|error| error.to_string())?;
    Ok(properties)
}

fn scratch(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("clover-config-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn property(name: &str, value: &str) -> String {
    format!("<property><name>{name}</name><value>{value}</value></property>")
}

#[test]
fn names_and_values_are_read_from_elements_and_attributes() {
    let text = "<?xml version='1.0'?>\n<?xml-stylesheet href='configuration.xsl'?>\n<configuration>\
                <property><name> a </name><value> 1 <!-- one --> </value><description>x</description></property>\
                <property name='b' value='2'/><property><name>none</name></property>\
                <configuration><property><name>c</name><value/></property></configuration></configuration>";
    let properties = read(text).unwrap();
    assert_eq!(properties.get("a").as_deref(), Some("1"));
    assert_eq!(properties.get("b").as_deref(), Some("2"));
    assert_eq!(properties.get("c").as_deref(), Some(""));
    assert_eq!(properties.get("none"), None);
}

#[test]
fn a_final_property_is_not_overridden_by_later_files_but_by_the_command_line() {
    let mut properties =
        read("<configuration><property><name>a</name><value>1</value><final>true</final></property></configuration>")
            .unwrap();
    let later = format!("<configuration>{}</configuration>", property("a", "2"));
    properties.read_text(Path::new("hdfs-site.xml"), &later).unwrap();
    assert_eq!(properties.get("a").as_deref(), Some("1"));
    properties.set("a", "3");
    assert_eq!(properties.get("a").as_deref(), Some("3"));
}

#[test]
fn variables_are_filled_in_and_unknown_ones_stay() {
    let text = format!(
        "<configuration>{}{}{}{}{}</configuration>",
        property("host", "h"),
        property("address", "${host}:${port}"),
        property("loop", "${loop}x"),
        property("growing", "${growing2}${growing2}"),
        property("env", "${env.CLOVER_NOT_SET:-fallback}")
    );
    let mut properties = read(&text).unwrap();
    assert_eq!(properties.get("address").as_deref(), Some("h:${port}"));
    assert_eq!(properties.get("loop").as_deref(), Some("${loop}x"));
    assert_eq!(properties.get("env").as_deref(), Some("fallback"));
    properties.set("growing2", "${growing}${growing}");
    assert!(properties.get("growing").unwrap().len() < 2 << 20);
}

#[test]
fn what_is_wrong_is_named_with_file_and_line() {
    let cases = [
        ("", "core-site.xml:1: is not well-formed"),
        ("<configuration>\n<property>\n</configuration>", "core-site.xml:3: is not well-formed"),
        ("<settings/>", "core-site.xml:1: begins with <settings>"),
        ("<configuration>\n<proprety/></configuration>", "core-site.xml:2: <proprety> where"),
        (
            "<configuration>\n\n<property><value>1</value></property></configuration>",
            "core-site.xml:3: a <property>",
        ),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><configuration/>", "is not well-formed"),
        (
            "<configuration><xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='http://x/y'/></configuration>",
            "only files can be included",
        ),
    ];
    for (text, expected) in cases {
        let message = read(text).err().unwrap_or_default();
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn deep_nesting_costs_no_stack() {
    let deep = "<configuration>".repeat(20_000);
    assert!(read(&deep).is_err());
    let closed = format!("{}{}", "<configuration>".repeat(500), "</configuration>".repeat(500));
    assert!(read(&closed).is_ok());
}

#[test]
fn includes_are_followed_and_loops_are_refused() {
    let dir = scratch("includes");
    let include = |href: &str| {
        format!(
            "<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='{href}'><xi:fallback>{}</xi:fallback></xi:include>",
            property("fallback", "yes")
        )
    };
    std::fs::write(
        dir.join("core-site.xml"),
        format!("<configuration>{}{}</configuration>", include("more.xml"), include("absent.xml")),
    )
    .unwrap();
    std::fs::write(dir.join("more.xml"), format!("<configuration>{}</configuration>", property("more", "1")))
        .unwrap();
    let config = Config::from_dir(&dir).unwrap();
    assert_eq!(config.get("more").as_deref(), Some("1"));
    assert_eq!(config.get("fallback").as_deref(), Some("yes"));

    std::fs::write(
        dir.join("more.xml"),
        format!("<configuration>{}</configuration>", include("core-site.xml")),
    )
    .unwrap();
    let message = Config::from_dir(&dir).unwrap_err().to_string();
    assert!(message.contains("includes itself"), "{message}");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_file_that_is_too_large_or_not_text_is_refused_before_it_is_read() {
    let dir = scratch("large");
    let file = dir.join("core-site.xml");
    std::fs::File::create(&file).unwrap().set_len(1 << 40).unwrap();
    let message = Config::from_dir(&dir).unwrap_err().to_string();
    assert!(message.contains("core-site.xml: has 1099511627776 bytes"), "{message}");
    std::fs::write(&file, b"<configuration>\n\xff</configuration>").unwrap();
    let message = Config::from_dir(&dir).unwrap_err().to_string();
    assert!(message.contains("core-site.xml:2: is not UTF-8"), "{message}");
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(Config::from_dir(&dir).is_err());
}

#[test]
fn settings_are_parsed_and_ranges_named() {
    let mut config = Config::new();
    config.set("dfs.blocksize", "64m");
    config.set("dfs.replication", "2");
    config.set("dfs.client.socket-timeout", "90s");
    let settings = Settings::new(&config).unwrap();
    assert_eq!(settings.block_size, Some(64 << 20));
    assert_eq!(settings.replication, Some(2));
    assert_eq!(settings.io_timeout, Duration::from_secs(90));

    for (key, value, expected) in [
        ("dfs.replication", "0", "is not between 1 and 512"),
        ("dfs.replication", "three", "is not a number"),
        ("dfs.blocksize", "-1", "is not a size"),
        ("dfs.blocksize", "99999999999g", "is not a size"),
        ("dfs.client.socket-timeout", "soon", "is not a time"),
        ("dfs.client.use.datanode.hostname", "yes", "neither true nor false"),
        ("fs.permissions.umask-mode", "999", "is not an octal mask"),
        ("dfs.checksum.type", "MD5", "is none of"),
        ("dfs.client.block.write.replace-datanode-on-failure.policy", "DISABLE", "is none of DEFAULT"),
        ("dfs.client.block.write.replace-datanode-on-failure.min-replication", "few", "is not a number"),
    ] {
        let mut config = Config::new();
        config.set(key, value);
        let message = Settings::new(&config).unwrap_err().to_string();
        assert!(message.contains(key) && message.contains(value) && message.contains(expected), "{message}");
    }
}

/// Hadoop's `Client.getTimeout`.
#[test]
fn a_silent_server_is_given_up_as_hadoops_properties_say() {
    let timeout = |properties: &[(&str, &str)]| {
        let mut config = Config::new();
        properties.iter().for_each(|(key, value)| config.set(key, value));
        Settings::new(&config).unwrap().rpc_timeout.map(|timeout| timeout.as_millis())
    };
    let (rpc, ping, interval) = ("ipc.client.rpc-timeout.ms", "ipc.client.ping", "ipc.ping.interval");
    assert_eq!(timeout(&[(ping, "false"), (interval, "1500")]), None);
    assert_eq!(timeout(&[(rpc, "700"), (ping, "false"), (interval, "1500")]), Some(700));
    assert_eq!(timeout(&[(rpc, "0"), (ping, "false"), (interval, "1500")]), Some(1_500));
    assert_eq!(timeout(&[(rpc, "0"), (ping, "false")]), Some(60_000));
    assert_eq!(timeout(&[(rpc, "0"), (interval, "1500")]), Some(24 * 3_600_000));
}

#[test]
fn lost_servers_are_replaced_as_hadoops_properties_say() {
    let replacement = |settings: &[(&str, &str)]| {
        let mut config = Config::new();
        for (name, value) in settings {
            config.set(&format!("dfs.client.block.write.replace-datanode-on-failure.{name}"), value);
        }
        Settings::new(&config).unwrap().replacement
    };
    assert_eq!(replacement(&[]), Replacement::default());
    assert_eq!(replacement(&[("policy", "always")]).policy, ReplacementPolicy::Always);
    assert_eq!(replacement(&[("policy", "Never"), ("enable", "true")]).policy, ReplacementPolicy::Never);
    assert_eq!(replacement(&[("policy", "ALWAYS"), ("enable", "false")]).policy, ReplacementPolicy::Never);
    assert!(replacement(&[("best-effort", "true")]).is_best_effort);
    assert_eq!(replacement(&[("min-replication", "2")]).servers_min, 2);
    assert_eq!(replacement(&[("min-replication", "-1")]).servers_min, 0);
}

#[test]
fn quantities_are_read_as_hadoop_writes_them() {
    assert_eq!(quantity::bytes("128m"), Some(128 << 20));
    assert_eq!(quantity::bytes(" 1 GB "), Some(1 << 30));
    assert_eq!(quantity::bytes("64KiB"), Some(64 << 10));
    assert_eq!(quantity::bytes("17e"), None);
    assert_eq!(quantity::bytes("16e"), None);
    assert_eq!(quantity::bytes("m"), None);
    assert_eq!(quantity::time("5", Duration::from_secs(1)), Some(Duration::from_secs(5)));
    assert_eq!(quantity::time("500ms", Duration::from_secs(1)), Some(Duration::from_millis(500)));
    assert_eq!(quantity::time("5x", Duration::from_secs(1)), None);
}

#[test]
fn a_file_that_cannot_be_looked_at_is_no_missing_one() {
    let directory = scratch("unreadable");
    let mut config = Config::new();
    assert!(config.read_directory(&directory).is_ok(), "none is there");
    let file = directory.join("core-site.xml");
    std::os::unix::fs::symlink(&file, &file).unwrap();
    let error = config.read_directory(&directory).unwrap_err().to_string();
    assert!(error.contains("core-site.xml"), "{error}");
}

#[test]
fn local_reads_are_off_unless_asked_for_and_then_want_a_path() {
    let settings = |pairs: &[(&str, &str)]| {
        let mut config = Config::new();
        for (key, value) in pairs {
            config.set(key, value);
        }
        Settings::new(&config).map(|settings| settings.local)
    };
    const PATH: (&str, &str) = ("dfs.domain.socket.path", "/run/clover/data._PORT");
    const FILES: (&str, &str) = ("dfs.client.read.shortcircuit", "true");
    assert_eq!(settings(&[PATH]).unwrap(), None);
    let local = settings(&[PATH, FILES]).unwrap().unwrap();
    assert_eq!(local, crate::block::LocalConfig::new(PATH.1));
    let traffic = ("dfs.client.domain.socket.data.traffic", "true");
    let local = settings(&[PATH, traffic, ("dfs.domain.socket.disable.interval.seconds", "0")]);
    let local = local.unwrap().unwrap();
    assert!(local.carries_data && !local.asks_for_files && local.pause.is_zero());
    for wrong in [&[FILES][..], &[traffic], &[PATH, ("dfs.client.read.shortcircuit", "yes")]] {
        let error = settings(wrong).unwrap_err().to_string();
        assert!(error.contains(wrong.last().unwrap().0), "{error}");
    }
}
