//! The audit log's account of a call of `ClientProtocol`: the command, and the paths that it is about.

use crate::{
    fields::Fields,
    methods::{self, Paths, Shows, Verdict},
};
use std::borrow::Cow;

/// One line to be, but for how the call ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audited {
    pub command: Cow<'static, str>,
    /// Hadoop prints `null` for none.
    pub source: Option<String>,
    pub destination: Option<String>,
    /// The path whose permission a successful call shows.
    pub shows: Shows,
    pub verdict: Verdict,
}

/// The lines of one call: none for a method that leaves no trace, several for one about several paths.
pub fn lines(method: &str, request: &[u8]) -> Vec<Audited> {
    let Some(row) = methods::method(method) else { return Vec::new() };
    let Some(methods::Logged { command, shows, verdict }) = row.logged else { return Vec::new() };
    let fields = Fields::of(request);
    let command = match method {
        "rename2" => Cow::Owned(rename_with_options(&fields)),
        "setSafeMode" => Cow::Borrowed(safe_mode(&fields)),
        "setQuota" => Cow::Borrowed(quota(&fields)),
        _ => Cow::Borrowed(command),
    };
    let line = |source: Option<String>, destination: Option<String>| Audited {
        command: command.clone(),
        source,
        destination,
        shows,
        verdict,
    };
    let snapshot = |name: Option<String>| in_snapshot(fields.text(1), name.as_deref().unwrap_or_default());
    match row.paths {
        Paths::None => vec![line(None, None)],
        Paths::One => vec![line(fields.text(1), None)],
        Paths::Second => vec![line(fields.text(2), None)],
        Paths::Many => fields.texts(1).into_iter().map(|path| line(Some(path), None)).collect(),
        Paths::Two => vec![line(fields.text(1), fields.text(2))],
        Paths::Concat => vec![line(Some(format!("[{}]", fields.texts(2).join(", "))), fields.text(1))],
        Paths::Snapshot => vec![line(snapshot(fields.text(2)), None)],
        Paths::TwoSnapshots => vec![line(snapshot(fields.text(2)), snapshot(fields.text(3)))],
    }
}

/// The lines of a read, as [`lines`] makes them of its bytes: of the name of its call, the paths that it names, and the names of the
/// two snapshots that it compares, if it compares any.
pub fn lines_of_read<'a>(
    method: &str,
    mut paths: impl Iterator<Item = &'a str>,
    compared: Option<[&str; 2]>,
) -> Vec<Audited> {
    let Some(row) = methods::method(method) else { return Vec::new() };
    let Some(methods::Logged { command, shows, verdict }) = row.logged else { return Vec::new() };
    let line = |source: Option<String>, destination: Option<String>| Audited {
        command: Cow::Borrowed(command),
        source,
        destination,
        shows,
        verdict,
    };
    match (row.paths, compared) {
        (Paths::None, _) => vec![line(None, None)],
        (Paths::Many, _) => paths.map(|path| line(Some(path.to_owned()), None)).collect(),
        (Paths::TwoSnapshots, Some([from, to])) => {
            let root = paths.next().map(str::to_owned);
            vec![line(in_snapshot(root.clone(), from), in_snapshot(root, to))]
        }
        _ => vec![line(paths.next().map(str::to_owned), None)],
    }
}

/// The path of a snapshot of this directory; of the directory itself, if the name is empty.
fn in_snapshot(root: Option<String>, name: &str) -> Option<String> {
    match root {
        Some(root) if !name.is_empty() => Some(format!("{}/.snapshot/{name}", root.trim_end_matches('/'))),
        root => root,
    }
}

/// The yes or no of an answer: its field 1.
pub fn is_true(answer: &[u8]) -> bool {
    Fields::of(answer).number(1) == Some(1)
}

/// The text of an answer: its field 1.
pub fn text(answer: &[u8]) -> Option<String> {
    Fields::of(answer).text(1)
}

fn rename_with_options(fields: &Fields) -> String {
    let mut options = Vec::new();
    if fields.is_set(3) {
        options.push("OVERWRITE");
    }
    if fields.is_set(4) {
        options.push("TO_TRASH");
    }
    if options.is_empty() {
        options.push("NONE");
    }
    format!("rename (options=[{}])", options.join(", "))
}

fn safe_mode(fields: &Fields) -> &'static str {
    match fields.number(1) {
        Some(1) => "safemode_leave",
        Some(2) => "safemode_enter",
        Some(4) => "safemode_force_exit",
        _ => "safemode_get",
    }
}

/// Hadoop's `getQuotaCommand`.
fn quota(fields: &Fields) -> &'static str {
    const RESET: Option<u64> = Some(u64::MAX);
    const AS_IT_IS: Option<u64> = Some(i64::MAX as u64);
    match (fields.number(2), fields.number(3)) {
        (RESET, AS_IT_IS) => "clearQuota",
        (AS_IT_IS, RESET) => "clearSpaceQuota",
        (_, AS_IT_IS) => "setQuota",
        _ => "setSpaceQuota",
    }
}

/// Hadoop's `StringEscapeUtils.escapeJava`: no text makes a line of its own, or looks like another field.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '\u{8}' => escaped.push_str("\\b"),
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            '\u{c}' => escaped.push_str("\\f"),
            '\r' => escaped.push_str("\\r"),
            ' '..='\u{7f}' => escaped.push(c),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    escaped.push_str(&format!("\\u{unit:04X}"));
                }
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdfs;
    use prost::Message;

    fn one(method: &str, request: &impl Message) -> (String, Option<String>, Option<String>) {
        let lines = lines(method, &request.encode_to_vec());
        assert_eq!(lines.len(), 1, "{method}");
        (lines[0].command.to_string(), lines[0].source.clone(), lines[0].destination.clone())
    }

    fn text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn paths_are_found_where_each_request_has_them() {
        let rename = hdfs::Rename2RequestProto {
            src: "/a".into(),
            dst: "/b".into(),
            overwrite_dest: true,
            move_to_trash: Some(true),
        };
        let expected = ("rename (options=[OVERWRITE, TO_TRASH])".into(), text("/a"), text("/b"));
        assert_eq!(one("rename2", &rename), expected);
        let concat = hdfs::ConcatRequestProto { trg: "/t".into(), srcs: vec!["/a".into(), "/b".into()] };
        assert_eq!(one("concat", &concat), ("concat".into(), text("[/a, /b]"), text("/t")));
        let delete =
            hdfs::DeleteSnapshotRequestProto { snapshot_root: "/".into(), snapshot_name: "s".into() };
        assert_eq!(one("deleteSnapshot", &delete), ("deleteSnapshot".into(), text("/.snapshot/s"), None));
        let diff = hdfs::GetSnapshotDiffReportRequestProto {
            snapshot_root: "/d".into(),
            from_snapshot: "s".into(),
            to_snapshot: String::new(),
        };
        let expected = ("computeSnapshotDiff".into(), text("/d/.snapshot/s"), text("/d"));
        assert_eq!(one("getSnapshotDiffReport", &diff), expected);
        let quota = |namespace_quota: i64, space: i64| {
            let request = hdfs::SetQuotaRequestProto {
                path: "/q".into(),
                namespace_quota: namespace_quota as u64,
                storagespace_quota: space as u64,
                storage_type: None,
            };
            one("setQuota", &request).0
        };
        assert_eq!(quota(-1, i64::MAX), "clearQuota");
        assert_eq!(quota(i64::MAX, -1), "clearSpaceQuota");
        assert_eq!(quota(5, i64::MAX), "setQuota");
        assert_eq!(quota(i64::MAX, 5), "setSpaceQuota");
        assert!(lines("renewLease", b"").is_empty());
        // Not even what is no message stops the line.
        assert_eq!(lines("mkdirs", b"\xff\xff").len(), 1);
    }

    #[test]
    fn no_name_forges_a_line() {
        assert_eq!(escape("/a\nallowed=true\tugi=root"), "/a\\nallowed=true\\tugi=root");
        assert_eq!(escape("/\"x\"\\\r\u{0}\u{e9}\u{1f600}"), "/\\\"x\\\"\\\\\\r\\u0000\\u00E9\\uD83D\\uDE00");
    }
}
