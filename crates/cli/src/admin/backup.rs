//! `clover admin backup DIR`: the names of a group that serves, archived on this machine.

use super::{
    report::size,
    secret,
    servers::{OfGroup, Servers, active_address},
};
use crate::meta::opened::moment;
use anyhow::{Context, bail};
use base::{GroupId, MemberId};
use env::Env;
use journal::archive::Backup;
use metad::backup::{self, Event, Operator, Options, Place, Round, Summary};
use proto::clover::admin::GetGroupResponseProto;
use serde_json::json;
use std::{
    fs,
    io::{IsTerminal, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::runtime::Handle;

/// Back up all names while the group serves: an image, and every change behind it.
///
/// They go into a directory on this machine. Given again with the same directory, the order goes on where it stopped. What files
/// contain is not in it: the data servers keep that.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    secret: secret::ProvedBy,
    #[command(flatten)]
    of: OfGroup,
    /// A directory that is empty or does not exist, or one with a backup of this cluster.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Go on archiving what is changed, over takeovers as well, until ^C.
    #[arg(long)]
    follow: bool,
    /// Fetch no more than so many bytes a second; with k, m, g for 1024 times as many. 0: as fast as it goes.
    #[arg(long, value_name = "BYTES", default_value = "128m", value_parser = super::orders::bandwidth)]
    bytes_per_second: u64,
    /// One JSON object a line, on the standard output.
    #[arg(long)]
    json: bool,
}

/// How often a backup that follows prints how far it is: on a terminal, and elsewhere.
const TELL_PERIODS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];

pub async fn run(servers: Servers, args: Args) -> anyhow::Result<ExitCode> {
    let mut servers = servers.of_group(args.of).await?;
    servers.prove_by(args.secret.secret_file.clone(), args.secret.config.clone());
    let secret = servers.secret()?;
    let group = servers.group().await?;
    let user = servers.user().to_owned();
    let whose =
        backup::Group { cluster_id: group.cluster_id.clone(), group: GroupId(group.group), secret, user };
    make_private(&args.directory)?;

    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, signal) = (stop.clone(), crate::runtime::stop_signal());
    tokio::spawn(async move {
        if signal.await.is_ok() {
            stopped.store(true, Ordering::Release);
        }
    });
    let is_terminal = std::io::stderr().is_terminal() && !args.json;
    let mut screen = Screen {
        servers,
        runtime: Handle::current(),
        stop,
        is_json: args.json,
        is_terminal,
        has_line: false,
        told_at: None,
        active: None,
        last: None,
        waits: None,
    };
    if active_address(&group).is_none() {
        screen.say("no member serves: only what is known to have committed can be archived");
    }
    let options = Options { follow: args.follow, bytes_per_second: args.bytes_per_second };
    let (directory, runtime) = (args.directory.clone(), Handle::current());
    let (result, mut screen) = tokio::task::spawn_blocking(move || {
        let result = backup::run(&Env::production(), &directory, whose, &runtime, options, &mut screen);
        (result, screen)
    })
    .await
    .context("the thread that archives has ended")?;
    screen.end_line();
    let summary = result.with_context(|| format!("backing up into {}", args.directory.display()))?;
    tell_end(&args, &summary)?;
    Ok(ExitCode::SUCCESS)
}

/// Names are nobody else's business.
fn make_private(directory: &Path) -> anyhow::Result<()> {
    if directory.exists() {
        return Ok(());
    }
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.with_context(|| format!("making {}", directory.display()))
}

fn tell_end(args: &Args, summary: &Summary) -> anyhow::Result<()> {
    let backup = Backup::open(Env::production().disk, &args.directory)?;
    if let Some(finding) = backup.finding() {
        eprintln!("WARNING: {finding}. The other copy was used, and both are written anew.");
    }
    let Some(span) = backup.manifest().spans.last() else { bail!("nothing was archived") };
    if args.json {
        let line = json!({
            "event": "done",
            "directory": args.directory,
            "cluster_id": backup.manifest().whose.cluster_id,
            "before_sn": summary.before.map(|before| before.id.sn.0),
            "first_sn": span.begin.id.sn.0,
            "last_sn": span.end.id.sn.0,
            "last_epoch": span.end.id.epoch.0,
            "complete_ms": span.complete_ms,
            "entries": summary.entries,
            "bytes": summary.bytes,
            "image_bytes": summary.image_bytes,
            "ranges": backup.manifest().spans.len(),
        });
        println!("{line}");
        return Ok(());
    }
    let image = match summary.image_bytes {
        0 => String::new(),
        bytes => format!(", an image of {}", size(bytes)),
    };
    println!(
        "Archived {} entries, {}{image}, of cluster {}.",
        summary.entries,
        size(summary.bytes),
        backup.manifest().whose.cluster_id
    );
    println!(
        "{} can be restored as of any entry from {} to {}{}.",
        args.directory.display(),
        span.begin.id.sn,
        span.end.id.sn,
        span.complete_ms.map_or_else(String::new, |ms| format!(", and as of any time up to {}", moment(ms)))
    );
    if summary.round.active.is_none() {
        println!(
            "No member serves: there may be changes that are not known to have committed, and are not in it."
        );
    }
    if backup.manifest().spans.len() > 1 {
        println!("It has gaps: `clover meta backup list {}` shows them.", args.directory.display());
    }
    Ok(())
}

struct Screen {
    servers: Servers,
    runtime: Handle,
    stop: Arc<AtomicBool>,
    is_json: bool,
    is_terminal: bool,
    /// A line that is written over.
    has_line: bool,
    told_at: Option<Instant>,
    active: Option<(MemberId, base::Epoch)>,
    last: Option<Round>,
    waits: Option<String>,
}

impl Operator for Screen {
    fn find(&mut self) -> Option<Vec<Place>> {
        let group = self.runtime.block_on(self.servers.group()).ok()?;
        Some(places(&group))
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn tell(&mut self, event: Event) {
        if self.is_json {
            return self.tell_json(&event);
        }
        match event {
            Event::Image { from, at, have, total } => {
                let percent = have * 100 / total.max(1);
                self.progress(have == total, || {
                    format!("image of entry {at} from member {from}: {} of {}, {percent} %", size(have), size(total))
                });
            }
            Event::Entries { from, at, up_to } => {
                self.progress(false, || format!("entries from member {from}: {at} of {up_to}"));
            }
            Event::Missed { after, up_to } => self.say(&format!(
                "WARNING: entries {} to {} were removed by the members before they were archived. States in between cannot be \
                 restored; --follow leaves no gaps",
                after.0 + 1,
                up_to.0
            )),
            Event::Round(round) => self.round(round),
            Event::Waits(why) => {
                if self.waits.as_ref() != Some(&why) {
                    self.say(&format!("waiting: {why}"));
                }
                self.waits = Some(why);
            }
        }
    }
}

fn places(group: &GetGroupResponseProto) -> Vec<Place> {
    let view = group.view.as_ref();
    let is_member = |member: u32| view.is_none_or(|view| view.members.contains(&member));
    let place = |one: &proto::clover::admin::MemberProto| {
        let rpc_address = one.rpc_address.clone().filter(|address| !address.is_empty())?;
        is_member(one.member).then_some(Place { member: MemberId(one.member), rpc_address })
    };
    group.members.iter().filter_map(place).collect()
}

impl Screen {
    fn round(&mut self, round: Round) {
        if self.waits.take().is_some() {
            self.say("it goes on");
        }
        if round.active != self.active {
            match (round.active, self.active) {
                (Some((member, epoch)), Some(_)) => {
                    self.say(&format!("member {member} is active now, in epoch {epoch}"));
                }
                (None, Some(_)) => self.say("no member serves"),
                _ => {}
            }
            self.active = round.active;
        }
        let is_news = self.last.is_none_or(|last| last.archived != round.archived);
        self.last = Some(round);
        if is_news || self.is_terminal {
            self.progress(false, || {
                let missing = round.committed.0.saturating_sub(round.archived.id.sn.0);
                let behind = round
                    .behind_ms
                    .map_or_else(String::new, |ms| format!(" and {}.{} s", ms / 1_000, ms % 1_000 / 100));
                format!("archived up to entry {}, {missing} entries{behind} behind", round.archived.id.sn)
            });
        }
    }

    /// A line now and then; on a terminal in the place of the last one.
    fn progress(&mut self, is_last: bool, line: impl FnOnce() -> String) {
        let period = TELL_PERIODS[usize::from(!self.is_terminal)];
        if !is_last && self.told_at.is_some_and(|at| at.elapsed() < period) {
            return;
        }
        self.told_at = Some(Instant::now());
        match self.is_terminal {
            true => {
                eprint!("\r\x1b[K{}", line());
                let _ = std::io::stderr().flush();
                self.has_line = true;
            }
            false => eprintln!("{}", line()),
        }
    }

    fn say(&mut self, line: &str) {
        self.end_line();
        match self.is_json {
            true => println!("{}", json!({ "event": "note", "text": line })),
            false => eprintln!("{line}"),
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.has_line) {
            eprintln!();
        }
    }

    fn tell_json(&mut self, event: &Event) {
        let line = match event {
            Event::Image { from, at, have, total } => {
                json!({ "event": "image", "from": from.0, "sn": at.0, "have": have, "total": total })
            }
            Event::Entries { from, at, up_to } => {
                json!({ "event": "entries", "from": from.0, "sn": at.0, "up_to": up_to.0 })
            }
            Event::Missed { after, up_to } => {
                json!({ "event": "missed", "first_sn": after.0 + 1, "last_sn": up_to.0 })
            }
            Event::Round(round) => json!({
                "event": "round",
                "sn": round.archived.id.sn.0,
                "epoch": round.archived.id.epoch.0,
                "committed": round.committed.0,
                "active": round.active.map(|(member, _)| member.0),
                "complete_ms": round.complete_ms,
                "behind_ms": round.behind_ms,
            }),
            Event::Waits(why) => json!({ "event": "waits", "why": why }),
        };
        println!("{line}");
    }
}
