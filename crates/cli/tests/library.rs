//! The client library against a whole cluster: what the shell has no words for.

mod demo;

use client::{Config, CreateOptions, FileSystem};
use demo::Demo;

fn connect(demo: &Demo) -> FileSystem {
    let mut config = Config::new();
    config.set("dfs.blocksize", "1m");
    FileSystem::connect(&demo.uri(), &config).unwrap()
}

/// Letters that say where in the file they are.
fn letters(count: usize) -> Vec<u8> {
    (0..count).map(|at| b'a' + ((at / 7 + at / 1_000) % 26) as u8).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_flushed_is_read_while_the_file_is_still_open() {
    let demo = Demo::start();
    let (writing, reading) = (connect(&demo), connect(&demo));
    let bytes = letters(1_500_000);
    let mut writer = writing.create("/open", &CreateOptions::default()).await.unwrap();
    let mut end = 0;
    for part in [1, 700, 100_000, 1_000_000, 1_200_000] {
        writer.write(&bytes[end..part]).await.unwrap();
        end = part;
        match part % 2 {
            0 => writer.flush().await.unwrap(),
            _ => writer.hsync().await.unwrap(),
        }
        let mut reader = reading.open("/open").await.unwrap();
        assert!(reader.length() >= end as u64, "{} of {end} bytes are seen", reader.length());
        assert!(reader.read_at(0, end).await.unwrap() == bytes[..end], "the first {end} bytes");
    }
    writer.write(&bytes[end..]).await.unwrap();
    writer.close().await.unwrap();
    let status = reading.status("/open").await.unwrap();
    assert_eq!((status.length, status.block_size), (bytes.len() as u64, 1 << 20));
    assert!(reading.open("/open").await.unwrap().read_at(0, usize::MAX).await.unwrap() == bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_at_any_place_cross_blocks_and_end_at_the_end() {
    let demo = Demo::start();
    let fs = connect(&demo);
    let bytes = letters(3_300_000);
    let mut writer = fs.create("/f", &CreateOptions::default()).await.unwrap();
    for part in bytes.chunks(77_777) {
        writer.write(part).await.unwrap();
    }
    assert_eq!(writer.written(), bytes.len() as u64);
    writer.close().await.unwrap();

    let mut reader = fs.open("/f").await.unwrap();
    for (position, count) in
        [(0, 1), (1_048_575, 2), (1_048_576, 10), (500_000, 2_000_000), (3_299_999, 50), (3_300_000, 1)]
    {
        let expected = &bytes[position..bytes.len().min(position + count)];
        assert!(reader.read_at(position as u64, count).await.unwrap() == expected, "{position} {count}");
    }
    reader.seek(2_097_150).unwrap();
    assert_eq!(reader.read(3).await.unwrap().unwrap(), &bytes[2_097_150..2_097_152], "up to the block's end");
    reader.seek(2_097_151).unwrap();
    assert_eq!(reader.read(1).await.unwrap().unwrap(), &bytes[2_097_151..2_097_152]);
    assert!(reader.seek(3_300_001).is_err());
    assert_eq!(reader.position(), 2_097_152);
}

#[tokio::test(flavor = "multi_thread")]
async fn finished_files_are_written_on_cut_and_joined() {
    let demo = Demo::start();
    let (fs, other) = (connect(&demo), connect(&demo));
    let bytes = letters(2_500_000);
    let mut end = 0;
    fs.create("/f", &CreateOptions::default()).await.unwrap().close().await.unwrap();
    // Into a chunk, to a chunk's end, in a block of its own and over its end, and twice behind what is there.
    for part in [700, 1024, 1_100_000, 2_097_152, 2_200_000] {
        let mut writer = fs.append("/f", part == 1_100_000).await.unwrap();
        assert!(other.append("/f", false).await.is_err(), "one writer at a time");
        writer.write(&bytes[end..part]).await.unwrap();
        writer.hsync_with_length().await.unwrap();
        assert_eq!(other.status("/f").await.unwrap().length, part as u64);
        writer.close().await.unwrap();
        end = part;
        assert!(
            other.open("/f").await.unwrap().read_at(0, usize::MAX).await.unwrap() == bytes[..end],
            "{end}"
        );
    }
    for (length, is_border) in [(1024, true), (1000, false)] {
        assert_eq!(fs.truncate("/f", length).await.unwrap(), is_border);
        while !other.is_closed("/f").await.unwrap() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        assert_eq!(other.status("/f").await.unwrap().length, length);
    }
    for (name, from, to) in [("/g", 1000, 1500), ("/h", 1500, 2000)] {
        let mut writer = fs.create(name, &CreateOptions::default()).await.unwrap();
        writer.write(&bytes[from..to]).await.unwrap();
        writer.close().await.unwrap();
    }
    fs.concat("/f", &["/g".into(), "/h".into()]).await.unwrap();
    assert!(!fs.exists("/g").await.unwrap());
    assert!(other.open("/f").await.unwrap().read_at(0, usize::MAX).await.unwrap() == bytes[..2000]);
}

/// Its files have no more copies than there are servers, so nothing waits for one that will never come.
#[tokio::test(flavor = "multi_thread")]
async fn a_small_demo_is_appended_to() {
    let demo = Demo::of_data_servers(1);
    let fs = connect(&demo);
    let mut writer = fs.create("/f", &CreateOptions::default()).await.unwrap();
    writer.write(b"once").await.unwrap();
    writer.close().await.unwrap();
    assert_eq!(fs.status("/f").await.unwrap().replication, 1);
    let mut writer = fs.append("/f", false).await.unwrap();
    writer.write(b" more").await.unwrap();
    writer.close().await.unwrap();
    assert_eq!(fs.open("/f").await.unwrap().read_at(0, usize::MAX).await.unwrap(), "once more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_has_one_writer_and_a_lost_one_is_told() {
    let demo = Demo::start();
    let (first, second) = (connect(&demo), connect(&demo));
    let mut writer = first.create("/f", &CreateOptions::default()).await.unwrap();
    writer.write(b"mine").await.unwrap();
    let refused = second.create("/f", &CreateOptions::default()).await.err().expect("it is there");
    assert!(refused.to_string().contains("/f"), "{refused}");
    assert!(second.delete("/f", false).await.unwrap());
    let refused = writer.close().await.unwrap_err();
    assert!(refused.to_string().contains("/f"), "{refused}");
    assert!(!second.exists("/f").await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_several_pages_is_listed_whole() {
    let demo = Demo::start();
    let fs = connect(&demo);
    let names: Vec<String> = (0..2_500).map(|number| format!("/d/n{number:05}")).collect();
    let mut running = tokio::task::JoinSet::new();
    for part in names.chunks(500) {
        let (fs, part) = (fs.clone(), part.to_vec());
        running.spawn(async move {
            for name in part {
                fs.mkdirs(&name).await.unwrap();
            }
        });
    }
    running.join_all().await;
    let listed: Vec<String> =
        fs.list("/d").collect().await.unwrap().into_iter().map(|entry| entry.path).collect();
    assert_eq!(listed, names);
    assert_eq!(fs.content_summary("/d").await.unwrap().directories, 2_501);
}
