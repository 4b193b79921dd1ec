//! The racks of hosts, as a script of the operator tells them: Hadoop's `net.topology.script.file.name`.
//!
//! The script is given addresses and prints a rack for each. One thread runs it, for all the hosts that are waited for
//! at that moment, so that a thousand data servers which register at once cost a few runs. A data server's rack is asked
//! for at each of its registrations, which waits for the answer. A client's is asked for when it is first heard of, and
//! nobody waits: until the answer is there, it counts as a host on the default rack.

use base::Moment;
use env::{
    Env,
    program::{self, Answer},
    pulse,
};
use parking_lot::{Condvar, Mutex};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io::ErrorKind,
    net::IpAddr,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use tokio::sync::oneshot::{Receiver, Sender, channel};

/// The configuration of the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RackScript {
    pub program: String,
    /// Addresses that it is given at once at most; `net.topology.script.number.args`.
    pub args_max: usize,
    /// A run that takes longer has failed.
    pub limit: Duration,
}

/// Hosts that wait for a run at most. Clients come from anywhere.
const WAITING_MAX: usize = 100_000;
/// Hosts that were asked for and are remembered. Beyond this many, all are asked for anew.
const ASKED_MAX: usize = 100_000;
/// After a run that has failed, the clients' hosts are not asked for again for so long.
const RETRY_MS: u64 = 60_000;
/// The longest name of a rack.
const RACK_BYTES_MAX: usize = 255;
/// How often the thread shows that it lives.
const PERIOD: Duration = Duration::from_secs(1);

pub struct Racks {
    script: Option<RackScript>,
    state: Mutex<State>,
    rung: Condvar,
}

#[derive(Default)]
struct State {
    /// The hosts of data servers that the script is to be asked for, and who waits for the answer.
    servers: BTreeMap<IpAddr, Vec<Sender<()>>>,
    /// The hosts of clients that it is to be asked for.
    clients: BTreeSet<IpAddr>,
    /// Clients' hosts that were asked for, and when they may be asked for again.
    asked: HashMap<IpAddr, Option<Moment>>,
    is_over: bool,
}

impl Racks {
    pub fn new(script: Option<RackScript>) -> Self {
        Self { script, state: Mutex::default(), rung: Condvar::new() }
    }

    /// Racks are asked for: somebody has to call [`Racks::run`].
    pub fn has_script(&self) -> bool {
        self.script.is_some()
    }

    /// A client speaks from this host.
    pub fn note(&self, host: Option<IpAddr>, now: impl FnOnce() -> Moment) {
        let (Some(_), Some(host)) = (&self.script, host) else { return };
        let host = host.to_canonical();
        let mut state = self.state.lock();
        match state.asked.get(&host) {
            Some(None) => return,
            Some(Some(again)) if now() < *again => return,
            _ => {}
        }
        if state.asked.len() >= ASKED_MAX {
            state.asked.clear();
        }
        state.asked.insert(host, None);
        if state.clients.len() < WAITING_MAX {
            state.clients.insert(host);
            self.rung.notify_one();
        }
    }

    /// Asks the script for the rack of this data server. The answer ends once the script was asked, whether it has told
    /// anything or not; `None` if nobody will ask it.
    pub fn ask(&self, host: IpAddr) -> Option<Receiver<()>> {
        self.script.as_ref()?;
        let mut state = self.state.lock();
        if state.is_over {
            return None;
        }
        // The sender is dropped when the script was asked, and when it never will be.
        let (sender, answered) = channel();
        state.servers.entry(host.to_canonical()).or_default().push(sender);
        self.rung.notify_one();
        Some(answered)
    }

    /// Asks for the racks of these hosts anew, and of clients when they are heard next. Nobody waits.
    pub fn refresh(&self, hosts: impl IntoIterator<Item = IpAddr>) {
        if self.script.is_none() {
            return;
        }
        let mut state = self.state.lock();
        state.asked.clear();
        for host in hosts {
            state.servers.entry(host.to_canonical()).or_default();
        }
        self.rung.notify_one();
    }

    /// The next hosts to ask for: data servers, or clients if no data server waits. A client comes from anywhere. The
    /// script may fail because it does not know it, and that must not cost a data server its rack.
    fn next(&self, count_max: usize) -> Vec<(IpAddr, Vec<Sender<()>>)> {
        let mut state = self.state.lock();
        if state.servers.is_empty() && state.clients.is_empty() {
            self.rung.wait_for(&mut state, PERIOD);
        }
        let mut hosts = Vec::new();
        while hosts.len() < count_max
            && let Some(server) = state.servers.pop_first()
        {
            hosts.push(server);
        }
        if hosts.is_empty() {
            while hosts.len() < count_max
                && let Some(client) = state.clients.pop_first()
            {
                hosts.push((client, Vec::new()));
            }
        }
        hosts
    }

    /// Nobody asks the script any more. Data servers that wait for it are let go.
    fn end(&self) {
        let mut state = self.state.lock();
        state.is_over = true;
        state.servers.clear();
        state.clients.clear();
    }

    /// The run for these hosts has failed.
    fn ask_again_later(&self, hosts: &[IpAddr], now: Moment) {
        let mut state = self.state.lock();
        for host in hosts {
            if let Some(again) = state.asked.get_mut(host) {
                *again = Some(now.plus_ms(RETRY_MS));
            }
        }
    }
}

impl Racks {
    /// Runs the script for the hosts that wait, on a thread of its own, until `stop`. `learn` is told the racks that the script has
    /// printed.
    pub fn run(&self, env: &Env, stop: &AtomicBool, learn: impl Fn(&[(IpAddr, String)])) {
        let Some(script) = &self.script else { return };
        while !stop.load(Ordering::Acquire) {
            pulse::step();
            let asked = self.next(script.args_max.max(1));
            if asked.is_empty() {
                continue;
            }
            let (hosts, waiting): (Vec<IpAddr>, Vec<_>) = asked.into_iter().unzip();
            self.find_out(&Asking { script, env, stop, learn: &learn }, &hosts);
            drop(waiting);
        }
        self.end();
    }

    /// Asks the script for these hosts, and has the racks learned. Returns whether the script was too slow.
    fn find_out(&self, asking: &Asking, hosts: &[IpAddr]) -> bool {
        let failure = match asked_for(asking.script, hosts) {
            Ok(racks) => {
                (asking.learn)(&hosts.iter().copied().zip(racks).collect::<Vec<_>>());
                return false;
            }
            Err(failure) => failure,
        };
        if hosts.len() > 1 && !failure.is_late {
            // One host that the script does not know must not cost the others their racks.
            let mut rest = hosts.chunks(1);
            let is_stopped = || asking.stop.load(Ordering::Acquire);
            let is_late = rest.by_ref().any(|one| is_stopped() || self.find_out(asking, one));
            rest.for_each(|one| self.ask_again_later(one, asking.env.clock.moment()));
            return is_late;
        }
        let first = hosts.first().map(ToString::to_string).unwrap_or_default();
        tracing::error!(
            script = asking.script.program,
            hosts = hosts.len(),
            first,
            error = failure.why,
            "the racks of hosts could not be found out: hosts without a known rack are in /default-rack"
        );
        self.ask_again_later(hosts, asking.env.clock.moment());
        failure.is_late
    }
}

/// Takes the racks of hosts that were found out.
type Learn<'a> = dyn Fn(&[(IpAddr, String)]) + 'a;

/// All that a run of the script needs beside the hosts.
struct Asking<'a> {
    script: &'a RackScript,
    env: &'a Env,
    stop: &'a AtomicBool,
    learn: &'a Learn<'a>,
}

/// Why a run of the script has failed.
struct Failure {
    why: String,
    /// It has taken too long, and would do so again.
    is_late: bool,
}

/// Like [`racks_of`], but tells the watcher that the thread waits for a program: a slow script must not be taken for a hanging thread.
fn asked_for(script: &RackScript, hosts: &[IpAddr]) -> Result<Vec<String>, Failure> {
    pulse::step();
    let _rest = pulse::rest();
    racks_of(script, hosts)
}

/// One rack for each host, in their order.
fn racks_of(script: &RackScript, hosts: &[IpAddr]) -> Result<Vec<String>, Failure> {
    let args: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    let bytes_max = (hosts.len() * (RACK_BYTES_MAX + 2)) as u64;
    let answer = program::ask(&script.program, &args, script.limit, bytes_max)
        .map_err(|error| Failure { why: error.to_string(), is_late: error.kind() == ErrorKind::TimedOut })?;
    read(answer, hosts.len()).map_err(|why| Failure { why, is_late: false })
}

/// The racks in the script's answer for this many hosts.
fn read(answer: Answer, count: usize) -> Result<Vec<String>, String> {
    if !answer.has_succeeded {
        return Err("it has ended with an error".into());
    }
    let printed = String::from_utf8(answer.output).map_err(|_| "it has not printed UTF-8".to_owned())?;
    let racks: Vec<&str> = printed.split_whitespace().collect();
    if racks.len() != count {
        return Err(format!("it has printed {} racks for {} addresses", racks.len(), count));
    }
    let is_rack = |rack: &str| {
        rack.len() > 1
            && rack.len() <= RACK_BYTES_MAX
            && rack.starts_with('/')
            && !rack.contains(char::is_control)
    };
    match racks.iter().find(|rack| !is_rack(rack)) {
        Some(bad) => Err(format!("it has printed {bad:?}, which is no rack: a rack begins with a slash")),
        None => Ok(racks.into_iter().map(str::to_owned).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt, path::Path};

    fn script(directory: &Path, lines: &str) -> RackScript {
        let file = directory.join("racks.sh");
        fs::write(&file, format!("#!/bin/sh\n{lines}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        RackScript { program: file.display().to_string(), args_max: 2, limit: Duration::from_secs(60) }
    }

    fn host(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn is_idle(racks: &Racks) -> bool {
        let state = racks.state.lock();
        state.servers.is_empty() && state.clients.is_empty()
    }

    #[test]
    fn a_script_tells_a_rack_for_each_address() {
        let directory = tempfile::tempdir().unwrap();
        let told = script(directory.path(), "for host; do echo /rack-${host##*.}; done");
        assert_eq!(racks_of(&told, &[host(1), host(2)]).ok().unwrap(), ["/rack-1", "/rack-2"]);
    }

    #[test]
    fn an_answer_that_means_nothing_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        for (lines, why) in [
            ("echo /a", "1 racks for 2 addresses"),
            ("echo /a /b /c", "3 racks for 2 addresses"),
            ("echo /a b", "which is no rack"),
            ("echo /a /", "which is no rack"),
            ("echo /a /b; exit 1", "ended with an error"),
            ("printf '/a /\\377'", "not printed UTF-8"),
            ("yes /a", "ended with an error"),
            ("printf '/a\\001 /b'", "which is no rack"),
        ] {
            let error = racks_of(&script(directory.path(), lines), &[host(1), host(2)]).err().unwrap().why;
            assert!(error.contains(why), "{lines}: {error}");
        }
        let missing =
            RackScript { program: "/no/such/script".into(), args_max: 1, limit: Duration::from_secs(1) };
        assert!(racks_of(&missing, &[host(1)]).is_err());
    }

    #[test]
    fn a_client_is_asked_for_once_and_again_after_a_failure() {
        let racks = Racks::new(Some(RackScript { program: "x".into(), args_max: 2, limit: Duration::ZERO }));
        let now = Moment::from_ms(1_000_000);
        racks.note(Some(host(1)), || now);
        racks.note(None, || now);
        assert_eq!(racks.next(9).len(), 1);
        racks.note(Some(host(1)), || now);
        assert!(is_idle(&racks));
        racks.ask_again_later(&[host(1)], now);
        racks.note(Some(host(1)), || now.plus_ms(RETRY_MS - 1));
        assert!(is_idle(&racks));
        racks.note(Some(host(1)), || now.plus_ms(RETRY_MS));
        assert_eq!(racks.next(9).len(), 1);
    }

    #[test]
    fn data_servers_go_before_clients_and_no_client_spoils_their_run() {
        let racks = Racks::new(Some(RackScript { program: "x".into(), args_max: 2, limit: Duration::ZERO }));
        (1..=3).for_each(|last| racks.note(Some(host(last)), Moment::default));
        let answered = racks.ask(host(9)).unwrap();
        racks.refresh([host(8)]);
        let hosts =
            |next: &[(IpAddr, Vec<Sender<()>>)]| next.iter().map(|(host, _)| *host).collect::<Vec<_>>();
        let first = racks.next(3);
        assert_eq!(hosts(&first), [host(8), host(9)]);
        drop(first);
        assert!(answered.blocking_recv().is_err(), "the registration waits no longer");
        assert_eq!(hosts(&racks.next(2)), [host(1), host(2)]);
        assert_eq!(hosts(&racks.next(2)), [host(3)]);
    }

    #[test]
    fn nobody_waits_for_a_script_that_is_asked_no_more() {
        let racks = Racks::new(Some(RackScript { program: "x".into(), args_max: 2, limit: Duration::ZERO }));
        let answered = racks.ask(host(1)).unwrap();
        racks.end();
        assert!(answered.blocking_recv().is_err());
        assert!(racks.ask(host(1)).is_none());
    }

    #[test]
    fn a_host_is_asked_for_by_the_address_under_which_it_is_known() {
        let racks = Racks::new(Some(RackScript { program: "x".into(), args_max: 9, limit: Duration::ZERO }));
        let mapped: IpAddr = "::ffff:10.0.0.1".parse().unwrap();
        racks.note(Some(mapped), Moment::default);
        racks.note(Some(host(1)), Moment::default);
        racks.refresh([mapped]);
        assert_eq!(racks.next(9).iter().map(|(host, _)| *host).collect::<Vec<_>>(), [host(1)]);
    }

    #[test]
    fn a_host_that_the_script_does_not_know_costs_no_other_host_its_rack() {
        let directory = tempfile::tempdir().unwrap();
        let lines = "for host; do case $host in *.2) exit 1;; esac; echo /rack; done";
        let racks = Racks::new(Some(RackScript { args_max: 9, ..script(directory.path(), lines) }));
        racks.refresh([host(1), host(2), host(3)]);
        let (stop, learned) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        racks.run(&Env::production(), &stop, |told| {
            learned.lock().extend(told.iter().map(|(host, _)| *host));
            let is_all = learned.lock().len() > 1;
            stop.store(is_all, Ordering::Release);
        });
        assert_eq!(*learned.lock(), [host(1), host(3)]);
    }

    #[test]
    fn without_a_script_nobody_waits() {
        let racks = Racks::new(None);
        assert!(racks.ask(host(1)).is_none());
        racks.note(Some(host(1)), Moment::default);
        racks.refresh([host(1)]);
        assert!(is_idle(&racks));
    }
}
