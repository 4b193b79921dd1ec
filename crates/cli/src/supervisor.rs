//! What a server tells the service manager that has started it: that it is ready, how it is, that it lives, that it stops.
//!
//! The words go over the socket in NOTIFY_SOCKET, as systemd defines them for services of `Type=notify`. Without the
//! variable nothing is told. The words of life (WATCHDOG=1) go out only while the server's own look at itself says that it is
//! sound: a process that merely exists is no reason to leave it alone.

use sd_notify::NotifyState;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// How often the status line is brought up to date, if no watchdog asks for more.
const PERIOD: Duration = Duration::from_secs(5);
/// Words of life for each period after which systemd ends a silent service: one may be late.
const WORDS_A_PERIOD: u32 = 3;

/// How a server looks at itself. Both may wait for locks, and run on threads for such work.
pub struct Look {
    /// Whether the server is sound, or why it is not.
    pub verdict: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// Its state, as one line.
    pub state: Box<dyn Fn() -> String + Send + Sync>,
}

/// Tells the service manager that the server starts. Clients cannot be served yet.
pub fn starting() {
    tell(&[NotifyState::Status("starting")]);
}

/// Tells the service manager that clients can connect.
pub fn ready(state: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(state)]);
}

/// Tells the service manager that the server ends.
pub fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
}

/// Tells how the server is, from now on and until the runtime ends.
pub fn keep_told(look: Look) {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return;
    }
    drop(tokio::spawn(tell_for_ever(Arc::new(look), sd_notify::watchdog_enabled(), tell)));
}

async fn tell_for_ever(
    look: Arc<Look>,
    watchdog: Option<Duration>,
    tell: impl Fn(&[NotifyState]) + Clone + Send + 'static,
) {
    let period = watchdog.map_or(PERIOD, |limit| (limit / WORDS_A_PERIOD).min(PERIOD));
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut status: Option<tokio::task::JoinHandle<()>> = None;
    let mut was_sound = true;
    loop {
        ticks.tick().await;
        if watchdog.is_some() {
            let (asked, tell) = (look.clone(), tell.clone());
            let verdict = tokio::task::spawn_blocking(move || {
                let verdict = (asked.verdict)();
                if verdict.is_ok() {
                    tell(&[NotifyState::Watchdog]);
                }
                verdict
            });
            let verdict = verdict.await.unwrap_or_else(|error| Err(error.to_string()));
            if let (Err(reason), true) = (&verdict, was_sound) {
                tracing::error!(reason, "systemd's watchdog is told nothing while this is so");
            }
            was_sound = verdict.is_ok();
        }
        // The look may wait for a lock for long, which holds up no word of life.
        if status.as_ref().is_none_or(tokio::task::JoinHandle::is_finished) {
            let (asked, tell) = (look.clone(), tell.clone());
            status = Some(tokio::task::spawn_blocking(move || {
                tell(&[NotifyState::Status(&one_line(&(asked.state)()))]);
            }));
        }
    }
}

/// A line's end would begin another word.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// A service manager that does not hear is no reason to serve nobody.
fn tell(words: &[NotifyState]) {
    let began = Instant::now();
    if let Err(error) = sd_notify::notify(words) {
        tracing::warn!(%error, "the service manager could not be told");
    }
    if began.elapsed() > PERIOD {
        tracing::warn!(ms = began.elapsed().as_millis(), "the service manager took its time to listen");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    };

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_word_of_life_goes_out_while_the_server_is_not_sound() {
        let is_sound = Arc::new(AtomicBool::new(true));
        let asked = is_sound.clone();
        let (told, hears) = mpsc::channel();
        let look = Look {
            verdict: Box::new(move || match asked.load(Ordering::SeqCst) {
                true => Ok(()),
                false => Err("thread a hangs".into()),
            }),
            state: Box::new(|| "active".into()),
        };
        let tell = move |words: &[NotifyState]| drop(told.send(format!("{}", words[0])));
        let telling = tokio::spawn(tell_for_ever(Arc::new(look), Some(Duration::from_millis(3)), tell));
        let next = || hears.recv_timeout(PATIENCE).expect("it tells something");
        while next() != "WATCHDOG=1" {}
        is_sound.store(false, Ordering::SeqCst);
        // One verdict may have been under way. After its word come lines of the state alone.
        let words: Vec<String> = (0..50).map(|_| next()).collect();
        assert!(words.iter().rev().take(20).all(|word| word == "STATUS=active"), "{words:?}");
        is_sound.store(true, Ordering::SeqCst);
        while next() != "WATCHDOG=1" {}
        telling.abort();
    }

    #[test]
    fn a_reason_of_several_lines_is_told_as_one() {
        assert_eq!(one_line("failed: a\nREADY=1\r\n"), "failed: a READY=1  ");
    }
}
