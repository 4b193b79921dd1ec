//! A data server's directory: whose it is, what is in it, and what does not belong there.

use super::Args;
use crate::table;
use anyhow::Context;
use blockstore::survey::{
    self, Depth, DirectorySurvey, PlaceSurvey, PoolSurvey, Severity, finding::KEPT_COUNT_MAX, pool::PutAside,
};
use env::Env;
use serde_json::{Value, json};
use std::{io::Write, path::Path};

/// How often it is told how far the reading has come.
const PROGRESS_MS: u64 = 5_000;

const REMEDY: &str = "other data servers may have whole replicas of these blocks: `clover fsck` tells";

/// Whether all of it is sound.
pub fn show(env: &Env, root: &Path, args: &Args, out: &mut impl Write) -> anyhow::Result<bool> {
    let of = || root.display().to_string();
    let names = survey::survey(&*env.disk, root, Depth::Names, &mut |_| true).with_context(of)?;
    let found = match args.verify {
        true => verify(env, root, &names).with_context(of)?,
        false => names,
    };
    match args.json {
        true => writeln!(out, "{}", as_json(root, &found, args.verify))?,
        false => tell(root, &found, args.verify, out)?,
    }
    Ok(found.findings.damage_count == 0)
}

/// Reads everything, and says on the standard error how far it has come. `names` tells how much there is.
fn verify(env: &Env, root: &Path, names: &DirectorySurvey) -> std::io::Result<DirectorySurvey> {
    let (count, bytes) = names.replicas();
    let mut read = 0;
    let began = env.clock.moment();
    let mut told = began;
    survey::survey(&*env.disk, root, Depth::Bytes, &mut |piece| {
        read += piece;
        let now = env.clock.moment();
        if now.ms_since(told) >= PROGRESS_MS {
            told = now;
            let (mib, all) = (read >> 20, bytes >> 20);
            let seconds = now.ms_since(began) / 1_000;
            // Nobody reads it any more if this fails, and the result is not told there.
            let _ = writeln!(
                std::io::stderr(),
                "{}: {mib} MiB read after {seconds} s; {count} replicas of {all} MiB",
                root.display()
            );
        }
        true
    })
}

fn tell(root: &Path, found: &DirectorySurvey, is_verified: bool, out: &mut impl Write) -> anyhow::Result<()> {
    writeln!(out, "{}", root.display())?;
    let of = |key: &str| {
        found.version.as_ref().and_then(|version| version.get(key)).unwrap_or("unknown").to_owned()
    };
    writeln!(out, "cluster    {}", of("clusterID"))?;
    writeln!(out, "server     {}", of("datanodeUuid"))?;
    writeln!(out, "storage    {}", of("storageID"))?;
    writeln!(out, "layout     {}", of("layoutVersion"))?;
    for tree in &found.put_aside {
        tell_put_aside(tree, out)?;
    }
    for pool in &found.pools {
        tell_pool(pool, out)?;
    }
    writeln!(out)?;
    for finding in &found.findings.kept {
        let word = match finding.severity {
            Severity::Damage => "DAMAGED",
            Severity::Stranger => "does not belong",
        };
        writeln!(out, "{word}: {} {}", finding.path.display(), finding.what)?;
    }
    for (count, word) in
        [(found.findings.damage_count, "damaged"), (found.findings.stranger_count, "that do not belong")]
    {
        if count > KEPT_COUNT_MAX as u64 {
            writeln!(out, "and {} more things {word}", count - KEPT_COUNT_MAX as u64)?;
        }
    }
    writeln!(out, "verdict: {}", verdict(found, is_verified))?;
    Ok(())
}

fn tell_put_aside(tree: &PutAside, out: &mut impl Write) -> anyhow::Result<()> {
    let PutAside { path, file_count, bytes } = tree;
    writeln!(
        out,
        "put aside  {}: {file_count} files, {bytes} bytes, of an upgrade that is not final",
        path.display()
    )?;
    Ok(())
}

fn tell_pool(pool: &PoolSurvey, out: &mut impl Write) -> anyhow::Result<()> {
    writeln!(out, "\n{}", pool.id)?;
    let of = |key: &str| {
        pool.version.as_ref().and_then(|version| version.get(key)).unwrap_or("unknown").to_owned()
    };
    writeln!(out, "namespace  {}", of("namespaceID"))?;
    for tree in &pool.put_aside {
        tell_put_aside(tree, out)?;
    }
    let mut rows = vec![["REPLICAS", "COUNT", "BLOCK BYTES", "META BYTES"].map(str::to_owned).to_vec()];
    for (name, place) in places(pool) {
        let numbers =
            [place.replica_count, place.block_bytes, place.meta_bytes].map(|number| number.to_string());
        rows.push([vec![name.to_owned()], numbers.to_vec()].concat());
    }
    for line in table::lines(&rows) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn places(pool: &PoolSurvey) -> [(&'static str, PlaceSurvey); 3] {
    [("finalized", pool.finalized), ("rbw", pool.being_written), ("tmp", pool.temporary)]
}

fn verdict(found: &DirectorySurvey, is_verified: bool) -> String {
    let (replicas, _) = found.replicas();
    let damaged = found.findings.damage_count;
    match (damaged, is_verified) {
        (0, true) => format!("sound; every byte of {replicas} replicas was compared with its checksum"),
        (0, false) => format!(
            "names and lengths of {replicas} replicas are right; --verify compares every byte with its checksum"
        ),
        (damaged, _) => format!("NOT SOUND: {damaged} things are damaged. {REMEDY}"),
    }
}

fn as_json(root: &Path, found: &DirectorySurvey, is_verified: bool) -> Value {
    let properties = |version: &Option<blockstore::version_file::Version>| {
        version.as_ref().map(|version| version.properties.clone())
    };
    let put_aside = |trees: &[PutAside]| -> Vec<Value> {
        let tree =
            |tree: &PutAside| json!({ "path": tree.path, "files": tree.file_count, "bytes": tree.bytes });
        trees.iter().map(tree).collect()
    };
    let pools = found.pools.iter().map(|pool| {
        let places = places(pool).map(|(name, place)| {
            let PlaceSurvey { replica_count, block_bytes, meta_bytes } = place;
            let figures =
                json!({ "replicas": replica_count, "block_bytes": block_bytes, "meta_bytes": meta_bytes });
            (name.to_owned(), figures)
        });
        json!({
            "pool": pool.id,
            "version": properties(&pool.version),
            "places": serde_json::Map::from_iter(places),
            "put_aside": put_aside(&pool.put_aside),
        })
    });
    let findings = found.findings.kept.iter().map(|finding| {
        json!({ "path": finding.path, "damage": finding.severity == Severity::Damage, "what": finding.what })
    });
    json!({
        "data_directory": root,
        "version": properties(&found.version),
        "pools": pools.collect::<Vec<_>>(),
        "put_aside": put_aside(&found.put_aside),
        "findings": findings.collect::<Vec<_>>(),
        "damage_count": found.findings.damage_count,
        "stranger_count": found.findings.stranger_count,
        "verified": is_verified,
        "sound": found.findings.damage_count == 0,
        "verdict": verdict(found, is_verified),
    })
}
