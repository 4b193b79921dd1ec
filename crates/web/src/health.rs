//! How a server is.

use serde::Serialize;
use std::{collections::BTreeMap, fmt, sync::Arc};

/// How a role is, for load balancers and people. Serialized as JSON: `{"ok":true,"state":"active",…}`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Health {
    /// `false` answers 503.
    pub ok: bool,
    /// One word: `active`, `safe mode`, `registering`, …
    pub state: String,
    /// Further facts, by name.
    #[serde(flatten)]
    pub details: BTreeMap<String, String>,
    /// The reason why clients would not be served here now, although this server is well; `None` if they would.
    /// `/ready` answers 503 then.
    #[serde(skip)]
    pub not_ready: Option<String>,
    /// Further facts about the whole cluster. They change neither answer.
    #[serde(skip)]
    pub cluster: Option<FurtherFacts>,
}

/// A JSON object whose fields stand beside the others in `/health`. It is made for that page alone: `/ready` is asked far more often.
#[derive(Clone)]
pub struct FurtherFacts(pub Arc<dyn Fn() -> serde_json::Value + Send + Sync>);

impl fmt::Debug for FurtherFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FurtherFacts")
    }
}

impl Health {
    /// The body of `/health`: the facts of this server first.
    pub fn body(&self) -> String {
        #[derive(Serialize)]
        struct Body<'a> {
            #[serde(flatten)]
            health: &'a Health,
            #[serde(flatten)]
            cluster: Option<serde_json::Value>,
        }
        let cluster = self.cluster.as_ref().map(|FurtherFacts(further)| further());
        serde_json::to_string(&Body { health: self, cluster }).unwrap_or_else(|error| error.to_string())
    }
}

/// Asked at each `/health`; must be quick.
pub type HealthSource = Arc<dyn Fn() -> Health + Send + Sync>;
