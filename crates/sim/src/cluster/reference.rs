//! The namespace as it is with exactly what has committed, for answers that nobody's own state can vouch for.

use super::{
    client::CallKey,
    request::{Answer, Outcome, Request},
    server::{apply_to, origin_of},
};
use base::{Entry, Moment, Sn, Timestamp};
use namespace::Namespace;

/// Built when it is asked for: most stories never do.
#[derive(Default)]
pub struct Reference {
    /// In the order of their commits.
    entries: Vec<Entry>,
    namespace: Option<Namespace>,
}

impl Reference {
    pub fn committed(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Forgets the committed entries behind this one: they are no part of the group's history any more.
    pub fn forget_behind(&mut self, sn: Sn) {
        self.entries.truncate(sn.0 as usize);
        self.namespace = None;
    }

    /// The answer by all that has committed until now.
    ///
    /// # Errors
    /// An entry cannot be applied, or the request is not a read.
    pub fn answer(&mut self, key: CallKey, request: &Request) -> Result<Answer, String> {
        let namespace = self
            .namespace
            .get_or_insert_with(|| Namespace::new(1, "hdfs", "supergroup", Timestamp::from_ms(1)));
        let applied = namespace.applied().sn.0 as usize;
        for entry in self.entries.iter().skip(applied) {
            apply_to(namespace, entry)?;
        }
        match request.plan(namespace, origin_of(key), Timestamp::from_ms(1), Moment::default()) {
            Outcome::Answer(answer) => Ok(answer),
            Outcome::Edit(_) => Err("a read changes nothing".into()),
        }
    }
}
