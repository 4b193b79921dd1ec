use super::*;

mod random;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

const LIMITS: Limits =
    Limits { run_bytes: 32 * MIB, piece_bytes: 4 * MIB, queue_bytes: 256 * MIB, linger_ms: 5_000 };

fn at(ms: u64) -> Moment {
    Moment::default().plus_ms(ms)
}

fn plan() -> Plan {
    Plan::new(LIMITS)
}

/// A stream of writes with so many bytes from `begin` on.
fn write(plan: &mut Plan, id: StreamId, begin: u64, bytes: u64) {
    assert!(plan.admit(id, bytes), "there is room for {bytes} bytes of {id:?}");
    plan.wrote(id, (begin, begin + bytes), bytes, at(0));
}

fn writer(plan: &mut Plan, bytes: u64) -> StreamId {
    let id = plan.open(Kind::Write);
    write(plan, id, 0, bytes);
    id
}

/// Carries out all that the plan grants at this time; answers the runs: stream and bytes.
fn carry_out(plan: &mut Plan, now: Moment) -> Vec<(StreamId, u64)> {
    let mut runs: Vec<(StreamId, u64)> = Vec::new();
    loop {
        match plan.next(now) {
            Step::Begin(piece) => match runs.last_mut() {
                Some((stream, bytes)) if *stream == piece.stream => *bytes += piece.bytes(),
                _ => runs.push((piece.stream, piece.bytes())),
            },
            Step::Finish => drop(plan.done().expect("a piece is under way")),
            Step::Urgent(tickets) => tickets.into_iter().for_each(|ticket| plan.urgent_done(ticket)),
            Step::Wait { .. } => return runs,
        }
    }
}

#[test]
fn two_streams_write_a_run_each_in_turn() {
    let mut plan = plan();
    let (a, b) = (writer(&mut plan, 64 * MIB), writer(&mut plan, 64 * MIB));
    let run = 32 * MIB;
    assert_eq!(carry_out(&mut plan, at(0)), [(a, run), (b, run), (a, run), (b, run)]);
    assert_eq!(plan.queued_bytes(), 0);
}

#[test]
fn a_stream_that_has_no_run_yet_is_not_begun() {
    let mut plan = plan();
    let a = writer(&mut plan, 31 * MIB);
    assert_eq!(plan.next(at(0)), Step::Wait { until: Some(at(5_000)) });
    write(&mut plan, a, 31 * MIB, MIB);
    assert_eq!(carry_out(&mut plan, at(0)), [(a, 32 * MIB)]);
}

#[test]
fn a_slow_stream_goes_out_when_its_bytes_are_old() {
    let mut plan = plan();
    let a = writer(&mut plan, 300 * KIB + 5);
    assert_eq!(carry_out(&mut plan, at(4_999)), []);
    // The page that it has begun waits for the rest of it, and goes out alone if nothing more comes.
    assert_eq!(carry_out(&mut plan, at(5_000)), [(a, 300 * KIB)]);
    assert_eq!(carry_out(&mut plan, at(9_999)), []);
    assert_eq!(carry_out(&mut plan, at(10_000)), [(a, 5)]);
}

#[test]
fn a_stream_whose_network_gives_nothing_passes_its_turn_on() {
    let mut plan = plan();
    let (a, b) = (writer(&mut plan, 32 * MIB), writer(&mut plan, 32 * MIB));
    for _ in 0..2 {
        assert!(matches!(plan.next(at(0)), Step::Begin(piece) if piece.stream == a));
    }
    // A sync has written out the rest of the run. The next packet is the beginning of another run, so the turn ends.
    plan.synced(a, 32 * MIB);
    write(&mut plan, a, 32 * MIB, 64 * KIB);
    assert_eq!(carry_out(&mut plan, at(0)), [(b, 32 * MIB)]);
    assert_eq!(plan.queued_bytes(), 64 * KIB);
}

#[test]
fn a_stream_that_dies_in_its_turn_passes_it_on() {
    let mut plan = plan();
    let (a, b) = (writer(&mut plan, 64 * MIB), writer(&mut plan, 32 * MIB));
    assert!(matches!(plan.next(at(0)), Step::Begin(piece) if piece.stream == a));
    plan.forget(a);
    assert_eq!(plan.queued_bytes(), 36 * MIB, "its piece is still under way");
    assert_eq!(carry_out(&mut plan, at(0)), [(b, 32 * MIB)]);
    assert_eq!((plan.queued_bytes(), plan.stream_count()), (0, 1));
}

#[test]
fn a_sync_waits_for_two_pieces_and_not_for_the_queue() {
    let mut plan = plan();
    let streams = [writer(&mut plan, 60 * MIB), writer(&mut plan, 60 * MIB), writer(&mut plan, 60 * MIB)];
    assert!(matches!(plan.next(at(0)), Step::Begin(_)));
    assert!(matches!(plan.next(at(0)), Step::Begin(_)));
    let ticket = plan.ask_urgent();
    for _ in 0..2 {
        assert_eq!(plan.next(at(0)), Step::Finish);
        plan.done();
    }
    assert_eq!(plan.next(at(0)), Step::Urgent(vec![ticket]));
    assert_eq!(plan.next(at(0)), Step::Wait { until: None }, "it has the disk alone");
    // Another one that comes meanwhile has to let the run have a piece.
    let second = plan.ask_urgent();
    plan.synced(streams[2], 60 * MIB);
    plan.urgent_done(ticket);
    assert!(
        matches!(plan.next(at(0)), Step::Begin(piece) if piece.stream == streams[0] && piece.begin == 8 * MIB)
    );
    assert_eq!(plan.next(at(0)), Step::Finish);
    plan.done();
    assert_eq!(plan.next(at(0)), Step::Urgent(vec![second]));
    plan.urgent_done(second);
    // The first run goes on where it was, and what the sync has written is not written again.
    assert_eq!(carry_out(&mut plan, at(0))[..2], [(streams[0], 20 * MIB), (streams[1], 32 * MIB)]);
}

#[test]
fn a_replica_that_ends_goes_out_to_its_last_byte() {
    let mut plan = plan();
    let a = writer(&mut plan, 33 * MIB + 7);
    plan.close(a, at(0));
    assert_eq!(carry_out(&mut plan, at(0)), [(a, 33 * MIB + 7)]);
    assert_eq!(plan.stream_count(), 0);
}

#[test]
fn a_small_replica_is_left_to_the_system() {
    let mut plan = plan();
    let a = writer(&mut plan, 3 * MIB);
    assert!(!plan.close(a, at(0)));
    assert_eq!((plan.queued_bytes(), plan.stream_count()), (0, 0));
    assert_eq!(plan.next(at(60_000)), Step::Wait { until: None });
}

#[test]
fn each_active_stream_has_an_equal_share_of_the_queue() {
    let mut plan = plan();
    let a = writer(&mut plan, 128 * MIB);
    assert!(plan.admit(a, 128 * MIB));
    assert!(!plan.admit(a, 1), "the queue is one stream's, and full");
    plan.give_back(a, 128 * MIB);
    let _idle = plan.open(Kind::Write);
    let b = writer(&mut plan, 64 * MIB);
    assert!(!plan.admit(a, 1), "it has its half");
    assert!(plan.admit(b, 64 * MIB));
    assert!(!plan.admit(b, 1));
}

#[test]
fn the_first_in_line_gets_the_room_that_is_made() {
    let mut plan = plan();
    let full = writer(&mut plan, 256 * MIB);
    let (first, second) = (plan.open(Kind::Write), plan.open(Kind::Write));
    assert!(!plan.admit(first, 8 * MIB));
    assert!(!plan.admit(second, MIB));
    assert!(matches!(plan.next(at(0)), Step::Begin(piece) if piece.stream == full));
    plan.done();
    assert!(!plan.admit(second, MIB), "there is room for it, but it is not its turn");
    assert!(!plan.admit(first, 8 * MIB));
    assert!(matches!(plan.next(at(0)), Step::Begin(_)));
    plan.done();
    assert!(plan.admit(first, 8 * MIB));
    assert!(!plan.admit(second, MIB));
    plan.forget(first);
    assert!(plan.admit(second, MIB));
}

#[test]
fn room_goes_to_all_in_line_in_any_order_of_asking() {
    let mut plan = plan();
    let full: Vec<StreamId> = (0..8).map(|_| writer(&mut plan, 32 * MIB)).collect();
    let line: Vec<StreamId> = (0..3).map(|_| plan.open(Kind::Write)).collect();
    assert!(line.iter().all(|id| !plan.admit(*id, 64 * KIB)), "the queue is full");
    assert_eq!(plan.line_length(), 3);
    assert_eq!(carry_out(&mut plan, at(0)).len(), full.len());
    // Their tasks are woken together, and run in any order.
    assert!(line.iter().rev().all(|id| plan.admit(*id, 64 * KIB)));
    assert_eq!((plan.line_length(), plan.queued_bytes()), (0, 3 * 64 * KIB));
}

#[test]
fn room_that_was_kept_for_a_stream_in_line_is_free_again_when_it_goes_away() {
    let mut plan = plan();
    let full = writer(&mut plan, 256 * MIB);
    let (gone, closed) = (plan.open(Kind::Write), plan.open(Kind::Write));
    assert!(!plan.admit(gone, MIB) && !plan.admit(closed, MIB));
    plan.forget(full);
    assert_eq!(plan.queued_bytes(), 2 * MIB, "it is theirs before they ask");
    plan.forget(gone);
    plan.close(closed, at(0));
    assert_eq!((plan.queued_bytes(), plan.stream_count()), (0, 0));
}

#[test]
fn a_packet_larger_than_its_share_is_taken_alone() {
    let mut plan = Plan::new(Limits { queue_bytes: 8 * MIB, ..LIMITS });
    let a = plan.open(Kind::Write);
    assert!(plan.admit(a, 16 * MIB));
    plan.wrote(a, (0, 16 * MIB), 16 * MIB, at(0));
    assert_eq!(carry_out(&mut plan, at(0)).iter().map(|run| run.1).sum::<u64>(), 16 * MIB);
}

#[test]
fn a_reader_does_not_wait_behind_all_writers() {
    let mut plan = plan();
    let writers: Vec<StreamId> = (0..4).map(|_| writer(&mut plan, 40 * MIB)).collect();
    assert!(matches!(plan.next(at(0)), Step::Begin(piece) if piece.stream == writers[0]));
    let reader = plan.open(Kind::Read);
    plan.want(reader, 10, 10 + 20 * MIB);
    let runs = carry_out(&mut plan, at(0));
    let order: Vec<StreamId> = runs.iter().map(|run| run.0).collect();
    assert_eq!(order[..3], [writers[0], reader, writers[1]], "{runs:?}");
    assert_eq!(runs[1].1, 20 * MIB);
}

#[test]
fn a_byte_that_is_written_again_goes_out_again() {
    let mut plan = plan();
    let a = writer(&mut plan, 32 * MIB);
    carry_out(&mut plan, at(0));
    write(&mut plan, a, 32 * MIB - 100, 200);
    plan.close(a, at(0));
    assert!(
        matches!(plan.next(at(0)), Step::Begin(Piece { begin, end, .. }) if (begin, end) == (32 * MIB - 100, 32 * MIB + 100))
    );
}

#[test]
fn streams_with_less_than_a_run_go_out_when_the_queue_fills_up() {
    let mut plan = Plan::new(Limits { queue_bytes: 16 * MIB, ..LIMITS });
    let streams: Vec<StreamId> = (0..16).map(|_| writer(&mut plan, 400 * KIB)).collect();
    assert_eq!(plan.next(at(0)), Step::Wait { until: Some(at(5_000)) });
    let late = plan.open(Kind::Write);
    assert!(plan.admit(late, 900 * KIB) && plan.admit(streams[3], 300 * KIB));
    plan.wrote(late, (0, 900 * KIB), 900 * KIB, at(0));
    let runs = carry_out(&mut plan, at(0));
    assert_eq!(runs.first(), Some(&(late, 900 * KIB)), "it has most");
}

#[test]
fn many_readers_have_shorter_runs() {
    let mut plan = plan();
    let readers: Vec<StreamId> = (0..64).map(|_| plan.open(Kind::Read)).collect();
    let ends: Vec<u64> = readers.iter().map(|id| plan.want(*id, 0, 128 * MIB)).collect();
    assert_eq!((ends[0], ends[7], ends[63]), (32 * MIB, 32 * MIB, 4 * MIB));
    let runs = carry_out(&mut plan, at(0));
    assert_eq!(runs.iter().map(|run| run.0).collect::<Vec<_>>(), readers, "each in its turn");
    assert!(readers.iter().all(|id| plan.wants_nothing(*id)));
}

fn beginner(plan: &mut Plan) -> StreamId {
    let id = plan.open(Kind::Read);
    assert_eq!(plan.want_first(id, 0, 100 * MIB), MIB, "no more than a few bytes come out of turn");
    id
}

#[test]
fn readers_begin_between_the_pieces_of_a_run_in_the_order_in_which_they_came() {
    let mut plan = plan();
    let writer = writer(&mut plan, 32 * MIB);
    assert!(matches!(plan.next(at(0)), Step::Begin(piece) if piece.stream == writer));
    let readers = [beginner(&mut plan), beginner(&mut plan), beginner(&mut plan)];
    let order: Vec<StreamId> = carry_out(&mut plan, at(0)).into_iter().map(|(stream, _)| stream).collect();
    assert_eq!(
        order,
        [readers[0], writer, readers[1], writer, readers[2], writer],
        "each waits for one piece, and the run goes on"
    );
    assert!(readers.iter().all(|reader| plan.wants_nothing(*reader)));
}

#[test]
fn a_reader_goes_on_with_a_turn_like_all_others() {
    let mut plan = plan();
    let reader = beginner(&mut plan);
    assert_eq!(carry_out(&mut plan, at(0)), [(reader, MIB)]);
    let writer = writer(&mut plan, 32 * MIB);
    assert_eq!(plan.want(reader, MIB, 100 * MIB), 33 * MIB);
    assert_eq!(carry_out(&mut plan, at(0)), [(writer, 32 * MIB), (reader, 32 * MIB)]);
}

#[test]
fn a_sync_waits_no_longer_for_readers_that_begin() {
    let mut plan = plan();
    let writer = writer(&mut plan, 64 * MIB);
    let mut sync = plan.ask_urgent();
    let readers = [beginner(&mut plan), beginner(&mut plan)];
    let mut seen = Vec::new();
    while seen.len() < 8 {
        match plan.next(at(0)) {
            Step::Begin(piece) => seen.push(Some(piece.stream)),
            Step::Finish => drop(plan.done()),
            Step::Urgent(tickets) => {
                assert_eq!(tickets, [sync]);
                plan.urgent_done(sync);
                sync = plan.ask_urgent();
                seen.push(None);
            }
            Step::Wait { .. } => panic!("there is work"),
        }
    }
    let [first, second] = readers.map(Some);
    assert_eq!(seen, [None, first, None, Some(writer), None, second, None, Some(writer)]);
}

#[test]
fn a_beginner_that_goes_away_leaves_the_line() {
    let mut plan = plan();
    let (gone, closed, stays) = (beginner(&mut plan), beginner(&mut plan), beginner(&mut plan));
    plan.forget(gone);
    plan.close(closed, at(0));
    assert_eq!(carry_out(&mut plan, at(0)), [(stays, MIB)]);
    plan.forget(stays);
    assert_eq!(plan.stream_count(), 0);
}
