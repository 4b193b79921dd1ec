//! The text of a cluster: `key=value` lines, as Hadoop's VERSION has them. It stands in each member's directory, and at
//! the coordinator for members that join.

use super::Cluster;
use crate::peers::Secret;
use base::{Level, UnknownLevel, level::RELEASE_BYTES_MAX};
use std::collections::BTreeMap;
use thiserror::Error;

/// The layout of a cluster file that names the level at which the group began. Releases that know of no levels refuse
/// it.
const LAYOUT: &str = "2";
const LAYOUT_WITHOUT_LEVEL: &str = "1";

/// Why the text of a cluster is refused.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum TextError {
    #[error("{0}")]
    Malformed(String),
    #[error("layout {0} is not one that this version knows")]
    Layout(String),
    #[error(transparent)]
    Level(UnknownLevel),
}

impl From<&str> for TextError {
    fn from(what: &str) -> Self {
        Self::Malformed(what.to_owned())
    }
}

impl From<String> for TextError {
    fn from(what: String) -> Self {
        Self::Malformed(what)
    }
}

/// The text of a cluster.
pub fn text_of(cluster: &Cluster) -> String {
    let level = cluster.first_level;
    let layout = if level > Level::FIRST { LAYOUT } else { LAYOUT_WITHOUT_LEVEL };
    let mut text = format!(
        "layout={layout}\nclusterID={}\nnamespaceID={}\nblockpoolID={}\ncTime={}\n",
        cluster.cluster_id, cluster.namespace_id, cluster.block_pool, cluster.created_ms
    );
    if let Some(secret) = cluster.secret.as_ref().and_then(Secret::as_text) {
        text.push_str(&format!("memberSecret={secret}\n"));
    }
    if level > Level::FIRST {
        text.push_str(&format!("firstLevel={level}\nrelease={}\n", level.release().unwrap_or_default()));
    }
    text
}

/// Reads the text of a cluster.
///
/// # Errors
/// [`TextError::Layout`] or [`TextError::Level`] if a later release wrote it, [`TextError::Malformed`] if a line is
/// missing or makes no sense.
pub fn parse(text: &str) -> Result<Cluster, TextError> {
    let values: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
    let get = |key: &str| {
        values.get(key).copied().filter(|value| !value.is_empty()).ok_or_else(|| format!("{key} is missing"))
    };
    if ![LAYOUT, LAYOUT_WITHOUT_LEVEL].contains(&get("layout")?) {
        return Err(TextError::Layout(get("layout")?.to_owned()));
    }
    let number = |key: &str| get(key)?.parse::<u64>().map_err(|_| format!("{key} is not a number"));
    let first_level = match get("layout")? {
        LAYOUT => Level(u16::try_from(number("firstLevel")?).map_err(|_| "firstLevel is too large")?),
        _ => Level::FIRST,
    };
    if first_level < Level::FIRST {
        return Err(format!("firstLevel is {first_level}, and the first one is {}", Level::FIRST).into());
    }
    if first_level > Level::NEWEST {
        let release = get("release")?.chars().filter(|c| !c.is_control()).take(RELEASE_BYTES_MAX).collect();
        return Err(TextError::Level(UnknownLevel { level: first_level, release }));
    }
    Ok(Cluster {
        first_level,
        cluster_id: get("clusterID")?.to_owned(),
        namespace_id: u32::try_from(number("namespaceID")?).map_err(|_| "namespaceID is too large")?,
        block_pool: get("blockpoolID")?.into(),
        created_ms: number("cTime")?,
        secret: match values.get("memberSecret") {
            None => None,
            Some(text) => Some(Secret::new(text.as_bytes()).ok_or("memberSecret is too short")?),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_cannot_be_read_says_what_is_wrong() {
        let said = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(said("layout=3\n"), "layout 3 is not one that this version knows");
        assert_eq!(said("layout=1\nclusterID=x\n"), "namespaceID is missing");
        assert_eq!(said("layout=2\nfirstLevel=0\n"), "firstLevel is 0, and the first one is 1");
        assert_eq!(said("layout=2\nfirstLevel=70000\n"), "firstLevel is too large");
        assert!(matches!(parse("layout=2\nfirstLevel=9\nrelease=7.1.0\n"), Err(TextError::Level(_))));
    }
}
