//! Attributes of the server's own beans. Any may be missing: the page shows then that it is not known.

use serde_json::{Map, Value};
use web::{Facts, jmx};

/// The beans of the server, looked up once for a page.
pub struct Beans {
    by_name: Map<String, Value>,
}

impl Beans {
    pub fn of(facts: &Facts) -> Self {
        let beans = facts.sources.beans.as_ref().map(jmx::Beans::all_of).unwrap_or_default();
        let named = beans.into_iter().filter_map(|bean| {
            let (_, name) = bean.name.split_once("name=")?;
            Some((name.to_owned(), Value::Object(bean.attributes)))
        });
        Self { by_name: named.collect() }
    }

    pub fn value(&self, bean: &str, attribute: &str) -> Option<&Value> {
        self.by_name.get(bean)?.get(attribute)
    }

    pub fn number(&self, bean: &str, attribute: &str) -> Option<u64> {
        let value = self.value(bean, attribute)?;
        value.as_u64().or_else(|| value.as_f64().map(|number| number as u64))
    }

    pub fn text(&self, bean: &str, attribute: &str) -> Option<&str> {
        self.value(bean, attribute)?.as_str()
    }

    /// An attribute that is JSON inside a text.
    pub fn json(&self, bean: &str, attribute: &str) -> Option<Value> {
        serde_json::from_str(self.text(bean, attribute)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;
    use web::{Health, Sources};

    #[test]
    fn attributes_are_found_and_what_is_missing_is_absent() {
        let attributes = json!({ "Blocks": 3, "Share": 2.5, "Json": "{\"a\":1}", "Text": "x" });
        let beans = Arc::new(move |beans: &mut jmx::Beans<'_>| {
            beans.put("Hadoop:service=NameNode,name=Info".into(), "Info", || attributes.clone());
        });
        let sources = Sources { beans: Some(beans), ..Sources::default() };
        let facts = Facts { health: Arc::new(Health::default), sources };
        let beans = Beans::of(&facts);
        assert_eq!((beans.number("Info", "Blocks"), beans.number("Info", "Share")), (Some(3), Some(2)));
        assert_eq!(beans.json("Info", "Json"), Some(json!({ "a": 1 })));
        assert_eq!(beans.json("Info", "Text"), None);
        assert_eq!(beans.number("Other", "Blocks"), None);
        let none = Facts { health: Arc::new(Health::default), sources: Sources::default() };
        assert_eq!(Beans::of(&none).text("Info", "Text"), None);
    }
}
