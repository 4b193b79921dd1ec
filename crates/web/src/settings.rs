//! `/conf`: the settings of a server, and where each value comes from.
//!
//! A setting that Hadoop has as well stands under Hadoop's name, with the value in Hadoop's unit, and under Clover's own.

use crate::{
    parameters::Parameters,
    refusal::{Refusal, Result},
};
use axum::{
    Router,
    extract::State,
    http::{HeaderMap, Uri, header},
    response::IntoResponse,
    routing::get,
};
use serde::Serialize;
use std::{fmt, sync::Arc};

/// One setting of a server, as it holds now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    pub key: String,
    /// The value, and what it would be if nothing set it. Lists have commas between their parts.
    pub value: String,
    pub default: String,
    pub source: Source,
    /// Hadoop's name of it, and the value as Hadoop writes it.
    pub hadoop: Option<HadoopSetting>,
    /// The kind of its values and their range, for people.
    pub range: String,
    pub help: String,
}

/// A setting under Hadoop's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HadoopSetting {
    pub key: String,
    pub value: String,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Default,
    /// The configuration file, as it was named when the server was started.
    File(String),
    CommandLine,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(name) => f.write_str(name),
            Self::CommandLine => f.write_str("command line"),
        }
    }
}

/// The settings at the moment, in the order in which people read them.
pub type SettingsSource = Arc<dyn Fn() -> Vec<Setting> + Send + Sync>;

/// The text that stands in place of a secret, as in Hadoop.
const HIDDEN: &str = "<redacted>";

/// Whether the value of a setting is hidden. A file's name is no secret.
pub fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["secret", "password", "pass", "token", "credential", "credentials"].iter().any(|end| key.ends_with(end))
}

/// The page `/conf`.
pub fn conf(source: SettingsSource) -> Router {
    Router::new().route("/conf", get(show)).with_state(source)
}

/// A line of the page, in Hadoop's words and order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Property {
    key: String,
    value: String,
    is_final: bool,
    resource: String,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Answer<'a> {
    Property(&'a Property),
    Properties(&'a [Property]),
}

impl Setting {
    /// The setting as pages show it: a secret is hidden under both names.
    pub fn for_pages(mut self) -> Self {
        let hadoops = self.hadoop.as_ref().map(|hadoop| &*hadoop.key);
        if is_secret(&self.key) || hadoops.is_some_and(is_secret) {
            self.value = HIDDEN.to_owned();
            if let Some(hadoop) = &mut self.hadoop {
                hadoop.value = HIDDEN.to_owned();
            }
        }
        self
    }
}

fn properties(settings: Vec<Setting>) -> Vec<Property> {
    let property = |setting: Setting| {
        let setting = setting.for_pages();
        let source = setting.source.to_string();
        let own = (setting.key, setting.value);
        let hadoops = setting.hadoop.map(|hadoop| (hadoop.key, hadoop.value));
        let both = hadoops.into_iter().chain([own]);
        both.map(move |(key, value)| Property { key, value, is_final: false, resource: source.clone() })
    };
    settings.into_iter().flat_map(property).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Xml,
    Json,
}

impl Format {
    /// `format=` says it, or else what the client accepts.
    fn of(asked: &Parameters, headers: &HeaderMap) -> Result<Self> {
        match asked.text("format") {
            Some("json") => Ok(Self::Json),
            Some("xml") => Ok(Self::Xml),
            Some(other) => Err(Refusal::bad(format!("Bad format: {other}"))),
            None => {
                let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
                Ok(if accept.is_some_and(|accept| accept.contains("json")) { Self::Json } else { Self::Xml })
            }
        }
    }
}

async fn show(
    State(source): State<SettingsSource>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<impl IntoResponse> {
    let asked = Parameters::of(&uri)?;
    let format = Format::of(&asked, &headers)?;
    let mut properties = properties(source());
    let name = asked.text("name");
    if let Some(name) = name {
        properties.retain(|property| property.key == name);
        properties.truncate(1);
        if properties.is_empty() {
            return Err(Refusal::not_found(format!("Property {name} not found")));
        }
    }
    let (kind, text) = match format {
        Format::Xml => ("text/xml; charset=utf-8", as_xml(&properties)),
        Format::Json => ("application/json; charset=utf-8", as_json(&properties, name.is_some())),
    };
    Ok(([(header::CONTENT_TYPE, kind)], text))
}

fn as_json(properties: &[Property], is_one: bool) -> String {
    let answer = match properties {
        [one] if is_one => Answer::Property(one),
        all => Answer::Properties(all),
    };
    serde_json::to_string(&answer).expect("texts are written to memory")
}

fn as_xml(properties: &[Property]) -> String {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?><configuration>\n".to_owned();
    for Property { key, value, resource, .. } in properties {
        text += &format!(
            "<property><name>{}</name><value>{}</value><final>false</final><source>{}</source></property>\n",
            escaped(key),
            escaped(value),
            escaped(resource)
        );
    }
    text + "</configuration>\n"
}

/// The text as it may stand in XML, which has no way to write most control characters.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' => escaped.push(letter),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(key: &str, value: &str, hadoop: Option<(&str, &str)>, source: Source) -> Setting {
        let hadoop = hadoop.map(|(key, value)| HadoopSetting { key: key.into(), value: value.into() });
        let (key, value) = (key.to_owned(), value.to_owned());
        Setting {
            key,
            value,
            hadoop,
            source,
            default: String::new(),
            range: String::new(),
            help: String::new(),
        }
    }

    async fn ask(query: &str, accept: Option<&str>) -> Result<(String, String)> {
        let source: SettingsSource = Arc::new(|| {
            let file = || Source::File("a<b>.toml".into());
            vec![
                setting("heartbeat_interval_ms", "3000", Some(("dfs.heartbeat.interval", "3")), file()),
                setting("superuser", "a&b\u{1}", None, Source::Default),
                setting("zookeeper_password", "hush", Some(("ha.zookeeper.auth", "hush")), file()),
            ]
        });
        let headers = accept.map(|accept| (header::ACCEPT, accept.parse().unwrap())).into_iter().collect();
        let uri = format!("/conf{query}").parse().unwrap();
        let response = show(State(source), headers, uri).await?.into_response();
        let kind = response.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        Ok((kind, String::from_utf8(body.to_vec()).unwrap()))
    }

    #[tokio::test]
    async fn settings_stand_under_both_names_and_secrets_nowhere() {
        let (kind, text) = ask("", None).await.unwrap();
        assert_eq!(kind, "text/xml; charset=utf-8");
        let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?><configuration>\n\
            <property><name>dfs.heartbeat.interval</name><value>3</value><final>false</final><source>a&lt;b&gt;.toml</source></property>\n\
            <property><name>heartbeat_interval_ms</name><value>3000</value><final>false</final><source>a&lt;b&gt;.toml</source></property>\n\
            <property><name>superuser</name><value>a&amp;b\u{fffd}</value><final>false</final><source>default</source></property>\n\
            <property><name>ha.zookeeper.auth</name><value>&lt;redacted&gt;</value><final>false</final><source>a&lt;b&gt;.toml</source></property>\n\
            <property><name>zookeeper_password</name><value>&lt;redacted&gt;</value><final>false</final><source>a&lt;b&gt;.toml</source></property>\n\
            </configuration>\n";
        assert_eq!(text, expected);
        let (_, json) = ask("?format=json", None).await.unwrap();
        assert!(!json.contains("hush"), "{json}");
    }

    #[tokio::test]
    async fn one_setting_is_shown_alone() {
        let (kind, text) = ask("?name=dfs.heartbeat.interval", Some("application/json")).await.unwrap();
        assert_eq!(kind, "application/json; charset=utf-8");
        let expected = r#"{"property":{"key":"dfs.heartbeat.interval","value":"3","isFinal":false,"resource":"a<b>.toml"}}"#;
        assert_eq!(text, expected);
        let (_, text) = ask("?name=superuser&format=xml", Some("application/json")).await.unwrap();
        assert!(text.starts_with("<?xml") && text.matches("<property>").count() == 1, "{text}");
    }

    #[tokio::test]
    async fn odd_questions_are_refused() {
        let refused = async |query: &str| ask(query, None).await.map(|_| ()).unwrap_err();
        let unknown = refused("?name=nope").await;
        assert_eq!((unknown.status.as_u16(), &*unknown.message), (404, "Property nope not found"));
        let format = refused("?format=yaml").await;
        assert_eq!((format.status.as_u16(), &*format.message), (400, "Bad format: yaml"));
        assert_eq!(refused("?name=%ff").await.status.as_u16(), 400);
    }
}
