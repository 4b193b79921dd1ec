//! This release reads everything that release 0.1.0 has written: the bytes were recorded from it by
//! `tests/upgrade/record`.

mod cluster;

use base::{GroupId, Level, MemberId, MemberStore};
use bytes::Bytes;
use cluster::Plan;
use metad::{
    foreign::{FatalRequests, decode_takeovers},
    peers::{
        Identity, Secret, frame,
        handshake::{self, HandshakeError, Terms},
        version::Versions,
    },
};
use proto::{hdfs as p, protocol};
use rpc::Client;
use std::{
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recorded/0.1.0").join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(recorded(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The superuser of the older program.
const SUPERUSER: &str = "root";

/// `drwxr-x---`, as a shell shows it; a `+` behind it where there is more.
fn rights(status: &p::HdfsFileStatusProto) -> String {
    let is_directory = status.file_type() == p::hdfs_file_status_proto::FileType::IsDir;
    let mut text = String::from(if is_directory { "d" } else { "-" });
    for at in (0..9).rev() {
        text.push(if status.permission.perm >> at & 1 == 1 { ['x', 'w', 'r'][at % 3] } else { '-' });
    }
    // Hadoop's flag for an access list.
    if status.flags() & 1 == 1 {
        text.push('+');
    }
    text
}

/// The lines of `lone.tsv`, from what the server says now.
async fn tree(client: &Client) -> Vec<String> {
    let (mut found, mut waiting) = (Vec::new(), vec!["/".to_owned()]);
    while let Some(directory) = waiting.pop() {
        let request = p::GetListingRequestProto {
            src: directory.clone(),
            start_after: Bytes::new(),
            need_location: false,
        };
        let response: p::GetListingResponseProto = client.call("getListing", &request).await.unwrap();
        for status in response.dir_list.expect("it is there").partial_listing {
            let name = String::from_utf8(status.path.to_vec()).unwrap();
            let path = format!("{}/{name}", directory.trim_end_matches('/'));
            found.push(format!("{path}\t{}\t{}\t{}", rights(&status), status.owner, status.length));
            if status.file_type() == p::hdfs_file_status_proto::FileType::IsDir {
                waiting.push(path);
            }
        }
    }
    found.sort();
    found
}

fn expected() -> Vec<String> {
    let text = String::from_utf8(bytes("lone.tsv")).unwrap();
    let mut lines: Vec<String> =
        text.lines().map(|line| line.rsplit_once('\t').expect("a seed").0.to_owned()).collect();
    lines.sort();
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_the_older_release_is_taken_over_with_all_that_it_holds() {
    let plan = Plan::alone().found_at(&recorded("meta"));
    let mut cluster =
        plan.adjusted(|_, config| config.limits.access.superuser = SUPERUSER.into()).start().await;
    let client = cluster.client_as(1, protocol::CLIENT_NAMENODE, SUPERUSER);
    assert_eq!(tree(&client).await, expected());
    // The image has some of it, the log behind it the rest.
    let snapshot = p::GetListingRequestProto {
        src: "/kept/.snapshot/then".into(),
        start_after: Bytes::new(),
        need_location: false,
    };
    let listing: p::GetListingResponseProto = client.call("getListing", &snapshot).await.unwrap();
    let names = listing.dir_list.unwrap().partial_listing.into_iter().map(|status| status.path);
    assert_eq!(names.collect::<Vec<_>>(), [&b"deep"[..], b"small"], "the snapshot shows it as it was");
    let attributes = p::GetXAttrsRequestProto { src: "/kept/moved".into(), x_attrs: Vec::new() };
    let attributes: p::GetXAttrsResponseProto = client.call("getXAttrs", &attributes).await.unwrap();
    let colour = &attributes.x_attrs[0];
    assert_eq!((colour.name.as_str(), colour.value()), ("colour", &b"green"[..]));
    let quota = p::GetContentSummaryRequestProto { path: "/shared".into() };
    let quota: p::GetContentSummaryResponseProto = client.call("getContentSummary", &quota).await.unwrap();
    assert_eq!(quota.summary.quota, 1_000);

    // Nothing newer is written there: the older release could go on.
    assert_eq!(cluster.replica(1).journal().state().level, Level::FIRST);
    let status: p::UpgradeStatusResponseProto =
        client.call("upgradeStatus", &p::UpgradeStatusRequestProto {}).await.unwrap();
    assert!(!status.upgrade_finalized);
    cluster.stop(1).await;
    for name in ["member.0", "member.1"] {
        let state = std::fs::read(cluster.store(1).join(name)).unwrap();
        assert_eq!(state[12], 3, "{name} has the version of the older release");
    }
    let coordinator =
        std::fs::read_to_string(cluster.name_directory(1).join("coordinator/coordinator.json")).unwrap();
    assert!(coordinator.starts_with("{\"format\":2,"), "{coordinator}");
    cluster.restart(1).await;
    let client = cluster.client_as(1, protocol::CLIENT_NAMENODE, SUPERUSER);
    assert_eq!(tree(&client).await, expected());
    cluster.stop(1).await;
}

/// One end of a connection of which only these words are left.
struct Said<'a>(&'a [u8]);

impl Read for Said<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Said<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(&mut bytes, body).unwrap();
    bytes
}

fn identity(member: u32) -> Identity {
    let cluster = String::from_utf8(bytes("zookeeper/cluster")).unwrap();
    let id = cluster.lines().find_map(|line| line.strip_prefix("clusterID=")).unwrap();
    let store = MemberStore { member: MemberId(member), generation: 0 };
    Identity { cluster_id: id.to_owned(), group: GroupId(1), store, boot: 1 }
}

fn terms(level: Level) -> Terms {
    Terms { versions: Versions::OURS, level }
}

/// The older member's messages are understood if only the end of the recording stops the handshake.
fn is_understood(result: Result<(), HandshakeError>) -> Result<(), String> {
    match result {
        Err(HandshakeError::Frame(_)) => Ok(()),
        Err(error) => Err(error.to_string()),
        Ok(()) => unreachable!("there is no proof in the recording"),
    }
}

#[test]
fn the_first_words_of_an_older_member_are_understood_until_the_level_is_raised() {
    let secret = Secret::new(b"a secret that nobody asks for").unwrap();
    let hear = |level| {
        let hello = framed(&bytes("peers/hello"));
        is_understood(
            handshake::accept(&mut Said(&hello), &identity(2), &secret, terms(level), [1; 32]).map(drop),
        )
    };
    let ask = |level| {
        let challenge = framed(&bytes("peers/challenge"));
        let stream = &mut Said(&challenge);
        is_understood(
            handshake::connect(stream, &identity(2), &secret, terms(level), MemberId(1), [1; 32]).map(drop),
        )
    };
    assert_eq!((hear(Level::FIRST), ask(Level::FIRST)), (Ok(()), Ok(())));
    for (who, refusal) in
        [("member 3", hear(Level(2)).unwrap_err()), ("member 1", ask(Level(2)).unwrap_err())]
    {
        assert!(refusal.contains(&format!("{who} runs a release before 0.2.0")), "{refusal}");
    }
}

#[test]
fn what_members_keep_beside_their_stores_reads_as_it_was() {
    let takeovers = decode_takeovers(&bytes("takeovers")).unwrap();
    let last = takeovers.last().expect("one was recorded");
    assert!(last.epoch >= 2 && last.trigger == "process gone", "{last:?}");
    let (notes, unread) = FatalRequests::decode(&bytes("fatal-requests")).unwrap();
    assert_eq!((notes.encode().as_bytes(), unread), (&bytes("fatal-requests")[..], 0));
}
