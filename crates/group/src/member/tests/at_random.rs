//! The machine under crashes, cuts and older coordinators that nobody has chosen.

use super::{cluster::Cluster, first_claim::restart_with_base};

/// The number of random runs for each size of a group.
const RUNS: u64 = 20;

/// Runs a group at random, with crashes, restarts with checkpoints, links that are cut, and, if asked for, a
/// coordinator that is put back to an earlier state. Nothing panics; with a sound coordinator nothing that has
/// committed is lost, and the group serves in the end.
fn at_random(seed: u64, puts_back: bool, count: u32, min: u32) -> Result<(), String> {
    let mut dice = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut roll = move |bound: u64| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        (dice >> 11) % bound
    };
    let mut cluster = Cluster::new(count, 1, min);
    cluster.pass(1_500);
    let mut views = vec![(cluster.view.clone(), cluster.version)];
    let mut acknowledged: Vec<String> = Vec::new();
    let mut number = 0;
    for _ in 0..40 {
        let id = 1 + roll(u64::from(count)) as u32;
        match roll(12) {
            0 | 1 => cluster.kill(id),
            2..=4 => {
                if !cluster.members[&id].is_up {
                    let log = cluster.members[&id].log.len();
                    let known = (cluster.members[&id].member.committed().0 as usize).min(log);
                    let base = if roll(3) == 0 { roll(known as u64 + 1) as usize } else { 0 };
                    restart_with_base(&mut cluster, id, base);
                }
            }
            5 => {
                let other = 1 + roll(u64::from(count)) as u32;
                if other != id {
                    cluster.cut.insert((id, other));
                }
            }
            6 => cluster.cut.clear(),
            7 if roll(3) == 0 => (1..=count).for_each(|id| cluster.kill(id)),
            8 if puts_back && roll(3) == 0 => {
                let at = roll(views.len() as u64) as usize;
                (cluster.view, cluster.version) = views[at].clone();
            }
            _ => {
                if let Some(active) = cluster.serving() {
                    number += 1;
                    cluster.propose(active, &format!("{number}"));
                    let all = cluster.operations(active);
                    if !puts_back && !all.starts_with(&acknowledged) {
                        return Err(format!("seed {seed}: {acknowledged:?} became {all:?}"));
                    }
                    acknowledged = all;
                }
            }
        }
        cluster.asked = 0;
        cluster.pass([1, 20, 100, 300, 700][roll(5) as usize]);
        views.push((cluster.view.clone(), cluster.version));
    }
    cluster.cut.clear();
    (1..=count).for_each(|id| cluster.kill(id));
    (1..=count).for_each(|id| cluster.restart(id));
    cluster.asked = 0;
    cluster.pass(15_000);
    if puts_back {
        return Ok(());
    }
    let Some(active) = cluster.serving() else {
        let roles: Vec<_> = (1..=count)
            .map(|id| (cluster.role(id), cluster.members[&id].member.status(cluster.now).trouble))
            .collect();
        return Err(format!("seed {seed}: nobody serves: {roles:?}"));
    };
    let all = cluster.operations(active);
    if !all.starts_with(&acknowledged) {
        return Err(format!("seed {seed}: {acknowledged:?} became {all:?} at the end"));
    }
    Ok(())
}

#[test]
fn a_sound_coordinator_and_crashes_at_random() {
    let mut failures = Vec::new();
    for (count, min) in [(3, 2), (3, 1), (5, 2), (2, 2), (5, 3)] {
        let failed: Vec<_> = (1..=RUNS)
            .filter_map(|seed| {
                std::panic::catch_unwind(|| at_random(seed, false, count, min))
                    .unwrap_or_else(|_| Err(format!("seed {seed}: panic")))
                    .err()
            })
            .collect();
        failures.extend(failed.into_iter().take(2).map(|text| format!("{count}/{min} {text}")));
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn nothing_panics_when_the_coordinator_goes_back_at_random() {
    for (count, min) in [(3, 2), (3, 1), (5, 2), (4, 3), (1, 1)] {
        for seed in 1..=RUNS {
            let result = std::panic::catch_unwind(|| at_random(seed, true, count, min));
            assert!(result.is_ok(), "{count}/{min} seed {seed}");
        }
    }
}
