//! The text of a cluster: `key=value` lines, as Hadoop's VERSION has them. It stands in each member's directory, and at
//! the coordinator for members that join.

use super::Cluster;
use crate::peers::Secret;
use base::{
    Chain, GroupId, Level, UnknownLevel,
    directory_log::{Dix, Point},
    level::RELEASE_BYTES_MAX,
};
use std::collections::BTreeMap;
use thiserror::Error;

/// The layout of a cluster file that names the level at which the group began. Releases that know of no levels refuse
/// it.
const LAYOUT: &str = "2";
const LAYOUT_WITHOUT_LEVEL: &str = "1";
/// The layout of a cluster file in the directory of a server of another group than the root group. Releases that know of one
/// group only refuse it.
const LAYOUT_OF_GROUP: &str = "3";

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
    let layout = match cluster.group {
        GroupId::ROOT if level > Level::FIRST => LAYOUT,
        GroupId::ROOT => LAYOUT_WITHOUT_LEVEL,
        _ => LAYOUT_OF_GROUP,
    };
    let mut text = format!(
        "layout={layout}\nclusterID={}\nnamespaceID={}\nblockpoolID={}\ncTime={}\n",
        cluster.cluster_id, cluster.namespace_id, cluster.block_pool, cluster.created_ms
    );
    if let Some(secret) = cluster.secret.as_ref().and_then(Secret::as_text) {
        text.push_str(&format!("memberSecret={secret}\n"));
    }
    if layout == LAYOUT_OF_GROUP {
        text.push_str(&format!("group={}\n", cluster.group));
    }
    if layout != LAYOUT_WITHOUT_LEVEL {
        text.push_str(&format!("firstLevel={level}\nrelease={}\n", level.release().unwrap_or_default()));
    }
    if let Some(point) = cluster.restored_at {
        text.push_str(&format!("restoredAt={}/{:016x}\n", point.dix, point.chain.0));
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
    if ![LAYOUT, LAYOUT_WITHOUT_LEVEL, LAYOUT_OF_GROUP].contains(&get("layout")?) {
        return Err(TextError::Layout(get("layout")?.to_owned()));
    }
    let number = |key: &str| get(key)?.parse::<u64>().map_err(|_| format!("{key} is not a number"));
    let first_level = match get("layout")? {
        LAYOUT | LAYOUT_OF_GROUP => {
            Level(u16::try_from(number("firstLevel")?).map_err(|_| "firstLevel is too large")?)
        }
        _ => Level::FIRST,
    };
    if first_level < Level::FIRST {
        return Err(format!("firstLevel is {first_level}, and the first one is {}", Level::FIRST).into());
    }
    if first_level > Level::NEWEST {
        let release = get("release")?.chars().filter(|c| !c.is_control()).take(RELEASE_BYTES_MAX).collect();
        return Err(TextError::Level(UnknownLevel { level: first_level, release }));
    }
    let group = match get("layout")? {
        LAYOUT_OF_GROUP => GroupId(u32::try_from(number("group")?).map_err(|_| "group is too large")?),
        _ => GroupId::ROOT,
    };
    if !group.is_possible() {
        return Err(format!("group is {group}, and groups are {} to {}", GroupId::ROOT, GroupId::LAST).into());
    }
    Ok(Cluster {
        first_level,
        group,
        cluster_id: get("clusterID")?.to_owned(),
        namespace_id: u32::try_from(number("namespaceID")?).map_err(|_| "namespaceID is too large")?,
        block_pool: get("blockpoolID")?.into(),
        created_ms: number("cTime")?,
        secret: match values.get("memberSecret") {
            None => None,
            Some(text) => Some(Secret::new(text.as_bytes()).ok_or("memberSecret is too short")?),
        },
        restored_at: match values.get("restoredAt") {
            None => None,
            Some(text) => Some(place(text).ok_or("restoredAt is no place in a directory log")?),
        },
    })
}

fn place(text: &str) -> Option<Point> {
    let (dix, chain) = text.split_once('/')?;
    Some(Point { dix: Dix(dix.parse().ok()?), chain: Chain(u64::from_str_radix(chain, 16).ok()?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_cannot_be_read_says_what_is_wrong() {
        let said = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(said("layout=4\n"), "layout 4 is not one that this version knows");
        assert_eq!(said("layout=3\nfirstLevel=1\n"), "group is missing");
        assert_eq!(said("layout=3\nfirstLevel=1\ngroup=0\n"), "group is 0, and groups are 1 to 128");
        assert_eq!(said("layout=3\nfirstLevel=1\ngroup=129\n"), "group is 129, and groups are 1 to 128");
        assert_eq!(said("layout=1\nclusterID=x\n"), "namespaceID is missing");
        assert_eq!(said("layout=2\nfirstLevel=0\n"), "firstLevel is 0, and the first one is 1");
        assert_eq!(said("layout=2\nfirstLevel=70000\n"), "firstLevel is too large");
        assert!(matches!(parse("layout=2\nfirstLevel=9\nrelease=7.1.0\n"), Err(TextError::Level(_))));
    }

    #[test]
    fn a_server_of_another_group_says_so_and_one_of_the_root_group_writes_what_it_always_wrote() {
        let text = "layout=1\nclusterID=CID-1\nnamespaceID=7\nblockpoolID=BP-1-10.0.0.1-5\ncTime=5\n";
        let root = parse(text).unwrap();
        assert_eq!((root.group, text_of(&root).as_str()), (GroupId::ROOT, text));
        let point = Point { dix: Dix(7), chain: Chain(0xab) };
        let restored = Cluster { restored_at: Some(point), ..root.clone() };
        let written = text_of(&restored);
        assert_eq!(written, format!("{text}restoredAt=7/00000000000000ab\n"));
        assert_eq!(parse(&written).unwrap().restored_at, Some(point));
        let wrong = written.replace("7/", "7-");
        assert_eq!(parse(&wrong).unwrap_err().to_string(), "restoredAt is no place in a directory log");
        assert_eq!(restored.of_group(GroupId(2)).unwrap().restored_at, None);
        for level in [Level::FIRST, Level::NEWEST] {
            let second = Cluster { first_level: level, ..root.of_group(GroupId(2)).unwrap() };
            let written = text_of(&second);
            assert!(written.starts_with("layout=3\n") && written.contains("\ngroup=2\n"), "{written}");
            let read = parse(&written).unwrap();
            assert_eq!(
                (read.group, read.block_pool, read.first_level),
                (GroupId(2), second.block_pool, level)
            );
        }
    }
}
