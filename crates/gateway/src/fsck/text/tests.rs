use super::*;
use crate::fsck::block::{Counts, Server};

const CLUSTER: Cluster = Cluster { racks: Some(1), min_replication: 1 };

fn known(number: u32, standing: Standing) -> Known {
    let server = Server {
        address: format!("10.0.0.{number}:9866"),
        rack: "/r".into(),
        storage: format!("DS-{number}"),
        storage_type: Some(base::StorageType::Disk),
        ..Server::default()
    };
    Known { server, standing, corrupt_reason: None, is_storage_stale: false, is_server_stale: false }
}

fn block(id: u64, replicas: &[Standing]) -> Block {
    let known: Vec<Known> = (1..).zip(replicas).map(|(number, standing)| known(number, *standing)).collect();
    let counts = crate::fsck::block::count(&known);
    let is_corrupt = counts.corrupt > 0 && counts.total() == 0;
    let told = known.iter().filter(|replica| is_corrupt || replica.standing != Standing::ReplicaCorrupt);
    Block {
        name: format!("BP-1:blk_{id}_1001"),
        pool: "BP-1".into(),
        id,
        bytes: 10,
        counts,
        servers: told.map(|replica| replica.server.clone()).collect(),
        is_corrupt,
        known: Some(known),
        ..Block::default()
    }
}

fn file(path: &str, wanted: usize, blocks: Vec<Block>) -> File {
    File {
        path: path.into(),
        bytes: 10 * blocks.len() as u64,
        wanted,
        is_open: false,
        listed_blocks: blocks.len() as u64,
        blocks,
        unfinished: None,
    }
}

fn said(show: Show, cluster: Cluster, file: &File) -> String {
    let mut text = Text::new(show, cluster);
    text.file(file);
    text.said
}

const LIVE: Standing = Standing::ReplicaLive;
const CORRUPT: Standing = Standing::ReplicaCorrupt;
const FILES: Show = Show {
    files: true,
    blocks: false,
    locations: false,
    racks: false,
    replica_details: false,
    upgrade_domains: false,
    storage_policies: false,
    maintenance: false,
    open_files: false,
};

#[test]
fn a_good_file_has_one_line_and_its_blocks_when_they_are_wanted() {
    let good = file("/f", 2, vec![block(7, &[LIVE, LIVE])]);
    assert_eq!(said(Show::default(), CLUSTER, &good), "");
    assert_eq!(said(FILES, CLUSTER, &good), "/f 10 bytes, replicated: replication=2, 1 block(s):  OK\n");
    let blocks = said(Show { blocks: true, ..FILES }, CLUSTER, &good);
    assert!(blocks.ends_with(" OK\n0. BP-1:blk_7_1001 len=10 Live_repl=2\n\n"), "{blocks}");
    let places = said(Show { blocks: true, locations: true, ..FILES }, CLUSTER, &good);
    let end = "Live_repl=2  [DatanodeInfoWithStorage[10.0.0.1:9866,DS-1,DISK], \
               DatanodeInfoWithStorage[10.0.0.2:9866,DS-2,DISK]]\n\n";
    assert!(places.ends_with(end), "{places}");
    let show = Show { blocks: true, racks: true, upgrade_domains: true, replica_details: true, ..FILES };
    let racks = said(show, CLUSTER, &good);
    let end = "[/r/10.0.0.1:9866(ud=undefined)(LIVE), /r/10.0.0.2:9866(ud=undefined)(LIVE)]\n\n";
    assert!(racks.ends_with(end), "{racks}");
}

#[test]
fn lost_blocks_are_told_with_their_bytes() {
    let lost = file("/f", 1, vec![block(7, &[]), block(8, &[CORRUPT]), block(9, &[LIVE])]);
    assert_eq!(
        said(Show::default(), CLUSTER, &lost),
        "\n/f: CORRUPT blockpool BP-1 block blk_8\n\n/f: MISSING 1 blocks of total size 10 B.\n/f: CORRUPT 1 \
         blocks of total size 10 B."
    );
    let told = said(Show { blocks: true, ..FILES }, CLUSTER, &lost);
    assert_eq!(
        told,
        "/f 30 bytes, replicated: replication=1, 3 block(s): \n/f: CORRUPT blockpool BP-1 block blk_8\n MISSING 1 \
         blocks of total size 10 B\n CORRUPT 1 blocks of total size 10 B\n0. BP-1:blk_7_1001 len=10 MISSING!\n1. \
         BP-1:blk_8_1001 len=10 Live_repl=0\n2. BP-1:blk_9_1001 len=10 Live_repl=1\n\n"
    );
}

#[test]
fn too_few_replicas_and_too_few_racks_are_told() {
    let few = file("/f", 3, vec![block(7, &[LIVE, Standing::ReplicaInMaintenance])]);
    let line = " Under replicated BP-1:blk_7_1001. Target Replicas is 3 but found 1 live replica(s), 0 \
                decommissioned replica(s), 0 decommissioning replica(s)";
    assert_eq!(said(Show::default(), CLUSTER, &few), format!("\n/f: {line}.\n"));
    let maintenance = said(Show { maintenance: true, ..Show::default() }, CLUSTER, &few);
    let end = "0, entering maintenance replica(s) and 1 in maintenance replica(s).\n";
    assert_eq!(maintenance, format!("\n/f: {line}{end}"));
    let crowded = file("/f", 2, vec![block(7, &[LIVE, LIVE])]);
    let line = " Replica placement policy is violated for BP-1:blk_7_1001. Block should be additionally replicated \
                on 1 more rack(s). Total number of racks in the cluster: 2\n";
    let two_racks = Cluster { racks: Some(2), ..CLUSTER };
    assert_eq!(said(Show::default(), two_racks, &crowded), format!("\n/f: {line}"));
}

#[test]
fn files_that_are_being_written_are_only_counted_unless_they_are_wanted() {
    let open =
        File { is_open: true, unfinished: Some(block(8, &[LIVE])), ..file("/f", 1, vec![block(7, &[LIVE])]) };
    assert_eq!(said(FILES, CLUSTER, &open), "");
    let told = said(Show { open_files: true, blocks: true, ..FILES }, CLUSTER, &open);
    assert_eq!(
        told,
        "/f 10 bytes, replicated: replication=1, 1 block(s), OPENFORWRITE:  OK\n0. BP-1:blk_7_1001 len=10 \
         Live_repl=1\n\nUnder Construction Block:\n1. BP-1:blk_8_1001 len=10 Expected_repl=1\n"
    );
}

#[test]
fn the_state_of_a_replica_is_its_server_s_before_its_own() {
    let mut replica = known(1, CORRUPT);
    assert_eq!(detail(&replica, false), "CORRUPT");
    replica.server.state = AdminState::Decommissioned;
    assert_eq!(detail(&replica, false), "DECOMMISSIONED");
    let resting = Known {
        server: Server { state: AdminState::InMaintenance, ..Server::default() },
        ..known(1, Standing::ReplicaInMaintenance)
    };
    assert_eq!((detail(&resting, true), detail(&resting, false)), ("IN MAINTENANCE", "LIVE"));
    let stale = Known { is_storage_stale: true, ..known(1, LIVE) };
    assert_eq!(detail(&stale, false), "STALE_BLOCK_CONTENT");
    assert_eq!(detail(&Known { is_server_stale: true, ..stale }, false), "STALE_NODE");
}

#[test]
fn progress_is_a_dot_for_a_hundred_files_and_a_line_for_a_thousand_things() {
    let mut text = Text::new(Show::default(), CLUSTER);
    for number in 0..1_000 {
        text.look();
        text.file(&file(&format!("/{number}"), 1, Vec::new()));
    }
    text.look();
    assert_eq!(text.said, format!("\n{}\n", ".".repeat(10)));
}

#[test]
fn the_sums_are_hadoops_line_by_line() {
    let mut text = Text::new(Show::default(), CLUSTER);
    text.directory("/");
    text.file(&file("/good", 2, vec![block(1, &[LIVE, LIVE])]));
    text.file(&file("/few", 2, vec![block(2, &[LIVE])]));
    text.file(&file("/lost", 2, vec![block(3, &[])]));
    text.file(&File { is_open: true, ..file("/open", 2, vec![block(4, &[LIVE])]) });
    text.said.clear();
    text.totals(3, 3);
    let lines: Vec<&str> = text.said.lines().collect();
    assert_eq!(
        lines[..29],
        [
            "",
            "Status: CORRUPT",
            " Number of data-nodes:\t3",
            " Number of racks:\t\t1",
            " Total dirs:\t\t\t1",
            " Total symlinks:\t\t0",
            "",
            "Replicated Blocks:",
            " Total size:\t30 B (Total open files size: 10 B)",
            " Total files:\t3 (Files currently being written: 1)",
            " Total blocks (validated):\t3 (avg. block size 10 B) (Total open file blocks (not validated): 1)",
            "  ********************************",
            "  UNDER MIN REPL'D BLOCKS:\t1 (33.333332 %)",
            "  MINIMAL BLOCK REPLICATION:\t1",
            "  CORRUPT FILES:\t1",
            "  MISSING BLOCKS:\t1",
            "  MISSING SIZE:\t\t10 B",
            "  ********************************",
            " Minimally replicated blocks:\t2 (66.666664 %)",
            " Over-replicated blocks:\t0 (0.0 %)",
            " Under-replicated blocks:\t1 (33.333332 %)",
            " Mis-replicated blocks:\t\t0 (0.0 %)",
            " Default replication factor:\t3",
            " Average block replication:\t1.0",
            " Missing blocks:\t\t1",
            " Corrupt blocks:\t\t0",
            " Missing replicas:\t\t1 (16.666666 %)",
            " Blocks queued for replication:\t0",
            "",
        ]
    );
    assert_eq!(lines[29], "Erasure Coded Block Groups:");
    assert_eq!(lines.len(), 42);
}

#[test]
fn an_empty_tree_has_no_shares() {
    let mut text = Text::new(Show::default(), CLUSTER);
    text.totals(0, 3);
    for line in
        [" Total blocks (validated):\t0\n", " Missing replicas:\t\t0\n", " Average block replication:\t0.0\n"]
    {
        assert!(text.said.contains(line), "{line}");
    }
    let counts = Counts { in_maintenance: 1, ..Counts::default() };
    let mut text = Text::new(Show::default(), CLUSTER);
    text.file(&file("/f", 1, vec![Block { counts, ..block(1, &[]) }]));
    text.said.clear();
    text.totals(1, 3);
    assert!(text.said.contains(" InMaintenanceReplicas:\t1\n"), "{}", text.said);
}
