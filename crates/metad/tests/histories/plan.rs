//! What the clients of a history do, drawn from its seed.

use super::tree::Call;
use std::time::Duration;

/// Random numbers from a seed.
pub struct Dice(u64);

impl Dice {
    pub fn of(seed: u64) -> Self {
        // Seeds that follow each other give numbers that have nothing in common.
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn of_these<T: Copy>(&mut self, these: &[T]) -> T {
        these[self.below(these.len() as u64) as usize]
    }
}

/// A directory of the first home and one of the second begin every history.
pub const HOMES: [&str; 2] = ["/a", "/b"];
const NAMES: [&str; 13] =
    ["/a", "/b", "/p", "/a/f", "/a/g", "/a/d", "/b/f", "/b/g", "/b/d", "/a/d/f", "/b/d/f", "/p/f", "/a/f/x"];
/// Files that are there at the beginning, perhaps.
const FILES: [&str; 4] = ["/a/f", "/a/g", "/b/f", "/b/g"];

#[derive(Clone, Debug)]
pub enum Deed {
    Call(Call),
    /// A file is made, and closed at once.
    Make(Call),
    /// One of the files that the client has open.
    Close(usize),
}

#[derive(Clone, Debug)]
pub struct Step {
    pub deed: Deed,
    /// Chooses the door.
    pub door: usize,
    /// What it writes before it closes a file.
    pub bytes: u64,
    /// Before the call.
    pub pause: Duration,
    /// The client waits so long for an answer and no longer, and does not ask again.
    pub breaks_off: Option<Duration>,
}

/// What each client does, one thing after the other.
pub struct Story {
    /// Before the others begin.
    pub first: Vec<Step>,
    pub clients: Vec<Vec<Step>>,
}

impl Story {
    pub fn of(seed: u64, clients: usize, calls: usize) -> Self {
        let mut dice = Dice::of(seed);
        let mut names = NAMES.to_vec();
        // The fewer names, the more they are fought for.
        let count = 2 + dice.below(names.len() as u64 - 1) as usize;
        while names.len() > count {
            names.swap_remove(dice.below(names.len() as u64) as usize);
        }
        let mut first = Vec::new();
        for path in FILES {
            if dice.one_in(2) {
                let path = path.to_owned();
                let call = Call::Create { path, overwrite: false, parents: false };
                first.push(Step { deed: Deed::Make(call), ..Step::at_once(&mut dice) });
            }
        }
        let leisure = dice.of_these(&[1, 1, 8, 40]);
        let mut client = || (0..calls).map(|_| Step::drawn(&mut dice, &names, leisure)).collect();
        let clients = (0..clients).map(|_| client()).collect();
        Self { first, clients }
    }
}

impl Step {
    fn at_once(dice: &mut Dice) -> Self {
        let deed = Deed::Call(Call::List { path: String::new() });
        let bytes = if dice.one_in(2) { 1 + dice.below(99) } else { 0 };
        Self { deed, door: dice.below(1_000) as usize, bytes, pause: Duration::ZERO, breaks_off: None }
    }

    fn drawn(dice: &mut Dice, names: &[&'static str], leisure: u64) -> Self {
        // Now and then any name.
        let mut path = || {
            let names = if dice.one_in(8) { &NAMES } else { names };
            dice.of_these(names).to_owned()
        };
        let (path, other) = (path(), path());
        let coin = dice.one_in(2);
        let deed = match dice.below(46) {
            0..5 => Deed::Make(Call::Create { path, overwrite: dice.one_in(4), parents: false }),
            5..7 => Deed::Call(Call::Create { path, overwrite: coin, parents: false }),
            7 => Deed::Make(Call::Create { path, overwrite: coin, parents: true }),
            8..12 => Deed::Call(Call::Mkdirs { path, parents: coin }),
            12..15 => Deed::Close(dice.below(8) as usize),
            15..17 => Deed::Call(Call::Append { path }),
            17..21 => Deed::Call(Call::Delete { path, recursive: !dice.one_in(3) }),
            21..24 => Deed::Call(Call::Rename { from: path, to: other }),
            24..32 => Deed::Call(Call::Rename2 { from: path, to: other, overwrite: coin }),
            32..34 => {
                let permission = 0o700 | dice.below(64) as u32;
                Deed::Call(Call::SetPermission { path, permission })
            }
            34..40 => Deed::Call(Call::Status { path }),
            40 => Deed::Call(Call::List { path: String::new() }),
            _ => Deed::Call(Call::List { path }),
        };
        let pause = if dice.one_in(2) { Duration::ZERO } else { Duration::from_millis(dice.below(leisure)) };
        let breaks_off = dice.one_in(40).then(|| Duration::from_millis(dice.below(10)));
        Self { deed, pause, breaks_off, ..Self::at_once(dice) }
    }
}
