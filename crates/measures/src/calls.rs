//! Calls that come over connections: how often each method is called, how long each stage takes, and by which user.

use crate::{
    figures::{Figures, empty},
    users::{TopUser, UserCalls, Users},
};
use base::Moment;
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};

/// The stages of a call: until a thread takes it up, from then until its answer is made, and both together.
pub const STAGES: [&str; 3] = ["queue", "processing", "total"];

/// The place of the first of them.
const QUEUE: usize = 0;

/// Connections are spread over so many tables, so that threads hardly ever want one at the same time.
const SHARDS: usize = 8;

/// How many methods a connection remembers the places of. Hardly any client uses more.
const KNOWN_MAX: usize = 48;

/// All calls of a server since its start.
#[derive(Debug, Default)]
pub struct Calls {
    shards: [Mutex<BTreeMap<Name, Arc<Method>>>; SHARDS],
    users: Users,
}

/// A protocol and a method of it.
type Name = (&'static str, &'static str);

/// The calls of a method that came over one part of the connections.
#[derive(Debug)]
struct Method {
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    /// The calls that did not wait: their processing is all. Most reads are such calls, and this spares them two of three records.
    at_once: Histogram<u64>,
    /// The stages of all other calls.
    waited: [Histogram<u64>; STAGES.len()],
    /// The sums of both.
    sums_ns: [u64; STAGES.len()],
    refused: u64,
}

impl Method {
    fn new() -> Self {
        Self {
            kept: Mutex::new(Kept {
                at_once: empty(),
                waited: [empty(), empty(), empty()],
                sums_ns: [0; STAGES.len()],
                refused: 0,
            }),
        }
    }
}

impl Kept {
    /// The durations of a stage of all calls.
    fn durations(&self, stage: usize) -> Histogram<u64> {
        let mut durations = self.waited[stage].clone();
        match stage {
            QUEUE => durations.record_n(0, self.at_once.len()).expect("nothing is within the range"),
            _ => durations.add(&self.at_once).expect("all of them have one range"),
        }
        durations
    }
}

/// The calls of one method.
#[derive(Clone, Debug)]
pub struct MethodFigures {
    pub protocol: &'static str,
    pub method: &'static str,
    /// How many calls were answered by a refusal, a file that does not exist for example.
    pub refused: u64,
    /// How long each stage took, in the order of [`STAGES`].
    pub stages: [Figures; STAGES.len()],
}

impl Calls {
    /// The figures of all methods that have been called, in the order of their names.
    pub fn methods(&self) -> Vec<MethodFigures> {
        let mut all: BTreeMap<Name, MethodFigures> = BTreeMap::new();
        for shard in &self.shards {
            let methods: Vec<_> =
                shard.lock().iter().map(|(name, method)| (*name, Arc::clone(method))).collect();
            for ((protocol, name), method) in methods {
                let sum = all.entry((protocol, name)).or_insert_with(|| MethodFigures {
                    protocol,
                    method: name,
                    refused: 0,
                    stages: Default::default(),
                });
                let kept = method.kept.lock();
                sum.refused += kept.refused;
                for (at, stage) in sum.stages.iter_mut().enumerate() {
                    stage.add(&Figures { durations: kept.durations(at), sum_ns: kept.sums_ns[at] });
                }
            }
        }
        // A method whose first call is under way has no figures yet.
        all.into_values().filter(|method| method.stages[0].count() > 0).collect()
    }

    /// The users and methods with the most calls in the last `window_s` seconds (at most the longest of [`crate::WINDOWS`]), the
    /// busiest first, and `most` of them at most.
    pub fn top_users(&self, window_s: u64, now: Moment, most: usize) -> Vec<TopUser> {
        self.users.top(window_s, seconds(now), most)
    }
}

fn seconds(now: Moment) -> u64 {
    now.ns / 1_000_000_000
}

/// A connection's own place at the table: it remembers where the methods that the connection calls are counted.
#[derive(Debug)]
pub struct Desk {
    calls: Arc<Calls>,
    shard: usize,
    known: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    name: Name,
    method: Arc<Method>,
    by_user: Arc<UserCalls>,
}

impl Desk {
    /// `connection`: the number of the connection. It spreads connections over the tables.
    pub fn new(calls: Arc<Calls>, connection: u64) -> Self {
        Self { calls, shard: (connection % SHARDS as u64) as usize, known: Vec::new() }
    }

    /// Begins to measure a call whose bytes came at `heard`, and that is taken up at `taken`. All calls of a connection come from one user.
    pub fn begin(
        &mut self,
        user: &str,
        protocol: &'static str,
        method: &'static str,
        heard: Moment,
        taken: Moment,
    ) -> Measured {
        // The names are the same ones each time, so it is enough to compare where they stand.
        let is_it =
            |known: &Known| std::ptr::eq(known.name.1, method) && std::ptr::eq(known.name.0, protocol);
        let at = match self.known.iter().position(is_it) {
            Some(at) => at,
            None => self.learn(user, (protocol, method), taken),
        };
        let known = &self.known[at];
        known.by_user.count(seconds(taken));
        Measured { method: Arc::clone(&known.method), heard, taken }
    }

    fn learn(&mut self, user: &str, name: Name, now: Moment) -> usize {
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        let method = Arc::clone(
            self.calls.shards[self.shard].lock().entry(name).or_insert_with(|| Arc::new(Method::new())),
        );
        let by_user = self.calls.users.of(user, name.1, seconds(now));
        self.known.push(Known { name, method, by_user });
        self.known.len() - 1
    }
}

/// A call that is being measured.
#[derive(Debug)]
pub struct Measured {
    method: Arc<Method>,
    heard: Moment,
    taken: Moment,
}

impl Measured {
    /// The call had waited, and is taken up only now.
    pub fn taken_up(&mut self, now: Moment) {
        self.taken = now;
    }

    /// The answer is made.
    pub fn answered(self, now: Moment, is_refused: bool) {
        let queue_ns = self.taken.ns.saturating_sub(self.heard.ns);
        let processing_ns = now.ns.saturating_sub(self.taken.ns);
        let total_ns = queue_ns.saturating_add(processing_ns);
        let mut kept = self.method.kept.lock();
        let Kept { at_once, waited, sums_ns, refused } = &mut *kept;
        match queue_ns {
            0 => at_once.saturating_record(processing_ns),
            _ => {
                for (stage, duration_ns) in waited.iter_mut().zip([queue_ns, processing_ns, total_ns]) {
                    stage.saturating_record(duration_ns);
                }
            }
        }
        for (sum_ns, duration_ns) in sums_ns.iter_mut().zip([queue_ns, processing_ns, total_ns]) {
            *sum_ns = sum_ns.saturating_add(duration_ns);
        }
        *refused += u64::from(is_refused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Moment {
        Moment { ns: us * 1_000 }
    }

    #[test]
    fn the_calls_of_all_connections_are_summed_up_by_method() {
        let calls = Arc::new(Calls::default());
        for connection in 0..20 {
            let mut desk = Desk::new(calls.clone(), connection);
            for method in ["mkdirs", "create", "mkdirs"] {
                let mut measured = desk.begin("anna", "ClientProtocol", method, at(100), at(110));
                measured.taken_up(at(300));
                measured.answered(at(1_300), method == "create");
            }
        }
        let methods = calls.methods();
        let seen: Vec<_> = methods
            .iter()
            .map(|of| (of.method, of.refused, of.stages.each_ref().map(Figures::count)))
            .collect();
        assert_eq!(seen, [("create", 20, [20; 3]), ("mkdirs", 0, [40; 3])]);
        let sums: Vec<_> = methods[1].stages.iter().map(|stage| stage.sum_ns / 40).collect();
        assert_eq!(sums, [200_000, 1_000_000, 1_200_000]);
        let top = calls.top_users(60, at(0), 1);
        assert_eq!(top, [TopUser { user: "anna".into(), method: "mkdirs", calls: 40 }]);
    }

    #[test]
    fn calls_that_did_not_wait_count_in_every_stage() {
        let calls = Arc::new(Calls::default());
        let mut desk = Desk::new(calls.clone(), 0);
        desk.begin("anna", "Protocol", "stat", at(10), at(10)).answered(at(15), false);
        desk.begin("anna", "Protocol", "stat", at(10), at(30)).answered(at(35), false);
        let stages = &calls.methods()[0].stages;
        assert_eq!(
            stages.each_ref().map(|stage| (stage.count(), stage.sum_ns)),
            [(2, 20_000), (2, 10_000), (2, 30_000)]
        );
        let within = |stage: &Figures| stage.between(&[12_000])[0];
        assert_eq!(stages.each_ref().map(within), [1, 2, 1]);
    }

    #[test]
    fn a_connection_that_calls_every_method_is_measured_as_well() {
        const METHODS: [&str; 100] = {
            let names = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
            let mut methods = [""; 100];
            let mut at = 0;
            while at < 100 {
                methods[at] = names.split_at(at).1.split_at(3).0;
                at += 1;
            }
            methods
        };
        let calls = Arc::new(Calls::default());
        let mut desk = Desk::new(calls.clone(), 3);
        for method in METHODS.iter().chain(&METHODS) {
            desk.begin("anna", "Protocol", method, at(0), at(0)).answered(at(5), false);
        }
        assert!(desk.known.len() <= KNOWN_MAX);
        assert_eq!(calls.methods().iter().map(|of| of.stages[2].count()).sum::<u64>(), 200);
    }

    #[test]
    fn clocks_that_do_not_agree_give_no_nonsense() {
        let calls = Arc::new(Calls::default());
        let mut measured = Desk::new(calls.clone(), 0).begin("anna", "Protocol", "mkdirs", at(500), at(100));
        measured.taken_up(at(50));
        measured.answered(at(20), false);
        assert_eq!(calls.methods()[0].stages.each_ref().map(|stage| stage.sum_ns), [0; 3]);
    }
}
