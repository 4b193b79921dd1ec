//! What clients asked for and were told, and the search for one order of all calls that explains it.
//!
//! The search is that of Wing and Gong, with Lowe's memory of what has been tried: the calls that are done, and the tree. Crates that have it know no calls
//! without an answer, or are not kept up.

use super::tree::{Call, Outcome, Tree};
use std::{collections::HashSet, fmt::Write};

/// One call of one client.
#[derive(Clone, Debug)]
pub struct Asked {
    pub client: u8,
    pub call: Call,
    /// Moments are counted over the whole history, and no two are the same.
    pub begun: u64,
    /// The moment of the answer, and what it was. `None`: nobody waited for it; it may have taken effect, or may yet, or never.
    pub told: Option<(u64, Outcome)>,
    /// How often it was sent.
    pub tries: u32,
    /// The text of a refusal.
    pub text: String,
    /// If it takes effect, then before this one.
    pub before: Option<usize>,
}

#[derive(Clone, Debug, Default)]
pub struct History(pub Vec<Asked>);

/// The calls could not be put in order.
#[derive(Debug)]
pub struct Found {
    /// One order of as many calls as possible.
    order: Vec<usize>,
    tree: Tree,
}

/// Where a search has been.
struct Search<'a> {
    history: &'a History,
    /// For each call, those that had been answered when it began, one bit each.
    after: Vec<u128>,
    /// Those that were answered.
    answered: u128,
    seen: HashSet<(u128, Tree)>,
    order: Vec<usize>,
    found: Found,
}

impl History {
    /// Whether the calls can be put in one order, in which each one that was answered comes before those that began later, and which
    /// explains all answers.
    ///
    /// # Errors
    /// How far the search has come.
    pub fn explain(&self) -> Result<(), Found> {
        assert!(self.0.len() <= 128, "one bit a call");
        let bits = |is_of: &dyn Fn(&Asked) -> bool| -> u128 {
            self.0.iter().enumerate().filter(|(_, asked)| is_of(asked)).map(|(place, _)| 1 << place).sum()
        };
        let after = |asked: &Asked| {
            bits(&|other| other.told.as_ref().is_some_and(|(answered, _)| *answered < asked.begun))
        };
        let mut search = Search {
            history: self,
            after: self.0.iter().map(after).collect(),
            answered: bits(&|asked| asked.told.is_some()),
            seen: HashSet::new(),
            order: Vec::new(),
            found: Found { order: Vec::new(), tree: Tree::default() },
        };
        if search.goes_on(0, &Tree::default()) { Ok(()) } else { Err(search.found) }
    }

    fn fails(&self) -> bool {
        self.explain().is_err()
    }

    /// A history that cannot be explained either, with as little as possible in it. A call goes if it has changed nothing by its own account, or had not begun
    /// when the trouble was there; the answer of another one is forgotten.
    pub fn smallest(&self) -> Self {
        let mut least = self.clone();
        let mut ends: Vec<u64> = self.0.iter().filter_map(|asked| Some(asked.told.as_ref()?.0)).collect();
        ends.sort_unstable();
        // The calls up to the first answer that no order explains.
        let first = ends.into_iter().map(|end| self.up_to(end)).find(Self::fails);
        least = first.unwrap_or(least);
        let mut place = least.0.len();
        while place > 0 {
            place -= 1;
            let mut other = least.clone();
            match &other.0[place] {
                asked if asked.told.as_ref().is_some_and(|(_, told)| changes_nothing(&asked.call, told)) => {
                    other.leave_out(place);
                }
                _ => other.0[place].told = None,
            }
            if other.fails() {
                least = other;
            }
        }
        least
    }

    /// The calls that had begun by then, with the answers that had come.
    fn up_to(&self, moment: u64) -> Self {
        let mut part = self.clone();
        for place in (0..part.0.len()).rev() {
            if part.0[place].begun > moment {
                part.leave_out(place);
            } else if part.0[place].told.as_ref().is_some_and(|(end, _)| *end > moment) {
                part.0[place].told = None;
            }
        }
        part
    }

    fn leave_out(&mut self, place: usize) {
        self.0.remove(place);
        let moved = |before: usize| (before != place).then(|| before - usize::from(before > place));
        for asked in &mut self.0 {
            asked.before = asked.before.and_then(moved);
        }
    }

    /// For a reader: each call in a line, and how far an order of them comes.
    pub fn tell(&self) -> String {
        let mut told = String::new();
        for (place, asked) in self.0.iter().enumerate() {
            let (end, outcome) = match &asked.told {
                Some((end, outcome)) => (end.to_string(), format!("{outcome:?}")),
                None => ("-".to_owned(), "any answer".to_owned()),
            };
            let times =
                if asked.tries > 1 { format!(" (sent {} times)", asked.tries) } else { String::new() };
            // They are told with the call that they belong to.
            if matches!(asked.call, Call::Parents { .. }) {
                continue;
            }
            let (client, begun, call) = (asked.client, asked.begun, &asked.call);
            let text = if asked.text.is_empty() { String::new() } else { format!(": {}", asked.text) };
            let _ = writeln!(
                told,
                "  {place:>3}: client {client}, {begun}..{end}: {call:?} -> {outcome}{times}{text}"
            );
        }
        if let Err(found) = self.explain() {
            let _ = writeln!(told, "  in order up to {:?}; the tree is then", found.order);
            let _ = write!(told, "{}", found.tree.tell());
        }
        told
    }
}

/// By its own account: a history without the call is explained if the one with it is.
fn changes_nothing(call: &Call, told: &Outcome) -> bool {
    match told {
        Outcome::Refused(_) | Outcome::Is(false) => true,
        _ => matches!(call, Call::Status { .. } | Call::List { .. }),
    }
}

impl Search<'_> {
    fn goes_on(&mut self, done: u128, tree: &Tree) -> bool {
        if self.answered & !done == 0 {
            return true;
        }
        if !self.seen.insert((done, tree.clone())) {
            return false;
        }
        if self.order.len() > self.found.order.len() {
            self.found = Found { order: self.order.clone(), tree: tree.clone() };
        }
        let history = self.history;
        let mut changes = Vec::new();
        for (place, asked) in history.0.iter().enumerate() {
            let is_late = asked.before.is_some_and(|other| done & 1 << other != 0);
            if done & 1 << place != 0 || self.after[place] & !done != 0 || is_late {
                continue;
            }
            let told = asked.told.as_ref().map(|(_, told)| told);
            let Some(after) = tree.after(asked.client, &asked.call, told) else { continue };
            let is_second =
                |(step, other): (usize, &Asked)| other.before == Some(place) && done & 1 << step == 0;
            match (after == *tree, told) {
                // It changes nothing anywhere and is explained here: an order that has it later is as good with it here, so no
                // other place has to be tried.
                (true, Some(told))
                    if changes_nothing(&asked.call, told) && !history.0.iter().enumerate().any(is_second) =>
                {
                    return self.enters(place, done, tree);
                }
                // It need not have happened here.
                (true, None) => {}
                _ => changes.push((place, after)),
            }
        }
        changes.iter().any(|(place, after)| self.enters(*place, done, after))
    }

    fn enters(&mut self, place: usize, done: u128, after: &Tree) -> bool {
        self.order.push(place);
        let is_explained = self.goes_on(done | 1 << place, after);
        self.order.pop();
        is_explained
    }
}
