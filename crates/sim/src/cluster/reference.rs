//! The namespace as it is with exactly what has committed: reads that were answered are held against it.

use super::{
    client::CallCopy,
    request::{Answer, Outcome, Request},
    server::origin_of,
};
use base::{Entry, Moment, Sn, Timestamp};
use namespace::{Namespace, given_facts::GivenFacts};
use std::collections::BTreeMap;

/// Built when it is asked for.
#[derive(Default)]
pub struct Reference {
    /// In the order of their commits.
    entries: Vec<Entry>,
    namespace: Option<Namespace>,
    /// The reads that are to be answered when these entries have committed, each with its number.
    asked: BTreeMap<Sn, Vec<(u64, CallCopy, Request)>>,
    found: BTreeMap<u64, Answer>,
    reads: u64,
}

impl Reference {
    /// # Errors
    /// The entry cannot be applied.
    pub fn committed(&mut self, entry: Entry) -> Result<(), String> {
        let sn = entry.id.sn;
        self.entries.push(entry);
        for (number, copy, request) in self.asked.remove(&sn).unwrap_or_default() {
            let answer = self.answer(copy, &request)?;
            self.found.insert(number, answer);
        }
        Ok(())
    }

    pub fn entry(&self, sn: Sn) -> Option<&Entry> {
        self.entries.get(sn.0.checked_sub(1)? as usize)
    }

    /// Forgets the committed entries behind this one: they are no part of the group's history any more. Nothing is
    /// promised of reads that are not answered yet.
    pub fn forget_behind(&mut self, sn: Sn) {
        self.entries.truncate(sn.0 as usize);
        self.namespace = None;
        self.asked.clear();
        self.found.clear();
    }

    /// Notes the answer that the state with everything up to `sn` gives, or that of now if it holds more. Returns the
    /// number under which [`Reference::take`] has it.
    ///
    /// # Errors
    /// An entry cannot be applied, or the request is not a read.
    pub fn expect(&mut self, sn: Sn, copy: CallCopy, request: &Request) -> Result<u64, String> {
        self.reads += 1;
        if sn.0 <= self.entries.len() as u64 {
            let answer = self.answer(copy, request)?;
            self.found.insert(self.reads, answer);
        } else {
            self.asked.entry(sn).or_default().push((self.reads, copy, request.clone()));
        }
        Ok(self.reads)
    }

    /// The answer that was noted, once. `None`: entries were given up meanwhile.
    pub fn take(&mut self, number: u64) -> Option<Answer> {
        self.found.remove(&number)
    }

    fn answer(&mut self, copy: CallCopy, request: &Request) -> Result<Answer, String> {
        let namespace = self
            .namespace
            .get_or_insert_with(|| Namespace::new(1, "hdfs", "supergroup", Timestamp::from_ms(1)));
        let applied = namespace.applied().sn.0 as usize;
        for entry in self.entries.iter().skip(applied) {
            serving::apply_entry(namespace, entry).map_err(|error| error.to_string())?;
        }
        let facts = GivenFacts::all_finished();
        match request.plan(namespace, origin_of(copy), Timestamp::from_ms(1), Moment::default(), &facts) {
            Outcome::Read(answer) => Ok(answer),
            _ => Err("a read changes nothing".into()),
        }
    }
}
