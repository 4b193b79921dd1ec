//! Readable stories of a root and its homes: what happened, and everything they then wanted.
//!
//! A line that begins with `>` is an input; the indented lines below it are its full effects. Messages wait on their links until the
//! story delivers them. After a change on purpose: `CLOVER_REWRITE=1 cargo test -p clover-dirlog --test transcripts`, and read the diff.

use base::{Epoch, GroupId, Moment};
use bytes::Bytes;
use dirlog::{
    AskId, CallId, Dix, Dropped, Entry, Home, Mark, MarkKind, OpId, Point, Root, Settings, ToGroup, ToRoot,
    home,
    home::{CallKind, Permit},
    root::{self, AskOf, Decided, Recovered},
};
use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Write,
    path::Path,
};

#[derive(Default)]
struct Story {
    now: Moment,
    root: Option<Root>,
    /// The directory log as the root group's disk has it.
    log: Vec<Entry>,
    homes: BTreeMap<u32, Home>,
    /// The relays in each home's log.
    applied: BTreeMap<u32, Point>,
    down: BTreeMap<u32, VecDeque<ToGroup>>,
    up: BTreeMap<u32, VecDeque<ToRoot>>,
    permits: BTreeMap<u64, Permit>,
    settings: Settings,
    out: String,
}

fn mark(text: &str) -> Mark {
    let (kind, key) = text.split_once(':').expect("kind:key");
    let kind = match kind {
        "name" => MarkKind::Name,
        "names" => MarkKind::Names,
        "passage" => MarkKind::Passage,
        "inode" => MarkKind::Inode,
        "files" => MarkKind::Files,
        other => panic!("no such kind: {other}"),
    };
    Mark::new(kind, u128::from_str_radix(key, 16).expect("a number"))
}

fn marks(words: &[&str]) -> Vec<Mark> {
    words.iter().map(|word| mark(word)).collect()
}

fn ask_id(text: &str) -> AskId {
    let (epoch, number) = text.split_once('-').expect("epoch-number");
    AskId { root_epoch: Epoch(epoch.parse().unwrap()), number: number.parse().unwrap() }
}

fn dixes(entries: &[Entry]) -> String {
    if let [first, .., last] = entries
        && entries.len() > 8
    {
        return format!("{} to {}", first.dix, last.dix);
    }
    entries.iter().map(|entry| format!(" {}", entry.dix)).collect()
}

fn to_group(message: &ToGroup) -> String {
    match message {
        ToGroup::SayHello { root_epoch, denied } => match denied {
            Some(session) => format!("say Hello to root {root_epoch}: session {session} is over"),
            None => format!("say Hello to root {root_epoch}"),
        },
        ToGroup::Welcome { session, end, visible, is_leased, .. } => {
            let lease = if *is_leased { "with a lease" } else { "without a lease" };
            format!("Welcome {lease}: session {session}, end {end}, visible {visible}")
        }
        ToGroup::Unwelcome { why, .. } => format!("Unwelcome: {why}"),
        ToGroup::Append { previous, entries, visible, .. } => {
            format!("Append after {} [{}], visible {visible}", previous.dix, dixes(entries).trim())
        }
        ToGroup::Renewed { number, is_granted, visible, open_from, .. } => {
            let word = if *is_granted { "lease" } else { "no lease" };
            format!("Renewed {number}: {word}, visible {visible}, asks open from {open_from}")
        }
        ToGroup::Ask(ask) => format!("Ask {} about {:?}, visible {}", ask.ask, ask.marks, ask.visible),
        ToGroup::Release { ask, .. } => format!("Release {ask}"),
    }
}

fn to_root(message: &ToRoot) -> String {
    match message {
        ToRoot::Hello { hello, root_epoch: Epoch(0), .. } => format!("Hello {} to any root", hello.number),
        ToRoot::Hello { hello, root_epoch, applied, committed } => {
            format!(
                "Hello {} to root {root_epoch}, in epoch {}: applied {}, committed {committed}",
                hello.number, hello.epoch, applied.dix
            )
        }
        ToRoot::Received { session, progress } => {
            format!(
                "Received {} of {}, committed {} (session {session})",
                progress.received, progress.queued, progress.committed
            )
        }
        ToRoot::Renew { number, progress, .. } => format!("Renew {number}: received {}", progress.received),
        ToRoot::Held { ask, fact, .. } => format!("Held {ask}: {}", String::from_utf8_lossy(fact)),
        ToRoot::InTheWay { ask, .. } => format!("In the way of {ask}"),
    }
}

impl Story {
    fn say(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.out, "  {line}").expect("a String takes it");
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.out, "{line}").expect("a String takes it");
        let words: Vec<&str> = line.trim_start_matches('>').split_whitespace().collect();
        let number = |index: usize| words[index].parse::<u64>().expect("a number");
        match words[0] {
            // root <epoch> <entries kept> <group>…: a root group's active, with so much of the log.
            "root" => {
                self.log.truncate(number(2) as usize);
                let groups: Vec<GroupId> =
                    words[3..].iter().map(|group| GroupId(group.parse().unwrap())).collect();
                let recovered = Recovered { entries: self.log.clone(), ..Recovered::default() };
                self.root = Some(Root::new(self.settings, Epoch(number(1)), &groups, recovered, self.now));
                self.step_root(root::Input::Tick);
            }
            "own-lease" => self.step_root(root::Input::OwnLease(self.now.plus_ms(number(1)))),
            // let-go: the root group's active hands over, and its lease is not over.
            "let-go" => self.step_root(root::Input::OwnLease(Moment::default())),
            "proved" => self.step_root(root::Input::Proved { began: Moment::from_ms(number(1)) }),
            "joined" => self.step_root(root::Input::Joined(GroupId(number(1) as u32))),
            "committed" => self.step_root(root::Input::Committed(Dix(number(1)))),
            // home <group> <epoch>: another active of that group, with what had committed there.
            "home" => {
                let group = number(1) as u32;
                let applied = self.applied.get(&group).copied().unwrap_or_default();
                let home = Home::new(self.settings, GroupId(group), Epoch(number(2)), applied, 0, self.now);
                self.homes.insert(group, home);
                self.step_home(group, home::Input::OwnLease(self.now.plus_ms(10_000)));
            }
            // home-without-lease: one whose own lease is over.
            "home-without-lease" => {
                let group = number(1) as u32;
                let home =
                    Home::new(self.settings, GroupId(group), Epoch(number(2)), Point::default(), 0, self.now);
                self.homes.insert(group, home);
                self.step_home(group, home::Input::Tick);
            }
            // home-let-go <group>: the same at the active of that group.
            "home-let-go" => self.step_home(number(1) as u32, home::Input::OwnLease(Moment::default())),
            "home-proved" => {
                self.step_home(number(1) as u32, home::Input::Proved { began: Moment::from_ms(number(2)) });
            }
            // carried <group> <entry>: the home's log has committed so much.
            "carried" => {
                let (group, dix) = (number(1) as u32, Dix(number(2)));
                let entry = self.log.iter().find(|entry| entry.dix == dix).expect("an entry");
                self.applied.insert(group, entry.point());
                self.step_home(group, home::Input::Committed { own: 0, applied: dix });
            }
            "own-committed" => {
                let applied = self.homes[&(number(1) as u32)].applied().dix;
                self.step_home(number(1) as u32, home::Input::Committed { own: number(2), applied });
            }
            "down" => match self.next_down(number(1) as u32) {
                Some(message) => self.step_home(number(1) as u32, home::Input::Message(message)),
                None => self.say(format_args!("nothing is under way")),
            },
            "up" => match self.next_up(number(1) as u32) {
                Some(message) => {
                    self.step_root(root::Input::Message { from: GroupId(number(1) as u32), message });
                }
                None => self.say(format_args!("nothing is under way")),
            },
            "lose-down" => match self.next_down(number(1) as u32) {
                Some(message) => self.say(format_args!("lost: {}", to_group(&message))),
                None => self.say(format_args!("nothing is under way")),
            },
            "lose-up" => match self.next_up(number(1) as u32) {
                Some(message) => self.say(format_args!("lost: {}", to_root(&message))),
                None => self.say(format_args!("nothing is under way")),
            },
            // keep-down: it arrives, and will again. late-down: it will arrive after the others.
            "keep-down" => {
                let message = self.down[&(number(1) as u32)].front().expect("a message").clone();
                self.step_home(number(1) as u32, home::Input::Message(message));
            }
            "late-down" => {
                let link = self.down.get_mut(&(number(1) as u32)).expect("a link");
                link.rotate_left(1);
            }
            "talk" => self.talk(),
            "append" => {
                let (now, op) = (self.now, OpId(number(1)));
                let root = self.root.as_mut().expect("a root");
                match root.append(now, op, marks(&words[2..]), Bytes::new()) {
                    Decided::Stands(entry) => {
                        self.say(format_args!("root log: append {} {:?}", entry.dix, entry.marks));
                        self.log.push(entry);
                    }
                    Decided::AskedAnew => self.say(format_args!("not planned: facts are void")),
                }
                self.step_root(root::Input::Tick);
            }
            // many <count>: so many entries, of which nothing is told.
            "many" => {
                let now = self.now;
                let root = self.root.as_mut().expect("a root");
                for op in 0..number(1) {
                    let entry = root.append(now, OpId(1_000 + op), Vec::new(), Bytes::new());
                    let Decided::Stands(entry) = entry else { panic!("it needs no holds") };
                    self.log.push(entry);
                }
                self.step_root(root::Input::Tick);
            }
            // order <op> <group> <mark> [<group> <mark>…]
            "order" => {
                let ask = |pair: &[&str]| AskOf {
                    group: GroupId(pair[0].parse().unwrap()),
                    marks: vec![mark(pair[1])],
                    body: Bytes::new(),
                };
                let asks = words[2..].chunks_exact(2).map(ask).collect();
                let (now, op) = (self.now, OpId(number(1)));
                self.root.as_mut().expect("a root").order(now, op, asks).expect("there is room");
                self.step_root(root::Input::Tick);
            }
            "refuse" => {
                let (now, op) = (self.now, OpId(number(1)));
                match self.root.as_mut().expect("a root").refuse(now, op, &marks(&words[2..])) {
                    Decided::Stands(()) => self.say(format_args!("client of {}: refused", number(1))),
                    Decided::AskedAnew => self.say(format_args!("not refused: facts are void")),
                }
                self.step_root(root::Input::Tick);
            }
            "answer-at-root" => {
                let after = self.root.as_ref().expect("a root").answer_after(&marks(&words[1..]));
                match after {
                    Some(dix) => self.say(format_args!("the answer waits until {dix} is visible")),
                    None => self.say(format_args!("the answer goes out")),
                }
            }
            "repeat" => {
                let may = self.root.as_ref().expect("a root").may_answer(Dix(number(1)));
                self.say(format_args!("{}", if may { "the answer goes out" } else { "the answer waits" }));
            }
            // read|write <group> <call> <marks>…: looked at and judged in one turn.
            "read" | "write" => {
                self.look(number(1) as u32, number(2));
                self.judge(number(1) as u32, number(2), words[0], &words[3..]);
            }
            "look" => self.look(number(1) as u32, number(2)),
            "judge-read" => self.judge(number(1) as u32, number(2), "read", &words[3..]),
            // hold <group> <ask> <own log> <fact>
            "hold" => {
                let (now, group) = (self.now, number(1) as u32);
                let home = self.homes.get_mut(&group).expect("a home");
                match home.begin(now) {
                    Ok(permit) => {
                        let fact = Bytes::copy_from_slice(words[4].as_bytes());
                        let verdict = home.hold(now, permit, ask_id(words[2]), fact, number(3));
                        self.say(format_args!("{group}: {verdict:?}"));
                    }
                    Err(_) => self.say(format_args!("{group}: nothing is evaluated now")),
                }
                self.step_home(group, home::Input::Tick);
            }
            "wait" => {
                self.now = self.now.plus_ms(number(1));
                if self.root.is_some() {
                    self.step_root(root::Input::Tick);
                }
                for group in self.homes.keys().copied().collect::<Vec<_>>() {
                    self.step_home(group, home::Input::Tick);
                }
            }
            "dropped" => {
                let counts = self.homes[&(number(1) as u32)].counts();
                let reasons = [
                    ("of an old root", Dropped::OldRoot),
                    ("of another session", Dropped::OtherSession),
                    ("late asks", Dropped::LateAsk),
                    ("overtaken", Dropped::Overtaken),
                ];
                let told: Vec<String> = reasons
                    .iter()
                    .filter(|(_, reason)| counts.of(*reason) > 0)
                    .map(|(name, reason)| format!("{} {name}", counts.of(*reason)))
                    .collect();
                self.say(format_args!("{}: dropped {}", number(1), told.join(", ")));
            }
            other => panic!("no such input: {other}"),
        }
    }

    fn next_down(&mut self, group: u32) -> Option<ToGroup> {
        self.down.get_mut(&group).and_then(VecDeque::pop_front)
    }

    fn next_up(&mut self, group: u32) -> Option<ToRoot> {
        self.up.get_mut(&group).and_then(VecDeque::pop_front)
    }

    /// Delivers everything until nobody has anything to say, without telling it.
    fn talk(&mut self) {
        let told = self.out.len();
        loop {
            let down = self.down.iter().find(|(_, link)| !link.is_empty()).map(|(group, _)| *group);
            let up = self.up.iter().find(|(_, link)| !link.is_empty()).map(|(group, _)| *group);
            match (down, up) {
                (Some(group), _) => self.tell(&format!("> down {group}")),
                (None, Some(group)) => self.tell(&format!("> up {group}")),
                (None, None) => break,
            }
        }
        self.out.truncate(told);
    }

    fn look(&mut self, group: u32, call: u64) {
        match self.homes[&group].begin(self.now) {
            Ok(permit) => _ = self.permits.insert(call, permit),
            Err(_) => self.say(format_args!("call {call}: the lease does not hold, nothing is looked at")),
        }
    }

    fn judge(&mut self, group: u32, call: u64, kind: &str, seen: &[&str]) {
        let now = self.now;
        let home = self.homes.get_mut(&group).expect("a home");
        let verdict = match self.permits.remove(&call) {
            Some(permit) => {
                let kind = if kind == "read" { CallKind::Read } else { CallKind::Plan };
                home.judge(now, CallId(call), kind, permit, &marks(seen))
            }
            None => home.wait(now, CallId(call)),
        };
        self.say(format_args!("call {call}: {verdict:?}"));
        while self.homes[&group].deadline() == Some(Moment::default()) {
            self.step_home(group, home::Input::Tick);
        }
    }

    fn step_root(&mut self, input: root::Input) {
        let root = self.root.as_mut().expect("the story has a root");
        let mut effects = vec![root.step(self.now, input)];
        while root.deadline() == Some(Moment::default()) {
            effects.push(root.step(self.now, root::Input::Tick));
        }
        root.is_consistent().expect("the root is consistent");
        for effects in effects {
            if effects.prove {
                self.say(format_args!("root: wants a proof that it is the active"));
            }
            if let Some(visible) = effects.visible {
                self.say(format_args!("root: visible {visible}"));
            }
            if let Some(purge) = effects.purge {
                self.say(format_args!("root: may purge up to {purge}"));
            }
            for planning in effects.plan {
                let facts: Vec<String> = planning
                    .facts
                    .iter()
                    .map(|fact| format!("{} tells {}", fact.group, String::from_utf8_lossy(&fact.body)))
                    .collect();
                self.say(format_args!("root: plan {} now; {}", planning.op.0, facts.join(", ")));
            }
            for op in effects.refused {
                self.say(format_args!("client of {}: come again", op.0));
            }
            for (group, message) in effects.messages {
                self.say(format_args!("root to {group}: {}", to_group(&message)));
                self.down.entry(group.0).or_default().push_back(message);
            }
        }
    }

    fn step_home(&mut self, group: u32, input: home::Input) {
        let home = self.homes.get_mut(&group).expect("the story has this home");
        let mut effects = vec![home.step(self.now, input)];
        while home.deadline() == Some(Moment::default()) {
            effects.push(home.step(self.now, home::Input::Tick));
        }
        home.is_consistent().expect("the home is consistent");
        for effects in effects {
            for entry in effects.apply {
                self.say(format_args!("{group}: applies {}", entry.dix));
            }
            for call in effects.again {
                self.say(format_args!("{group}: call {} again", call.0));
            }
            for call in effects.refused {
                self.say(format_args!("client of call {}: come again", call.0));
            }
            for ask in effects.asks {
                self.say(format_args!("{group}: evaluate ask {}", ask.ask));
            }
            if effects.prove {
                self.say(format_args!("{group}: wants a proof that it leads its group"));
            }
            if let Some(why) = effects.alarm {
                self.say(format_args!("{group}: ALARM {why}"));
            }
            for message in effects.messages {
                self.say(format_args!("{group} to root: {}", to_root(&message)));
                self.up.entry(group).or_default().push_back(message);
            }
        }
    }
}

fn directory() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}

/// The story as it goes with these settings.
fn tell(told: &str, settings: Settings) -> String {
    let mut story = Story { settings, ..Story::default() };
    for line in told.lines() {
        if line.starts_with('>') {
            story.tell(line);
        } else if line.starts_with('#') || line.is_empty() {
            writeln!(story.out, "{line}").unwrap();
        }
    }
    story.out
}

#[test]
fn every_story_goes_as_it_is_told() {
    let mut files: Vec<_> =
        std::fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let told = std::fs::read_to_string(&file).unwrap();
        let goes = tell(&told, Settings::default());
        if std::env::var_os("CLOVER_REWRITE").is_some() {
            std::fs::write(&file, goes).unwrap();
        } else {
            assert_eq!(goes, told, "{}", file.display());
        }
    }
}

/// Rules that cost waiting when they are left out, or that only an operator's order makes matter: a story shows each.
#[cfg(feature = "broken")]
#[test]
fn a_story_without_its_rule_goes_otherwise() {
    use dirlog::Broken;
    for (name, rule) in [
        ("alarm", Broken::AnyChainTaken),
        ("open-asks", Broken::LateAsksHeld),
        ("slow", Broken::RenewsTheSlow),
        ("fair", Broken::EntersAtOnce),
        ("holds-stop-nothing", Broken::HoldsKeepEntriesOut),
        ("unproved", Broken::HelloUnproved),
        ("unproved", Broken::HoldUnproved),
        ("proof", Broken::HelloToAnyRoot),
        ("hand-over", Broken::LeaseOutlivesHandOver),
    ] {
        let told = std::fs::read_to_string(directory().join(format!("{name}.txt"))).unwrap();
        let goes = tell(&told, Settings { broken: Some(rule), ..Settings::default() });
        assert_ne!(goes, told, "{rule:?} is not missed in {name}");
    }
}
