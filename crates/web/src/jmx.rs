//! `/jmx`: numbers in the shape in which Hadoop's servers show their Java beans, for the tools that read these.
//!
//! Shape, names and answers to odd questions are those of a Hadoop 3.5.0, asked by `curl`.

mod bean;
pub(crate) mod layout;
mod pattern;
mod process;
mod rpc_port;

pub use bean::{Bean, BeanSource, Beans, Counters, Record};
pub use process::put_process_beans;
pub use rpc_port::{RpcPort, mean_ms, put_rpc_methods, put_rpc_port};

use crate::{
    parameters::Parameters,
    refusal::{Refusal, Result},
};
use axum::{
    Router,
    extract::State,
    http::{Uri, header},
    response::IntoResponse,
    routing::get,
};
use pattern::Pattern;
use serde::Serialize;
use serde_json::{Map, Value};

/// A bean, or a part of it, in an answer. Its name stands first.
#[derive(Debug, Serialize)]
struct Shown {
    name: String,
    #[serde(rename = "modelerType")]
    model: String,
    #[serde(flatten)]
    attributes: Map<String, Value>,
}

impl From<Bean> for Shown {
    fn from(bean: Bean) -> Self {
        let Bean { name, model, attributes, record: _ } = bean;
        Self { name, model, attributes }
    }
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Answer {
    Beans { beans: Vec<Shown> },
    Error { result: &'static str, message: &'static str },
    Nothing {},
}

/// The page `/jmx`.
pub fn jmx(source: BeanSource) -> Router {
    Router::new().route("/jmx", get(show)).with_state(source)
}

/// `qry` has the names of the beans that are wanted, with `*` and `?` for what may differ; `get` is `BEAN::ATTRIBUTE`, one attribute of one
/// bean.
async fn show(State(source): State<BeanSource>, uri: Uri) -> Result<impl IntoResponse> {
    let asked = Parameters::of(&uri)?;
    let answer = answer(&source, asked.get("qry"), asked.get("get"))?;
    // Hadoop lets pages of any host read this, and nothing else here.
    let headers = [
        (header::CONTENT_TYPE, "application/json; charset=utf8"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET"),
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    Ok((headers, layout::text(&answer)))
}

fn answer(source: &BeanSource, qry: Option<&str>, get: Option<&str>) -> Result<Answer> {
    if let Some(wanted) = get {
        let Some((name, attribute)) = wanted.split_once("::").filter(|(_, rest)| !rest.contains("::")) else {
            return Ok(Answer::Error { result: "ERROR", message: "query format is not as expected." });
        };
        let beans = matching(source, name)?.unwrap_or_default();
        let shown = beans.into_iter().map(|mut bean| {
            bean.attributes = match bean.attributes.remove(attribute) {
                Some(value) => Map::from_iter([(attribute.to_owned(), value)]),
                None => Map::from_iter([
                    ("result".into(), "ERROR".into()),
                    ("message".into(), format!("No attribute with name {attribute} was found.").into()),
                ]),
            };
            Shown::from(bean)
        });
        return Ok(Answer::Beans { beans: shown.collect() });
    }
    Ok(match matching(source, qry.unwrap_or("*:*"))? {
        Some(beans) => Answer::Beans { beans: beans.into_iter().map(Shown::from).collect() },
        None => Answer::Nothing {},
    })
}

/// `None` if the names that are asked for are no names of beans.
fn matching(source: &BeanSource, names: &str) -> Result<Option<Vec<Bean>>> {
    if names.len() > pattern::BYTES_MAX {
        return Err(Refusal::bad(format!(
            "the name of a bean has {} bytes at most, and this one {}",
            pattern::BYTES_MAX,
            names.len()
        )));
    }
    let Some(pattern) = Pattern::parse(names) else { return Ok(None) };
    let mut beans = Beans::named(&pattern);
    source(&mut beans);
    Ok(Some(beans.made()))
}

#[cfg(test)]
mod tests;
