//! The mix of operations that Borthakur counted on a NameNode (*The Curse of the Singletons*, 2010): of 98, 47 stats, 42 opens, 3 creates,
//! 3 mkdirs, 2 renames and 1 delete.
//!
//! Files that the load has made itself are renamed and deleted, long after they were made, so that each operation finds what it works on.

use super::requests::{create, delete, mkdirs, named, open, rename, stat};
use bytes::BytesMut;

/// Operations in which each kind comes as often as it should.
const ROUND: u64 = 98;
/// Files that a round makes: two are renamed later, one is deleted.
const MADE: u64 = 3;
/// How many rounds later: more operations than are ever in flight.
const ROUNDS_BETWEEN: u64 = 110;
/// Has no divisor in common with [`ROUND`]: the kinds of a round come mixed.
const STRIDE: u64 = 37;
/// Spreads reads over the files.
const SPREAD: u64 = 7_919;

/// The names of the files that a mix works on.
pub trait Names {
    /// One of the files that were made before.
    fn file(&self, index: u64) -> String;
    /// A file of the mix's own. Each number is another one.
    fn made(&self, number: u64) -> String;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Stat,
    Open,
    /// With the number of the file.
    Create(u64),
    Mkdir(u64),
    Rename(u64),
    Delete(u64),
}

fn kind(index: u64) -> Kind {
    let round = index / ROUND;
    let earlier = |slot| round.checked_sub(ROUNDS_BETWEEN).map(|round| round * MADE + slot);
    match index * STRIDE % ROUND {
        0..47 => Kind::Stat,
        47..89 => Kind::Open,
        at @ 89..92 => Kind::Create(round * MADE + at - 89),
        at @ 92..95 => Kind::Mkdir(round * MADE + at - 92),
        // Before there are such files it is one more stat.
        at @ 95..97 => earlier(at - 95).map_or(Kind::Stat, Kind::Rename),
        _ => earlier(MADE - 1).map_or(Kind::Stat, Kind::Delete),
    }
}

/// Whether the answer of this operation is yes or no.
pub fn asks_for_yes(index: u64) -> bool {
    matches!(kind(index), Kind::Mkdir(_) | Kind::Rename(_) | Kind::Delete(_))
}

/// Puts the request of operation `index`, which is the only one that it makes, and names its method.
pub fn put(out: &mut BytesMut, index: u64, names: &impl Names, client: &str) -> Option<&'static str> {
    match kind(index) {
        Kind::Stat => named(out, "getFileInfo", &stat(names.file(index * SPREAD))),
        Kind::Open => named(out, "getBlockLocations", &open(names.file(index * SPREAD))),
        Kind::Create(number) => named(out, "create", &create(names.made(number), client)),
        Kind::Mkdir(number) => named(out, "mkdirs", &mkdirs(names.made(number) + "-directory")),
        Kind::Rename(number) => {
            let made = names.made(number);
            let renamed = format!("{made}-renamed");
            named(out, "rename", &rename(made, renamed))
        }
        Kind::Delete(number) => named(out, "delete", &delete(names.made(number))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_kind_comes_as_often_as_it_was_counted() {
        let late = ROUND * ROUNDS_BETWEEN;
        let count = |is_it: fn(Kind) -> bool| (late..late + ROUND).filter(|at| is_it(kind(*at))).count();
        let counts = [
            count(|kind| kind == Kind::Stat),
            count(|kind| kind == Kind::Open),
            count(|kind| matches!(kind, Kind::Create(_))),
            count(|kind| matches!(kind, Kind::Mkdir(_))),
            count(|kind| matches!(kind, Kind::Rename(_))),
            count(|kind| matches!(kind, Kind::Delete(_))),
        ];
        assert_eq!(counts, [47, 42, 3, 3, 2, 1]);
    }

    #[test]
    fn what_is_renamed_or_deleted_was_made_long_before_and_only_once() {
        let mut made = BTreeSet::new();
        let mut gone = 0;
        for index in 0..3 * ROUND * ROUNDS_BETWEEN {
            match kind(index) {
                Kind::Create(number) => assert!(made.insert(number)),
                Kind::Rename(number) | Kind::Delete(number) => {
                    assert!(made.remove(&number));
                    gone += 1;
                }
                Kind::Stat | Kind::Open | Kind::Mkdir(_) => {}
            }
        }
        assert_eq!(gone, 2 * ROUNDS_BETWEEN * MADE);
        assert_eq!(made.len() as u64, ROUNDS_BETWEEN * MADE, "only those of the last rounds are left");
    }
}
