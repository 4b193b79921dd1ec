//! How a server's process ends that must not go on: after a panic, or because a thread hangs.
//!
//! A process with a dead thread in it answers, holds its ports and its place in the group, and does half of its work.
//! It is better gone: others notice that at once, and its supervisor starts it again.

use crate::exit_code;
use metad::LastResort;
use std::{
    process,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, Thread},
    time::Duration,
};

/// How long the last line of the log may take: a thread that hangs may be in the midst of one.
const SAYING: Duration = Duration::from_millis(300);
/// The longest time between the decision to end and the end of the process, whichever locks are held.
const GRACE: Duration = Duration::from_millis(1_000);

static IS_ENDING: AtomicBool = AtomicBool::new(false);
static UNDERTAKER: OnceLock<Thread> = OnceLock::new();

/// Makes a panic of any thread end this process, from now on. Servers call it.
pub fn end_on_panic() {
    UNDERTAKER.get_or_init(|| {
        let thread = thread::Builder::new().name("undertaker".into()).spawn(wait_and_kill);
        thread.expect("a thread can be started").thread().clone()
    });
    let show = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        announce();
        // First of all, for the next server that is asked the same: what is said here may take long.
        let request = metad::note_request_in_hand();
        show(panic);
        let name = thread::current().name().unwrap_or("without a name").to_owned();
        let request = request.map(|request| format!(". {request}")).unwrap_or_default();
        end(
            exit_code::PANIC,
            format!("thread {name} has panicked, and so this process ends. Start it again{request}"),
        );
    }));
}

/// The way in which a metadata server ends when a thread hangs.
pub fn last_resort() -> LastResort {
    LastResort::new(|reason| {
        announce();
        end(exit_code::HANG, reason.to_owned());
    })
}

/// The end is near, and comes even if this thread never gets further.
fn announce() {
    if IS_ENDING.swap(true, Ordering::AcqRel) {
        // Another thread is ending the process. This one must not go on, because it would rest on something that is
        // broken.
        loop {
            thread::park();
        }
    }
    if let Some(undertaker) = UNDERTAKER.get() {
        undertaker.unpark();
    }
}

fn end(code: u8, reason: String) -> ! {
    let (said, hears) = mpsc::channel();
    let saying = thread::Builder::new().name("last-words".into()).spawn(move || {
        tracing::error!(exit_code = code, "{reason}");
        let _ = said.send(());
    });
    if saying.is_ok() {
        let _ = hears.recv_timeout(SAYING);
    }
    process::exit(code.into())
}

/// SIGKILL cannot be held up by a lock, and leaves no core of many gigabytes that keeps the ports open while it is written.
fn wait_and_kill() {
    while !IS_ENDING.load(Ordering::Acquire) {
        thread::park();
    }
    thread::sleep(GRACE);
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
}
