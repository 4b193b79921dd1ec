//! Hostile bytes for every parser.
//!
//! A [`Target`] is a parser with samples of what it should accept. [`run()`] changes the samples in seeded ways and
//! gives the parser thousands of inputs: it may refuse them, it must not panic, and (the slice in `tests/`
//! counts) it must not ask for memory that the input's own size does not explain. `tests/slice.rs` runs a short,
//! always equal slice as ordinary tests:
//!
//! - `CLOVER_FUZZ_ITERATIONS=1000000 cargo test --release -p clover-fuzz` runs longer,
//! - `CLOVER_FUZZ_SEED=7` runs another slice; a failure prints both for one line to paste.
//!
//! [`Target::check`] takes plain bytes, so a coverage-guided engine can call it as well.

pub mod backup;
pub mod config;
pub mod coordinator;
pub mod data_directory;
pub mod data_transfer;
pub mod directory_log;
pub mod forwarded;
pub mod members;
pub mod messages;
pub mod mutate;
pub mod namespace_bytes;
pub mod rpc;
pub mod store;

use mutate::Mutator;
use sim::Dice;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A parser of foreign bytes.
pub struct Target {
    pub name: &'static str,
    /// Inputs that the parser accepts; the random ones begin with them.
    pub samples: fn() -> Vec<Vec<u8>>,
    /// Gives bytes to the parser. Returns whether it accepted them, and panics if it misbehaves.
    pub check: fn(&[u8]) -> bool,
}

/// All of them.
pub fn targets() -> Vec<Target> {
    let mut all = vec![];
    all.extend(store::targets());
    all.extend(backup::targets());
    all.extend(namespace_bytes::targets());
    all.extend(rpc::targets());
    all.extend(messages::targets());
    all.extend(data_transfer::targets());
    all.extend(data_directory::targets());
    all.extend(config::targets());
    all.extend(coordinator::targets());
    all.extend(members::targets());
    all.extend(forwarded::targets());
    all.extend(directory_log::targets());
    all
}

/// The result of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    pub inputs: u64,
    pub accepted: u64,
}

/// Gives a target its samples, which it must accept, then inputs made from them. `after` is called after each
/// input, for whoever watches something else meanwhile.
pub fn run(target: &Target, mut after: impl FnMut(&[u8])) -> Outcome {
    let seed = number_of("CLOVER_FUZZ_SEED").unwrap_or(1);
    let iterations = number_of("CLOVER_FUZZ_ITERATIONS").unwrap_or(1_500);
    let samples = (target.samples)();
    for (index, sample) in samples.iter().enumerate() {
        assert!((target.check)(sample), "{}: sample {index} is refused", target.name);
    }
    let mut mutator = Mutator::new(Dice::new(seed), samples);
    let mut outcome = Outcome::default();
    for iteration in 0..iterations {
        let input = mutator.next_input();
        outcome.inputs += 1;
        match catch_unwind(AssertUnwindSafe(|| (target.check)(&input))) {
            Ok(accepted) => outcome.accepted += u64::from(accepted),
            Err(_) => panic!(
                "{} fails on input {iteration}: {}\nto see it again: CLOVER_FUZZ_SEED={seed} \
                 CLOVER_FUZZ_ITERATIONS={} CLOVER_FUZZ_TARGET={} cargo test -p clover-fuzz",
                target.name,
                hex(&input),
                iteration + 1,
                target.name,
            ),
        }
        after(&input);
    }
    outcome
}

fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
