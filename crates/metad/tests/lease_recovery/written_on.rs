//! Files that are opened again, to be written on or cut.

use crate::{
    cluster::{refused, spoken::STORAGE},
    story::{MINUTE_MS, OTHER, Story, WRITER},
};
use proto::hdfs as p;

#[tokio::test(flavor = "multi_thread")]
async fn an_append_is_told_the_last_block_and_a_silent_writer_loses_it() {
    let story = Story::start().await;
    story.finished("/file", 77).await;
    let appended = story.append("/file", WRITER, 4).await.unwrap();
    let (block, stat) = (appended.block.unwrap(), appended.stat.unwrap());
    assert_eq!((block.b.num_bytes(), block.offset, block.storage_i_ds), (77, 0, vec![STORAGE.to_owned()]));
    assert_eq!(stat.length, 77);
    let located = story.located("/file").await;
    assert_eq!((located.under_construction, located.is_last_block_complete), (true, false));
    assert_eq!(located.last_block.unwrap().storage_i_ds, [STORAGE], "it can be read meanwhile");
    refused(story.append("/file", OTHER, 4).await, "AlreadyBeingCreatedException");
    story.pass(MINUTE_MS + 1);
    // Its replica is as it was told, which may be too long ago: its servers agree first.
    refused(story.append("/file", OTHER, 4).await, "RecoveryInProgressException");
    let order = story.ordered().await;
    assert_eq!(order.block.b.generation_stamp, block.b.generation_stamp);
    story.commit(&order, Some(77)).await.unwrap();
    let appended = story.append("/file", OTHER, 4).await.unwrap();
    assert_eq!(appended.block.unwrap().b.generation_stamp, order.new_gen_stamp);
    refused(story.append("/file", WRITER, 4).await, "AlreadyBeingCreatedException");
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_wants_a_block_of_its_own_is_given_no_places_of_the_last_one() {
    let story = Story::start().await;
    story.finished("/file", 77).await;
    const NEW_BLOCK: u32 = 0x20;
    let appended = story.append("/file", WRITER, 4 | NEW_BLOCK).await.unwrap();
    let block = appended.block.unwrap();
    assert_eq!((block.b.num_bytes(), block.locs.len()), (77, 0));
    assert!(story.located("/file").await.is_last_block_complete);
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_block_is_cut_by_its_data_servers() {
    let story = Story::start().await;
    story.finished("/file", 77).await;
    assert!(!story.truncate("/file", 50).await.unwrap());
    assert!(!story.truncate("/file", 50).await.unwrap(), "it is under way");
    refused(story.truncate("/file", 40).await, "AlreadyBeingCreatedException");
    refused(story.append("/file", WRITER, 4).await, "RecoveryInProgressException");
    let first = story.ordered().await;
    let cut = first.truncate_block.unwrap();
    assert_eq!((cut.block_id, cut.num_bytes()), (first.block.b.block_id, 50));
    assert_eq!((first.block.b.num_bytes(), cut.gen_stamp), (77, first.new_gen_stamp));
    assert!(story.heartbeat().await.is_empty(), "it is ordered once");
    // It led to nothing: the server itself begins it again.
    story.pass(2 * MINUTE_MS);
    let second = story.ordered().await;
    assert!(second.new_gen_stamp > first.new_gen_stamp);
    assert_eq!(second.truncate_block.unwrap().num_bytes(), 50);
    refused(story.commit(&first, Some(50)).await, "IOException");
    refused(story.commit(&second, Some(60)).await, "IOException");
    story.commit(&second, Some(50)).await.unwrap();
    let located = story.located("/file").await;
    assert_eq!((located.file_length, located.under_construction), (50, false));
    assert_eq!(located.blocks[0].storage_i_ds, [STORAGE]);
    assert!(story.truncate("/file", 50).await.unwrap(), "it is that long");
    assert!(story.truncate("/file", 0).await.unwrap());
    assert_eq!(story.located("/file").await.blocks.len(), 0);
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_a_snapshot_shows_is_copied_by_its_data_servers() {
    for names_the_copy in [false, true] {
        a_copied_block_is_told_of(names_the_copy).await;
    }
}

async fn a_copied_block_is_told_of(names_the_copy: bool) {
    let story = Story::start().await;
    story.finished("/file", 77).await;
    let allow = p::AllowSnapshotRequestProto { snapshot_root: "/".into() };
    let _: p::AllowSnapshotResponseProto = story.files.call("allowSnapshot", &allow).await.unwrap();
    let create = p::CreateSnapshotRequestProto { snapshot_root: "/".into(), snapshot_name: Some("s".into()) };
    let _: p::CreateSnapshotResponseProto = story.files.call("createSnapshot", &create).await.unwrap();
    let old = story.located("/file").await.blocks[0].b.clone();
    assert!(!story.truncate("/file", 50).await.unwrap());
    assert!(!story.truncate("/file", 50).await.unwrap(), "it is under way");
    let meanwhile = story.located("/file").await;
    assert_eq!((meanwhile.file_length, meanwhile.under_construction), (77, true));
    assert_eq!((&meanwhile.blocks[0].b, &meanwhile.blocks[0].storage_i_ds[0][..]), (&old, STORAGE));
    let first = story.ordered().await;
    assert_eq!(first.block.b, old);
    assert_eq!(first.block.storage_i_ds, [STORAGE]);
    let copy = first.truncate_block.unwrap();
    assert!(copy.block_id > old.block_id);
    assert_eq!((copy.num_bytes(), copy.gen_stamp), (50, first.new_gen_stamp));
    assert!(story.heartbeat().await.is_empty(), "it is ordered once");
    // It led to nothing: it is begun again, into the same block.
    story.pass(2 * MINUTE_MS);
    let second = story.ordered().await;
    assert!(second.new_gen_stamp > first.new_gen_stamp);
    assert_eq!((&second.block.b, second.truncate_block.as_ref().unwrap().block_id), (&old, copy.block_id));
    // Hadoop's data servers name the block that they have copied; the number of the copy is understood as well.
    let by_copy = |order: &p::RecoveringBlockProto| {
        let mut outcome = order.clone();
        outcome.block.b.block_id = copy.block_id;
        outcome
    };
    for first in [&first, &by_copy(&first)] {
        let message = refused(story.commit(first, Some(50)).await, "IOException");
        assert!(message.contains("does not match current recovery id"), "{message}");
    }
    refused(story.commit(&second, Some(60)).await, "IOException");
    let message = refused(story.commit(&second, None).await, "IOException");
    assert!(message.contains("is copied and cannot be deleted"), "{message}");
    assert!(story.located("/file").await.under_construction);
    let (once, again) =
        if names_the_copy { (by_copy(&second), second) } else { (second.clone(), by_copy(&second)) };
    story.commit(&once, Some(50)).await.unwrap();
    story.commit(&once, Some(50)).await.unwrap();
    story.commit(&again, Some(50)).await.unwrap();
    let located = story.located("/file").await;
    assert_eq!((located.file_length, located.under_construction), (50, false));
    assert_eq!(
        (located.blocks[0].b.block_id, &located.blocks[0].storage_i_ds[0][..]),
        (copy.block_id, STORAGE)
    );
    let past = story.located("/.snapshot/s/file").await;
    assert_eq!((past.file_length, &past.blocks[0].b), (77, &old));
    assert_eq!(past.blocks[0].storage_i_ds, [STORAGE]);
    story.stop().await;
}
