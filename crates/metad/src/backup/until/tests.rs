use super::*;
use crate::backup::time_of;
use base::{Caller, EntryKind, Epoch, GroupId, Moment};
use env::Env;
use journal::archive::{Archiver, Whose};
use namespace::{
    AccessPolicy, Context, Edit, Limits, Planned,
    ops::{add_block, create, delete, mkdirs},
};

/// A backup and the namespace that leads to it.
struct Story {
    directory: tempfile::TempDir,
    namespace: Namespace,
    archiver: Archiver,
    /// Each entry is written without a sync, until something else is synced.
    is_lazy: bool,
    limits: Limits,
    caller: Caller,
}

impl Story {
    fn new() -> Self {
        let access = AccessPolicy { superuser: "alice".into(), ..AccessPolicy::default() };
        let whose = Whose {
            cluster_id: "CID-1".into(),
            namespace_id: 1,
            block_pool: "BP-1".into(),
            created_ms: 500,
            root_owner: "alice".into(),
            root_group: "supergroup".into(),
            group: GroupId(1),
            first_level: base::Level::FIRST,
        };
        let directory = tempfile::tempdir().unwrap();
        let mut archiver = Archiver::open(&Env::production(), directory.path(), &whose, &time_of).unwrap();
        archiver.begin_span(None, Some(500)).unwrap();
        Self {
            directory,
            namespace: Namespace::new(1, "alice", "supergroup", Timestamp::from_ms(500)),
            archiver,
            is_lazy: false,
            limits: Limits { access, ..Limits::default() },
            caller: Caller::simple("alice", &["supergroup"]),
        }
    }

    fn append(&mut self, kind: EntryKind, payload: bytes::Bytes) -> Sn {
        let entry = Entry::after(self.archiver.end().unwrap(), Epoch(1), kind, payload);
        serving::apply_entry(&mut self.namespace, &entry).unwrap();
        self.archiver.append(std::slice::from_ref(&entry)).unwrap();
        if !self.is_lazy {
            self.archiver.sync(Epoch(1), time_of(&entry), None).unwrap();
        }
        entry.id.sn
    }

    /// Begins an epoch, which has no time.
    fn epoch(&mut self) -> Sn {
        let previous = self.archiver.end().unwrap();
        let id_steps = group::IdSteps::default();
        let start = group::EpochStart {
            epoch: Epoch(1),
            previous,
            id_steps,
            is_unclean: false,
            keeps_skipped: true,
            leader: None,
        };
        self.append(EntryKind::EpochStart, start.encode())
    }

    fn context(&self, ms: u64) -> Context<'_> {
        Context {
            caller: &self.caller,
            origin: None,
            fingerprint: 0,
            now: Timestamp::from_ms(ms),
            moment: Moment::default(),
            limits: &self.limits,
            renewals: None,
            looks: None,
            told: None,
            room: None,
        }
    }

    fn mkdir(&mut self, path: &str, ms: u64) -> Sn {
        let request =
            mkdirs::Request { path: path.into(), permission: 0o755, create_parent: true, unmasked: None };
        let planned = mkdirs::plan(&self.namespace, &self.context(ms), &request).unwrap();
        self.carry_out(planned)
    }

    fn carry_out<E>(&mut self, planned: Planned<E>) -> Sn
    where
        Edit: From<Edit<E>>,
    {
        let Planned::Edit(edit) = planned else { panic!("nothing was to be done") };
        let edit: Edit = edit.into();
        let mut payload = Vec::new();
        edit.encode(&mut payload);
        self.append(EntryKind::Operation, payload.into())
    }

    fn complete(&mut self, ms: u64) {
        self.archiver.sync(Epoch(1), None, Some(ms)).unwrap();
    }

    fn backup(&self) -> Backup {
        Backup::open(Env::production().disk, self.directory.path()).unwrap()
    }

    /// The entry that is meant by a time, or why there is none.
    fn at(&self, ms: u64) -> Result<u64, String> {
        find(&self.backup(), Until::Time(ms)).map(|found| found.at.0).map_err(|error| error.to_string())
    }

    fn names(&self, until: Until) -> Vec<String> {
        let rebuilt = rebuild(&self.backup(), until, 9).unwrap();
        let mut names = Vec::new();
        let look = crate::backup::Look::new(&rebuilt.namespace);
        look.walk::<base::FsError>("/", false, &mut |path, _| {
            names.push(path.to_owned());
            Ok(())
        })
        .unwrap();
        names
    }
}

#[test]
fn as_of_a_time_is_before_the_first_edit_that_carries_a_later_one() {
    let mut story = Story::new();
    story.epoch();
    let first = story.mkdir("/a", 1_000);
    let second = story.mkdir("/b", 2_000);
    let silent = story.epoch();
    let third = story.mkdir("/c", 3_000);
    assert_eq!((first, second, silent, third), (Sn(2), Sn(3), Sn(4), Sn(5)));
    assert_eq!(story.at(999), Ok(1));
    assert_eq!(story.at(1_000), Ok(2));
    assert_eq!(story.at(1_999), Ok(2));
    // An entry without a time belongs to the edit before it.
    assert_eq!(story.at(2_500), Ok(4));
    // There may be more of the last millisecond that is not archived.
    assert!(story.at(3_000).unwrap_err().contains("does not go on so far"));
    story.complete(3_500);
    assert_eq!((story.at(3_000), story.at(3_500)), (Ok(5), Ok(5)));
    assert!(story.at(3_501).unwrap_err().contains("does not go on so far"));
    assert!(story.at(499).unwrap_err().contains("begins later"));
    assert_eq!(story.names(Until::Time(2_500)), ["/a", "/b"]);
    assert_eq!(story.names(Until::Entry(Sn(2))), ["/a"]);
    assert_eq!(story.names(Until::Entry(Sn(0))), Vec::<String>::new());
    assert_eq!(story.names(Until::End), ["/a", "/b", "/c"]);
}

#[test]
fn where_a_clock_has_gone_back_what_is_left_out_is_told() {
    let mut story = Story::new();
    story.mkdir("/a", 5_000);
    story.mkdir("/b", 6_000);
    let late = story.mkdir("/c", 4_000);
    story.mkdir("/d", 7_000);
    story.complete(8_000);
    let found = find(&story.backup(), Until::Time(5_500)).unwrap();
    assert_eq!((found.at, found.last_ms), (Sn(1), Some(5_000)));
    assert_eq!((found.next, found.straggler), (Some((Sn(2), 6_000)), Some((late, 4_000))));
    let found = find(&story.backup(), Until::Time(6_500)).unwrap();
    assert_eq!((found.at, found.straggler), (Sn(3), None));
}

/// No data server is asked.
struct AllFinished;

impl namespace::BlockFacts for AllFinished {
    fn is_complete(&self, _: &Block) -> bool {
        true
    }
    fn recovered_length(&self, block: &Block) -> Option<u64> {
        Some(block.length)
    }
    fn is_located(&self, _: &Block) -> bool {
        true
    }
}

impl Story {
    /// Makes a file with a block.
    fn file(&mut self, path: &str, ms: u64) {
        let request = create::Request {
            path: path.into(),
            permission: 0o644,
            unmasked: None,
            holder: "writer".into(),
            client_machine: "127.0.0.1".into(),
            flags: create::flag::CREATE,
            create_parent: true,
            replication: 1,
            block_size: 1 << 20,
            storage_policy: None,
            erasure_coding: None,
        };
        let planned = create::plan(&self.namespace, &self.context(ms), &request).unwrap();
        self.carry_out(planned);
        let (path, holder) = (path.into(), "writer".into());
        let request = add_block::Request { path, holder, previous: None, inode: base::InodeId(0) };
        let planned = add_block::plan(&self.namespace, &self.context(ms), &request, &AllFinished).unwrap();
        let add_block::Plan::New { edit, .. } = planned else { panic!("{planned:?}") };
        self.carry_out(Planned::Edit(edit));
    }

    /// The files as of then with a block that is gone at the end.
    fn gone_since(&self, until: Until) -> Vec<String> {
        let later = Blocks::at_the_end(&self.backup(), 9).unwrap();
        let rebuilt = rebuild(&self.backup(), until, 9).unwrap();
        let look = crate::backup::Look::new(&rebuilt.namespace);
        let mut gone = Vec::new();
        look.walk::<base::FsError>("/", true, &mut |path, status| {
            let is_gone =
                || look.blocks(path).unwrap().blocks.iter().any(|one| !later.have(&one.block, one.committed));
            if !status.is_directory() && is_gone() {
                gone.push(path.to_owned());
            }
            Ok(())
        })
        .unwrap();
        gone
    }
}

#[test]
fn a_large_subtree_that_was_deleted_just_before_the_end_is_gone() {
    let mut story = Story::new();
    story.epoch();
    story.is_lazy = true;
    story.file("/kept", 1_000);
    for number in 0..1_100 {
        story.mkdir(&format!("/large/{number}"), 1_000);
    }
    story.file("/large/7/lost", 1_000);
    story.file("/large/lost", 1_000);
    let before = story.archiver.end().unwrap().id.sn;
    let request = delete::Request { path: "/large".into(), recursive: true };
    let planned = delete::plan(&story.namespace, &story.context(2_000), &request).unwrap();
    story.is_lazy = false;
    story.carry_out(planned);
    // The archive ends before the server has begun to take it apart.
    assert!(story.namespace.counts().files == 3, "it is too large to go at once");
    let mut gone = story.gone_since(Until::Entry(before));
    gone.sort();
    assert_eq!(gone, ["/large/7/lost", "/large/lost"]);
    assert_eq!(story.gone_since(Until::End), [""; 0]);
}
