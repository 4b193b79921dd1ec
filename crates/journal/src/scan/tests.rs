use super::*;
use crate::record::encode_batch;
use base::{EntryKind, Epoch};
use std::convert::Infallible;

const GROUP: GroupId = GroupId(7);

/// A segment as the writer makes it.
struct Written {
    bytes: Vec<u8>,
    last: LogPoint,
    count: u64,
    at: usize,
}

impl Written {
    fn new(allocated: u64) -> Self {
        Self::after(LogPoint::default(), allocated)
    }

    fn after(previous: LogPoint, allocated: u64) -> Self {
        let header = SegmentHeader {
            version: VERSION,
            group: GROUP,
            epoch: Epoch(1),
            previous,
            store_uuid: [9; 16],
            allocated,
        };
        let mut bytes = header.encode();
        bytes.resize(allocated as usize, 0);
        Self { bytes, last: previous, count: 0, at: 4096 }
    }

    /// Writes a batch; returns its bytes.
    fn batch(&mut self, epoch: u64, durable: u64, payloads: &[&[u8]]) -> std::ops::Range<usize> {
        let mut entries = Vec::new();
        for payload in payloads {
            let payload = Bytes::copy_from_slice(payload);
            let entry = Entry::after(self.last, Epoch(epoch), EntryKind::Operation, payload);
            self.last = entry.point();
            entries.push(entry);
        }
        self.count += entries.len() as u64;
        let batch = encode_batch(&entries, GROUP, Sn(durable));
        let range = self.at..self.at + batch.len();
        self.bytes[range.clone()].copy_from_slice(&batch);
        self.at = range.end;
        range
    }

    fn footer(&mut self) {
        let footer = Footer {
            version: VERSION,
            group: GROUP,
            end: self.last,
            count: self.count,
            offset: self.at as u64,
        };
        self.bytes[self.at..self.at + 4096].copy_from_slice(&footer.encode());
        self.bytes.truncate(self.at + 4096);
    }
}

fn read(bytes: &[u8]) -> Result<(Scanned, Vec<Entry>), Damage> {
    let mut entries = Vec::new();
    let scanned = scan(&Bytes::copy_from_slice(bytes), GROUP, Some(LogPoint::default()), |_, entry| {
        entries.push(entry);
        Ok::<_, Infallible>(())
    })?;
    let Ok(scanned) = scanned;
    Ok((scanned, entries))
}

fn sample() -> Written {
    let mut segment = Written::new(40 << 10);
    segment.batch(1, 0, &[b"start"]);
    segment.batch(1, 1, &[b"mkdir /a", b"", b"create /a/b", &[7; 5000]]);
    segment.batch(2, 5, &[b"delete /a"]);
    segment
}

#[test]
fn entries_come_back_as_they_were_written() {
    let mut segment = sample();
    let (scanned, entries) = read(&segment.bytes).unwrap();
    assert_eq!(scanned.end, End::Open { offset: segment.at as u64 });
    assert_eq!((scanned.last, scanned.count), (segment.last, 6));
    assert_eq!(entries[3].payload, "create /a/b");
    assert_eq!(entries[5].id.epoch, Epoch(2));

    segment.footer();
    let (scanned, sealed) = read(&segment.bytes).unwrap();
    assert_eq!(scanned.end, End::Sealed { offset: segment.at as u64 });
    assert_eq!(sealed, entries);
}

#[test]
fn a_tail_torn_at_any_byte_ends_the_log_before_it() {
    let mut segment = sample();
    let durable = segment.count;
    let batch = segment.batch(2, durable, &[b"rename /a /b", &[1; 1000], b"set owner"]);
    let whole = segment.bytes.clone();
    for cut in batch.clone() {
        let mut torn = whole.clone();
        torn[cut..batch.end].fill(0);
        let (scanned, entries) = read(&torn).unwrap_or_else(|damage| panic!("cut at {cut}: {damage:?}"));
        assert!(entries.len() as u64 >= durable, "cut at {cut} loses what was durable");
        if torn == whole {
            assert_eq!(entries.len() as u64, segment.count, "cut at {cut}");
        } else if entries.len() as u64 == durable && cut > batch.start {
            assert!(matches!(scanned.end, End::Torn { .. }), "cut at {cut}: {:?}", scanned.end);
        }
    }
}

#[test]
fn a_tail_of_which_any_sectors_are_missing_ends_the_log_before_it() {
    let mut segment = sample();
    let durable = segment.count;
    let batch = segment.batch(2, durable, &[&[1; 700], &[2; 1500], b"x"]);
    let sectors = batch.len() / 512;
    for missing in 1..1_u32 << sectors {
        let mut torn = segment.bytes.clone();
        for sector in (0..sectors).filter(|sector| missing & (1 << sector) != 0) {
            let start = batch.start + sector * 512;
            torn[start..start + 512].fill(0);
        }
        let (_, entries) = read(&torn).unwrap_or_else(|damage| panic!("{missing:b}: {damage:?}"));
        assert!(entries.len() as u64 >= durable);
    }
}

#[test]
fn a_flipped_bit_in_any_byte_is_named_or_harmless() {
    let mut segment = sample();
    for sealed in [false, true] {
        if sealed {
            segment.footer();
        }
        let (_, good) = read(&segment.bytes).unwrap();
        // Beyond the batches there are zeros only; one block of them stands for all.
        for at in 0..segment.bytes.len().min(segment.at + 4096) {
            let mut bad = segment.bytes.clone();
            bad[at] ^= 1 << (at % 8);
            match read(&bad) {
                Err(damage) => {
                    assert!(damage.offset <= at as u64, "{at}: {damage:?}");
                    assert!(at as u64 - damage.offset < 8192, "{at}: {damage:?}");
                }
                Ok((scanned, entries)) => {
                    assert_eq!(entries, good, "byte {at}");
                    let noticed = scanned.dirty_padding == [at as u64]
                        || matches!(scanned.end, End::Torn { .. })
                        || at >= segment.at + 64;
                    assert!(noticed, "byte {at}: {scanned:?}");
                }
            }
        }
    }
}

#[test]
fn a_hole_before_an_entry_that_proves_it_durable_is_damage() {
    let mut segment = sample();
    let lost = segment.batch(2, 6, &[b"lost"]);
    segment.batch(2, 7, &[b"written when 7 was durable"]);
    segment.bytes[lost].fill(0);
    let damage = read(&segment.bytes).unwrap_err();
    assert!(damage.expected.contains("entry 7, which was durable"), "{damage:?}");
}

#[test]
fn a_hole_before_entries_in_flight_is_a_torn_tail() {
    let mut segment = sample();
    let lost = segment.batch(2, 6, &[b"lost"]);
    segment.batch(2, 6, &[b"written while 7 was under way"]);
    let offset = lost.start as u64;
    segment.bytes[lost].fill(0);
    let (scanned, entries) = read(&segment.bytes).unwrap();
    assert_eq!(entries.len(), 6);
    assert_eq!(scanned.end, End::Torn { offset });
}

#[test]
fn a_file_cut_short_is_damage() {
    let mut segment = sample();
    for length in [0, 1, 4095, 4096, 4100, 18_000, segment.bytes.len() - 1] {
        assert!(read(&segment.bytes[..length]).is_err(), "open, cut to {length}");
    }
    segment.footer();
    for length in [4096, segment.at, segment.bytes.len() - 1] {
        assert!(read(&segment.bytes[..length]).is_err(), "sealed, cut to {length}");
    }
}

#[test]
fn entries_that_do_not_follow_are_refused() {
    // Another group.
    let segment = sample();
    let bytes = Bytes::copy_from_slice(&segment.bytes);
    assert!(scan(&bytes, GroupId(8), None, |_, _| Ok::<_, Infallible>(())).is_err());

    // An epoch that goes back.
    let mut segment = sample();
    segment.batch(1, 6, &[b"zombie"]);
    assert!(read(&segment.bytes).unwrap_err().found.contains("goes back"));

    // A gap, and another history.
    for (sn, chain) in [(7, segment.last.chain), (6, base::Chain(1))] {
        let mut segment = sample();
        segment.last.id.sn = Sn(sn);
        segment.last.chain = chain;
        segment.batch(2, 6, &[b"stranger"]);
        assert!(read(&segment.bytes).is_err());
    }
}

#[test]
fn a_segment_sealed_in_the_middle_of_a_batch_reads_back() {
    let mut segment = sample();
    let batch = segment.batch(2, 6, &[b"kept", &[3; 9000]]);
    // The second record was cut off; recovery zeroed the rest and wrote the footer behind.
    let kept = batch.start + crate::record::record_bytes(4);
    segment.bytes[kept..].fill(0);
    let (scanned, entries) = read(&segment.bytes).unwrap();
    assert_eq!(scanned.end, End::Torn { offset: kept as u64 });
    segment.last = entries.last().unwrap().point();
    segment.count = 7;
    segment.at = kept.next_multiple_of(4096);
    segment.footer();
    let (scanned, again) = read(&segment.bytes).unwrap();
    assert!(matches!(scanned.end, End::Sealed { .. }));
    assert_eq!(again, entries);
}

#[test]
fn a_segment_sealed_a_few_bytes_before_a_block_reads_back() {
    // A header has no room between the record and the footer: what is there must not be taken for half of one.
    for left in (0..=crate::record::HEADER_BYTES + 8).step_by(8) {
        let mut segment = sample();
        let payload = vec![7; 4096 - left - crate::record::HEADER_BYTES - 1];
        let batch = segment.batch(2, 6, &[&payload, b"cut off"]);
        let kept = batch.start + crate::record::record_bytes(payload.len());
        assert_eq!(kept % 4096, (4096 - left) % 4096);
        segment.bytes[kept..].fill(0);
        let (_, entries) = read(&segment.bytes).unwrap();
        segment.last = entries.last().unwrap().point();
        segment.count = 7;
        segment.at = kept.next_multiple_of(4096);
        segment.footer();
        let (scanned, again) = read(&segment.bytes).unwrap_or_else(|damage| panic!("{left}: {damage:?}"));
        assert_eq!((scanned.end, again), (End::Sealed { offset: segment.at as u64 }, entries), "{left}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(300))]
    #[test]
    fn any_bytes_give_an_answer(mut tail in proptest::collection::vec(proptest::num::u8::ANY, 0..9000)) {
        let mut segment = sample();
        let at = segment.at;
        tail.truncate(segment.bytes.len() - at);
        segment.bytes[at..at + tail.len()].copy_from_slice(&tail);
        if let Ok((_, entries)) = read(&segment.bytes) {
            assert_eq!(entries.len(), 6);
        }
        let _ = read(&tail);
    }
}
