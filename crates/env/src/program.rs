//! Programs of the operator or of the system that are asked something: run with a bound on their time and on what they print.

use rustix::{
    io::retry_on_intr,
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid},
};
use std::{
    io::{self, Read},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::Duration,
};

/// The output of a program, and its success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The first bytes of its standard output, as many as were allowed.
    pub output: Vec<u8>,
    pub has_succeeded: bool,
}

/// Runs the program, with nothing to read, and waits until it has ended and its output is closed. What it writes to its
/// standard error is lost.
///
/// # Errors
/// The program cannot be started; or it takes longer than `limit`, and is killed together with the processes that it
/// has started. [`io::ErrorKind::TimedOut`] tells so.
pub fn ask(program: &str, args: &[String], limit: Duration, output_bytes_max: u64) -> io::Result<Answer> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn()?;
    let output = child.stdout.take().expect("the output was asked for");
    let pid = Pid::from_child(&child);
    let (sender, read) = channel();
    let reading = thread::Builder::new().name("program-output".into()).spawn(move || {
        let mut bytes = Vec::new();
        let done = output.take(output_bytes_max).read_to_end(&mut bytes).map(|_| bytes);
        if done.as_ref().is_ok_and(|bytes| (bytes.len() as u64) < output_bytes_max) {
            // It may have closed its output, and go on. The end is only looked at here: the thread that has started it takes
            // its status. If that thread has killed it because the time was over, it may be gone.
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let _ = retry_on_intr(|| waitid(WaitId::Pid(pid), ended));
        }
        // Nobody waits any more if the time is over.
        let _ = sender.send(done);
    });
    if let Err(error) = reading {
        end(&mut child);
        child.wait()?;
        return Err(error);
    }
    match read.recv_timeout(limit) {
        Ok(output) => {
            // A program that has printed as much as is allowed is ended: it may go on to print, or hang.
            let is_whole = output.as_ref().is_ok_and(|bytes| (bytes.len() as u64) < output_bytes_max);
            if !is_whole {
                end(&mut child);
            }
            let status = child.wait()?;
            Ok(Answer { output: output?, has_succeeded: status.success() })
        }
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            end(&mut child);
            child.wait()?;
            let text = format!("it did not end within {} ms, and was killed", limit.as_millis());
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        }
    }
}

/// Kills the program and all that it has started.
fn end(child: &mut Child) {
    let group = Pid::from_child(child);
    // It may have ended meanwhile.
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.kill();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn sh(script: &str, limit: Duration) -> io::Result<Answer> {
        ask("/bin/sh", &["-c".into(), script.into()], limit, 16)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn what_a_program_prints_is_its_answer() {
        let answer = sh("echo hello", LONG).unwrap();
        assert_eq!(answer, Answer { output: b"hello\n".to_vec(), has_succeeded: true });
        assert!(!sh("exit 3", LONG).unwrap().has_succeeded);
        assert!(sh("cat", LONG).unwrap().output.is_empty(), "there is nothing to read");
        assert_eq!(ask("/no/such/program", &[], LONG, 16).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let begun = Instant::now();
        let error = sh("sleep 3600 & sleep 3600", Duration::from_millis(100)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < LONG, "nobody waits for the sleepers");
    }

    #[test]
    fn a_program_that_closes_its_output_and_goes_on_is_killed() {
        let begun = Instant::now();
        let error = sh("echo hello; exec >&-; sleep 3600", Duration::from_millis(100)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < LONG, "nobody waits for the sleeper");
    }

    #[test]
    fn a_program_that_prints_for_ever_is_cut_off() {
        let answer = sh("yes", LONG).unwrap();
        assert_eq!(answer.output.len(), 16);
        assert!(!answer.has_succeeded);
    }
}
