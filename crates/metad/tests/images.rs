//! Images in a group: made by a standby, copied by the others, and put in the place of a log that is too far
//! behind. Three members as their processes run them, each started again as often as it asks for it.

mod cluster;

use cluster::{Cluster, Plan, try_mkdirs, until};
use group::Order;
use journal::Look;

const EDITS_PER_IMAGE: u64 = 40;

/// Three members, all in sync; and the active. `scrub_period_ms` is the time in which each reads all of its disk.
async fn start(scrub_period_ms: Option<u64>) -> (Cluster, u32) {
    let plan = Plan::group(3).timed(group::Settings { window_bytes: 4 << 10, ..Default::default() });
    let plan = plan.adjusted(move |_, config| {
        config.edits_per_image = EDITS_PER_IMAGE;
        // Small segments, so that a purge finds some; no window, so that the log is read from the disk.
        config.group.journal.segment_bytes = 16 << 10;
        config.group.scrub_period_ms = scrub_period_ms.unwrap_or(config.group.scrub_period_ms);
    });
    plan.run_as_processes().in_sync().await
}

/// Directories with long names, so that segments fill.
async fn make(cluster: &Cluster, directory: &str, count: u64) {
    let client = cluster.client(cluster.wait_for_active(&[]).await);
    for number in 0..count {
        let path = format!("{directory}/{number}-{}", "x".repeat(200));
        assert!(try_mkdirs(&client, &path).await.unwrap());
    }
}

/// The images that a start of this member would begin with: their serial numbers. `None` while it starts again.
fn images(cluster: &Cluster, member: u32) -> Option<Vec<u64>> {
    let replica = cluster.look_at(member)?;
    Some(replica.journal().images().iter().map(|image| image.at.id.sn.0).collect())
}

fn have_images(cluster: &Cluster, wanted: impl Fn(usize) -> bool) -> bool {
    let running = cluster.running().into_iter();
    running.map(|member| images(cluster, member)).all(|images| images.is_some_and(|all| wanted(all.len())))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_standby_makes_the_image_and_every_member_gets_it() {
    let (mut cluster, active) = start(None).await;
    make(&cluster, "/d", EDITS_PER_IMAGE + 20).await;
    until("all have an image", async || have_images(&cluster, |count| count == 1)).await;
    assert_eq!(images(&cluster, 1), images(&cluster, 2));
    assert_eq!(images(&cluster, 2), images(&cluster, 3));

    let maker = cluster.others(active)[0];
    let uuid = cluster.replica(maker).journal().state().store_uuid;
    for member in 1..=3 {
        let name = cluster.replica(member).journal().images()[0].file_name();
        let file = std::fs::read(cluster.store(member).join("images").join(name)).unwrap();
        assert_eq!(file[48..64], uuid, "the standby with the lowest number has made it");
    }

    // It is a whole image: a member that starts from it is a standby again at once.
    cluster.stop(maker).await;
    cluster.run(maker).await;
    cluster.wait_until_in_sync().await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_member_with_a_new_disk_starts_from_the_image_of_another() {
    let (mut cluster, active) = start(None).await;
    let lost = cluster.others(active)[1];
    cluster.stop(lost).await;
    cluster.wait_in_sync(active, 2).await;
    for round in 1..=2 {
        make(&cluster, &format!("/round-{round}"), 2 * EDITS_PER_IMAGE).await;
        // On a busy machine there may be two in the first round.
        until("the images are usable", async || have_images(&cluster, |count| count >= round)).await;
    }
    // An image is usable a moment before what it replaces goes.
    let first = |member| cluster.replica(member).journal().read(base::Sn(0), base::Sn(1), 1);
    let is_gone = || matches!(first(active), Err(journal::ReadLogError::Gone { .. }));
    until("the log begins later", async || is_gone()).await;

    cluster.lose(lost);
    cluster.join(lost);
    cluster.run(lost).await;
    cluster.process(lost).wait_for_start(2).await;
    cluster.wait_until_in_sync().await;
    assert!(images(&cluster, lost).is_some_and(|images| !images.is_empty()));

    // It has everything: the group is handed over to it.
    cluster.say(active, Order::HandOver { to: Some(base::MemberId(lost)) }).await.unwrap();
    until("it serves", async || cluster.active(&[]) == Some(lost)).await;
    for round in 1..=2 {
        let names = cluster.names(lost, &format!("/round-{round}")).await;
        assert_eq!(names.len() as u64, 2 * EDITS_PER_IMAGE);
    }
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_rots_on_one_disk_is_mended_with_what_another_has() {
    let (mut cluster, active) = start(Some(300)).await;
    make(&cluster, "/d", EDITS_PER_IMAGE + 20).await;
    until("all have an image", async || have_images(&cluster, |count| count == 1)).await;
    let standby = cluster.others(active)[0];
    for member in [active, standby] {
        let journal = cluster.replica(member).journal().clone();
        let store = cluster.store(member);
        let (image, sealed) = (journal.images()[0], journal.sealed()[1]);
        let segment = format!("log/{:010}-{:020}", sealed.epoch.0, sealed.start.0);
        let files = [store.join("images").join(image.file_name()), store.join(segment)];
        let whole: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
        for (file, bytes) in files.iter().zip(&whole) {
            let mut bytes = bytes.clone();
            // Behind the first header of either.
            let at = if bytes.len() > 8_192 { 4_096 + 100 } else { bytes.len() / 2 };
            bytes[at] ^= 1;
            std::fs::write(file, bytes).unwrap();
        }
        let is_mended = || {
            journal.look_at_image(&image, &mut |_| true) == Look::Sound
                && journal.look_at_segment(sealed, &mut |_| true) == Look::Sound
        };
        assert!(!is_mended());
        until("both are mended", async || is_mended()).await;
        assert_eq!(std::fs::read(&files[0]).unwrap(), whole[0], "an image is the same on all members");
        let (_, entries) = journal.read(base::Sn(0), base::Sn(u64::MAX), 64 << 20).unwrap();
        assert_eq!(entries.len() as u64, journal.durable().0);
    }
    // A start finds nothing wrong.
    cluster.stop(standby).await;
    cluster.run(standby).await;
    cluster.wait_until_in_sync().await;
    assert_eq!(cluster.replica(standby).me().generation, 0, "it is the same store");
    cluster.end().await;
}
