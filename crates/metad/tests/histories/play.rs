//! A history is played: three clients at once, each call written down with the moments between which it took effect.

use super::{
    caller::{Caller, Way},
    history::{Asked, History},
    plan::{Deed, Dice, HOMES, Step, Story},
    tree::{Call, Outcome},
};
use std::sync::{
    Mutex,
    atomic::{AtomicU64, Ordering},
};

/// How often a `create` makes its missing directories at most. It makes them again if another client has deleted them before the file is made.
const PARENTS: usize = 3;

/// The history of one play, which several clients write at once.
#[derive(Default)]
struct Record {
    moment: AtomicU64,
    asked: Mutex<Vec<Asked>>,
}

impl Record {
    fn now(&self) -> u64 {
        self.moment.fetch_add(1, Ordering::SeqCst)
    }

    /// Returns the call's place.
    fn begin(&self, client: u8, call: &Call) -> usize {
        let mut asked = self.asked.lock().unwrap();
        let (place, begun) = (asked.len(), self.now());
        asked.push(Asked {
            client,
            call: call.clone(),
            begun,
            told: None,
            tries: 0,
            text: String::new(),
            before: None,
        });
        if let Call::Create { path, parents: true, .. } = call {
            for _ in 0..PARENTS {
                let first = Call::Parents { path: path.clone() };
                asked.push(Asked {
                    client,
                    call: first,
                    begun,
                    told: None,
                    tries: 0,
                    text: String::new(),
                    before: Some(place),
                });
            }
        }
        place
    }

    fn end(&self, place: usize, told: Option<Outcome>, tries: u32, text: &str) {
        let mut all = self.asked.lock().unwrap();
        let asked = &mut all[place];
        let is_gone = |told: &Outcome| *told == Outcome::Refused("FileNotFoundException".to_owned());
        // An append that was carried out, but whose answer was lost, is told so if others have deleted its file when it is asked for again.
        let is_repeated = tries > 1 && matches!(asked.call, Call::Append { .. });
        let told = told.filter(|told| !(is_repeated && is_gone(told)));
        asked.told = told.map(|told| (self.now(), told));
        asked.tries = tries;
        text.clone_into(&mut asked.text);
        // A `create` that is repeated makes missing parents anew, also if its file has been there before.
        if let (Some((end, _)), true) = (asked.told.clone(), tries > 1) {
            for parents in all.iter_mut().filter(|other| other.before == Some(place)) {
                (parents.before, parents.told) = (None, Some((end, Outcome::Done)));
            }
        }
    }
}

/// One client of a history.
struct Player<'a> {
    number: u8,
    caller: &'a mut Caller,
    base: &'a str,
    record: &'a Record,
    /// The files that it has open.
    open: Vec<(String, u64)>,
}

impl Player<'_> {
    async fn call(&mut self, call: &Call, way: Way) -> Option<Outcome> {
        let place = self.record.begin(self.number, call);
        let told = self.caller.call(self.base, call, way).await;
        self.record.end(place, told.clone(), self.caller.tries(), self.caller.text());
        if let (Call::Create { path, .. } | Call::Append { path }, Some(Outcome::File(id))) = (call, &told) {
            self.open.push((path.clone(), *id));
        }
        told
    }

    /// One of the files that it has open, with so many bytes more if there are data servers.
    async fn close(&mut self, which: usize, bytes: u64, way: Way) {
        if self.open.is_empty() {
            return;
        }
        let (path, id) = self.open.swap_remove(which % self.open.len());
        let mut written = 0;
        if bytes > 0 && self.caller.has_disks() {
            let insists = Way { breaks_off: None, ..way };
            let added = self.call(&Call::AddBlock { path: path.clone(), id }, insists).await;
            if added == Some(Outcome::Done) {
                self.caller.write(bytes).await;
                written = bytes;
            }
        }
        self.call(&Call::Close { path, id, bytes: written }, way).await;
    }

    async fn play(&mut self, steps: Vec<Step>) {
        for step in steps {
            if !step.pause.is_zero() {
                tokio::time::sleep(step.pause).await;
            }
            let way = Way { door: step.door, breaks_off: step.breaks_off };
            match step.deed {
                Deed::Call(call) => {
                    self.call(&call, way).await;
                }
                Deed::Make(call) => {
                    if let Some(Outcome::File(_)) = self.call(&call, way).await {
                        let way = Way { door: step.door / 7, breaks_off: None };
                        self.close(self.open.len() - 1, step.bytes, way).await;
                    }
                }
                Deed::Close(which) => self.close(which, step.bytes, way).await,
            }
        }
    }

    /// Looks at everything when the clients have finished, by several doors.
    async fn look_at_all(&mut self, dice: &mut Dice) {
        let mut directories = vec![String::new()];
        while let Some(path) = directories.pop() {
            let mut way = || Way { door: dice.below(1_000) as usize, breaks_off: None };
            if self.number == 0 {
                self.call(&Call::Status { path: path.clone() }, way()).await;
            }
            let listed = self.call(&Call::List { path: path.clone() }, way()).await;
            let Some(Outcome::Listed(Some(listed))) = listed else { continue };
            let below = listed.into_iter().filter(|(_, seen)| seen.is_directory);
            directories.extend(below.map(|(name, _)| format!("{path}/{name}")));
        }
    }
}

/// The directory of a history, with one directory of each home in it if there are two.
async fn prepare(caller: &mut Caller, base: &str, homes: usize, dice: &mut Dice) {
    let mut way = || Way { door: dice.below(1_000) as usize, breaks_off: None };
    for (home, path) in HOMES.iter().enumerate() {
        let mkdirs = Call::Mkdirs { path: (*path).into(), parents: true };
        loop {
            assert_eq!(caller.call(base, &mkdirs, way()).await, Some(Outcome::Is(true)));
            if homes == 1 || caller.home_of(&format!("{base}{path}"), way().door).await == home as u32 + 1 {
                break;
            }
            let delete = Call::Delete { path: (*path).into(), recursive: true };
            assert_eq!(caller.call(base, &delete, way()).await, Some(Outcome::Is(true)));
        }
    }
}

/// One history: `calls` of each client at once, with looks at everything at the end.
pub async fn play(seed: u64, callers: &mut [Caller], homes: usize, calls: usize) -> History {
    let base = format!("/h/{seed}");
    let mut dice = Dice::of(!seed);
    prepare(&mut callers[0], &base, homes, &mut dice).await;
    let record = Record::default();
    for path in HOMES {
        let place = record.begin(0, &Call::Mkdirs { path: path.into(), parents: true });
        record.end(place, Some(Outcome::Is(true)), 1, "");
    }
    let story = Story::of(seed, callers.len(), calls);
    let mut players: Vec<Player<'_>> = callers
        .iter_mut()
        .zip(0..)
        .map(|(caller, number)| Player { number, caller, base: &base, record: &record, open: Vec::new() })
        .collect();
    players[0].play(story.first).await;
    let [first, others @ ..] = &mut players[..] else { unreachable!("there is a client") };
    let mut steps = story.clients.into_iter();
    let of_first = first.play(steps.next().unwrap_or_default());
    match others {
        [] => of_first.await,
        [second, third] => {
            let (of_second, of_third) = (steps.next().unwrap_or_default(), steps.next().unwrap_or_default());
            tokio::join!(of_first, second.play(of_second), third.play(of_third));
        }
        _ => unreachable!("one client or three"),
    }
    for player in &mut players {
        player.look_at_all(&mut dice).await;
        if homes == 1 {
            break;
        }
    }
    History(record.asked.into_inner().unwrap())
}

/// Deletes the files and directories that a history has left.
pub async fn clear(seed: u64, caller: &mut Caller) {
    let delete = Call::Delete { path: String::new(), recursive: true };
    let way = Way { door: seed as usize, breaks_off: None };
    assert_eq!(caller.call(&format!("/h/{seed}"), &delete, way).await, Some(Outcome::Is(true)));
}
