//! The audit log: who asked for what, and whether it was allowed; a line a call, in HDFS's format.
//!
//! Off by default. Where it is on, each call that HDFS would log is watched until its answer goes out; calls that
//! fail for another reason than permissions leave no line, as in HDFS. Lines are gathered in memory and written
//! by a thread of their own, so that no answer waits for the disk; they are not synced. A file that was moved
//! away or cut by a rotation is opened anew.

use crate::core::Core;
use base::{Caller, Timestamp, caller::Authentication};
use bytes::Bytes;
use env::{
    Env,
    disk::{File, OpenMode},
};
use namespace::reads::get_file_info;
use parking_lot::Mutex;
use proto::{
    audit::{self, Audited},
    exception,
    methods::{Shows, Verdict},
};
use rpc::{Call, Replier, RpcError};
use std::{
    fmt::Write,
    io,
    net::IpAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// How long a line may wait in memory.
const PERIOD: Duration = Duration::from_millis(50);
/// Bytes that wait at most, while a disk is slow or fails. Lines beyond that are counted instead of written.
const WAITING_BYTES_MAX: usize = 64 << 20;

pub struct AuditLog {
    path: PathBuf,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    lines: String,
    /// Lines that found no room.
    lost: u64,
}

impl AuditLog {
    pub fn new(path: PathBuf) -> Self {
        Self { path, waiting: Mutex::default() }
    }

    fn add(&self, line: &str) {
        let mut waiting = self.waiting.lock();
        if waiting.lines.len() + line.len() > WAITING_BYTES_MAX {
            waiting.lost += 1;
            return;
        }
        waiting.lines.push_str(line);
    }

    /// Writes until `stop`, and then what is left.
    pub fn run(&self, env: &Env, stop: &AtomicBool) {
        let mut output: Option<Output> = None;
        let mut has_failed = false;
        loop {
            let is_last = stop.load(Ordering::Acquire);
            match self.write_out(env, &mut output) {
                Ok(()) => has_failed = false,
                Err(error) => {
                    output = None;
                    if !std::mem::replace(&mut has_failed, true) {
                        tracing::error!(path = %self.path.display(), %error, "the audit log cannot be written");
                    }
                }
            }
            if is_last {
                return;
            }
            std::thread::sleep(PERIOD);
            env::pulse::step();
        }
    }

    fn write_out(&self, env: &Env, output: &mut Option<Output>) -> io::Result<()> {
        if self.waiting.lock().lines.is_empty() {
            return Ok(());
        }
        let open = Output::fit(env, &self.path, output.take())?;
        let (lines, lost) = {
            let mut waiting = self.waiting.lock();
            (std::mem::take(&mut waiting.lines), std::mem::take(&mut waiting.lost))
        };
        let written = open.write(lines.as_bytes());
        match written {
            Ok(end) => *output = Some(Output { end, ..open }),
            Err(error) => {
                // They are tried again, before what has come meanwhile.
                let mut waiting = self.waiting.lock();
                waiting.lines.insert_str(0, &lines);
                waiting.lost += lost;
                return Err(error);
            }
        }
        if lost > 0 {
            tracing::error!(lost, "lines of the audit log are missing: the disk was too slow, or failed");
        }
        Ok(())
    }
}

/// The file, and how far it is written.
struct Output {
    file: Arc<dyn File>,
    end: u64,
}

impl Output {
    /// The one that is open if it still is the one of this name, else another.
    fn fit(env: &Env, path: &std::path::Path, open: Option<Self>) -> io::Result<Self> {
        let length = match env.disk.exists(path)? {
            true => Some(env.disk.length(path)?),
            false => None,
        };
        match (open, length) {
            (Some(open), Some(length)) if open.end == length => Ok(open),
            (_, Some(end)) => Ok(Self { file: env.disk.open(path, OpenMode::ReadWrite)?, end }),
            (_, None) => {
                if let Some(parent) = path.parent() {
                    env.disk.create_directory(parent)?;
                }
                Ok(Self { file: env.disk.open(path, OpenMode::CreateNew)?, end: 0 })
            }
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<u64> {
        self.file.write_at(bytes, self.end)?;
        Ok(self.end + bytes.len() as u64)
    }
}

/// Has the answer to a call written down, if calls of its kind are and the log is on.
pub fn watch(core: &Arc<Core>, call: &Call, reply: Replier) -> Replier {
    if core.audit.is_none() {
        return reply;
    }
    let lines = audit::lines(call.method, &call.request);
    if lines.is_empty() {
        return reply;
    }
    let (core, caller, address) = (core.clone(), call.caller.clone(), call.origin.address);
    reply.watched(move |answer| {
        for line in lines {
            if let (Some(line), Some(log)) = (to_text(&core, &caller, address, line, answer), &core.audit) {
                log.add(&line);
            }
        }
    })
}

/// `None`: the call leaves no line.
fn to_text(
    core: &Core,
    caller: &Caller,
    address: Option<IpAddr>,
    line: Audited,
    answer: Result<&Bytes, &RpcError>,
) -> Option<String> {
    let mut line = line;
    let allowed = match (answer, line.verdict) {
        (Ok(_), Verdict::Allowed) => true,
        (Ok(answer), Verdict::TheAnswer) => audit::is_true(answer),
        (Ok(answer), Verdict::AllowedIfTrue) => audit::is_true(answer).then_some(true)?,
        (Ok(answer), Verdict::AllowedAndNamed) => {
            line.destination = audit::text(answer);
            true
        }
        (Err(error), _) => {
            let is_denied =
                error.class == exception::ACCESS_CONTROL || error.class == exception::SNAPSHOT_ACCESS_CONTROL;
            is_denied.then_some(false)?
        }
    };
    let shown = match line.shows {
        Shows::Source if allowed => line.source.as_deref(),
        Shows::Destination if allowed => line.destination.as_deref(),
        _ => None,
    };
    let permission = shown.and_then(|path| permission_of(core, path));
    Some(format_line(core.env.clock.timestamp(), caller, address, allowed, &line, permission.as_deref()))
}

/// `owner:group:rwxr-xr-x`.
fn permission_of(core: &Core, path: &str) -> Option<String> {
    let access = &core.config.limits.access;
    let itself = Caller::simple(&access.superuser, &[&access.supergroup]);
    let tree = core.tree();
    let status = get_file_info::get(&tree.namespace, &core.context(&itself, None), path).ok().flatten()?;
    let mode = namespace::mode_text(status.permission);
    Some(format!("{}:{}:{mode}", audit::escape(status.owner), audit::escape(status.group)))
}

fn format_line(
    now: Timestamp,
    caller: &Caller,
    address: Option<IpAddr>,
    allowed: bool,
    line: &Audited,
    permission: Option<&str>,
) -> String {
    let time = jiff::Timestamp::from_millisecond(now.ms as i64).unwrap_or_default();
    let time = time.to_zoned(jiff::tz::TimeZone::system());
    let path = |path: &Option<String>| path.as_deref().map_or("null".into(), audit::escape);
    let mut text = String::with_capacity(256);
    let _ = writeln!(
        text,
        "{} INFO FSNamesystem.audit: allowed={allowed}\tugi={}\tip={}\tcmd={}\tsrc={}\tdst={}\tperm={}\tproto=rpc",
        time.strftime("%Y-%m-%d %H:%M:%S,%3f"),
        ugi(caller),
        address.map_or("null".into(), ip),
        line.command,
        path(&line.source),
        path(&line.destination),
        permission.unwrap_or("null"),
    );
    text
}

/// The caller as Hadoop's `UserGroupInformation` prints itself.
fn ugi(caller: &Caller) -> String {
    let how = match caller.authentication {
        Authentication::Simple => "SIMPLE",
        Authentication::Kerberos => "KERBEROS",
        Authentication::Token => "TOKEN",
    };
    let user = audit::escape(&caller.user);
    match &caller.real_user {
        None => format!("{user} (auth:{how})"),
        Some(real) => format!("{user} (auth:PROXY) via {} (auth:{how})", audit::escape(real)),
    }
}

/// The address as Java prints it: without shortening it.
fn ip(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("/{address}"),
        IpAddr::V6(address) => {
            let segments: Vec<String> = address.segments().iter().map(|part| format!("{part:x}")).collect();
            format!("/{}", segments.join(":"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(source: &str) -> Audited {
        Audited {
            command: "mkdirs".into(),
            source: Some(source.into()),
            destination: None,
            shows: Shows::Source,
            verdict: Verdict::Allowed,
        }
    }

    #[test]
    fn a_line_is_hdfss() {
        let caller = Caller::simple("ann", &[]);
        let address = Some(IpAddr::from([127, 0, 0, 1]));
        let text =
            format_line(Timestamp::from_ms(0), &caller, address, true, &line("/d"), Some("a:b:rwxr-x---"));
        let (time, rest) = text.split_at(23);
        assert!(time.ends_with(":00,000"), "{time}");
        assert_eq!(
            rest,
            " INFO FSNamesystem.audit: allowed=true\tugi=ann (auth:SIMPLE)\tip=/127.0.0.1\tcmd=mkdirs\tsrc=/d\t\
             dst=null\tperm=a:b:rwxr-x---\tproto=rpc\n"
        );
    }

    #[test]
    fn nobody_writes_a_line_of_his_own() {
        let forger = "eve\nallowed=true\tugi=root";
        let caller = Caller { real_user: Some(forger.into()), ..Caller::simple(forger, &[]) };
        let text = format_line(Timestamp::from_ms(0), &caller, None, false, &line("/x\r\ny"), None);
        assert_eq!(text.matches('\n').count(), 1);
        assert!(text.contains("src=/x\\r\\ny\t"), "{text}");
        assert!(text.contains("ugi=eve\\nallowed=true\\tugi=root (auth:PROXY) via eve\\n"), "{text}");
    }

    #[test]
    fn addresses_are_printed_as_java_prints_them() {
        assert_eq!(ip(std::net::Ipv6Addr::LOCALHOST.into()), "/0:0:0:0:0:0:0:1");
    }
}
