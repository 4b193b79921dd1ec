use super::*;
use base::{CallId, CallOrigin, Caller, ClientId};
use std::{fs, sync::mpsc, thread, time::Instant};

fn call(request: &'static [u8]) -> Call {
    let origin = CallOrigin {
        client_id: ClientId([7; 16]),
        call_id: CallId(12),
        retry_count: 0,
        repeats: 0,
        address: None,
    };
    let caller = Arc::new(Caller::simple("alice", &[]));
    let (protocol, request) = (proto::protocol::CLIENT_NAMENODE, Bytes::from_static(request));
    Call::of_server(protocol, "mkdirs", request, caller, origin)
}

fn open(directory: &Path) -> Arc<Fatal> {
    Fatal::open(&Env::production(), directory, MemberId(1))
}

/// The texts that it tells other members.
fn hear(fatal: &Fatal) -> mpsc::Receiver<Bytes> {
    let (told, hears) = mpsc::channel();
    fatal.tell_with(move |text| drop(told.send(text)));
    hears
}

/// Does on a thread that works on this call what the panic hook does, and returns the sentence about the call.
fn dies_of(fatal: &Fatal, call: &Call) -> Option<String> {
    let _holding = fatal.in_hand(call).hold();
    note_request_in_hand()
}

#[test]
fn a_request_that_was_in_hand_is_told_noted_and_refused_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let fatal = open(directory.path());
    let hears = hear(&fatal);
    assert!(fatal.refusal(&call(b"one")).is_none());
    let said = dies_of(&fatal, &call(b"one")).unwrap();
    assert!(said.contains("refused from now on") && said.contains(" method=mkdirs "), "{said}");
    let file = fs::read_to_string(directory.path().join(FILE_NAME)).unwrap();
    assert!(file.contains(" user=alice ") && file.ends_with(" call=12\n"), "{file}");
    drop(fatal);

    let again = open(directory.path());
    let refusal = again.refusal(&call(b"one")).unwrap();
    assert_eq!(refusal.class, exception::IO, "of a class that no client repeats");
    assert!(refusal.message.contains("it has ended metadata server 1"), "{}", refusal.message);
    assert!(again.refusal(&call(b"two")).is_none());
    assert_eq!(again.numbers(), (1, 1));
    dies_of(&again, &call(b"two")).unwrap();
    assert_eq!(open(directory.path()).numbers().0, 2, "the second line stands behind the first");

    let other = tempfile::tempdir().unwrap();
    let other = open(other.path());
    other.learn(&hears.recv().unwrap());
    let mine = Call { caller: Arc::new(Caller::simple("bob", &[])), ..call(b"one") };
    assert!(other.refusal(&mine).is_some(), "whoever asks for the same");
}

#[test]
fn a_thread_has_in_hand_what_it_began_last_and_has_not_ended() {
    let directory = tempfile::tempdir().unwrap();
    let fatal = open(directory.path());
    assert_eq!(note_request_in_hand(), None);
    let outer = fatal.in_hand(&call(b"outer")).hold();
    drop(fatal.in_hand(&call(b"inner")).hold());
    assert!(note_request_in_hand().is_some());
    drop(outer);
    assert_eq!(note_request_in_hand(), None);
    assert!(fatal.refusal(&call(b"outer")).is_some() && fatal.refusal(&call(b"inner")).is_none());
    let _outer = fatal.in_hand(&call(b"another")).hold();
    assert_eq!(thread::spawn(note_request_in_hand).join().unwrap(), None, "it is this thread's");
}

#[test]
fn whatever_the_thread_that_panics_holds_the_others_are_told_and_the_end_is_not_held_up() {
    let directory = tempfile::tempdir().unwrap();
    let fatal = open(directory.path());
    let hears = hear(&fatal);
    let (notes, file) = (fatal.notes.lock(), fatal.file.lock());
    let began = Instant::now();
    let said = dies_of(&fatal, &call(b"one")).unwrap();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(said.contains("could not be noted"), "{said}");
    assert!(Notes::decode(&hears.recv().unwrap()).is_some_and(|(told, _)| told.all().len() == 1));
    drop((notes, file));
}

#[test]
fn a_request_that_is_too_large_is_not_noted() {
    let directory = tempfile::tempdir().unwrap();
    let fatal = open(directory.path());
    let large = Call { request: vec![0; REQUEST_BYTES_MAX + 1].into(), ..call(b"") };
    let said = dies_of(&fatal, &large).unwrap();
    assert!(said.contains("too large to be noted"), "{said}");
    assert_eq!(fatal.numbers().0, 0);
}

#[test]
fn what_a_member_hears_of_it_passes_on_once_and_writes_down() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dying = open(one.path());
    dies_of(&dying, &call(b"one")).unwrap();
    let told = dying.text().unwrap();
    let fatal = open(two.path());
    let hears = hear(&fatal);
    fatal.learn(&told);
    fatal.learn(&told);
    fatal.learn(b"of a later release");
    assert_eq!(hears.try_iter().count(), 1);
    fatal.look();
    assert_eq!(open(two.path()).numbers().0, 1);
}

#[test]
fn an_operator_who_takes_the_file_away_lets_the_request_through_on_all_members() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (fatal, other) = (open(one.path()), open(two.path()));
    dies_of(&fatal, &call(b"one")).unwrap();
    let before = fatal.text().unwrap();
    other.learn(&before);
    let hears = hear(&other);

    fs::remove_file(two.path().join(FILE_NAME)).unwrap();
    other.look();
    assert!(other.refusal(&call(b"one")).is_none());
    fatal.learn(&hears.recv().unwrap());
    assert!(fatal.refusal(&call(b"one")).is_none());
    other.learn(&before);
    fatal.look();
    assert_eq!((fatal.numbers().0, other.numbers().0), (0, 0), "it does not come back");
    assert_eq!(open(two.path()).numbers().0, 0, "nor after a restart");
    dies_of(&other, &call(b"one")).unwrap();
    assert!(open(two.path()).refusal(&call(b"one")).is_some(), "it is fatal all the same");
}

#[test]
fn a_file_that_is_none_is_put_aside_and_one_that_cannot_be_opened_stops_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE_NAME);
    let later = "clover fatal requests 2\nwho knows\n";
    fs::write(&path, later).unwrap();
    let fatal = open(directory.path());
    assert_eq!(fs::read_to_string(path.with_extension("unreadable")).unwrap(), later);
    dies_of(&fatal, &call(b"one")).unwrap();

    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}panic number=2 torn")).unwrap();
    assert_eq!(open(directory.path()).numbers().0, 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), text, "written anew without what makes no sense");
    fs::write(&path, text.clone() + &"x".repeat(TEXT_BYTES_MAX)).unwrap();
    assert_eq!(open(directory.path()).numbers().0, 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);

    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let fatal = open(directory.path());
    let said = dies_of(&fatal, &call(b"two")).unwrap();
    assert!(said.contains("could not be noted"), "{said}");
    assert!(fatal.refusal(&call(b"two")).is_some());
}
