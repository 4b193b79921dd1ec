//! `clover meta backup list` of several groups: the places in the directory log that their backups have, and the newest one that all have.

use super::opened::{explained, moment, open};
use anyhow::bail;
use base::{GroupId, directory_log::Dix};
use journal::archive::Backup;
use metad::backup::{
    Until, find, last_place,
    places::{self, Places},
};
use serde_json::json;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// A group's backup.
struct One<'a> {
    directory: &'a Path,
    backup: Backup,
    places: Vec<Places>,
}

impl One<'_> {
    fn group(&self) -> GroupId {
        self.backup.manifest().whose.group
    }

    fn has(&self, dix: Dix) -> bool {
        self.places.iter().any(|places| (places.first.dix..=places.last.dix).contains(&dix))
    }

    fn ranges(&self) -> String {
        match self.places.is_empty() {
            true => "none yet: the group comes to one with the next change of directories".to_owned(),
            false => self.places.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        }
    }
}

pub fn list(directories: &[PathBuf], at: Option<u64>, is_json: bool) -> anyhow::Result<ExitCode> {
    let mut all: Vec<One<'_>> = Vec::new();
    for directory in directories {
        let backup = open(directory)?;
        let places = places::places(&backup).map_err(explained)?;
        all.push(One { directory, backup, places });
    }
    all.sort_by_key(One::group);
    check(&all)?;
    if !is_json {
        all.iter().for_each(tell);
    }
    // The places of one group do not show which places the other groups have.
    let place = match (at, all.len()) {
        (Some(ms), _) => Some(before(&all, ms)?),
        (None, 1) => None,
        (None, _) => places::newest_common(&all.iter().map(|one| one.places.clone()).collect::<Vec<_>>()),
    };
    if let Some(dix) = place {
        check_history(&all, dix)?;
    }
    if is_json {
        let backups: Vec<_> = all.iter().map(as_json).collect();
        let told = json!({ "backups": backups, "dix": place.map(|dix| dix.0) });
        println!("{}", serde_json::to_string_pretty(&told)?);
    } else if let Some(dix) = place {
        tell_orders(&all, dix, at)?;
    } else if all.len() == 1 {
        println!(
            "With the backups of all groups this command says which place is the newest that all of them have."
        );
    } else {
        println!(
            "No place is in all of them, so the groups cannot be restored together from these backups. Go on with each backup (`clover admin backup`), and change a \
             directory when all have begun: `clover fs -mkdir` will do."
        );
    }
    Ok(if place.is_none() && all.len() > 1 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Whether these are the backups of different groups of one cluster.
fn check(all: &[One<'_>]) -> anyhow::Result<()> {
    let mut groups = BTreeSet::new();
    let first = &all[0].backup.manifest().whose.cluster_id;
    for one in all {
        let whose = &one.backup.manifest().whose;
        if whose.cluster_id != *first {
            bail!(
                "{} is a backup of cluster {first}, and {} one of {}: name the backups of one cluster",
                all[0].directory.display(),
                one.directory.display(),
                whose.cluster_id
            );
        }
        if !groups.insert(whose.group) {
            bail!(
                "{} is a second backup of group {}: name one of each group",
                one.directory.display(),
                whose.group
            );
        }
    }
    Ok(())
}

/// The last place before a time, by the clock of the root group.
fn before(all: &[One<'_>], ms: u64) -> anyhow::Result<Dix> {
    let Some(root) = all.iter().find(|one| one.group() == GroupId::ROOT) else {
        bail!(
            "the root group says which place was the last before a time: name the backup of group 1 as well"
        );
    };
    let last = last_place(&root.backup, Until::Time(ms)).map_err(explained)?;
    let Some(last) = last else {
        bail!("the backup of the root group has no place before {}: {}", moment(ms), root.ranges());
    };
    if let Some(lacks) = all.iter().find(|one| !one.has(last.dix)) {
        bail!(
            "the last place before {} is {}, and {} (group {}) does not have it: {}",
            moment(ms),
            last.dix,
            lacks.directory.display(),
            lacks.group(),
            lacks.ranges()
        );
    }
    Ok(last.dix)
}

/// Whether all have come to the place by the same changes.
fn check_history(all: &[One<'_>], dix: Dix) -> anyhow::Result<()> {
    let mut known = None;
    for one in all {
        let found = find(&one.backup, Until::Place(dix)).map_err(explained)?;
        match known {
            None => known = Some(found.place),
            Some(place) if place == found.place => {}
            Some(_) => bail!(
                "{} and {} have come to place {dix} by different changes: one of the two is from before changes were lost, in an unclean election or a restore. Name backups of \
                 one time",
                all[0].directory.display(),
                one.directory.display()
            ),
        }
    }
    Ok(())
}

fn tell(one: &One<'_>) {
    println!(
        "{}: group {} of cluster {}, at the places {}",
        one.directory.display(),
        one.group(),
        one.backup.manifest().whose.cluster_id,
        one.ranges()
    );
}

fn as_json(one: &One<'_>) -> serde_json::Value {
    let places = one.places.iter().map(|places| {
        json!({
            "first_dix": places.first.dix.0, "first_ms": places.first_ms,
            "last_dix": places.last.dix.0, "last_ms": places.last_ms,
        })
    });
    json!({
        "directory": one.directory.display().to_string(),
        "cluster_id": one.backup.manifest().whose.cluster_id,
        "group": one.group().0,
        "places": places.collect::<Vec<_>>(),
    })
}

fn tell_orders(all: &[One<'_>], dix: Dix, at: Option<u64>) -> anyhow::Result<()> {
    let of = find(&all[0].backup, Until::Place(dix)).map_err(explained)?.last_ms;
    let of = of.map_or_else(String::new, |ms| format!(", of {}", moment(ms)));
    match at {
        Some(ms) => println!("The last place before {} is {dix}{of}; all of them have it.", moment(ms)),
        None => println!("The newest place that all of them have is {dix}{of}."),
    }
    println!("Restore all groups there, the root group first (docs/operating/backup.md has all steps):");
    for one in all {
        let place = if one.group() == GroupId::ROOT { format!(" --dix {dix}") } else { String::new() };
        println!("  clover meta restore {}{place} --config FILE", one.directory.display());
    }
    if all[0].group() != GroupId::ROOT {
        println!(
            "The backup of group 1, the root group, is not among them: whether it has this place is not known."
        );
    }
    Ok(())
}
