//! A writer that is gone: its file is closed with what the data servers agree on. The data server is spoken by hand, the
//! clock is set by hand.

#[path = "../cluster/mod.rs"]
mod cluster;
mod story;
mod written_on;

use cluster::{refused, spoken::STORAGE, until};
use proto::hdfs as p;
use story::{MINUTE_MS, OTHER, Story, WRITER};

#[tokio::test(flavor = "multi_thread")]
async fn a_recovered_lease_closes_the_file_with_the_length_agreed_on() {
    let story = Story::start().await;
    let block = story.open("/file").await;
    assert!(!story.recover_lease("/file").await);
    let order = story.ordered().await;
    assert_eq!(
        (order.block.b.block_id, order.block.b.generation_stamp),
        (block.block_id, block.generation_stamp)
    );
    assert!(order.new_gen_stamp > block.generation_stamp);

    // Asking again disturbs nothing.
    assert!(!story.recover_lease("/file").await);
    assert!(story.heartbeat().await.is_empty());
    let wrong = p::RecoveringBlockProto { new_gen_stamp: order.new_gen_stamp + 1, ..order.clone() };
    let message = refused(story.commit(&wrong, Some(77)).await, "IOException");
    assert!(message.contains("does not match current recovery id"), "{message}");
    let mut foreign = order.clone();
    foreign.block.b.pool_id = "BP-foreign".into();
    refused(story.commit(&foreign, Some(77)).await, "IOException");

    story.commit(&order, Some(77)).await.unwrap();
    assert!(story.recover_lease("/file").await);
    let located = story.located("/file").await;
    assert_eq!((located.file_length, located.under_construction), (77, false));
    assert_eq!(located.blocks[0].b.generation_stamp, order.new_gen_stamp);
    assert_eq!(located.blocks[0].storage_i_ds, [STORAGE], "known before it is reported");
    story.commit(&order, Some(77)).await.expect("a repeated call finds its work done");
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_that_led_to_nothing_is_begun_again_under_a_newer_stamp() {
    let story = Story::start().await;
    story.open("/file").await;
    assert!(!story.recover_lease("/file").await);
    let first = story.ordered().await;
    story.pass(2 * MINUTE_MS);
    // Nobody asks: the server itself goes on.
    let second = story.ordered().await;
    assert!(second.new_gen_stamp > first.new_gen_stamp);
    refused(story.commit(&first, Some(77)).await, "IOException");
    // Nothing was ever written.
    story.commit(&second, None).await.unwrap();
    assert!(story.recover_lease("/file").await);
    let located = story.located("/file").await;
    assert_eq!((located.file_length, located.blocks.len()), (0, 0));
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_taken_from_a_silent_writer_by_who_wants_to_create_it() {
    let story = Story::start().await;
    story.open("/file").await;
    refused(story.create("/file", OTHER).await, "AlreadyBeingCreatedException");
    story.pass(MINUTE_MS + 1);
    refused(story.create("/file", OTHER).await, "RecoveryInProgressException");
    let order = story.ordered().await;
    refused(story.create("/file", OTHER).await, "RecoveryInProgressException");
    story.commit(&order, Some(5)).await.unwrap();
    refused(story.create("/file", OTHER).await, "FileAlreadyExistsException");

    // A file without an unfinished block is closed at once.
    story.create("/empty", WRITER).await.unwrap();
    story.pass(MINUTE_MS + 1);
    refused(story.create("/empty", OTHER).await, "FileAlreadyExistsException");
    assert!(!story.located("/empty").await.under_construction);
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_of_a_writer_silent_for_very_long_are_closed_by_themselves() {
    let story = Story::start().await;
    story.open("/file").await;
    for _ in 0..4 {
        // The machine's own time goes on meanwhile. `namespace` tells when it is over to the millisecond.
        story.pass(5 * MINUTE_MS - 5_000);
        assert!(story.heartbeat().await.is_empty());
    }
    story.pass(20_000);
    let order = story.ordered().await;
    story.commit(&order, Some(5)).await.unwrap();
    assert!(!story.located("/file").await.under_construction);
    story.stop().await;
}

/// HDFS: `LeaseManager`'s soft and hard limits count from the last renewal, not from the opening of the file.
#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_says_that_it_lives_keeps_its_file() {
    let story = Story::start().await;
    let block = story.open("/file").await;
    for _ in 0..30 {
        // Within its time.
        story.pass(MINUTE_MS - 5_000);
        refused(story.create("/file", OTHER).await, "AlreadyBeingCreatedException");
        story.renew(WRITER).await;
        assert!(story.heartbeat().await.is_empty());
    }
    assert!(story.located("/file").await.under_construction);
    // Half an hour later it is still the one to write.
    story.new_stamp(&block).await.unwrap();
    // Another client's renewals are nobody else's.
    story.pass(MINUTE_MS);
    story.renew(OTHER).await;
    refused(story.create("/file", OTHER).await, "RecoveryInProgressException");
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_whose_file_was_taken_is_told_so() {
    let story = Story::start().await;
    let block = story.open("/file").await;
    story.pass(MINUTE_MS + 1);
    refused(story.append("/file", OTHER, 4).await, "RecoveryInProgressException");
    // From here on, and not only once the recovery has come to its end.
    for is_closed in [false, true] {
        if is_closed {
            let order = story.ordered().await;
            story.commit(&order, Some(5)).await.unwrap();
        }
        story.renew(WRITER).await;
        refused(story.add_block("/file", WRITER, Some(&block)).await, "LeaseExpiredException");
        let complete = p::CompleteRequestProto {
            src: "/file".into(),
            client_name: WRITER.into(),
            last: Some(block.clone()),
            ..p::CompleteRequestProto::default()
        };
        let completed: Result<p::CompleteResponseProto, _> = story.files.call("complete", &complete).await;
        refused(completed, "LeaseExpiredException");
        let fsync = p::FsyncRequestProto {
            src: "/file".into(),
            client: WRITER.into(),
            last_block_length: Some(3),
            ..p::FsyncRequestProto::default()
        };
        let synced: Result<p::FsyncResponseProto, _> = story.files.call("fsync", &fsync).await;
        refused(synced, "LeaseExpiredException");
        let stamped = story.new_stamp(&block).await;
        refused(stamped, if is_closed { "IOException" } else { "LeaseExpiredException" });
    }
    assert_eq!(story.located("/file").await.file_length, 5);
    story.append("/file", OTHER, 4).await.unwrap();
    story.stop().await;
}

/// The journal says which client holds which file, and not when that client was last heard of. So after a start each
/// writer has its full time again.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_anew_gives_every_writer_its_time_again() {
    let story = Story::start().await;
    story.create("/soft", WRITER).await.unwrap();
    story.create("/hard", WRITER).await.unwrap();
    story.pass(MINUTE_MS - 5_000);
    let story = story.restart().await;
    story.pass(MINUTE_MS - 5_000);
    refused(story.create("/soft", OTHER).await, "AlreadyBeingCreatedException");
    story.pass(5_001);
    refused(story.create("/soft", OTHER).await, "FileAlreadyExistsException");
    assert!(!story.located("/soft").await.under_construction, "it was taken and closed");

    // The hard limit counts from there as well: `namespace` tells how long.
    story.pass(15 * MINUTE_MS);
    let story = story.restart().await;
    story.pass(15 * MINUTE_MS);
    assert!(story.located("/hard").await.under_construction);
    story.pass(5 * MINUTE_MS + 1);
    until("the file of a writer that was silent for longer than the hard limit is closed", async || {
        !story.located("/hard").await.under_construction
    })
    .await;
    story.stop().await;
}
