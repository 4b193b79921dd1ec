//! `/jmx`: numbers in the shape in which Hadoop's servers show their Java beans, for the tools that read these.
//!
//! Shape, names and answers to odd questions are those of a Hadoop 3.5.0, asked by `curl`.

mod layout;
mod pattern;
mod process;

pub use process::process_beans;

use axum::{
    Router,
    extract::{Query, State},
    http::header,
    response::IntoResponse,
    routing::get,
};
use pattern::Pattern;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// One bean: a group of attributes under a name like `Hadoop:service=NameNode,name=NameNodeInfo`.
#[derive(Clone, Debug)]
pub struct Bean {
    pub name: String,
    /// The Java class that the bean describes in Hadoop (`modelerType`). Some tools show it.
    pub model: String,
    /// The attributes by name, in their order.
    pub attributes: Map<String, Value>,
}

impl Bean {
    /// A bean whose attributes are given as a JSON object.
    ///
    /// # Panics
    /// If `attributes` is no object: a fault of the program.
    pub fn new(name: impl Into<String>, model: impl Into<String>, attributes: Value) -> Self {
        let Value::Object(attributes) = attributes else { panic!("the attributes of a bean are an object") };
        Self { name: name.into(), model: model.into(), attributes }
    }

    fn with(&self, attributes: Map<String, Value>) -> Shown {
        Shown { name: self.name.clone(), model: self.model.clone(), attributes }
    }
}

/// A bean, or a part of it, in an answer. Its name stands first.
#[derive(Debug, Serialize)]
struct Shown {
    name: String,
    #[serde(rename = "modelerType")]
    model: String,
    #[serde(flatten)]
    attributes: Map<String, Value>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Answer {
    Beans { beans: Vec<Shown> },
    Error { result: &'static str, message: &'static str },
    Nothing {},
}

/// Makes all beans of a server. It is asked at each request, and must be quick.
pub type BeanSource = Arc<dyn Fn() -> Vec<Bean> + Send + Sync>;

/// The page `/jmx`.
pub fn jmx(source: BeanSource) -> Router {
    Router::new().route("/jmx", get(show)).with_state(source)
}

#[derive(Deserialize)]
struct Asked {
    /// The names of the beans that are wanted, with `*` and `?` for what may differ.
    qry: Option<String>,
    /// `BEAN::ATTRIBUTE`: one attribute of one bean.
    get: Option<String>,
}

async fn show(State(source): State<BeanSource>, Query(asked): Query<Asked>) -> impl IntoResponse {
    let answer = answer(&source, &asked);
    // Hadoop lets pages of any host read this, and nothing else here.
    let headers = [
        (header::CONTENT_TYPE, "application/json; charset=utf8"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET"),
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, layout::text(&answer))
}

fn answer(source: &BeanSource, asked: &Asked) -> Answer {
    if let Some(wanted) = &asked.get {
        let Some((name, attribute)) = wanted.split_once("::").filter(|(_, rest)| !rest.contains("::")) else {
            return Answer::Error { result: "ERROR", message: "query format is not as expected." };
        };
        let beans = matching(source, name).unwrap_or_default();
        let shown = beans.iter().map(|bean| {
            let found = bean.attributes.get(attribute);
            bean.with(match found {
                Some(value) => Map::from_iter([(attribute.to_owned(), value.clone())]),
                None => Map::from_iter([
                    ("result".into(), "ERROR".into()),
                    ("message".into(), format!("No attribute with name {attribute} was found.").into()),
                ]),
            })
        });
        return Answer::Beans { beans: shown.collect() };
    }
    match matching(source, asked.qry.as_deref().unwrap_or("*:*")) {
        Some(beans) => {
            Answer::Beans { beans: beans.iter().map(|bean| bean.with(bean.attributes.clone())).collect() }
        }
        None => Answer::Nothing {},
    }
}

/// `None` if the names that are asked for are no names of beans.
fn matching(source: &BeanSource, names: &str) -> Option<Vec<Bean>> {
    let pattern = Pattern::parse(names)?;
    Some(source().into_iter().filter(|bean| pattern.matches(&bean.name)).collect())
}

#[cfg(test)]
mod tests;
