//! An archive of all that a helper far away needs to see: states, settings, logs, metrics and beans.

use super::{check, cluster::Seen, cluster::pages, hide::Hider, page};
use crate::config::settings::Settings;
use anyhow::Context;
use flate2::{Compression, write::GzEncoder};
use jiff::Timestamp;
use serde_json::Value;
use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// Of a log, the end.
const LOG_BYTES_MAX: u64 = 32 << 20;
/// Lines of the system's journal of each service.
const JOURNAL_LINES: &str = "20000";
/// Pages of this many servers are packed; further servers are left out.
const SERVERS_MAX: usize = 500;
/// Servers that are asked at once.
const SERVERS_AT_ONCE: usize = 8;
/// A page is cut off behind so many bytes.
const PAGE_BYTES_MAX: usize = 8 << 20;
/// In keys of settings whose values are secrets.
const SECRET: [&str; 5] = ["pass", "secret", "credential", "auth", "token"];

/// A file of the archive: its name and its text.
type Part = (String, String);

pub struct Wanted<'a> {
    pub path: &'a Path,
    pub is_hiding: bool,
    pub settings: &'a [PathBuf],
    pub logs: &'a [PathBuf],
    /// The name of the user and of the metadata servers as they were given.
    pub users: Vec<String>,
    pub hosts: Vec<String>,
}

/// Writes the archive, readable by its owner only. The number of its files.
///
/// # Errors
/// The archive is there already or cannot be written, or a file that was named cannot be read.
pub async fn write(
    wanted: Wanted<'_>,
    checks: &[check::Check],
    seen: &Seen,
    status: &Value,
) -> anyhow::Result<usize> {
    let file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(wanted.path)
        .with_context(|| wanted.path.display().to_string())?;
    let mut parts = vec![
        ("doctor.txt".to_owned(), check::text(checks)),
        ("doctor.json".to_owned(), format!("{:#}\n", check::as_json(checks))),
        ("status.json".to_owned(), format!("{status:#}\n")),
        ("facts.txt".to_owned(), format!("{:#?}\n", seen.facts)),
    ];
    parts.extend(of_servers(seen).await);
    // Names of files may name hosts, and two files may have one name.
    for (number, path) in (1..).zip(wanted.settings) {
        parts.push((format!("settings/{number}.toml"), without_secrets(&Settings::text_of(path)?)));
    }
    for (number, path) in (1..).zip(wanted.logs) {
        let text = end_of(path).with_context(|| path.display().to_string())?;
        parts.push((format!("logs/{number}.txt"), text));
    }
    parts.extend(journal().map(|text| ("logs/journal.txt".to_owned(), text)));
    if wanted.is_hiding {
        parts = hidden(parts, &wanted, seen);
    }
    let count = parts.len();
    let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::default()));
    let seconds = u64::try_from(Timestamp::now().as_second()).unwrap_or(0);
    for (name, text) in parts {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(seconds);
        archive.append_data(&mut header, format!("clover-doctor/{name}"), text.as_bytes())?;
    }
    archive.into_inner()?.finish()?.sync_all()?;
    Ok(count)
}

async fn of_servers(seen: &Seen) -> Vec<Part> {
    let addresses: Vec<String> = pages(&seen.facts).into_iter().collect();
    let (taken, left_out) = addresses.split_at(addresses.len().min(SERVERS_MAX));
    let mut parts = Vec::new();
    let mut missing: Vec<String> =
        left_out.iter().map(|address| format!("{address}: too many servers")).collect();
    for some in taken.chunks(SERVERS_AT_ONCE) {
        let asked: Vec<_> = some.iter().map(|address| tokio::spawn(of_server(address.clone()))).collect();
        for one in asked {
            let (address, pages) = one.await.expect("a question does not panic");
            let number = parts.len() / (1 + PAGES.len()) + 1;
            parts.push((format!("servers/{number}/address.txt"), format!("{address}\n")));
            for (name, text, why) in pages {
                missing.extend(why.map(|why| format!("{address} {name}: {why}")));
                parts.push((format!("servers/{number}/{name}"), text));
            }
        }
    }
    let missing: String = missing.into_iter().map(|line| line + "\n").collect();
    parts.push(("servers/left-out.txt".to_owned(), missing));
    parts
}

const PAGES: [(&str, &str); 3] =
    [("/health", "health.json"), ("/metrics", "metrics.txt"), ("/jmx", "jmx.json")];

/// The pages of a server: the name and the text of each, and what is missing.
async fn of_server(address: String) -> (String, Vec<(&'static str, String, Option<String>)>) {
    let mut told = Vec::new();
    for (path, name) in PAGES {
        told.push(match page::ask(&address, path).await {
            Ok(mut page) if page.body.len() > PAGE_BYTES_MAX => {
                let end = page.body.floor_char_boundary(PAGE_BYTES_MAX);
                page.body.truncate(end);
                (name, page.body, Some(format!("cut off behind {PAGE_BYTES_MAX} bytes")))
            }
            Ok(page) => (name, page.body, None),
            Err(why) => (name, format!("{path} was not read: {why}\n"), Some(why.to_string())),
        });
    }
    (address, told)
}

/// A file of settings without its comments. Values of keys that may be secrets, and all that stands below such keys, are left out.
fn without_secrets(text: &str) -> String {
    // The error of a file that is no TOML would quote a line of it.
    let Ok(mut table) = text.parse::<toml::Table>() else {
        return "# This file is no TOML, and is left out.\n".to_owned();
    };
    table.iter_mut().for_each(|(key, value)| leave_out_secrets(value, is_secret(key)));
    toml::to_string(&table).unwrap_or_else(|_| "# This file cannot be shown.\n".to_owned())
}

fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    SECRET.iter().any(|word| key.contains(word))
}

fn leave_out_secrets(value: &mut toml::Value, is_hidden: bool) {
    match value {
        toml::Value::Table(table) => {
            table.iter_mut().for_each(|(key, value)| leave_out_secrets(value, is_hidden || is_secret(key)));
        }
        toml::Value::Array(values) => values.iter_mut().for_each(|value| leave_out_secrets(value, is_hidden)),
        // A switch is no secret.
        toml::Value::Boolean(_) => {}
        _ if is_hidden => *value = toml::Value::String("(not shown)".to_owned()),
        _ => {}
    }
}

fn end_of(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The logs of services whose names begin with `clover`, where systemd keeps them.
fn journal() -> Option<String> {
    let words = ["--unit", "clover*", "--lines", JOURNAL_LINES, "--no-pager", "--output", "short-iso"];
    let output = Command::new("journalctl").args(words).output().ok()?;
    (output.status.success() && !output.stdout.is_empty())
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn hidden(parts: Vec<Part>, wanted: &Wanted<'_>, seen: &Seen) -> Vec<Part> {
    let mut hider = Hider::default();
    let host =
        |address: &String| address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host).to_owned();
    let members = seen.facts.groups.iter().flat_map(|group| &group.members);
    let servers = seen.facts.groups.iter().flat_map(|group| &group.data).flat_map(|data| &data.servers);
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    hider.know("host", wanted.hosts.iter().map(host));
    hider
        .know("host", members.flat_map(|member| [&member.address, &member.http_address]).flatten().map(host));
    hider.know("host", servers.map(|server| server.host_name.clone()));
    hider.know("host", [own.trim().to_owned()]);
    hider.know("user", wanted.users.iter().cloned());
    hider.know("user", parts.iter().flat_map(|(_, text)| users_in(text)).collect::<Vec<_>>());
    parts
        .into_iter()
        .map(|(name, text)| {
            let text = hider.hide_ipv6(&text);
            (name, hider.hide(&text))
        })
        .collect()
}

/// The users that metrics, beans and logs name, as `user="alice"`, `user=alice`, `ugi=alice` and `"owner":"alice"`, also where the quotes are escaped.
fn users_in(text: &str) -> Vec<String> {
    let marks = ["user=", "ugi=", "user\":", "owner\":", "user\\\":", "owner\\\":"];
    let named = marks.iter().flat_map(|mark| text.split(mark).skip(1));
    let mut users: Vec<String> = named
        .map(|rest| {
            let rest = rest.trim_start_matches([' ', '\\']);
            let rest = rest.trim_start_matches('"');
            let is_end = |letter: char| letter.is_whitespace() || "\\\",{}()".contains(letter);
            rest.split(is_end).next().unwrap_or_default().to_owned()
        })
        .filter(|user| !user.is_empty())
        .collect();
    users.sort();
    users.dedup();
    users
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out_of_settings_at_any_depth() {
        let text = "name_dir = \"/x\"\ninsecure_simple_auth = true\nsecret_file = \"/etc/s\"\n# token = hunter1\nmy.Password = \"\"\"\nhunter2\n\"\"\"\n\
                    tokens = [\n\"hunter3\",\n]\na = { password = 'hunter4' }\n[secrets]\nb = 'hunter5'\n";
        let shown = without_secrets(text);
        assert!(
            shown.contains("name_dir = \"/x\"") && shown.contains("insecure_simple_auth = true"),
            "{shown}"
        );
        assert!(!shown.contains("hunter") && !shown.contains("/etc/s"), "{shown}");
        assert!(!without_secrets("password = hunter6").contains("hunter6"));
    }

    #[test]
    fn users_are_found_in_metrics_and_logs() {
        let text = "clover_rpc_user_calls{window_seconds=\"60\",user=\"alice\",method=\"x\"} 1\nuser=bob (auth:SIMPLE)\nuser=alice\n";
        assert_eq!(users_in(text), ["alice", "bob"]);
        let beans = r#"{"owner" : 1, "owner":"carol", "TopUserOpCounts":"[{\"user\":\"dave\",\"count\":1}]"} ugi=erin (auth:SIMPLE)"#;
        let found = users_in(beans);
        assert!(
            ["carol", "dave", "erin"].iter().all(|user| found.iter().any(|known| known == user)),
            "{found:?}"
        );
    }
}
