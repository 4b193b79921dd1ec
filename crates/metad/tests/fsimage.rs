//! `/imagetransfer` gives out the namespace as a NameNode's image. That stock programs read it is shown by `make fsimage`.

mod cluster;

use cluster::{Cluster, Plan, two::ELEVENTH, two::SECOND, until};
use prost::Message;
use proto::{
    fsimage::{LAYOUT_VERSION, MAGIC},
    hdfs::{
        self as p,
        fsimage::{
            FileSummary, INodeSection, NameSystemSection, SnapshotSection, StringTableSection, file_summary,
            i_node_directory_section::DirEntry, i_node_section::INode, snapshot_section::Snapshot,
            string_table_section,
        },
    },
};
use std::{collections::BTreeMap, net::SocketAddr};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The head in small letters, and the bytes.
async fn fetch(address: SocketAddr, query: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /imagetransfer?{query} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let body = answer.split_off(end);
    (String::from_utf8(answer).unwrap().to_ascii_lowercase(), body)
}

fn header<'a>(head: &'a str, name: &str) -> &'a str {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap_or_default()
}

/// The bytes of each section.
fn sections(image: &[u8]) -> BTreeMap<String, &[u8]> {
    assert_eq!(&image[..MAGIC.len()], MAGIC);
    let (rest, length) = image.split_last_chunk::<4>().unwrap();
    let mut summary = &rest[rest.len() - u32::from_be_bytes(*length) as usize..];
    let summary = FileSummary::decode_length_delimited(&mut summary).unwrap();
    assert_eq!(summary.layout_version as i32, LAYOUT_VERSION);
    let place = |section: file_summary::Section| {
        let (from, length) = (section.offset.unwrap() as usize, section.length.unwrap() as usize);
        (section.name.unwrap(), &image[from..from + length])
    };
    summary.sections.into_iter().map(place).collect()
}

/// The first message of a section, and those after it.
fn rows<H: Message + Default, M: Message + Default>(mut section: &[u8]) -> (H, Vec<M>) {
    let head = H::decode_length_delimited(&mut section).unwrap();
    (head, all(section))
}

fn all<M: Message + Default>(mut section: &[u8]) -> Vec<M> {
    let mut messages = Vec::new();
    while !section.is_empty() {
        messages.push(M::decode_length_delimited(&mut section).unwrap());
    }
    messages
}

fn with_pages(plan: Plan) -> Plan {
    plan.adjusted(|_, config| config.http_address = Some("127.0.0.1:0".parse().unwrap()))
}

fn pages(cluster: &Cluster, member: u32) -> SocketAddr {
    cluster.server(member).http_address().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_image_has_what_the_namespace_has() {
    let (cluster, _) = with_pages(Plan::group(1)).in_sync().await;
    for path in ["/a/b", "/c & <d>"] {
        cluster.mkdirs(1, path).await;
    }
    let client = cluster.client(1);
    let allow = p::AllowSnapshotRequestProto { snapshot_root: "/a".into() };
    let _: p::AllowSnapshotResponseProto = client.call("allowSnapshot", &allow).await.unwrap();
    let take = p::CreateSnapshotRequestProto { snapshot_root: "/a".into(), snapshot_name: Some("s".into()) };
    let _: p::CreateSnapshotResponseProto = client.call("createSnapshot", &take).await.unwrap();

    let (head, image) = fetch(pages(&cluster, 1), "getimage=1&txid=latest").await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert_eq!(header(&head, "content-length"), image.len().to_string());
    let name = header(&head, "x-image-edits-name");
    let found = sections(&image);

    let (system, _) = rows::<NameSystemSection, StringTableSection>(found["NS_INFO"]);
    assert_eq!(name, format!("fsimage_{:019}", system.transaction_id.unwrap()));
    let (table, texts) = rows::<StringTableSection, string_table_section::Entry>(found["STRING_TABLE"]);
    assert_eq!(table.num_entry, Some(texts.len() as u32));
    let (count, inodes) = rows::<INodeSection, INode>(found["INODE"]);
    assert_eq!(count.num_inodes, Some(4));
    let names: BTreeMap<u64, &[u8]> =
        inodes.iter().map(|inode| (inode.id, inode.name.as_deref().unwrap())).collect();
    assert_eq!(names.values().copied().collect::<Vec<_>>(), [&b""[..], b"a", b"b", b"c & <d>"]);
    let text_of = |number: u64| texts.iter().find(|text| text.id == Some(number as u32)).unwrap().str();
    for inode in &inodes {
        let permission = inode.directory.as_ref().unwrap().permission.unwrap();
        assert!(!text_of(permission >> 40).is_empty() && !text_of(permission >> 16 & 0xff_ffff).is_empty());
        assert_eq!(permission & 0xffff, 0o755);
    }
    let children: Vec<(&[u8], Vec<&[u8]>)> = all::<DirEntry>(found["INODE_DIR"])
        .iter()
        .map(|entry| {
            let children = entry.children.iter().map(|child| names[child]).collect();
            (names[&entry.parent.unwrap()], children)
        })
        .collect();
    assert_eq!(children, [(&b""[..], vec![&b"a"[..], b"c & <d>"]), (b"a", vec![b"b"])]);
    let (snapshots, taken) = rows::<SnapshotSection, Snapshot>(found["SNAPSHOT"]);
    assert_eq!((snapshots.num_snapshots, snapshots.snapshot_counter), (Some(1), Some(1)));
    assert_eq!((taken[0].snapshot_id, taken[0].root.as_ref().unwrap().name()), (Some(0), &b"s"[..]));

    // There is no image of any other number than that of now.
    let number = system.transaction_id.unwrap();
    let (head, text) = fetch(pages(&cluster, 1), &format!("getimage=1&txid={}", number + 100_000)).await;
    let text = String::from_utf8(text).unwrap();
    assert!(head.starts_with("http/1.1 410") && text.contains("Could not find image with txid"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_gives_out_what_has_committed() {
    let (cluster, active) = with_pages(Plan::group(2)).in_sync().await;
    cluster.mkdirs(active, "/a").await;
    let standby = 3 - active;
    until("the standby's image has the directory", async || {
        let (head, image) = fetch(pages(&cluster, standby), "getimage=1&txid=latest").await;
        // It may begin to lead meanwhile.
        let is_made = head.starts_with("http/1.1 200");
        is_made && rows::<INodeSection, INode>(sections(&image)["INODE"]).0.num_inodes == Some(2)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_several_groups_says_that_it_has_a_part_only() {
    let (first, active) = with_pages(Plan::group(1)).in_sync().await;
    let further = with_pages(Plan::further_group(&first, SECOND, ELEVENTH, 1).await);
    let (second, _) = further.in_sync().await;
    first.give_slots(active, SECOND).await;
    for (cluster, member) in [(&first, active), (&second, ELEVENTH)] {
        until("it refuses", async || {
            let (head, text) = fetch(pages(cluster, member), "getimage=1&txid=latest").await;
            let text = String::from_utf8_lossy(&text).into_owned();
            head.starts_with("http/1.1 410") && text.contains("held by several groups")
        })
        .await;
    }
}
