//! The manifest of a backup.

use crate::Target;
use base::{Chain, Epoch, GroupId, LogPoint, Sn, TxId};
use journal::{
    Checkpoint,
    archive::{Manifest, Span, Whose},
};

pub fn targets() -> [Target; 2] {
    [
        Target {
            name: "backup_manifest",
            samples: manifests,
            check: |bytes| Manifest::decode(bytes).is_ok(),
        },
        Target { name: "backup_manifest_resealed", samples: manifests, check: check_resealed },
    ]
}

fn point(epoch: u64, sn: u64) -> LogPoint {
    LogPoint { id: TxId { epoch: Epoch(epoch), sn: Sn(sn) }, chain: Chain(sn * 77) }
}

fn manifests() -> Vec<Vec<u8>> {
    let whose = Whose {
        cluster_id: "CID-1".into(),
        namespace_id: 7,
        block_pool: "BP-1-127.0.0.1-1".into(),
        created_ms: 1,
        root_owner: "hdfs".into(),
        root_group: "supergroup".into(),
        first_level: base::Level::NEWEST,
        group: GroupId(1),
    };
    let image = Checkpoint { at: point(2, 40), file_bytes: 200, sha256: [9; 32] };
    let first = Span { end: point(1, 20), end_ms: Some(5), ..Span::new(LogPoint::default(), None, Some(1)) };
    let second = Span { end: point(3, 60), complete_ms: Some(9), ..Span::new(image.at, Some(image), None) };
    [vec![], vec![first.clone()], vec![first, second]]
        .into_iter()
        .map(|spans| Manifest { whose: whose.clone(), epoch: Epoch(3), spans }.encode(4).into_bytes())
        .collect()
}

/// With a checksum that is right, so that what is behind it is reached. What is read can be written, and read again.
fn check_resealed(bytes: &[u8]) -> bool {
    let body = String::from_utf8_lossy(bytes);
    let body = body.rsplit_once("crc32c").map_or(&*body, |(body, _)| body);
    let sealed = format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()));
    let Ok((manifest, writes)) = Manifest::decode(sealed.as_bytes()) else { return false };
    let again = Manifest::decode(manifest.encode(writes).as_bytes());
    assert_eq!(again, Ok((manifest, writes)));
    true
}
