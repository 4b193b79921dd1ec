//! The attributes that tools which watch an HDFS read at `/jmx`, for the tests of both servers.

use super::jmx_record::{hadoops, kind_of};
use serde_json::Value;
use std::collections::BTreeMap;

/// A question of a tool, and the attributes that it reads of the answer.
pub struct Question {
    pub tool: &'static str,
    /// The part behind `/jmx?`; empty for all beans.
    pub query: &'static str,
    bean: &'static str,
    attributes: Vec<&'static str>,
}

/// The questions to a service, `NameNode` or `DataNode`.
pub fn questions(service: &str) -> Vec<Question> {
    let lines = include_str!("monitors.tsv").lines().filter(|line| !line.starts_with('#'));
    let questions = lines.filter_map(|line| {
        let [tool, of, query, bean, attributes] =
            line.split('\t').collect::<Vec<_>>().try_into().expect("five columns");
        (of == service).then(|| Question { tool, query, bean, attributes: attributes.split(' ').collect() })
    });
    questions.collect()
}

impl Question {
    /// Checks that the answer has all attributes, with the types that they have in Hadoop.
    pub fn check(&self, page: &str) {
        let Self { tool, query, bean, attributes } = self;
        let json = &page[page.find('{').expect("JSON")..=page.rfind('}').expect("JSON")];
        let answer: Value = serde_json::from_str(json).expect("JSON");
        let is_it = |name: &str| match bean.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == *bean,
        };
        let found = answer["beans"].as_array().expect("a list of beans").iter();
        let mut found = found.filter(|bean| bean["name"].as_str().is_some_and(is_it));
        let (Some(shown), None) = (found.next(), found.next()) else {
            panic!("{tool} asks for {bean} by `{query}`, and it is not there once")
        };
        let known: BTreeMap<_, _> = hadoops(|name| name == *bean).remove(bean).expect("Hadoop has this bean");
        for attribute in attributes {
            let value = &shown[attribute];
            let kind = known.get(attribute).unwrap_or_else(|| panic!("Hadoop's {bean} has no {attribute}"));
            assert_eq!(kind_of(value), *kind, "{tool} reads {attribute} of {bean}: {value}");
            // Some texts are JSON, which tools parse.
            if let Some(text) = value.as_str().filter(|text| text.starts_with(['{', '['])) {
                serde_json::from_str::<Value>(text)
                    .unwrap_or_else(|error| panic!("{tool} {attribute}: {error}"));
            }
        }
    }
}
