//! The records that a coordinator keeps, in any state in which they may be found: values of ZooKeeper's nodes, and the
//! file of the embedded coordinator.

use crate::Target;
use base::MemberId;
use coord::{
    conformance,
    file::{self, Kept},
    zookeeper::nodes,
};

pub fn targets() -> [Target; 3] {
    [
        Target { name: "coordinator_view", samples: views, check: check_view },
        Target { name: "coordinator_member", samples: members, check: check_member },
        Target { name: "coordinator_file", samples: files, check: check_file },
    ]
}

fn views() -> Vec<Vec<u8>> {
    let view = conformance::sample();
    let calm = base::GroupView::new(&view.in_sync, 2);
    [view, calm].iter().map(|view| nodes::encode_view(view).expect("a sample may stand")).collect()
}

/// A view that was read can be written, and reads the same again.
fn check_view(bytes: &[u8]) -> bool {
    let Ok(view) = nodes::decode_view(bytes) else { return false };
    let again = nodes::encode_view(&view).expect("what was read may be written");
    assert_eq!(nodes::decode_view(&again), Ok(view));
    true
}

fn members() -> Vec<Vec<u8>> {
    vec![nodes::encode_member(&conformance::record(2, 1, 7))]
}

fn check_member(bytes: &[u8]) -> bool {
    let Ok(record) = nodes::decode_member(bytes, MemberId(2)) else { return false };
    assert_eq!(nodes::decode_member(&nodes::encode_member(&record), MemberId(2)), Ok(record));
    true
}

fn files() -> Vec<Vec<u8>> {
    let mut kept = Kept::default();
    let view = conformance::sample();
    kept.views.insert(base::GroupId(1), coord::Versioned { version: coord::Version(3), view });
    let record = conformance::record(2, 1, 7);
    kept.members.insert((base::GroupId(1), MemberId(2)), record);
    kept.cluster = Some("a cluster".into());
    vec![file::encode(&Kept::default()), file::encode(&kept)]
}

fn check_file(bytes: &[u8]) -> bool {
    let Ok(kept) = file::decode(bytes) else { return false };
    assert_eq!(file::decode(&file::encode(&kept)).expect("what was read may be written"), kept);
    true
}
