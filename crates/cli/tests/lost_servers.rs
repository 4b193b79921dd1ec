//! The native client's writes while data servers, each a process of its own, are killed.

mod demo;
mod servers;

use client::{CreateOptions, FileSystem, FileWriter};
use servers::Servers;

const POLICY: &str = "dfs.client.block.write.replace-datanode-on-failure.policy";
const BEST_EFFORT: &str = "dfs.client.block.write.replace-datanode-on-failure.best-effort";

/// Bytes that say where in the file they are.
fn some_bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at / 251 + at % 251 * 7) as u8).collect()
}

async fn create(fs: &FileSystem, path: &str) -> FileWriter {
    fs.create(path, &CreateOptions::default()).await.unwrap()
}

async fn read(fs: &FileSystem, path: &str) -> Vec<u8> {
    fs.open(path).await.unwrap().read_at(0, usize::MAX).await.unwrap().to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flushed_file_stays_on_three_servers_while_one_after_the_other_dies() {
    let mut servers = Servers::start(6).await;
    let fs = servers.connect(&[]);
    let bytes = some_bytes(3_000_000);
    let mut writer = create(&fs, "/f").await;
    let mut end = 0;
    for victim in [Some(0), Some(2), Some(1), None] {
        let part = end + 700_001;
        writer.write(&bytes[end..part]).await.unwrap();
        writer.flush().await.unwrap();
        let holders = servers.holders(part as u64);
        assert_eq!(holders.len(), 3, "{holders:?} after {part} bytes");
        assert!(read(&fs, "/f").await[..part] == bytes[..part], "others see what was flushed");
        if let Some(victim) = victim {
            servers.kill(holders[victim]);
        }
        end = part;
    }
    writer.write(&bytes[end..]).await.unwrap();
    writer.close().await.unwrap();
    let holders = servers.holders(bytes.len() as u64);
    assert_eq!(holders.len(), 3, "{holders:?}");
    for holder in holders {
        let replica = servers.newest_replica(holder).unwrap();
        assert!(std::fs::read(replica).unwrap() == bytes, "the replica of server {holder}");
    }
    assert!(read(&fs, "/f").await == bytes);
}

/// Hadoop's settings: without another server the write fails, unless the client says that it may go on.
#[tokio::test(flavor = "multi_thread")]
async fn where_no_server_is_left_to_take_the_place_the_settings_decide() {
    let mut servers = Servers::start(4).await;
    let bytes = some_bytes(1_000_000);
    let (early, late) = bytes.split_at(300_000);
    for (path, setting, left) in [
        ("/never", Some((POLICY, "NEVER")), 2),
        ("/default", None, 0),
        ("/best-effort", Some((BEST_EFFORT, "true")), 1),
    ] {
        let properties: Vec<_> = setting.into_iter().collect();
        let fs = servers.connect(&properties);
        let mut writer = create(&fs, path).await;
        writer.write(early).await.unwrap();
        writer.flush().await.unwrap();
        let holders = servers.holders(early.len() as u64);
        let victim = holders[holders.len() / 2];
        servers.kill(victim);
        let written = async {
            writer.write(late).await?;
            writer.flush().await
        };
        match written.await {
            Ok(()) => {
                assert_eq!(servers.holders(bytes.len() as u64).len(), left, "{path}");
                writer.close().await.unwrap();
                assert!(read(&fs, path).await == bytes, "{path}");
            }
            Err(error) => {
                let text = error.to_string();
                assert_eq!(left, 0, "{path}: {text}");
                assert!(text.contains("Failed to replace a bad datanode on the existing pipeline"), "{text}");
                assert!(text.contains(POLICY), "{text}");
            }
        }
    }
}
