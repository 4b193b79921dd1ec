//! Three groups of one namespace, as far as they have no clocks, disks and networks of their own.

use super::{ALL_FINISHED, Dice, HOLDER, World, then::Then};
use base::{
    Block, BlockId, FsError, FsResult, GroupId, InodeId, Level,
    directory_log::{Dix, Entry, Mark},
};
use namespace::{
    BlockChange, Context, Edit, Namespace, Planned, Reply, Step,
    ops::{self, add_group, carry_out, give_slots, note_carried_out, raise_level},
    outbox::Message,
    questions::{Answer, Question, Told},
    reads::{get_block_locations, get_file_info},
    shares::{self, Lack, Room},
};
use std::collections::{BTreeMap, BTreeSet};

pub const GROUPS: [GroupId; 3] = [GroupId(1), GroupId(2), GroupId(3)];

/// A call that has not come to an end after so many plans never does.
const ROUNDS_MAX: u32 = 12;

/// Three groups whose messages come at once, or in their order and late.
pub struct Cluster {
    pub groups: BTreeMap<GroupId, World>,
    /// The blocks that each group's block map knows, with the replication that it was told.
    pub maps: BTreeMap<GroupId, BTreeMap<BlockId, u16>>,
    /// Entries of the directory log that each group has carried out, as a place in the root group's.
    pub followed: BTreeMap<GroupId, Dix>,
    /// How often an allowance of a quota was asked for.
    pub allotted: u64,
    /// A call that comes to the root group when homes have told something for another one, before that one is planned with it.
    pub between: Option<Plan>,
    /// How that call has ended.
    pub came_between: Option<FsResult<Reply>>,
    /// What happens once homes have told what the root group's next call asks, and before that call is decided.
    pub meanwhile: Option<Meanwhile>,
    /// Messages that may come once more: who sent them to whom.
    pub late: Vec<(GroupId, GroupId, Vec<Message>)>,
    /// Files about which a group got orders that it could not carry out. There are none, unless a group has lost something.
    pub unknown: Vec<InodeId>,
    /// Groups that carry out what the root group has ordered only when they have to.
    pub behind: BTreeSet<GroupId>,
    /// A place in the directory log, and each group as it was when it had just come there.
    pub cut: Option<(Dix, Vec<Then>)>,
}

pub type Plan = Box<dyn Fn(&Namespace, &Context<'_>) -> FsResult<Step>>;
pub type Meanwhile = Box<dyn FnOnce(&mut Cluster)>;

/// What a client sees of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub length: u64,
    /// The lengths of its blocks.
    pub blocks: Vec<u64>,
    pub replication: u16,
    pub mode: u16,
    pub owner: String,
    pub modified: u64,
    pub xattrs: usize,
}

impl Cluster {
    pub fn new(seed: u64) -> Self {
        Self::of(seed, World::new(seed))
    }

    /// Two groups join the one that had all of the namespace.
    pub fn of(seed: u64, mut root: World) -> Self {
        root.run(|ns, ctx| raise_level::plan(ns, ctx, Level::NEWEST)).unwrap();
        for group in &GROUPS[1..] {
            root.run(|ns, ctx| add_group::plan(ns, ctx, *group)).unwrap();
            root.run(|ns, ctx| give_slots::plan(ns, ctx, *group)).unwrap();
        }
        root.creates_parents = false;
        let mut groups = BTreeMap::new();
        for group in &GROUPS[1..] {
            let mut world = World::of_group(seed, *group);
            world.ns = root.ns.for_joining(seed + 1, *group).unwrap();
            world.creates_parents = false;
            groups.insert(*group, world);
        }
        let followed = GROUPS[1..].iter().map(|group| (*group, root.ns.directory_log().dix)).collect();
        groups.insert(GroupId::ROOT, root);
        let maps = GROUPS.map(|group| (group, BTreeMap::new())).into();
        Self {
            groups,
            maps,
            followed,
            allotted: 0,
            between: None,
            came_between: None,
            meanwhile: None,
            late: Vec::new(),
            unknown: Vec::new(),
            behind: BTreeSet::new(),
            cut: None,
        }
    }

    pub fn world(&mut self, group: GroupId) -> &mut World {
        self.groups.get_mut(&group).unwrap()
    }

    pub fn root(&self) -> &World {
        &self.groups[&GroupId::ROOT]
    }

    pub fn id(&self, directory: &str) -> InodeId {
        let root = self.root();
        get_file_info::get(&root.ns, &root.context(None), directory).unwrap().unwrap().id
    }

    pub fn home(&self, directory: &str) -> GroupId {
        self.root().ns.home_of(self.id(directory))
    }

    /// Applies an edit in a group, and tells its block map.
    pub fn apply(&mut self, group: GroupId, edit: Edit) -> Reply {
        let applied = self.world(group).apply(edit);
        let map = self.maps.get_mut(&group).unwrap();
        for change in applied.block_changes {
            match change {
                BlockChange::Allocated { block, replication, .. } => {
                    assert!(map.insert(block.id, replication).is_none());
                }
                BlockChange::Removed(block) => {
                    assert!(map.remove(&block.id).is_some(), "{block} is none of group {group}");
                }
                BlockChange::ReplicationChanged { block, to, .. } => {
                    *map.get_mut(&block).unwrap_or_else(|| panic!("{block} is none of group {group}")) = to;
                }
                BlockChange::Moved { .. } | BlockChange::UnknownReplicas(_) => {}
                BlockChange::Committed { block }
                | BlockChange::Completed { block }
                | BlockChange::Restamped { block }
                | BlockChange::Reopened { block } => {
                    assert!(map.contains_key(&block.id), "{block} is none of group {group}");
                }
            }
        }
        let dix = self.groups[&group].ns.directory_log().dix;
        if let Some((at, groups)) = &self.cut
            && *at == dix
            && groups.iter().all(|then| then.group != group)
        {
            let then = Then::of(self, group);
            self.cut.as_mut().unwrap().1.push(then);
        }
        applied.reply
    }

    /// A call that the group decides alone.
    pub fn at<P>(
        &mut self,
        group: GroupId,
        plan: impl Fn(&Namespace, &Context<'_>) -> FsResult<P>,
    ) -> FsResult<Reply>
    where
        Step: From<P>,
    {
        let mut since = None;
        for _ in 0..ROUNDS_MAX {
            let room = Room::since(since);
            let world = self.world(group);
            world.calls += 1;
            let context = Context { room: Some(&room), ..world.context(Some(world.origin())) };
            let planned = plan(&world.ns, &context);
            if let Some(lack) = room.take_lack() {
                let answered = self.allot(&lack);
                since.get_or_insert(answered);
                self.catch_up(group);
                continue;
            }
            let planned = planned.map(Step::from);
            if self.waits_for_entries(group, &planned) {
                self.catch_up(group);
                continue;
            }
            return match planned? {
                Step::Edit(edit) => Ok(self.apply(group, edit)),
                Step::Allocate(edit, _) => Ok(self.apply(group, edit)),
                Step::NoChange(reply) => Ok(reply),
                Step::Cut(edit, _) => Ok(self.apply(group, edit)),
                Step::Refused(edit, error) => {
                    self.apply(group, edit);
                    Err(error)
                }
                other => panic!("{other:?}"),
            };
        }
        panic!("it asks and asks");
    }

    /// A call that the root group decides, with what homes tell.
    pub fn at_root<P>(&mut self, plan: impl Fn(&Namespace, &Context<'_>) -> FsResult<P>) -> FsResult<Reply>
    where
        Step: From<P>,
    {
        let mut told = Told::default();
        let mut since = None;
        for _ in 0..ROUNDS_MAX {
            let room = Room::since(since);
            let root = self.world(GroupId::ROOT);
            root.calls += 1;
            let context =
                Context { told: Some(&told), room: Some(&room), ..root.context(Some(root.origin())) };
            let planned = plan(&root.ns, &context);
            let lack = room.take_lack();
            if let Some(questions) = told.take_unanswered() {
                told = self.ask(&questions)?;
                if let Some(meanwhile) = self.meanwhile.take() {
                    meanwhile(self);
                }
                if self.come_between(&questions) {
                    told = self.ask(&questions)?;
                }
                continue;
            }
            if let Some(lack) = lack {
                told = Told::default();
                let answered = self.allot(&lack);
                since.get_or_insert(answered);
                continue;
            }
            let edit = match planned?.into() {
                Step::Edit(edit) => edit,
                Step::NoChange(reply) => return Ok(reply),
                other => panic!("{other:?}"),
            };
            let reply = self.apply(GroupId::ROOT, edit);
            self.follow();
            return Ok(reply);
        }
        panic!("it asks and asks");
    }

    /// What groups answer to these questions. They are asked until no order is in the way, which takes a moment.
    fn ask(&mut self, questions: &[Question]) -> FsResult<Told> {
        let mut told = Told::default();
        let mut by_group: BTreeMap<GroupId, Vec<Question>> = BTreeMap::new();
        for question in questions {
            by_group.entry(question.group(&self.root().ns)).or_default().push(question.clone());
        }
        for (group, questions) in by_group {
            self.catch_up(group);
            let ns = &self.groups[&group].ns;
            let at = ns.directory_log().dix;
            let answers = questions.iter().map(|question| ns.tell(question).expect("it is for this group"));
            let answers: Vec<Answer> = answers.collect();
            if answers.iter().any(Answer::is_in_the_way) {
                return Err(FsError::Retry("orders are under way".into()));
            }
            assert!(told.take(&questions, &namespace::questions::encode_answers(at, answers)));
        }
        Ok(told)
    }

    /// Another call becomes an entry while this is held, unless it would have to ask about the same. True: what was told is void.
    fn come_between(&mut self, held: &[Question]) -> bool {
        let Some(plan) = self.between.take() else { return false };
        let held: Vec<Mark> = held.iter().flat_map(Question::marks).collect();
        let mut told = Told::default();
        for _ in 0..ROUNDS_MAX {
            let room = Room::since(None);
            let root = self.world(GroupId::ROOT);
            root.calls += 1;
            let context =
                Context { told: Some(&told), room: Some(&room), ..root.context(Some(root.origin())) };
            let planned = plan(&root.ns, &context);
            if let Some(questions) = told.take_unanswered() {
                let marks: Vec<Mark> = questions.iter().flat_map(Question::marks).collect();
                if Mark::any_common(&marks, &held) {
                    return false;
                }
                let Ok(answers) = self.ask(&questions) else { return false };
                told = answers;
                continue;
            }
            if room.take_lack().is_some() {
                return false;
            }
            let edit = match planned {
                Ok(Step::Edit(edit)) => edit,
                Ok(Step::NoChange(reply)) => {
                    self.came_between = Some(Ok(reply));
                    return false;
                }
                Ok(other) => panic!("{other:?}"),
                Err(FsError::Retry(_) | FsError::Unsupported(_)) => return false,
                Err(error) => {
                    self.came_between = Some(Err(error));
                    return false;
                }
            };
            let marks = self.root().ns.as_entry(&edit).map_or_else(Vec::new, |(marks, _)| marks);
            self.came_between = Some(Ok(self.apply(GroupId::ROOT, edit)));
            self.follow();
            return Mark::any_common(&marks, &held);
        }
        panic!("it asks and asks");
    }

    /// The root group hands out an allowance. Returns the entry with which it did.
    fn allot(&mut self, lack: &Lack) -> Dix {
        self.allotted += 1;
        let lack = shares::decode(&shares::encode(lack)).unwrap();
        self.at_root(|ns, ctx| Ok(ops::allot::plan(ns, ctx, &lack))).unwrap();
        self.root().ns.directory_log().dix
    }

    /// A group takes apart and sweeps until nothing is left to do.
    pub fn tidy_up(&mut self, group: GroupId) {
        loop {
            let world = self.world(group);
            let Some(edit) = ops::cleanup::plan(&world.ns, &world.context(None)) else { break };
            self.apply(group, edit.into());
        }
    }

    /// All groups that are not behind carry out what the root group has ordered.
    pub fn follow(&mut self) {
        for group in &GROUPS[1..] {
            if !self.behind.contains(group) {
                self.follow_by(*group, usize::MAX);
            }
        }
    }

    /// The group carries out all that the root group has ordered.
    pub fn catch_up(&mut self, group: GroupId) {
        self.follow_by(group, usize::MAX);
    }

    /// The group carries out so many entries of what the root group has ordered.
    pub fn follow_by(&mut self, group: GroupId, entries: usize) {
        for entry in self.to_follow(group).into_iter().take(entries) {
            let change = Edit::decode(&entry.payload).unwrap();
            let world = self.world(group);
            let edit = world.ns.follow(&world.context(None), &change, entry.point());
            self.apply(group, edit.unwrap_or_else(|error| panic!("{error}")));
            self.followed.insert(group, entry.dix);
        }
    }

    /// The entries that the root group has ordered and this group has not carried out.
    fn to_follow(&self, group: GroupId) -> Vec<Entry> {
        match self.followed.get(&group) {
            Some(after) => self.root().ns.directory_entries(*after, usize::MAX).expect("they are kept").1,
            None => Vec::new(),
        }
    }

    /// Whether the call rests on an entry that is in doubt in its group.
    fn waits_for_entries(&self, group: GroupId, planned: &FsResult<Step>) -> bool {
        let entries = self.to_follow(group);
        if entries.is_empty() {
            return false;
        }
        let mut seen = Vec::new();
        match planned {
            Ok(Step::Edit(edit)) => edit.rests_on(&self.groups[&group].ns, &mut seen),
            // The rest of a call whose first part had nothing to wait for.
            Ok(Step::Allocate(..)) => return false,
            _ => return true,
        }
        let seen: Vec<Mark> = seen.into_iter().map(Mark::from).collect();
        entries.iter().any(|entry| Mark::any_common(&entry.marks, &seen))
    }

    /// Delivers the first messages of one group to another, perhaps without the acknowledgement. What was delivered may come once more, much later. False: there is
    /// none.
    pub fn deliver(&mut self, dice: &mut Dice) -> bool {
        let mut ways: Vec<(GroupId, GroupId)> = Vec::new();
        for (from, world) in &self.groups {
            ways.extend(world.ns.groups_with_messages().into_iter().map(|to| (*from, to)));
        }
        if ways.is_empty() {
            return false;
        }
        if !self.late.is_empty() && dice.below(4) == 0 {
            let (from, to, messages) = self.late.swap_remove(dice.below(self.late.len() as u64) as usize);
            self.carry_out(from, to, &messages);
            return true;
        }
        let (from, to) = ways[dice.below(ways.len() as u64) as usize];
        let waiting = self.groups[&from].ns.messages_to(to);
        let messages = waiting.take(1 + dice.below(3) as usize).map(|message| (**message).clone());
        let messages: Vec<Message> = messages.collect();
        let carried_out = self.carry_out(from, to, &messages);
        let is_behind = self.behind.contains(&to);
        assert!(
            is_behind || carried_out >= messages.last().unwrap().number,
            "from {from} to {to}: {messages:?}"
        );
        if dice.below(4) > 0 {
            let dix = self.groups[&to].ns.directory_log().dix;
            let world = self.world(from);
            let planned = note_carried_out::plan(&world.ns, &world.context(None), to, carried_out, dix);
            if let Planned::Edit(edit) = planned {
                self.apply(from, edit.into());
            }
        }
        if dice.below(4) == 0 {
            self.late.push((from, to, messages));
        }
        true
    }

    /// Carries out what one group has sent to another in one question. Returns the number of the last message that is carried out.
    pub fn carry_out(&mut self, from: GroupId, to: GroupId, messages: &[Message]) -> u64 {
        let mut before = None;
        for message in messages {
            let message = Message::from_bytes(&message.to_bytes()).unwrap();
            let world = self.world(to);
            let plan = carry_out::plan(&world.ns, &world.context(None), from, &message, before);
            match plan {
                carry_out::Plan::Edit { edit, unknown, .. } => {
                    self.unknown.extend(unknown);
                    self.apply(to, edit.into());
                }
                carry_out::Plan::Already => {}
                carry_out::Plan::Behind(_) if self.behind.contains(&to) => break,
                other => panic!("from {from} to {to}, {message:?}: {other:?}"),
            }
            before = Some(message.number);
        }
        self.groups[&to].ns.carried_out_of(from)
    }

    /// Delivers until nothing waits.
    pub fn deliver_all(&mut self, dice: &mut Dice) {
        self.behind.clear();
        self.follow();
        while self.deliver(dice) {}
    }

    pub fn see(&self, path: &str) -> Option<Seen> {
        let (directory, _) = path.rsplit_once('/').unwrap();
        let world = &self.groups[&self.home(directory)];
        see(world, path)
    }

    /// Every group's pool keeps the blocks of the files that are there, and no other ones.
    pub fn check(&self, paths: &[String]) {
        let mut wanted: BTreeMap<GroupId, BTreeMap<BlockId, u16>> =
            GROUPS.map(|group| (group, BTreeMap::new())).into();
        for path in paths {
            let (directory, _) = path.rsplit_once('/').unwrap();
            let world = &self.groups[&self.home(directory)];
            let Some(status) = get_file_info::get(&world.ns, &world.context(None), path).unwrap() else {
                continue;
            };
            let blocks = get_block_locations::by_id(&world.ns, status.id).unwrap().blocks;
            for block in blocks {
                let group = Namespace::group_of_pool(block.block.id);
                wanted.get_mut(&group).unwrap().insert(block.block.id, status.replication);
            }
        }
        assert_eq!(self.maps, wanted);
        assert_eq!(self.unknown, []);
        for world in self.groups.values() {
            world.ns.check_consistency().unwrap();
            assert_eq!(world.ns.messages_waiting(), 0);
        }
        for group in GROUPS {
            assert_eq!(self.listed(group), self.maps[&group], "what group {group} knows after a restart");
        }
    }

    /// The blocks that a group's block map is told of after a restart.
    pub fn listed(&self, group: GroupId) -> BTreeMap<BlockId, u16> {
        let mut listed = BTreeMap::new();
        self.groups[&group].ns.for_each_block(&mut |block, _, replication, _| {
            assert!(listed.insert(block.id, replication).is_none());
        });
        listed
    }

    /// How many exports there are.
    pub fn exports(&self) -> u64 {
        self.groups.values().map(|world| world.ns.exported_files()).sum()
    }
}

pub fn see(world: &World, path: &str) -> Option<Seen> {
    let status = get_file_info::get(&world.ns, &world.context(None), path).unwrap()?;
    let xattrs = namespace::reads::get_xattrs::get(&world.ns, &world.context(None), path, &[]).unwrap();
    let blocks = get_block_locations::by_id(&world.ns, status.id).unwrap().blocks;
    Some(Seen {
        length: status.length,
        blocks: blocks.iter().map(|block| block.block.length).collect(),
        replication: status.replication,
        mode: status.permission,
        owner: status.owner.into(),
        modified: status.modified.ms,
        xattrs: xattrs.len(),
    })
}

pub fn rename(source: &str, destination: &str) -> ops::rename::Request {
    ops::rename::Request { source: source.into(), destination: destination.into() }
}

pub fn rename2(source: &str, destination: &str, overwrite: bool) -> ops::rename2::Request {
    let (source, destination) = (source.into(), destination.into());
    ops::rename2::Request { source, destination, overwrite, to_trash: false }
}

impl Cluster {
    /// Directories of all three homes, the same number of each.
    pub fn directories(&mut self, of_each: usize) -> Vec<String> {
        let mut found: BTreeMap<GroupId, Vec<String>> = BTreeMap::new();
        for number in 0.. {
            if GROUPS.iter().all(|group| found.get(group).is_some_and(|some| some.len() == of_each)) {
                break;
            }
            let path = format!("/d{number}");
            let request = ops::mkdirs::Request {
                path: path.clone(),
                permission: 0o755,
                unmasked: None,
                create_parent: true,
            };
            self.at_root(|ns, ctx| ops::mkdirs::plan(ns, ctx, &request)).unwrap();
            let some = found.entry(self.home(&path)).or_default();
            if some.len() < of_each {
                some.push(path);
            }
        }
        found.into_values().flatten().collect()
    }

    /// A file with blocks of these lengths.
    pub fn write(&mut self, path: &str, lengths: &[u64]) -> FsResult<()> {
        let home = self.home(path.rsplit_once('/').unwrap().0);
        let request = self.world(home).create_request(path, HOLDER);
        self.at(home, |ns, ctx| ops::create::plan(ns, ctx, &request))?;
        self.go_on(home, path, None, lengths)
    }

    pub fn append(&mut self, path: &str, lengths: &[u64]) -> FsResult<()> {
        let home = self.home(path.rsplit_once('/').unwrap().0);
        let request = ops::append::Request {
            path: path.into(),
            holder: HOLDER.into(),
            client_machine: "127.0.0.1".into(),
            new_block: true,
        };
        self.at(home, |ns, ctx| ops::append::plan(ns, ctx, &request, &ALL_FINISHED))?;
        let last =
            self.world(home).last_block(path).filter(|block| !self.groups[&home].ns.is_foreign(block.id));
        self.go_on(home, path, last, lengths)
    }

    pub fn go_on(&mut self, home: GroupId, path: &str, last: Option<Block>, lengths: &[u64]) -> FsResult<()> {
        let (holder, path) = (HOLDER.to_owned(), path.to_owned());
        let mut previous = last;
        for length in lengths {
            let request = ops::add_block::Request {
                path: path.clone(),
                holder: holder.clone(),
                previous,
                inode: InodeId(0),
            };
            let plan =
                |ns: &Namespace, ctx: &Context<'_>| ops::add_block::plan(ns, ctx, &request, &ALL_FINISHED);
            match self.at(home, plan)? {
                Reply::Block { block, .. } => previous = Some(Block { length: *length, ..block }),
                other => panic!("{other:?}"),
            }
        }
        let request = ops::complete::Request { path, holder, last: previous, inode: InodeId(0) };
        let plan = |ns: &Namespace, ctx: &Context<'_>| ops::complete::plan(ns, ctx, &request, &ALL_FINISHED);
        assert_eq!(self.at(home, plan), Ok(Reply::Bool(true)));
        Ok(())
    }

    /// A rename as the group that decides it carries it out.
    pub fn rename(&mut self, source: &str, destination: &str) -> FsResult<Reply> {
        let (from, to) = (source.rsplit_once('/').unwrap().0, destination.rsplit_once('/').unwrap().0);
        let request = rename(source, destination);
        match self.home(from) == self.home(to) {
            true => self.at(self.home(from), |ns, ctx| ops::rename::plan(ns, ctx, &request)),
            false => self.at_root(|ns, ctx| ops::rename::plan(ns, ctx, &request)),
        }
    }

    pub fn rename2(&mut self, source: &str, destination: &str, overwrite: bool) -> FsResult<Reply> {
        let (from, to) = (source.rsplit_once('/').unwrap().0, destination.rsplit_once('/').unwrap().0);
        let request = rename2(source, destination, overwrite);
        match self.home(from) == self.home(to) {
            true => self.at(self.home(from), |ns, ctx| ops::rename2::plan(ns, ctx, &request)),
            false => self.at_root(|ns, ctx| ops::rename2::plan(ns, ctx, &request)),
        }
    }

    pub fn delete(&mut self, path: &str) -> FsResult<Reply> {
        let request = ops::delete::Request { path: path.into(), recursive: true };
        self.at(self.home(path.rsplit_once('/').unwrap().0), |ns, ctx| ops::delete::plan(ns, ctx, &request))
    }

    pub fn concat(&mut self, target: &str, sources: &[String]) -> FsResult<Reply> {
        let request = ops::concat::Request { target: target.into(), sources: sources.to_vec() };
        let home = self.home(target.rsplit_once('/').unwrap().0);
        self.at(home, |ns, ctx| ops::concat::plan(ns, ctx, &request))
    }

    pub fn set_replication(&mut self, path: &str, replication: u32) -> FsResult<Reply> {
        let request = ops::set_replication::Request { path: path.into(), replication };
        let home = self.home(path.rsplit_once('/').unwrap().0);
        self.at(home, |ns, ctx| ops::set_replication::plan(ns, ctx, &request))
    }
}
