//! Edits and the namespace's image, as a member reads them from its journal.

use crate::Target;
use base::{CallId, CallOrigin, ClientId, Epoch, Moment, Sn, Timestamp, TxId};
use namespace::{Edit, Namespace, NewEpoch};
use sim::{Dice, workload::Workload};

pub fn targets() -> [Target; 2] {
    [
        Target { name: "namespace_edit", samples: edits, check: check_edit },
        Target { name: "namespace_image", samples: images, check: check_image },
    ]
}

/// A small tree and the edits that made it.
fn grown() -> (Namespace, Vec<Vec<u8>>) {
    let mut ns = Namespace::new(1, "hdfs", "supergroup", Timestamp::from_ms(1));
    let new = NewEpoch { blocks: 1_000, keeps_skipped: true, holds_deletions: true, ..NewEpoch::default() };
    ns.start_epoch(TxId { epoch: Epoch(1), sn: Sn(1) }, new);
    let mut workload = Workload::new(Dice::new(3));
    let mut edits = Vec::new();
    for call in 1..200 {
        let origin = CallOrigin {
            client_id: ClientId([1; 16]),
            call_id: CallId(call),
            retry_count: 0,
            repeats: 0,
            address: None,
        };
        let now = Timestamp::from_ms(1_000 + call as u64);
        if let Some(planned) = workload.plan(&ns, origin, now, Moment::from_ms(call as u64)) {
            let mut bytes = Vec::new();
            planned.edit.encode(&mut bytes);
            ns.apply(TxId { epoch: Epoch(1), sn: Sn(edits.len() as u64 + 1) }, &planned.edit);
            edits.push(bytes);
        }
    }
    (ns, edits)
}

fn edits() -> Vec<Vec<u8>> {
    grown().1
}

/// An edit that was decoded encodes to the same bytes again.
fn check_edit(bytes: &[u8]) -> bool {
    let Ok(edit) = Edit::decode(bytes) else { return false };
    let mut again = Vec::new();
    edit.encode(&mut again);
    let twice = Edit::decode(&again).expect("an edit that was decoded can be decoded again");
    assert_eq!(edit, twice, "an edit means the same when it is written again");
    true
}

fn images() -> Vec<Vec<u8>> {
    let mut bytes = Vec::new();
    let written = grown().0.freeze().write(&mut |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    });
    written.expect("memory takes it");
    vec![bytes]
}

fn check_image(bytes: &[u8]) -> bool {
    let mut source = bytes;
    Namespace::read_image(7, &mut source, bytes.len() as u64).is_ok()
}
