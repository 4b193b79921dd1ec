//! Runs scenarios from the command line.
//!
//! `run` plays many and tells their results; each that fails prints the line that replays it. `replay` plays one and
//! tells it line by line. `model` is the bounded check of the group's machine. The library decides all that happens
//! in a scenario; this program must never decide anything about it.

use anyhow::{Context, bail};
use sim::{
    cluster::Shape,
    dirs,
    model::{Bounds, exhaust, memory_of, tell, wander_many},
    scenario::{
        cluster::{self, Failure, Outcome, STORIES, Story},
        lone_server,
    },
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

const USAGE: &str = "usage:
  clover-sim list                          the stories of clusters
  clover-sim replay <story> <seed> [rule]  one story, told line by line; `lone-server` is one as well. A rule is left out
  clover-sim run <story|all> <first> <count>
  clover-sim hunt <rule|all> <first> <count> [story]  a rule of the group is left out: which story, or whether this one,
                                           notices it, and with which seed
  clover-sim lone-server <first> <count>   a server and its disk, through many lives
  clover-sim model [--dirs] [states] [walks] [minutes]  the bounded check of the group's machine, or of the directory log's:
                                           so many states of each profile at most, and for so many minutes each
The stories `dirs-…` play three groups with one namespace; `run`, `replay` and `hunt <rule of the directory log>` know them.";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| -> anyhow::Result<Option<u64>> {
        arguments
            .get(index)
            .map(|text| text.parse().with_context(|| format!("{text} is no number")))
            .transpose()
    };
    let word = |index: usize| arguments.get(index).map(String::as_str);
    match word(0) {
        Some("list") => {
            STORIES.iter().for_each(|story| println!("{:16} {}", story.name, story.about));
            dirs::cluster::STORIES.iter().for_each(|story| println!("{:16} {}", story.name, story.about));
            Ok(())
        }
        Some("replay") if word(1) == Some("lone-server") => {
            let outcome =
                lone_server::run(number(2)?.context("which seed?")?, lone_server::Options::default());
            outcome.transcript.iter().for_each(|line| println!("{line}"));
            Ok(())
        }
        Some("replay") if dirs_story(word(1)).is_some() => {
            let story = dirs_story(word(1)).context("which story?")?;
            let rule = word(3).map(|name| dirs_rule(name).context("no rule is called so")).transpose()?;
            match dirs::cluster::run_with(story, number(2)?.context("which seed?")?, |shape| {
                shape.settings.broken = rule;
            }) {
                Ok(outcome) => {
                    outcome.transcript.iter().for_each(|line| println!("{line}"));
                    Ok(())
                }
                Err(failure) => {
                    failure.transcript.iter().for_each(|line| println!("{line}"));
                    bail!("{}", failure.rule)
                }
            }
        }
        Some("replay") => {
            let story = find(word(1))?;
            let seed = number(2)?.context("which seed?")?;
            let rule = word(3).map(|name| Rule::named(name).context("no rule is called so")).transpose()?;
            let leave_out = |shape: &mut Shape| rule.into_iter().for_each(|rule| rule.leave_out(shape));
            match cluster::run_with(story, seed, leave_out) {
                Ok(outcome) => {
                    outcome.transcript.iter().for_each(|line| println!("{line}"));
                    println!("{}", summary(story, seed, &outcome));
                    Ok(())
                }
                Err(failure) => {
                    failure.transcript.iter().for_each(|line| println!("{line}"));
                    bail!("{}", failure.rule)
                }
            }
        }
        Some("run") if dirs_story(word(1)).is_some() => {
            let story = dirs_story(word(1)).context("which story?")?;
            run_dirs(&[story], number(2)?.unwrap_or(0), number(3)?.unwrap_or(10))
        }
        Some("run") if word(1) == Some("dirs") => {
            let stories: Vec<&dirs::cluster::Story> = dirs::cluster::STORIES.iter().collect();
            run_dirs(&stories, number(2)?.unwrap_or(0), number(3)?.unwrap_or(10))
        }
        Some("run") => {
            let stories: Vec<&Story> = match word(1) {
                Some("all") => STORIES.iter().collect(),
                name => vec![find(name)?],
            };
            let (first, count) = (number(2)?.unwrap_or(0), number(3)?.unwrap_or(10));
            let of_groups = run_stories(&stories, first, count);
            if word(1) == Some("all") {
                let of_dirs: Vec<&dirs::cluster::Story> = dirs::cluster::STORIES.iter().collect();
                run_dirs(&of_dirs, first, count)?;
            }
            of_groups
        }
        Some("hunt") if word(1).and_then(dirs_rule).is_some() => {
            let rule = word(1).and_then(dirs_rule).context("which rule?")?;
            let stories: Vec<_> = match word(4) {
                Some(name) => vec![dirs_story(Some(name)).context("which story?")?],
                None => dirs::cluster::STORIES.iter().collect(),
            };
            hunt_dirs(rule, &stories, number(2)?.unwrap_or(0), number(3)?.unwrap_or(100))
        }
        Some("hunt") => {
            let rules: Vec<Rule> = match word(1) {
                Some("all") => Rule::all().collect(),
                name => name.and_then(Rule::named).into_iter().collect(),
            };
            if rules.is_empty() {
                bail!("which rule? One of {:?}, or all", Rule::all().map(Rule::name).collect::<Vec<_>>());
            }
            let stories: Vec<&Story> = match word(4) {
                Some(name) => vec![find(Some(name))?],
                None => STORIES.iter().collect(),
            };
            hunt(&rules, &stories, number(2)?.unwrap_or(0), number(3)?.unwrap_or(100))
        }
        Some("lone-server") => {
            for seed in number(1)?.unwrap_or(0)..number(1)?.unwrap_or(0) + number(2)?.unwrap_or(100) {
                let options = lone_server::Options::default();
                if catch_unwind(AssertUnwindSafe(|| lone_server::run(seed, options))).is_err() {
                    bail!("cargo run -p clover-sim -- replay lone-server {seed}");
                }
            }
            Ok(())
        }
        Some("model") if word(1) == Some("--dirs") => {
            let (states, walks) = (number(2)?.unwrap_or(20_000_000), number(3)?.unwrap_or(50_000));
            model_dirs(states as usize, walks, number(4)?.unwrap_or(10))
        }
        Some("model") => {
            let (states, walks) = (number(1)?.unwrap_or(20_000_000), number(2)?.unwrap_or(50_000));
            model(states as usize, walks, number(3)?.unwrap_or(10))
        }
        _ => bail!("{USAGE}"),
    }
}

fn find(name: Option<&str>) -> anyhow::Result<&'static Story> {
    let name = name.context("which story?")?;
    cluster::story(name).with_context(|| format!("no story is called {name}; try `clover-sim list`"))
}

/// Everything to the end, however much fails, then what it came to.
fn run_stories(stories: &[&Story], first: u64, count: u64) -> anyhow::Result<()> {
    let mut failed = Vec::new();
    let (mut answers, mut writes, mut epochs, mut stale) = (0, 0, 0, 0);
    for story in stories {
        let mut longest_gap_ms = 0;
        for seed in first..first + count {
            let ended = catch_unwind(AssertUnwindSafe(|| cluster::run(story, seed)));
            match ended {
                Ok(Ok(outcome)) => {
                    answers += outcome.answers;
                    writes += outcome.writes;
                    epochs += outcome.epochs;
                    stale += outcome.stale;
                    longest_gap_ms = longest_gap_ms.max(outcome.longest_gap_ms);
                }
                Ok(Err(failure)) => {
                    let Failure { rule, .. } = *failure;
                    println!("{} {seed}: {rule}", story.name);
                    println!("  cargo run -p clover-sim -- replay {} {seed}", story.name);
                    failed.push(rule);
                }
                Err(_) => {
                    println!("{} {seed}: the machine's own assertion", story.name);
                    println!("  cargo run -p clover-sim -- replay {} {seed}", story.name);
                    failed.push("the machine's own assertion".to_owned());
                }
            }
        }
        println!(
            "{:16} seeds {first} to {}: longest outage {longest_gap_ms} ms",
            story.name,
            first + count - 1
        );
    }
    let starting = |what: &str| failed.iter().filter(|rule| rule.starts_with(what)).count();
    println!(
        "{answers} answers, {writes} of them changes, in {epochs} epochs; acknowledged operations lost: {}, applied \
         twice: {}, epochs with two actives: {}, reads that were stale: {} (and {stale} by clocks that stood, of which nothing is \
         promised), other failures: {}",
        starting("acknowledged") + starting("eligible"),
        starting("each call"),
        starting("one a"),
        starting("reads") + starting("answers") + starting("leases"),
        failed.len()
            - ["acknowledged", "eligible", "each call", "one a", "reads", "answers", "leases"]
                .iter()
                .map(|what| starting(what))
                .sum::<usize>()
    );
    if failed.is_empty() { Ok(()) } else { bail!("{} runs failed", failed.len()) }
}

/// A rule that may be left out: of the group's machine, of serving, or about data servers.
#[derive(Clone, Copy, Debug)]
enum Rule {
    Group(group::Broken),
    Serving(serving::Broken),
    Data(blocks::Broken),
}

impl Rule {
    fn all() -> impl Iterator<Item = Self> {
        let of_the_group = group::Broken::ALL.into_iter().map(Self::Group);
        let of_serving = serving::Broken::ALL.into_iter().map(Self::Serving);
        of_the_group.chain(of_serving).chain(blocks::Broken::ALL.into_iter().map(Self::Data))
    }

    fn name(self) -> String {
        match self {
            Self::Group(rule) => format!("{rule:?}"),
            Self::Serving(rule) => format!("{rule:?}"),
            Self::Data(rule) => format!("{rule:?}"),
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::all().find(|rule| rule.name() == name)
    }

    fn leave_out(self, shape: &mut Shape) {
        match self {
            Self::Group(rule) => shape.settings.broken = Some(rule),
            Self::Serving(rule) => shape.breaks = Some(rule),
            Self::Data(rule) => shape.breaks_data = Some(rule),
        }
    }
}

/// Tells for each rule where its absence is noticed first, and fails if that is nowhere.
fn hunt(rules: &[Rule], stories: &[&Story], first: u64, count: u64) -> anyhow::Result<()> {
    std::panic::set_hook(Box::new(|_| ()));
    let mut unnoticed = Vec::new();
    for rule in rules {
        let mut noticed = Vec::new();
        for story in stories {
            let found = (first..first + count).find_map(|seed| {
                let run = AssertUnwindSafe(|| cluster::run_with(story, seed, |shape| rule.leave_out(shape)));
                match catch_unwind(run) {
                    Ok(Ok(_)) => None,
                    Ok(Err(failure)) => Some((seed, failure.rule)),
                    Err(_) => Some((seed, "the machine's own assertion".to_owned())),
                }
            });
            if let Some((seed, what)) = found {
                let what = what.split(':').next().unwrap_or_default().to_owned();
                noticed.push(format!("{} {seed} ({what})", story.name));
            }
        }
        println!("{:28} {}", rule.name(), noticed.join(", "));
        if noticed.is_empty() {
            unnoticed.push(rule.name());
        }
    }
    if unnoticed.is_empty() {
        Ok(())
    } else {
        bail!("nobody noticed that these were left out: {unnoticed:?}")
    }
}

fn summary(story: &Story, seed: u64, outcome: &Outcome) -> String {
    let Outcome { answers, writes, committed, epochs, longest_gap_ms, slowest_ms, data, .. } = outcome;
    format!(
        "{} {seed}: {answers} answers ({writes} changes), {committed} entries, {epochs} epochs, longest outage \
         {longest_gap_ms} ms, slowest call {slowest_ms} ms; {data:?}",
        story.name
    )
}

fn model(states: usize, walks: u64, minutes: u64) -> anyhow::Result<()> {
    println!(
        "up to {states} states of each profile: {} MB of memory; up to {minutes} minutes for each",
        memory_of(states).div_ceil(1_000_000)
    );
    for (what, bounds) in Bounds::profiles(states) {
        let began = Instant::now();
        let report = exhaust(&bounds, Some(began + Duration::from_secs(60 * minutes)));
        println!("{what}: {report}; {} s", began.elapsed().as_secs());
        if let Some(found) = report.found {
            bail!("{}", tell(&found, &bounds).join("\n"));
        }
    }
    let wide = Bounds::wide();
    for (what, bounds) in [("three members", wide.clone()), ("four members", Bounds { members: 4, ..wide })] {
        let report = wander_many(0, walks, &bounds);
        println!("{what}: {walks} random stories, {} steps", report.steps);
        if let Some(found) = report.found {
            bail!("{}", tell(&found, &bounds).join("\n"));
        }
    }
    Ok(())
}

fn dirs_story(name: Option<&str>) -> Option<&'static dirs::cluster::Story> {
    dirs::cluster::story(name?)
}

fn dirs_rule(name: &str) -> Option<dirlog::Broken> {
    dirlog::Broken::ALL.into_iter().find(|rule| format!("{rule:?}") == name)
}

/// Stories of one namespace over several groups: everything to the end, then what it came to.
fn run_dirs(stories: &[&dirs::cluster::Story], first: u64, count: u64) -> anyhow::Result<()> {
    let mut failed = 0;
    let (mut answers, mut changes, mut entries, mut takeovers, mut hellos, mut log_reads) =
        (0, 0, 0, 0, 0, 0);
    for story in stories {
        let mut slowest_ms = 0;
        for seed in first..first + count {
            let rule = match catch_unwind(AssertUnwindSafe(|| dirs::cluster::run(story, seed))) {
                Ok(Ok(outcome)) => {
                    answers += outcome.answers;
                    changes += outcome.changes;
                    entries += outcome.entries;
                    takeovers += outcome.takeovers;
                    hellos += outcome.hellos;
                    log_reads += outcome.log_reads;
                    slowest_ms = slowest_ms.max(outcome.slowest_ms);
                    continue;
                }
                Ok(Err(failure)) => failure.rule,
                Err(_) => "the machine's own assertion".to_owned(),
            };
            failed += 1;
            println!("{} {seed}: {rule}", story.name);
            println!("  cargo run -p clover-sim -- replay {} {seed}", story.name);
        }
        println!("{:16} seeds {first} to {}: slowest call {slowest_ms} ms", story.name, first + count - 1);
    }
    println!(
        "one namespace: {answers} answers, {changes} of them changes, {entries} entries of the directory log, {takeovers} takeovers, {hellos} \
         Hellos, {log_reads} reads of the log; histories with a fault: {failed}"
    );
    if failed == 0 { Ok(()) } else { bail!("{failed} runs failed") }
}

/// Tells where the absence of a rule of the directory log is noticed first.
fn hunt_dirs(
    rule: dirlog::Broken,
    stories: &[&dirs::cluster::Story],
    first: u64,
    count: u64,
) -> anyhow::Result<()> {
    std::panic::set_hook(Box::new(|_| ()));
    let mut noticed = Vec::new();
    for story in stories {
        let found = (first..first + count).find_map(|seed| {
            let run = || dirs::cluster::run_with(story, seed, |shape| shape.settings.broken = Some(rule));
            match catch_unwind(AssertUnwindSafe(run)) {
                Ok(Ok(_)) => None,
                Ok(Err(failure)) => Some((seed, failure.rule)),
                Err(_) => Some((seed, "the machine's own assertion".to_owned())),
            }
        });
        if let Some((seed, what)) = found {
            noticed.push(format!("{} {seed} ({})", story.name, what.split(':').next().unwrap_or_default()));
        }
    }
    println!("{:28} {}", format!("{rule:?}"), noticed.join(", "));
    if noticed.is_empty() { bail!("nobody noticed that {rule:?} was left out") } else { Ok(()) }
}

fn model_dirs(states: usize, walks: u64, minutes: u64) -> anyhow::Result<()> {
    println!(
        "up to {states} states of each profile: {} MB of memory; up to {minutes} minutes for each",
        memory_of(states).div_ceil(1_000_000)
    );
    for (what, bounds) in dirs::Bounds::profiles(states) {
        let began = Instant::now();
        let report = exhaust(&bounds, Some(began + Duration::from_secs(60 * minutes)));
        println!("{what}: {report}; {} s", began.elapsed().as_secs());
        if let Some(found) = report.found {
            bail!("{}", tell(&found, &bounds).join("\n"));
        }
    }
    for homes in [1, 2] {
        let bounds = dirs::Bounds::wide(homes);
        let report = dirs::wander_many(0, walks, &bounds);
        println!("the root group and {homes} more: {walks} random stories, {} steps", report.steps);
        if let Some(found) = report.found {
            bail!("{}", tell(&found, &bounds).join("\n"));
        }
    }
    Ok(())
}
