//! Beans, and which of them an answer needs.

use super::pattern::Pattern;
use serde_json::{Map, Value};
use std::sync::Arc;

/// One bean: a group of attributes under a name like `Hadoop:service=NameNode,name=NameNodeInfo`.
#[derive(Clone, Debug)]
pub struct Bean {
    pub name: String,
    /// The Java class that the bean describes in Hadoop (`modelerType`). Some tools show it.
    pub model: String,
    /// The attributes by name.
    pub attributes: Map<String, Value>,
    /// The record of metrics that Hadoop makes this bean from; `None` if it is made from none.
    pub record: Option<Record>,
}

/// The record of metrics that a bean shows: `/prom` has the numbers of all records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The name with which the names of its metrics begin: `rpc`, `FSNamesystem`.
    pub name: &'static str,
    pub counters: Counters,
}

/// The attributes of a record that only grow. Numbers of events (`…NumOps`) always do, and mean times (`…AvgTime`) never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counters {
    /// These.
    Only(&'static [&'static str]),
    /// All numbers of the record except these.
    AllBut(&'static [&'static str]),
}

impl Counters {
    /// Whether an attribute only grows.
    pub fn has(&self, attribute: &str) -> bool {
        match self {
            _ if attribute.ends_with("NumOps") => true,
            _ if attribute.ends_with("AvgTime") => false,
            Self::Only(names) => names.contains(&attribute),
            Self::AllBut(names) => !names.contains(&attribute),
        }
    }
}

/// Puts the beans of a server into an answer. It is called at each request, and must be quick.
pub type BeanSource = Arc<dyn Fn(&mut Beans<'_>) + Send + Sync>;

enum Wanted<'a> {
    Named(&'a Pattern<'a>),
    Records,
    All,
}

/// The beans of one answer. A bean that is not asked for is not made.
pub struct Beans<'a> {
    wanted: Wanted<'a>,
    made: Vec<Bean>,
}

impl<'a> Beans<'a> {
    pub(super) fn named(pattern: &'a Pattern<'a>) -> Self {
        Self { wanted: Wanted::Named(pattern), made: Vec::new() }
    }

    /// The beans that are made from records of metrics.
    pub(crate) fn of_records() -> Self {
        Self { wanted: Wanted::Records, made: Vec::new() }
    }

    /// All beans that the source has.
    pub fn all_of(source: &BeanSource) -> Vec<Bean> {
        let mut beans = Beans { wanted: Wanted::All, made: Vec::new() };
        source(&mut beans);
        beans.made
    }

    pub(crate) fn made(self) -> Vec<Bean> {
        self.made
    }

    /// Adds a bean if it is asked for. Its attributes are a JSON object.
    ///
    /// # Panics
    /// If the attributes are no object: a fault of the program.
    pub fn put(&mut self, name: String, model: impl Into<String>, attributes: impl FnOnce() -> Value) {
        self.add(name, None, model, attributes);
    }

    /// Adds a bean that Hadoop makes from a record of metrics.
    ///
    /// # Panics
    /// Likewise.
    pub fn put_record(
        &mut self,
        name: String,
        record: Record,
        model: impl Into<String>,
        attributes: impl FnOnce() -> Value,
    ) {
        self.add(name, Some(record), model, attributes);
    }

    fn add(
        &mut self,
        name: String,
        record: Option<Record>,
        model: impl Into<String>,
        attributes: impl FnOnce() -> Value,
    ) {
        let is_wanted = match self.wanted {
            Wanted::Named(pattern) => pattern.matches(&name),
            Wanted::Records => record.is_some(),
            Wanted::All => true,
        };
        if !is_wanted {
            return;
        }
        let Value::Object(attributes) = attributes() else {
            panic!("the attributes of a bean are an object");
        };
        self.made.push(Bean { name, model: model.into(), attributes, record });
    }
}
