//! A pipeline that has lost a server gets another one, which has everything that was acknowledged before.

use super::cluster::{Keeper, Server, block, located, options, read_range, servers, some_bytes, write_block};
use client::block::{BlockOptions, BlockWriter, Replacement, ReplacementPolicy, WriteError};
use proto::hdfs::ExtendedBlockProto;
use std::sync::Arc;

fn three_copies(replacement: Replacement) -> BlockOptions {
    BlockOptions { replication: 3, replacement, ..options() }
}

fn keeper(spare: &[&Server]) -> Arc<Keeper> {
    let keeper = Keeper::default();
    *keeper.spare.lock() = spare.iter().map(|server| server.info()).collect();
    Arc::new(keeper)
}

async fn has_all(server: &Server, closed: &ExtendedBlockProto, data: &[u8]) {
    let (path, bytes) = server.file(closed.block_id).expect("it has a replica");
    assert!(bytes == data, "{} bytes", bytes.len());
    assert!(path.to_str().unwrap().contains("finalized"), "{}", path.display());
    assert!(read_range(&located(closed.clone(), &[server]), 0, data.len() as u64).await.unwrap() == data);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_server_of_a_flushed_block_is_replaced() {
    for victim in 0..3 {
        let servers = servers::<4>().await;
        let [a, b, c, spare] = &servers;
        let data = some_bytes(2_000_000);
        let keeper = keeper(&[a, b, c, spare]);
        let options = three_copies(Replacement::default());
        let at = located(block(1), &[a, b, c]);
        let mut writer = BlockWriter::create(&at, &options, Some(keeper.clone())).await.unwrap();
        writer.write(&data[..700_300]).await.unwrap();
        writer.flush().await.unwrap();
        servers[victim].kill().await;
        writer.write(&data[700_300..]).await.unwrap();
        let closed = writer.close().await.unwrap();
        assert_eq!((closed.generation_stamp, closed.num_bytes()), (2001, data.len() as u64));
        let updates = keeper.updates.lock().clone();
        assert_eq!(updates.len(), 1);
        assert_eq!(updates[0].1.len(), 3);
        assert_eq!(*keeper.lost.lock(), [servers[victim].info()]);
        for (_, server) in servers.iter().enumerate().filter(|(index, _)| *index != victim) {
            has_all(server, &closed, &data).await;
        }
    }
}

/// Two of three are left: nobody counts on the block, and it is copied once it is complete.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_three_that_nobody_counts_on_is_not_replaced_and_the_next_one_is() {
    let [a, b, c, spare] = servers().await;
    let data = some_bytes(1_500_000);
    let keeper = keeper(&[&spare]);
    let options = three_copies(Replacement::default());
    let at = located(block(1), &[&a, &b, &c]);
    let mut writer = BlockWriter::create(&at, &options, Some(keeper.clone())).await.unwrap();
    for (piece, victim) in data.chunks(500_000).zip([Some(&c), Some(&a), None]) {
        writer.write(piece).await.unwrap();
        if let Some(victim) = victim {
            victim.kill().await;
        }
    }
    let closed = writer.close().await.unwrap();
    let counts: Vec<usize> = keeper.updates.lock().iter().map(|(_, nodes)| nodes.len()).collect();
    assert_eq!(counts.last(), Some(&2), "{counts:?}");
    assert!(keeper.updates.lock().last().unwrap().1.contains(&spare.info()));
    for server in [&b, &spare] {
        has_all(server, &closed, &data).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_that_is_dead_as_well_gives_way_to_the_next() {
    let [a, b, c, dead, spare] = servers().await;
    let data = some_bytes(600_000);
    let keeper = keeper(&[&dead, &spare]);
    dead.kill().await;
    let options = three_copies(Replacement::default());
    let at = located(block(1), &[&a, &b, &c]);
    let mut writer = BlockWriter::create(&at, &options, Some(keeper.clone())).await.unwrap();
    writer.write(&data[..100_100]).await.unwrap();
    writer.flush().await.unwrap();
    b.kill().await;
    writer.write(&data[100_100..]).await.unwrap();
    let closed = writer.close().await.unwrap();
    for server in [&a, &c, &spare] {
        has_all(server, &closed, &data).await;
    }
}

/// A server fails when nothing has been acknowledged yet, or everything but the end of the block.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_lost_at_either_end_of_a_block_is_replaced() {
    for written in [0, 1, 700, 64 * 1024] {
        let [a, b, c, spare] = servers().await;
        let data = some_bytes(written + 300);
        let keeper = keeper(&[&spare]);
        let policy = ReplacementPolicy::Always;
        let options = three_copies(Replacement { policy, ..Replacement::default() });
        let at = located(block(1), &[&a, &b, &c]);
        let mut writer = BlockWriter::create(&at, &options, Some(keeper.clone())).await.unwrap();
        if written > 0 {
            writer.write(&data[..written]).await.unwrap();
            writer.flush().await.unwrap();
        }
        c.kill().await;
        let is_at_the_end = written == 700;
        let expected = if is_at_the_end { &data[..written] } else { &data[..] };
        if !is_at_the_end {
            writer.write(&data[written..]).await.unwrap();
        }
        let closed = writer.close().await.unwrap();
        for server in [&a, &b, &spare] {
            has_all(server, &closed, expected).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_gets_the_servers_that_the_last_block_lacks() {
    let [a, b, dead, spare] = servers().await;
    let data = some_bytes(300_000);
    let keeper = keeper(&[&spare]);
    let written = write_block(&located(block(1), &[&a, &b, &dead]), &data[..700]).await;
    dead.kill().await;
    let options = BlockOptions { is_promised: true, ..three_copies(Replacement::default()) };
    // The metadata service still names the dead server, and that server's replica was given up.
    let at = located(written, &[&dead, &a, &b]);
    let mut writer = BlockWriter::append(&at, &options, keeper.clone()).await.unwrap();
    writer.write(&data[700..]).await.unwrap();
    let closed = writer.close().await.unwrap();
    for server in [&a, &b, &spare] {
        has_all(server, &closed, &data).await;
    }

    let written = write_block(&located(block(2), &[&a, &b]), &data[..512]).await;
    let mut writer = BlockWriter::append(&located(written, &[&a, &b]), &options, keeper).await.unwrap();
    writer.write(&data[512..]).await.unwrap();
    let closed = writer.close().await.unwrap();
    for server in [&a, &b, &spare] {
        has_all(server, &closed, &data).await;
    }
}

async fn a_write_that_finds_no_replacement(
    replacement: Replacement,
) -> Result<ExtendedBlockProto, WriteError> {
    let [a, b, c] = servers().await;
    let data = some_bytes(200_000);
    let options = three_copies(replacement);
    let at = located(block(1), &[&a, &b, &c]);
    let mut writer = BlockWriter::create(&at, &options, Some(keeper(&[]))).await.unwrap();
    writer.write(&data[..100_000]).await.unwrap();
    writer.flush().await.unwrap();
    b.kill().await;
    writer.write(&data[100_000..]).await?;
    let closed = writer.close().await?;
    for server in [&a, &c] {
        has_all(server, &closed, &data).await;
    }
    Ok(closed)
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_other_server_is_the_settings_say_whether_the_write_ends() {
    let by_default = Replacement::default();
    let error = a_write_that_finds_no_replacement(by_default).await.unwrap_err();
    assert!(matches!(error, WriteError::Broken { acknowledged: 100_000, .. }), "{error}");
    let text = error.to_string();
    let words = "Failed to replace a bad datanode on the existing pipeline due to no more good datanodes being \
                 available to try. (Nodes: current=[DatanodeInfoWithStorage[127.0.0.1:";
    assert!(text.contains(words), "{text}");
    assert!(text.contains("The current failed datanode replacement policy is DEFAULT, "), "{text}");

    let best_effort = Replacement { is_best_effort: true, ..by_default };
    a_write_that_finds_no_replacement(best_effort).await.unwrap();
    let never = Replacement { policy: ReplacementPolicy::Never, ..by_default };
    a_write_that_finds_no_replacement(never).await.unwrap();
    a_write_that_finds_no_replacement(Replacement { servers_min: 2, ..by_default }).await.unwrap();
    a_write_that_finds_no_replacement(Replacement { servers_min: 3, ..by_default }).await.unwrap_err();
}
