//! The lines of the audit log.

use crate::{core::Core, partition::Partition};
use base::{Caller, Timestamp, caller::Authentication};
use bytes::Bytes;
use namespace::{Readable, reads::get_file_info};
use proto::{
    audit::{self, Audited},
    exception,
    methods::{Shows, Verdict},
};
use rpc::{Call, Replier, RpcError};
use std::{fmt::Write, net::IpAddr, sync::Arc};

/// Has the answer to a call written down, if calls of its kind are and the log is on.
pub fn watch(core: &Arc<Core>, call: &Call, reply: Replier) -> Replier {
    match core.audit {
        Some(_) => watched(core, call, reply, audit::lines(call.method, &call.request)),
        None => reply,
    }
}

/// Has the answer to a read written down, likewise. Nothing of its message is looked at: its value says what it is about.
pub fn watch_read(core: &Arc<Core>, call: &Call, reply: Replier, read: &impl Readable) -> Replier {
    match core.audit {
        Some(_) => {
            let lines = audit::lines_of_read(read.method(), read.paths(), read.compared());
            watched(core, call, reply, lines)
        }
        None => reply,
    }
}

/// Has the answer to an operator's order written down, likewise: the data server that it is about stands where calls have their path, and what is
/// ordered where some have a second one.
pub fn watch_order(core: &Arc<Core>, call: &Call, reply: Replier, server: &str, order: &str) -> Replier {
    let line = Audited {
        command: call.method.into(),
        source: Some(server.to_owned()),
        destination: Some(order.to_owned()),
        shows: Shows::Nothing,
        verdict: Verdict::Allowed,
    };
    watched(core, call, reply, vec![line])
}

fn watched(core: &Arc<Core>, call: &Call, reply: Replier, lines: Vec<Audited>) -> Replier {
    if lines.is_empty() {
        return reply;
    }
    // An answer that waits within the server must not keep the server, which could then never be started again in this process.
    let (core, caller, address) = (Arc::downgrade(core), call.caller.clone(), call.origin.address);
    reply.watched(move |answer| {
        let Some(core) = core.upgrade() else { return };
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
    let permission = shown.and_then(|path| permission_of(&core.partition, path));
    Some(format_line(core.env.clock.timestamp(), caller, address, allowed, &line, permission.as_deref()))
}

/// `owner:group:rwxr-xr-x`.
fn permission_of(partition: &Partition, path: &str) -> Option<String> {
    let access = &partition.config.limits.access;
    let itself = Caller::simple(&access.superuser, &[&access.supergroup]);
    let tree = partition.tree();
    let status =
        get_file_info::get(&tree.namespace, &partition.context(&itself, None), path).ok().flatten()?;
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
