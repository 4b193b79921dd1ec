//! Groups that have lost what they had carried out, and groups that have just begun: a root and a home with nothing between them.

use base::{Epoch, GroupId, Moment};
use bytes::Bytes;
use dirlog::{
    Dix, Entry, Home, OpId, Point, Root, Settings, ToGroup, ToRoot, home,
    root::{self, Decided, Recovered},
};
use std::collections::VecDeque;

const GROUP: GroupId = GroupId(2);

struct World {
    now: Moment,
    root: Root,
    home: Home,
    /// What the root group's tree has kept: the place before, and the entries.
    kept: (Point, Vec<Entry>),
    down: VecDeque<ToGroup>,
    up: VecDeque<ToRoot>,
    visible: Dix,
    alarm: Option<String>,
}

fn log(count: u64) -> Vec<Entry> {
    let mut log: Vec<Entry> = Vec::new();
    for number in 1..=count {
        let end = log.last().map_or(Point::default(), Entry::point);
        let payload = Bytes::copy_from_slice(&number.to_le_bytes());
        log.push(Entry::after(end, Epoch(1), None, [].into(), payload));
    }
    log
}

impl World {
    fn root(&mut self, input: root::Input) {
        self.root.note_own_lease(self.now.plus_ms(60_000));
        let mut effects = self.root.step(self.now, input);
        for read in std::mem::take(&mut effects.read) {
            // As metad::directories::drive::run does, by Namespace::directory_entries.
            let (base, entries) = &self.kept;
            let read_back = (read.after >= base.dix).then(|| {
                let at = (read.after.0 - base.dix.0) as usize;
                let previous = if at == 0 { *base } else { entries[at - 1].point() };
                (previous, entries[at..].to_vec())
            });
            self.down.extend(effects.messages.drain(..).map(|(_, message)| message));
            let input = root::Input::LogRead { group: GROUP, read: read_back };
            let more = self.root.step(self.now, input);
            self.down.extend(more.messages.into_iter().map(|(_, message)| message));
        }
        self.down.extend(effects.messages.into_iter().map(|(_, message)| message));
        self.visible = self.root.visible();
    }

    fn home(&mut self, input: home::Input) {
        self.home.note_own_lease(self.now.plus_ms(60_000));
        let effects = self.home.step(self.now, input);
        self.up.extend(effects.messages);
        self.alarm = effects.alarm.or(self.alarm.take());
    }

    fn run(&mut self, ms: u64) {
        for _ in 0..ms / 10 {
            self.now = self.now.plus_ms(10);
            self.root(root::Input::Tick);
            self.home(home::Input::Tick);
            for _ in 0..20 {
                while let Some(message) = self.down.pop_front() {
                    self.home(home::Input::Message(message));
                }
                while let Some(message) = self.up.pop_front() {
                    self.root(root::Input::Message { from: GROUP, message });
                }
            }
        }
    }
}

fn world(groups: &[GroupId], entries: &[Entry], base: usize, applied: usize) -> World {
    let point = |at: usize| if at == 0 { Point::default() } else { entries[at - 1].point() };
    let end = entries.len();
    let now = Moment::from_ms(10_000);
    let settings = Settings::default();
    // As RootSide::new: the log says of all but the last few that they are visible.
    let recovered = Recovered {
        base: point(end - 3),
        entries: entries[end - 3..].to_vec(),
        visible: Dix(end as u64 - 3),
        purged: Dix(base as u64),
    };
    let mut root = Root::new(settings, Epoch(2), groups, recovered, now);
    root.note_committed(Dix(end as u64));
    World {
        now,
        root,
        home: Home::new(settings, GROUP, Epoch(9), point(applied), 1, now),
        kept: (point(base), entries[base..].to_vec()),
        down: VecDeque::new(),
        up: VecDeque::new(),
        visible: Dix(0),
        alarm: None,
    }
}

/// A group that was restored from an image of before lacks entries that the root group has dropped. A root that has begun since then raises its alarm, as the
/// one that had dropped them would, and changes go on without it.
#[test]
fn a_group_that_lacks_what_was_dropped_is_told_so_and_holds_nothing_up() {
    let entries = log(800);
    let mut world = world(&[GROUP], &entries, 512, 300);
    world.run(3_000);
    let dix = match world.root.append(world.now, OpId(1), Vec::new(), Bytes::new()) {
        Decided::Stands(entry) => entry.dix,
        Decided::AskedAnew => unreachable!(),
    };
    world.root.note_committed(dix);
    world.run(30_000);
    assert_eq!(world.visible, dix, "a change waits for a group that can never receive it");
    assert!(world.alarm.is_some(), "the group's operator hears nothing");
}

/// A group begins with a copy of the root group's tree, which shows an entry that is not visible. It is not to serve that before the entry is
/// visible.
#[test]
fn a_group_that_has_begun_with_an_entry_in_doubt_does_not_serve_before_it_is_visible() {
    let entries = log(10);
    let mut world = world(&[GROUP, GroupId(3)], &entries, 0, 10);
    // Entries 8 to 10 are in doubt: another group has a lease of the root before.
    world.run(100);
    assert!(
        world.visible >= world.home.applied().dix || !world.home.may_evaluate(world.now),
        "what is applied there, {}, is not visible: {}",
        world.home.applied().dix,
        world.visible
    );
}

/// A group that had carried out entries up to 600 comes back from an older state, while a third group still lacks more. What it lacks now is kept for it.
#[test]
fn what_a_group_says_of_itself_anew_counts_for_what_is_dropped() {
    let entries = log(800);
    let now = Moment::from_ms(10_000);
    let third = GroupId(3);
    let mut root = Root::new(
        Settings::default(),
        Epoch(2),
        &[GROUP, third],
        Recovered { base: Point::default(), entries: entries.clone(), visible: Dix(800), purged: Dix(0) },
        now,
    );
    let mut purged = Dix(0);
    let mut say = |from: GroupId, epoch: u64, at: usize| {
        root.note_own_lease(now.plus_ms(60_000));
        let hello = dirlog::HelloId { epoch: Epoch(epoch), number: 1 };
        let message = ToRoot::Hello {
            hello,
            root_epoch: Epoch(2),
            applied: entries[at - 1].point(),
            committed: Dix(at as u64),
        };
        let effects = root.step(now, root::Input::Message { from, message });
        purged = purged.max(effects.purge.unwrap_or_default());
    };
    say(third, 1, 200);
    say(GROUP, 1, 600);
    // An unclean election in it, or a store that was put back.
    say(GROUP, 2, 300);
    say(third, 2, 700);
    assert!(purged <= Dix(300), "entries up to {purged} are dropped, and group 2 lacks those behind 300");
}

/// The root reads its log for a group that lacks a little. Before that is done the group has it all, by messages that were late, and the entries are
/// dropped. So nothing is read, and the group is none that lacks what is gone.
#[test]
fn a_group_that_has_what_was_to_be_read_for_it_is_told_nothing() {
    let entries = log(800);
    let now = Moment::from_ms(10_000);
    let recovered = Recovered {
        base: entries[796].point(),
        entries: entries[797..].to_vec(),
        visible: Dix(797),
        purged: Dix(512),
    };
    let mut root = Root::new(Settings::default(), Epoch(2), &[GROUP], recovered, now);
    root.note_committed(Dix(800));
    let mut step = |input: root::Input| {
        root.note_own_lease(now.plus_ms(60_000));
        root.step(now, input)
    };
    let hello = dirlog::HelloId { epoch: Epoch(9), number: 1 };
    let (applied, committed) = (entries[699].point(), Dix(700));
    let greeting = ToRoot::Hello { hello, root_epoch: Epoch(2), applied, committed };
    let welcomed = step(root::Input::Message { from: GROUP, message: greeting });
    assert_eq!(welcomed.read.first().map(|read| read.after), Some(Dix(700)));
    let session = welcomed.messages.iter().find_map(|(_, message)| match message {
        ToGroup::Welcome { session, .. } => Some(*session),
        _ => None,
    });
    let progress = dirlog::Progress { received: Dix(800), queued: Dix(800), committed: Dix(800) };
    let message = ToRoot::Received { session: session.expect("a welcome"), progress };
    let caught_up = step(root::Input::Message { from: GROUP, message });
    assert_eq!(caught_up.purge, Some(Dix(800)));
    let read = step(root::Input::LogRead { group: GROUP, read: None });
    assert!(
        read.messages.iter().all(|(_, message)| !matches!(message, ToGroup::Unwelcome { .. })),
        "the group has everything, and is turned away: {:?}",
        read.messages
    );
}
