//! What clients asked for and were told, and whether one order of all calls explains it.

use super::tree::{Call, Outcome, Tree};

/// One call of one client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Asked {
    pub call: Call,
    /// Its number among all calls: what it makes is named by it.
    pub number: u8,
    /// The calls that had been answered when this one was made, one bit each, by their place in the history.
    pub after: u128,
    /// `None`: no answer has come. It may have taken effect, or may yet, or never.
    pub told: Option<Outcome>,
}

/// The calls in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct History(pub Vec<Asked>);

impl History {
    /// A client makes a call. Returns its place.
    pub fn ask(&mut self, call: Call, number: u8) -> usize {
        assert!(self.0.len() < 128, "one bit a call");
        let answered = self.0.iter().enumerate().filter(|(_, asked)| asked.told.is_some());
        let after = answered.map(|(place, _)| 1 << place).sum();
        self.0.push(Asked { call, number, after, told: None });
        self.0.len() - 1
    }

    /// Whether the calls can be put in one order in which each one answered comes before those that were made later, and which explains
    /// all answers.
    pub fn is_linearizable(&self, outset: &Tree) -> bool {
        let mut seen = std::collections::HashSet::new();
        self.goes_on(0, outset, &mut seen)
    }

    fn goes_on(&self, done: u128, tree: &Tree, seen: &mut std::collections::HashSet<(u128, Tree)>) -> bool {
        let is_done = |place: usize| done & (1 << place) != 0;
        if self.0.iter().enumerate().all(|(place, asked)| asked.told.is_none() || is_done(place)) {
            return true;
        }
        if !seen.insert((done, tree.clone())) {
            return false;
        }
        // A call may be the next one if all that were answered before it was made are done.
        let calls = self.0.iter().enumerate();
        let next = calls.filter(|(place, asked)| !is_done(*place) && asked.after & !done == 0);
        let mut changes = Vec::new();
        for (place, asked) in next {
            let mut after = tree.clone();
            let outcome = after.call(asked.call, asked.number);
            let fits = asked.told.is_none_or(|told| told == outcome);
            match (fits, after == *tree, asked.told) {
                // It changes nothing and is explained here: an order that has it later is as good with it here, so no other
                // place has to be tried.
                (true, true, Some(_)) => return self.goes_on(done | 1 << place, tree, seen),
                (true, false, _) => changes.push((place, after)),
                // A call without an answer that would change nothing here need not have happened here.
                (true, true, None) | (false, ..) => {}
            }
        }
        changes.iter().any(|(place, after)| self.goes_on(done | 1 << place, after, seen))
    }

    /// The calls up to the first one that cannot be explained, the last few of them.
    pub fn tell(&self, outset: &Tree) -> String {
        // Some later calls may have taken effect before an earlier one was answered.
        const LATER: usize = 16;
        let fails = |count: &usize| {
            let mut calls = self.0[..(count + LATER).min(self.0.len())].to_vec();
            calls[*count..].iter_mut().for_each(|asked| asked.told = None);
            !Self(calls).is_linearizable(outset)
        };
        let count = (1..=self.0.len()).find(fails).unwrap_or(self.0.len());
        let line = |(place, asked): (usize, &Asked)| {
            let beside: Vec<String> = (0..place)
                .filter(|other| asked.after & (1 << other) == 0)
                .map(|other| other.to_string())
                .collect();
            let told = asked.told.map_or("no answer".to_owned(), |told| format!("{told:?}"));
            format!("    {place}: {:?} -> {told}; beside [{}]", asked.call, beside.join(" "))
        };
        let lines = self.0[..count].iter().enumerate().map(line);
        lines.skip(count.saturating_sub(20)).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tree::Path, *};

    const X: Path = Path(b"x");

    fn history(calls: &[(Call, Option<Outcome>)]) -> History {
        let mut history = History::default();
        for (number, (call, told)) in calls.iter().enumerate() {
            let place = history.ask(*call, number as u8);
            history.0[place].told = *told;
        }
        history
    }

    #[test]
    fn a_stale_read_has_no_place_in_any_order() {
        let stale =
            history(&[(Call::Mkdir(X), Some(Outcome::Done)), (Call::Stat(X), Some(Outcome::Nothing))]);
        assert!(!stale.is_linearizable(&Tree::default()));
        let fresh = history(&[(Call::Mkdir(X), Some(Outcome::Done)), (Call::Stat(X), Some(Outcome::IsDir))]);
        assert!(fresh.is_linearizable(&Tree::default()));
    }

    #[test]
    fn a_call_without_an_answer_may_have_happened_or_not() {
        for told in [Outcome::Nothing, Outcome::IsDir] {
            let open = history(&[(Call::Mkdir(X), None), (Call::Stat(X), Some(told))]);
            assert!(open.is_linearizable(&Tree::default()), "{told:?}");
        }
        let both = history(&[
            (Call::Mkdir(X), None),
            (Call::Stat(X), Some(Outcome::IsDir)),
            (Call::Stat(X), Some(Outcome::Nothing)),
        ]);
        assert!(!both.is_linearizable(&Tree::default()));
    }
}
