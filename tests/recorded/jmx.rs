//! The beans that a Hadoop 3.5.0 has shown at `/jmx`, for the tests of both servers.

use serde_json::Value;
use std::collections::BTreeMap;

/// The kinds of values by attribute, by bean.
pub type Beans = BTreeMap<&'static str, BTreeMap<&'static str, &'static str>>;

/// The recorded beans whose names `is_meant` accepts.
pub fn hadoops(is_meant: impl Fn(&str) -> bool) -> Beans {
    let mut beans = Beans::new();
    for line in include_str!("jmx-3.5.0.tsv").lines().filter(|line| !line.starts_with('#')) {
        let [bean, attribute, kind] = line.split('\t').collect::<Vec<_>>().try_into().expect("three columns");
        if is_meant(bean) {
            beans.entry(bean).or_default().insert(attribute, kind);
        }
    }
    beans
}

/// The kind of a value, as the record calls it.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "real",
        Value::Number(_) => "integer",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}
