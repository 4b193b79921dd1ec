use super::*;

fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn packed(rows: &[[i64; 4]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for [id, length, stamp, state] in rows {
        put_varint((id << 1 ^ id >> 63) as u64, &mut bytes);
        for number in [length, stamp, state] {
            put_varint(*number as u64, &mut bytes);
        }
    }
    bytes
}

fn report(bytes: &[u8], cut: usize, claimed: u64) -> StorageBlockReportProto {
    StorageBlockReportProto {
        number_of_blocks: Some(claimed),
        blocks_buffers: bytes.chunks(cut).map(Bytes::copy_from_slice).collect(),
        ..StorageBlockReportProto::default()
    }
}

fn read_all(report: StorageBlockReportProto) -> (Result<(), ListError>, Vec<ReportedReplica>, u64) {
    let mut list = BlockList::of(report);
    let mut rows = Vec::new();
    loop {
        let before = (rows.len(), list.dropped());
        if let Err(error) = list.read(2, &mut rows) {
            return (Err(error), rows, list.dropped());
        }
        if before == (rows.len(), list.dropped()) {
            return (Ok(()), rows, list.dropped());
        }
    }
}

fn replica_of(id: u64, length: u64, stamp: u64, state: ReplicaState) -> ReportedReplica {
    let block = Block { id: BlockId(id), generation_stamp: GenerationStamp(stamp), length };
    ReportedReplica { block, state }
}

#[test]
fn buffers_are_cut_anywhere() {
    let rows = [[1_073_741_825, 134_217_728, 1001, 0], [1_073_741_826, 1, 1002, 1], [i64::MAX, 0, 7, 2]];
    let bytes = packed(&rows);
    for cut in 1..=bytes.len() {
        let (result, read, dropped) = read_all(report(&bytes, cut, 3));
        assert_eq!((result, dropped), (Ok(()), 0));
        assert_eq!(read[0], replica_of(1_073_741_825, 134_217_728, 1001, ReplicaState::Finalized));
        assert_eq!(read[1], replica_of(1_073_741_826, 1, 1002, ReplicaState::BeingWritten));
        assert_eq!(read[2], replica_of(i64::MAX as u64, 0, 7, ReplicaState::WaitingRecovery));
    }
    // A long list in one buffer takes the other way through the decoder.
    let many: Vec<_> = (1..=100).map(|id| [id, id * 1000, 1001, 0]).collect();
    let (result, read, _) = read_all(report(&packed(&many), usize::MAX, 100));
    assert_eq!((result, read.len()), (Ok(()), 100));
    assert_eq!(read[99], replica_of(100, 100_000, 1001, ReplicaState::Finalized));
}

#[test]
fn rows_that_cannot_be_replicas_are_dropped_and_counted() {
    let (longest, stamps) = (base::BLOCK_BYTES_MAX as i64, base::GenerationStamp::LIMIT as i64);
    let rows = [
        [-5, 1, 1, 0],
        [5, -1, 1, 0],
        [5, 1, -1, 0],
        [5, 1, 1, 9],
        [5, 1, stamps, 0],
        [5, longest + 1, 1, 0],
        [5, longest, stamps - 1, 0],
    ];
    let (result, read, dropped) = read_all(report(&packed(&rows), 64, 7));
    assert_eq!((result, dropped), (Ok(()), 5));
    let beyond = replica_of(5, blocks::LENGTH_BEYOND, 1, ReplicaState::Finalized);
    assert_eq!(read, [beyond, replica_of(5, longest as u64, stamps as u64 - 1, ReplicaState::Finalized)]);
}

#[test]
fn a_list_that_is_not_what_it_claims_is_an_error() {
    let bytes = packed(&[[5, 1, 1, 0]]);
    assert_eq!(
        read_all(report(&bytes, 64, 1_000_000_000)).0,
        Err(ListError::TooShort { rows: 1, claimed: 1_000_000_000 })
    );
    assert_eq!(read_all(report(&bytes, 64, 0)).0, Err(ListError::TooLong { claimed: 0 }));
    assert_eq!(read_all(report(&[0x80; 64], 64, 1)).0, Err(ListError::Varint { row: 0 }));
    assert_eq!(read_all(report(&[0x80; 11], 3, 1)).0, Err(ListError::Varint { row: 0 }));
    assert_eq!(read_all(report(&[0x80; 9], 3, 1)).0, Err(ListError::TooShort { rows: 0, claimed: 1 }));
}

#[test]
fn no_blocks_are_no_blocks() {
    let empty = StorageBlockReportProto::default();
    assert_eq!(read_all(empty.clone()), (Ok(()), vec![], 0));
    assert_eq!(
        read_all(StorageBlockReportProto { number_of_blocks: Some(0), ..empty.clone() }),
        (Ok(()), vec![], 0)
    );
    assert_eq!(read_all(StorageBlockReportProto { blocks: vec![0, 0], ..empty }), (Ok(()), vec![], 0));
}

#[test]
fn the_older_form_is_understood() {
    const NO: u64 = u64::MAX;
    let blocks = vec![2, 1, 11, 5, 1001, 12, 6, 1002, NO, NO, NO, 13, 7, 1003, 1];
    let list = StorageBlockReportProto { blocks, ..StorageBlockReportProto::default() };
    let (result, read, dropped) = read_all(list.clone());
    assert_eq!((result, dropped), (Ok(()), 0));
    assert_eq!(read[1], replica_of(12, 6, 1002, ReplicaState::Finalized));
    assert_eq!(read[2], replica_of(13, 7, 1003, ReplicaState::BeingWritten));

    let without = |index: usize| {
        let mut list = list.clone();
        list.blocks.remove(index);
        read_all(list).0
    };
    assert_eq!(without(9), Err(ListError::Delimiter));
    assert_eq!(without(14), Err(ListError::TooShort { rows: 2, claimed: 3 }));
    let absurd =
        StorageBlockReportProto { blocks: vec![1_000_000_000, NO, 1], ..StorageBlockReportProto::default() };
    assert!(matches!(read_all(absurd).0, Err(ListError::TooShort { rows: 0, .. })));
}

#[test]
fn no_bytes_harm_the_reader() {
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let good =
        packed(&(1..50).map(|id| [id * 3_000_000_000, id << 20, 1000 + id, id % 3]).collect::<Vec<_>>());
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..random() % 4 {
            let at = random() as usize % bytes.len();
            bytes[at] = random() as u8;
        }
        bytes.truncate(random() as usize % (bytes.len() + 1));
        let count = bytes.len() as u64;
        let (_, rows, dropped) = read_all(report(&bytes, 1 + random() as usize % 300, random() % 60));
        assert!((rows.len() as u64 + dropped) * 4 <= count, "four bytes at least for each row");
        let blocks = (0..random() % 20).map(|_| random().wrapping_sub(2) % 20).collect();
        let (_, rows, _) = read_all(StorageBlockReportProto { blocks, ..StorageBlockReportProto::default() });
        assert!(rows.len() <= 6);
    }
}
