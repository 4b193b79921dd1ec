//! What happens at a point. The file that the environment names says it, in lines of the form `POINT NUMBER ACTION [MS [WORD]]`: when the point is passed
//! for the NUMBER-th time with this line there,
//!
//! - `kill` ends the process as SIGKILL does,
//! - `stop` freezes it as SIGSTOP does, until somebody sends SIGCONT,
//! - `hold` keeps the thread there, until the line is gone, for two seconds at most,
//! - `lose` loses the message that would be sent, and all further ones, until the line is gone.
//!
//! With MS the thread sleeps for so long before that: what it has given to others gets on its way. Any WORD makes a line another one, which is counted
//! from the beginning. A line on the error output says that a point has been reached.

use super::Point;
use namespace::Namespace;
use parking_lot::Mutex;
use rustix::process::{Signal, getpid, kill_process};
use std::{
    collections::BTreeMap,
    env, fs,
    path::PathBuf,
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

/// The variable that names the file.
const VARIABLE: &str = "CLOVER_FAILPOINTS";
/// A thread that stands still for longer than a few seconds ends its server.
const HOLD_MAX: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(2);

static FILE: LazyLock<Option<PathBuf>> = LazyLock::new(|| env::var_os(VARIABLE).map(PathBuf::from));
/// How often each line was passed.
static PASSED: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

/// The lines about the point.
fn lines(point: Point) -> Vec<String> {
    let Some(text) = FILE.as_ref().and_then(|file| fs::read_to_string(file).ok()) else { return Vec::new() };
    text.lines().filter(|line| line.split(' ').next() == Some(name(point))).map(str::to_owned).collect()
}

/// Whether somebody waits for the point.
pub fn is_awaited(point: Point) -> bool {
    !lines(point).is_empty()
}

pub fn pass(point: Point) {
    for line in lines(point) {
        let passed = {
            let mut passed = PASSED.lock();
            let passed = passed.entry(line.clone()).or_default();
            *passed += 1;
            *passed
        };
        let mut words = line.split(' ').skip(1);
        if words.next().and_then(|number| number.parse().ok()) != Some(passed) {
            continue;
        }
        let action = words.next().unwrap_or_default();
        if let Some(ms) = words.next().and_then(|ms| ms.parse().ok()) {
            thread::sleep(Duration::from_millis(ms));
        }
        eprintln!("failpoint reached: {line}");
        match action {
            "kill" => send_to_self(Signal::KILL),
            "stop" => send_to_self(Signal::STOP),
            "hold" => hold(point, &line),
            _ => panic!("{line}: no such action"),
        }
    }
}

/// The places in both logs to which a tree has come, with what must be equal there.
pub fn tell_end(namespace: &Namespace) {
    let (own, digest) = (namespace.applied(), namespace.digest());
    let (dix, directories) = (namespace.directory_log().dix, namespace.directories_digest());
    eprintln!("failpoint end: at {own} {digest:016x}, directories at {dix} {directories:016x}");
}

fn send_to_self(signal: Signal) {
    kill_process(getpid(), signal).expect("a process may send itself any signal");
}

fn hold(point: Point, line: &str) {
    let began = Instant::now();
    while began.elapsed() < HOLD_MAX && lines(point).iter().any(|it| it == line) {
        thread::sleep(LOOK);
    }
}

/// Whether a message that the server would send here is lost.
pub fn is_lost(point: Point) -> bool {
    lines(point).iter().any(|line| line.split(' ').nth(2) == Some("lose"))
}

fn name(point: Point) -> &'static str {
    match point {
        Point::RootPlanned => "root-planned",
        Point::RootSent => "root-sent",
        Point::LogSent => "log-sent",
        Point::RootCommitted => "root-committed",
        Point::RootVisible => "root-visible",
        Point::MoveOrdered => "move-ordered",
        Point::HomeReceived => "home-received",
        Point::HomeApplied => "home-applied",
        Point::HomeRelayed => "home-relayed",
        Point::HomeHeld => "home-held",
        Point::HomeTold => "home-told",
        Point::MoveRelayed => "move-relayed",
        Point::OutboxCommitted => "outbox-committed",
        Point::OutboxCarried => "outbox-carried",
        Point::OutboxAnswered => "outbox-answered",
        Point::JoinCommitted => "join-committed",
        Point::JoinCarried => "join-carried",
        Point::JoinAnswered => "join-answered",
    }
}
