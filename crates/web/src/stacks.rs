//! `/stacks`: the threads of the process.
//!
//! Hadoop prints the stack of each Java thread here. A program without Java has no such stacks to tell while it runs, so
//! the page says what the system knows of each thread, in Hadoop's layout.

use axum::{Router, http::header, response::IntoResponse, routing::get};
use env::threads::{ThreadFacts, ThreadState, threads};
use std::fmt::Write;

pub(crate) fn router() -> Router {
    Router::new().route("/stacks", get(show))
}

async fn show() -> impl IntoResponse {
    // It reads several files of the system for each thread.
    let threads = tokio::task::spawn_blocking(threads).await.unwrap_or_default();
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text(&threads))
}

/// The state in Java's words. A thread that waits for a device is blocked.
pub(crate) fn java_word(state: ThreadState) -> &'static str {
    match state {
        ThreadState::Running => "RUNNABLE",
        ThreadState::Sleeping | ThreadState::Stopped => "WAITING",
        ThreadState::WaitingForDevice => "BLOCKED",
        ThreadState::Other => "TERMINATED",
    }
}

fn text(threads: &[ThreadFacts]) -> String {
    let mut text = format!("Process Thread Dump: \n{} active threads\n", threads.len());
    for thread in threads {
        let ThreadFacts { id, name, state, cpu_ms, waits, preemptions, wait_place } = thread;
        let _ = write!(
            text,
            "Thread {id} ({name}):\n  State: {}\n  Preempted count: {preemptions}\n  Waited count: {waits}\n  Processor time: {cpu_ms} ms\n",
            java_word(*state)
        );
        if let Some(place) = wait_place {
            let _ = writeln!(text, "  Waiting in the kernel: {place}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_lines() {
        let thread = ThreadFacts {
            id: 7,
            name: "meta-writer".into(),
            state: ThreadState::WaitingForDevice,
            cpu_ms: 12,
            waits: 3,
            preemptions: 1,
            wait_place: Some("io_schedule".into()),
        };
        let expected = "Process Thread Dump: \n1 active threads\nThread 7 (meta-writer):\n  State: BLOCKED\n  Preempted count: 1\n  \
                        Waited count: 3\n  Processor time: 12 ms\n  Waiting in the kernel: io_schedule\n";
        assert_eq!(text(&[thread]), expected);
    }
}
