//! A data server measures the packets that it sends to peers, and its disks' operations, while clients write and read blocks.

use super::cluster::{Server, block, located, read_range, some_bytes, write_block};
use crate::slowness::{DiskOp, SlownessConfig};

#[tokio::test(flavor = "multi_thread")]
async fn packets_to_the_last_server_are_measured_and_each_disks_work() {
    let measuring = || {
        Server::start_with(&["DISK"], |config| {
            config.slowness =
                SlownessConfig { measures_peers: true, disk_percent: 100, ..SlownessConfig::default() };
        })
    };
    let (a, b, c) = (measuring().await, measuring().await, measuring().await);
    let data = some_bytes(3_000_000);
    let closed = write_block(&located(block(1), &[&a, &b, &c]), &data).await;
    let packets = |server: &Server| server.state.slowness.packets_measured();
    // Packets have 64 KiB at most, and the last one is empty.
    assert_eq!((packets(&a), packets(&c)), (0, 0), "a server before the last may wait for others");
    assert!(packets(&b) >= 46, "{}", packets(&b));
    let on_disk = |op| c.state.slowness.operations_measured(op);
    assert_eq!((on_disk(DiskOp::Metadata), on_disk(DiskOp::Read)), (2, 0), "it was made and ended");
    assert!(on_disk(DiskOp::Write) >= 46, "{}", on_disk(DiskOp::Write));
    read_range(&located(closed, &[&c]), 0, 3_000_000).await.unwrap();
    assert_eq!((on_disk(DiskOp::Metadata), on_disk(DiskOp::Read)), (3, 46));
}
