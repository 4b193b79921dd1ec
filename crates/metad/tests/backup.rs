//! Backups of a group that serves: what is archived, what is refused, and what comes of a restore.

mod cluster;

use base::{MemberId, Sn};
use cluster::{Cluster, Plan, failing_disk::FailingDisk, try_mkdirs, until};
use env::Env;
use journal::archive::{ArchiveError, Backup};
use metad::{
    GroupMember, MetaConfig,
    backup::{
        self, BackupError, Event, Operator, Options, Place, Rebuilt, RestoreError, Summary, TargetError,
        Until, Wish,
    },
    peers::Secret,
};
use proto::clover::admin::{AllowDeletionsRequestProto, AllowDeletionsResponseProto};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

/// Looks where the members are, and takes down what is told.
#[derive(Clone, Default)]
struct Desk {
    addresses: Arc<Mutex<BTreeMap<u32, SocketAddr>>>,
    is_stopped: Arc<AtomicBool>,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Operator for Desk {
    fn find(&mut self) -> Option<Vec<Place>> {
        let place = |(member, address): (&u32, &SocketAddr)| Place {
            member: MemberId(*member),
            rpc_address: address.to_string(),
        };
        Some(self.addresses.lock().unwrap().iter().map(place).collect())
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    fn tell(&mut self, event: Event) {
        self.events.lock().unwrap().push(event);
    }
}

impl Desk {
    fn of(cluster: &Cluster) -> Self {
        Self { addresses: cluster.addresses(), ..Self::default() }
    }

    fn last_archived(&self) -> Sn {
        let events = self.events.lock().unwrap();
        let rounds = events.iter().rev().find_map(|event| match event {
            Event::Round(round) => Some(round.archived.id.sn),
            _ => None,
        });
        rounds.unwrap_or_default()
    }
}

fn group_of(name_directory: &Path) -> backup::Group {
    let known = metad::read_cluster(&Env::production(), name_directory).unwrap();
    backup::Group {
        cluster_id: known.cluster_id,
        group: known.group,
        secret: known.secret.unwrap(),
        user: "bob".into(),
    }
}

type Running = tokio::task::JoinHandle<Result<Summary, BackupError>>;

fn begin(directory: &Path, group: backup::Group, desk: &Desk, follow: bool) -> Running {
    let (directory, mut desk) = (directory.to_owned(), desk.clone());
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || {
        let options = Options { follow, ..Options::default() };
        backup::run(&Env::production(), &directory, group, &runtime, options, &mut desk)
    })
}

async fn take(directory: &Path, cluster: &Cluster) -> Result<Summary, BackupError> {
    let group = group_of(&cluster.name_directory(1));
    begin(directory, group, &Desk::of(cluster), false).await.unwrap()
}

fn opened(directory: &Path) -> Backup {
    Backup::open(Env::production().disk, directory).unwrap()
}

fn rebuilt(directory: &Path, until: Until) -> Result<Rebuilt, TargetError> {
    backup::rebuild(&opened(directory), until, 7)
}

/// The names of the directories in the root, as of then.
fn names_at(directory: &Path, until: Until) -> Vec<String> {
    let rebuilt = rebuilt(directory, until).unwrap();
    let mut names = Vec::new();
    let walked = backup::Look::new(&rebuilt.namespace).walk::<base::FsError>("/", true, &mut |path, _| {
        names.push(path[1..].to_owned());
        Ok(())
    });
    walked.unwrap();
    names
}

/// Makes the directory of a first member of a backup.
fn restore(
    env: &Env,
    backup: &Path,
    until: Until,
    config: &MetaConfig,
) -> Result<backup::Restored, RestoreError> {
    let wish = Wish {
        name_directory: &config.name_directory,
        group: &config.group,
        address: config.rpc_address.ip(),
        new_cluster_id: None,
    };
    backup::restore(env, opened(backup).manifest(), rebuilt(backup, until).unwrap(), &wish)
}

/// A cluster whose first member is to begin with what is in a backup; its coordinator knows of nothing else.
fn restored(plan: Plan, backup: &Path, until: Until) -> (Cluster, backup::Restored) {
    let (restored, backup) = (Arc::new(Mutex::new(None)), backup.to_owned());
    let made = restored.clone();
    let cluster = plan
        .made_by(move |config| {
            *made.lock().unwrap() = Some(restore(&Env::production(), &backup, until, config).unwrap());
        })
        .made();
    let restored = restored.lock().unwrap().take().expect("it was made");
    (cluster, restored)
}

/// The last entry of the active, and the digest of its state there.
fn now_at(cluster: &Cluster, active: u32) -> (base::TxId, u64) {
    cluster.server(active).digest()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_group_is_backed_up_while_it_serves_and_every_entry_can_be_had_again() {
    let mut cluster = Cluster::start(3).await;
    let path = cluster.beside("backup");
    let first = cluster.wait_for_active(&[]).await;
    cluster.wait_in_sync(first, 3).await;
    let mut marks = Vec::new();
    for number in 0..10 {
        cluster.mkdirs(first, &format!("/{number}")).await;
        marks.push(now_at(&cluster, first));
    }
    let summary = take(&path, &cluster).await.unwrap();
    assert!(summary.before.is_none() && summary.entries >= 10, "{summary:?}");
    assert!(summary.round.complete_ms.is_some());

    // A follower sees a takeover, and goes on with the next active.
    let desk = Desk::of(&cluster);
    let following = begin(&path, group_of(&cluster.name_directory(1)), &desk, true);
    for number in 10..15 {
        cluster.mkdirs(first, &format!("/{number}")).await;
        marks.push(now_at(&cluster, first));
    }
    cluster.kill(first).await;
    let second = cluster.wait_for_active(&[first]).await;
    for number in 15..20 {
        cluster.mkdirs(second, &format!("/{number}")).await;
        marks.push(now_at(&cluster, second));
    }
    let last = marks.last().unwrap().0.sn;
    until("all of it is archived", async || desk.last_archived() >= last).await;
    desk.is_stopped.store(true, Ordering::Release);
    let summary = following.await.unwrap().unwrap();
    assert_eq!(summary.round.active.map(|(member, _)| member.0), Some(second));

    // Exactly the state that the active had then, entry by entry.
    for (number, (at, digest)) in marks.iter().enumerate() {
        let rebuilt = rebuilt(&path, Until::Entry(at.sn)).unwrap();
        assert_eq!((rebuilt.at.id, rebuilt.namespace.digest()), (*at, *digest), "as of {number}");
    }
    let all = opened(&path);
    let span = &all.manifest().spans[0];
    assert_eq!(all.manifest().spans.len(), 1);
    assert!(all.check(span).unwrap().entries >= 20);

    // As of the millisecond before an edit the file is not there; as of the edit's own time it is.
    let made = rebuilt(&path, Until::Entry(marks[6].0.sn)).unwrap().found;
    let ms = made.last_ms.unwrap();
    assert!(!names_at(&path, Until::Time(ms - 1)).contains(&"6".to_owned()));
    assert!(names_at(&path, Until::Time(ms)).contains(&"6".to_owned()));
    // Not before it begins, not beyond what is certain.
    let late = span.complete_ms.unwrap().max(span.end_ms.unwrap()) + 1_000;
    assert!(matches!(rebuilt(&path, Until::Time(late)), Err(TargetError::Outside { .. })));
    assert!(matches!(rebuilt(&path, Until::Time(1)), Err(TargetError::Outside { .. })));
    let beyond = rebuilt(&path, Until::Entry(Sn(span.end.id.sn.0 + 1))).err().unwrap();
    assert!(beyond.to_string().contains("its last entry is"), "{beyond}");
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_image_begins_a_backup_and_what_was_removed_in_between_is_told_as_missing() {
    let plan = Plan::group(3).adjusted(|_, config| {
        config.edits_per_image = 20;
        config.group.journal.segment_bytes = 16 << 10;
    });
    let (cluster, active) = plan.in_sync().await;
    let path = cluster.beside("backup");
    let write = async |from: u64, count: u64| {
        for number in from..from + count {
            cluster.mkdirs(active, &format!("/{number:04}")).await;
        }
    };
    let newest_at = |member| {
        let newest = cluster.server(member).replica().journal().images().last().copied();
        newest.map_or(Sn(0), |image| image.at.id.sn)
    };
    let wait_for_image = async |after: Sn| {
        // On all of them: a standby is asked for one that it has.
        let newest = || (1..=3).map(newest_at).min().unwrap();
        until("a newer image is there", async || newest() > after).await;
        newest()
    };
    write(0, 40).await;
    wait_for_image(Sn(0)).await;
    write(40, 5).await;
    // The newest image is what a backup begins with, so the active is spared only when a standby has that one too.
    let is_everywhere = || cluster.members().all(|member| newest_at(member) == newest_at(active));
    until("all have the newest", async || is_everywhere()).await;
    let desk = Desk::of(&cluster);
    let group = || group_of(&cluster.name_directory(1));
    let summary = begin(&path, group(), &desk, false).await.unwrap().unwrap();
    assert!(summary.image_bytes > 0, "{summary:?}");
    {
        let events = desk.events.lock().unwrap();
        let spared = events.iter().any(
            |event| matches!(event, Event::Image { from, have, total, .. } if from.0 != active && have == total),
        );
        assert!(spared, "the active is left alone: {events:?}");
    }
    let span = opened(&path).manifest().spans[0].clone();
    assert!(span.image.is_some() && span.begin_ms.is_some());
    assert_eq!(names_at(&path, Until::End).len(), 45);
    assert!(matches!(rebuilt(&path, Until::Entry(Sn(1))), Err(TargetError::Outside { .. })));

    // So much later that nobody has what comes next.
    let mut at = span.end.id.sn;
    for round in 0..6 {
        write(100 + 30 * round, 30).await;
        at = wait_for_image(at).await;
    }
    let is_gone = |member: u32| {
        cluster
            .server(member)
            .replica()
            .journal()
            .segment_starts()
            .first()
            .is_none_or(|start| start.0 > span.end.id.sn.0 + 1)
    };
    let mut number = 10_000;
    until("what came next is gone", async || {
        number += 1;
        write(number, 1).await;
        cluster.members().all(is_gone)
    })
    .await;
    let desk = Desk::of(&cluster);
    begin(&path, group(), &desk, false).await.unwrap().unwrap();
    let missed = desk
        .events
        .lock()
        .unwrap()
        .iter()
        .any(|event| matches!(event, Event::Missed { after, .. } if *after == span.end.id.sn));
    assert!(missed);
    let spans = opened(&path).manifest().spans.clone();
    assert_eq!(spans.len(), 2);
    assert_eq!(spans[0].end, span.end);
    for span in &spans {
        opened(&path).check(span).unwrap();
    }
    let refused = rebuilt(&path, Until::Entry(Sn(span.end.id.sn.0 + 1))).err().unwrap();
    assert!(refused.to_string().contains("were removed by the members"), "{refused}");
    assert_eq!(names_at(&path, Until::Entry(span.end.id.sn)).len(), 45);
    let (applied, digest) = now_at(&cluster, active);
    let rebuilt = rebuilt(&path, Until::End).unwrap();
    assert_eq!((rebuilt.at.id, rebuilt.namespace.digest()), (applied, digest));
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_restored_server_has_the_names_of_then_holds_deletions_and_is_no_longer_what_the_backup_is_of() {
    let cluster = Cluster::start(2).await;
    let path = cluster.beside("backup");
    let active = cluster.wait_for_active(&[]).await;
    cluster.wait_in_sync(active, 2).await;
    let mut marks = Vec::new();
    for number in 0..6 {
        cluster.mkdirs(active, &format!("/{number}")).await;
        marks.push(now_at(&cluster, active).0);
    }
    take(&path, &cluster).await.unwrap();
    let old_epoch = marks[5].epoch.0;
    let known = metad::read_cluster(&Env::production(), &cluster.name_directory(1)).unwrap();

    let (mut then, made) = restored(Plan::alone(), &path, Until::Entry(marks[2].sn));
    then.restart(1).await;
    assert_eq!(then.names(1, "/").await, ["0", "1", "2"]);
    assert_eq!((&made.cluster.cluster_id, &made.cluster.block_pool), (&known.cluster_id, &known.block_pool));
    assert!(made.cluster.secret != known.secret, "members of before do not know it");
    let epoch = then.replica(1).epoch().0;
    assert!(epoch > old_epoch + 1_000);
    let look = AllowDeletionsRequestProto::default();
    let told: AllowDeletionsResponseProto = then.order(1, "allowDeletions", &look).await.unwrap();
    assert_eq!(told.held_since, Some(epoch), "deletions are held back");
    // It takes changes, and keeps them over a start.
    assert!(try_mkdirs(&then.client(1), "/after").await.unwrap());
    then.stop(1).await;
    then.restart(1).await;
    assert_eq!(then.names(1, "/").await, ["0", "1", "2", "after"]);

    // The backup is of the group that has gone on: this one is not it.
    let desk = Desk::of(&then);
    let name = then.name_directory(1);
    let other = begin(&path, group_of(&name), &desk, false).await.unwrap();
    assert!(
        matches!(other, Err(BackupError::WentBack { .. } | BackupError::OtherHistory { .. })),
        "{other:?}"
    );
    // And it has a backup of its own, from which it can be restored again.
    let next = then.beside("backup");
    begin(&next, group_of(&name), &desk, false).await.unwrap().unwrap();
    assert_eq!(names_at(&next, Until::End), ["0", "1", "2", "after"]);
    then.stop(1).await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_restore_that_finds_too_little_room_leaves_an_empty_directory() {
    let cluster = Cluster::start(2).await;
    let path = cluster.beside("backup");
    let active = cluster.wait_for_active(&[]).await;
    for number in 0..20 {
        cluster.mkdirs(active, &format!("/{number}")).await;
    }
    take(&path, &cluster).await.unwrap();
    let mut then = Plan::alone().made_by(move |config| restore_with_ever_more_room(&path, config)).made();
    assert!(!then.name_directory(1).join("MAKING").exists());
    then.restart(1).await;
    assert_eq!(then.names(1, "/").await.len(), 20);
    then.stop(1).await;
    cluster.end().await;
}

/// Until there is enough of it.
fn restore_with_ever_more_room(backup: &Path, config: &MetaConfig) {
    let disk = FailingDisk::default();
    let env = Env { disk: Arc::new(disk.clone()), ..Env::production() };
    let mut refusals = 0;
    for room in (0..).step_by(512) {
        disk.set_room(Some(room));
        if restore(&env, backup, Until::End, config).is_ok() {
            break;
        }
        refusals += 1;
        let left: Vec<_> = std::fs::read_dir(&config.name_directory).unwrap().collect();
        assert!(left.is_empty(), "with room for {room} bytes: {left:?}");
    }
    // The member's state, its image, the coordinator's files, the file CLUSTER.
    assert!(refusals > 5, "{refusals} refusals");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_group_is_restored_and_its_second_member_joins_as_any_other() {
    let cluster = Cluster::start(2).await;
    let path = cluster.beside("backup");
    let active = cluster.wait_for_active(&[]).await;
    cluster.wait_in_sync(active, 2).await;
    for number in 0..5 {
        cluster.mkdirs(active, &format!("/{number}")).await;
    }
    take(&path, &cluster).await.unwrap();
    let (mut again, _) = restored(Plan::group(2), &path, Until::End);
    let refused = restore(&Env::production(), &path, Until::End, &again.config(1)).unwrap_err();
    assert!(refused.to_string().contains("is not empty"), "{refused}");
    cluster.end().await;
    again.restart_together(&[1, 2]).await;
    // The one that has fetched an image starts again with it, as a process does.
    let in_sync = |replica: GroupMember| replica.status().view.map_or(0, |(view, _)| view.in_sync.len());
    again
        .tend_until("both have it", |again| again.active(&[]) == Some(1) && in_sync(again.replica(1)) == 2)
        .await;
    assert!(try_mkdirs(&again.client(1), "/after").await.unwrap());
    again.kill(1).await;
    // The other member has the restored entries, and those that this one has acknowledged since.
    again.wait_until("it answers", |again| again.replica(2).answers().then_some(())).await;
    again.restart(1).await;
    again.wait_for_active(&[]).await;
    assert_eq!(again.names(2, "/").await, ["0", "1", "2", "3", "4", "after"]);
    again.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn another_secret_another_cluster_and_a_group_that_is_away_are_told_apart() {
    let cluster = Cluster::start(1).await;
    let other = Cluster::start(1).await;
    let path = cluster.beside("backup");
    cluster.wait_for_active(&[]).await;
    other.wait_for_active(&[]).await;
    cluster.mkdirs(1, "/of-the-first").await;
    let guessed = backup::Group {
        secret: Secret::new(b"one of thirty-two letters or so").unwrap(),
        ..group_of(&cluster.name_directory(1))
    };
    let refused = begin(&path, guessed, &Desk::of(&cluster), false).await.unwrap();
    assert!(matches!(refused, Err(BackupError::Secret)), "{refused:?}");
    assert!(!path.exists(), "nothing was made");

    take(&path, &cluster).await.unwrap();
    let foreign = take(&path, &other).await;
    assert!(matches!(foreign, Err(BackupError::Archive(ArchiveError::Foreign { .. }))), "{foreign:?}");
    assert_eq!(names_at(&path, Until::End), ["of-the-first"]);
    cluster.end().await;
    other.end().await;
}

/// One secret is for the whole cluster, so the proof alone does not tell whose entries are wanted.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn members_give_nothing_to_those_who_take_them_for_another_group() {
    let cluster = Cluster::start(1).await;
    cluster.wait_for_active(&[]).await;
    let path = cluster.beside("backup");
    let mistaken = backup::Group { group: base::GroupId(2), ..group_of(&cluster.name_directory(1)) };
    let refused = begin(&path, mistaken, &Desk::of(&cluster), false).await.unwrap().unwrap_err().to_string();
    assert!(refused.contains("/group-2"), "{refused}");
    assert!(!path.exists(), "nothing was made");
    cluster.end().await;
}
