//! When the service takes files from writers that say nothing, in simulated time.

mod common;

use base::{FsError, FsResult, InodeId, Moment};
use common::{HOLDER, World};
use namespace::{
    Renewals,
    given_facts::GivenFacts,
    lease_watch::{Due, LeaseWatch, Outlook, is_settled},
    ops::{self, release_lease},
};

const OTHER: &str = "DFSClient_other_1";
const MINUTE_MS: u64 = 60_000;
/// Both limits count from the last renewal.
const SOFT_MS: u64 = MINUTE_MS;
const HARD_MS: u64 = 20 * MINUTE_MS;
const PERIOD_MS: u64 = 2_000;

const USUAL: Outlook = Outlook { in_safe_mode: false, is_settled: true };

/// A member of the group: the tree that all have, and what only this one knows.
struct Active {
    world: World,
    watch: LeaseWatch,
    now: Moment,
}

impl Active {
    fn start() -> Self {
        let mut world = World::new(0);
        world.renewals = Some(Renewals::new(Moment::default()));
        Self { world, watch: LeaseWatch::new(Moment::default()), now: Moment::default() }
    }

    fn renewals(&mut self) -> &mut Renewals {
        self.world.renewals.as_mut().expect("an active has them")
    }

    /// The server's clock goes on, and it looks whenever it is time.
    fn pass(&mut self, ms: u64, outlook: Outlook) -> Due {
        let end = self.now.plus_ms(ms);
        while self.now < end {
            self.now = self.now.plus_ms(20).min(end);
            if self.watch.is_due(self.now) {
                let renewals = self.world.renewals.as_mut().expect("an active has them");
                let due = self.watch.look(&self.world.ns, renewals, outlook, self.now);
                if due != Due::default() {
                    return due;
                }
            }
        }
        Due::default()
    }

    fn create(&mut self, path: &str, holder: &str) -> FsResult<()> {
        self.world.moment = self.now;
        let now = self.now;
        self.renewals().renew(holder, now);
        let request = self.world.create_request(path, holder);
        self.world.run(|ns, ctx| ops::create::plan(ns, ctx, &request)).map(|_| ())
    }

    /// Another member leads from now on, with the same tree.
    fn take_over(&mut self) {
        let now = self.now;
        *self.renewals() = Renewals::new(now);
    }

    /// Files whose recovery is under way, each by the data servers of its last block.
    fn begin_recoveries(&mut self, count: usize) -> Vec<InodeId> {
        let mut files = Vec::new();
        for number in 0..count {
            let path = format!("/r{number}");
            let inode = self.world.create(&path, false).unwrap();
            self.world.add_block(&path, inode, None);
            let plan =
                release_lease::plan(&self.world.ns, &self.world.context(None), inode, &GivenFacts::silence());
            let release_lease::Plan::Recover(release_lease::Recovery { edit, .. }) = plan else {
                panic!("{plan:?}")
            };
            self.world.apply(edit);
            files.push(inode);
        }
        files
    }
}

fn expired(due: &Due) -> Vec<&str> {
    due.expired.iter().map(|(holder, _)| &**holder).collect()
}

#[test]
fn a_silent_writer_loses_its_files_at_the_first_look_after_the_hard_limit() -> FsResult<()> {
    let mut active = Active::start();
    active.create("/a", HOLDER)?;
    active.create("/b", HOLDER)?;
    assert_eq!(active.pass(HARD_MS, USUAL), Due::default());
    let due = active.pass(2 * PERIOD_MS, USUAL);
    assert_eq!(expired(&due), [HOLDER]);
    assert_eq!(due.expired[0].1, active.world.ns.files_of(HOLDER));
    assert!(active.now <= Moment::from_ms(HARD_MS + PERIOD_MS));
    // The files are still open, so the next look finds them again: the queue may have been full.
    assert_eq!(active.pass(PERIOD_MS, USUAL), due);
    Ok(())
}

#[test]
fn a_writer_that_renews_keeps_its_file_and_another_s_renewals_do_not_help() -> FsResult<()> {
    let mut active = Active::start();
    active.create("/kept", HOLDER)?;
    active.create("/lost", "silent")?;
    for _ in 0..25 {
        // Within the soft limit.
        let due = active.pass(SOFT_MS - 5_000, USUAL);
        assert!(expired(&due).is_empty() || expired(&due) == ["silent"], "{due:?}");
        let refused = active.create("/kept", OTHER);
        assert!(matches!(refused, Err(FsError::AlreadyBeingCreated(_))), "{refused:?}");
        let now = active.now;
        active.renewals().renew(HOLDER, now);
    }
    assert_eq!(expired(&active.pass(PERIOD_MS, USUAL)), ["silent"]);
    // After the soft limit it is taken by the one that asks for it, and not before the hard one by the service.
    active.pass(SOFT_MS + 1, Outlook { in_safe_mode: true, ..USUAL });
    let refused = active.create("/kept", OTHER);
    assert!(matches!(refused, Err(FsError::RecoveryInProgress(_))), "{refused:?}");
    assert_eq!(expired(&active.pass(PERIOD_MS, USUAL)), ["silent"]);
    Ok(())
}

#[test]
fn a_new_active_gives_every_writer_its_time_again() -> FsResult<()> {
    let mut active = Active::start();
    active.create("/f", HOLDER)?;
    for _ in 0..3 {
        // The soft limit is over, and the hard one nearly.
        assert_eq!(active.pass(HARD_MS - PERIOD_MS, USUAL), Due::default());
        active.take_over();
        let refused = active.create("/f", OTHER);
        assert!(matches!(refused, Err(FsError::AlreadyBeingCreated(_))), "{refused:?}");
    }
    assert_eq!(active.pass(HARD_MS, USUAL), Due::default());
    assert_eq!(expired(&active.pass(2 * PERIOD_MS, USUAL)), [HOLDER]);
    Ok(())
}

#[test]
fn in_safe_mode_nothing_is_taken_and_afterwards_what_is_due_is() -> FsResult<()> {
    let mut active = Active::start();
    active.create("/f", HOLDER)?;
    let recovered = active.begin_recoveries(1);
    let safe_mode = Outlook { in_safe_mode: true, is_settled: true };
    assert_eq!(active.pass(2 * HARD_MS, safe_mode), Due::default());
    let due = active.pass(2 * PERIOD_MS, USUAL);
    assert_eq!((expired(&due), &due.unfinished), (vec![HOLDER], &recovered));
    Ok(())
}

#[test]
fn a_recovery_is_looked_at_again_once_the_data_servers_have_spoken() {
    let mut active = Active::start();
    let recovered = active.begin_recoveries(2);
    let started = Moment::default();
    while !is_settled(started, active.now) {
        let outlook = Outlook { in_safe_mode: false, is_settled: false };
        assert_eq!(active.pass(20, outlook), Due::default());
    }
    assert_eq!(active.now, Moment::from_ms(30_000));
    // Its holder is the service itself, which never renews and never expires.
    for _ in 0..2 * HARD_MS / PERIOD_MS {
        let due = active.pass(PERIOD_MS, USUAL);
        assert_eq!(due, Due { expired: Vec::new(), unfinished: recovered.clone() });
    }
}

#[test]
fn a_truncation_that_is_under_way_is_looked_at_again_too() -> FsResult<()> {
    let mut active = Active::start();
    let world = &mut active.world;
    let inode = world.create("/f", false)?;
    let block = world.add_block("/f", inode, None);
    world.complete("/f", inode, Some(base::Block { length: 100, ..block }));
    assert!(!world.truncate("/f", 40)?);
    let due = active.pass(PERIOD_MS, USUAL);
    assert_eq!(due.unfinished, [inode]);
    active.world.finish_truncation(inode, 40);
    assert_eq!(active.pass(PERIOD_MS, USUAL), Due::default());
    Ok(())
}

#[test]
fn recoveries_that_nobody_can_end_delay_no_others() {
    let mut active = Active::start();
    let recovered = active.begin_recoveries(2_300);
    let mut looks: Vec<Vec<InodeId>> = Vec::new();
    for _ in 0..4 {
        looks.push(active.pass(PERIOD_MS, USUAL).unfinished);
    }
    assert_eq!(looks.iter().map(Vec::len).collect::<Vec<_>>(), [1_000, 1_000, 300, 1_000]);
    assert_eq!(looks[..3].concat(), recovered);
    assert_eq!(looks[3], looks[0], "after the last one it begins anew");
}
