//! Seeds of the lone server's scenario. More: `cargo run --release -p clover-sim -- lone-server 0 1000`.

use sim::scenario::lone_server::{Options, run};

fn replayable(seed: u64, options: Options) -> sim::scenario::lone_server::Outcome {
    std::panic::catch_unwind(|| run(seed, options))
        .unwrap_or_else(|_| panic!("to see it again: cargo run -p clover-sim -- replay lone-server {seed}"))
}

#[test]
fn acknowledged_edits_survive_whatever_the_disk_does() {
    let count = std::env::var("CLOVER_SIM_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(30);
    let (mut acknowledged, mut lives) = (0, 0);
    for seed in 0..count {
        let outcome = replayable(seed, Options::default());
        acknowledged += outcome.acknowledged;
        lives += outcome.lives;
    }
    assert!(acknowledged > count * 50 && lives > count * 5, "the runs did too little to prove anything");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for seed in [1, 17, 4242] {
        assert_eq!(replayable(seed, Options::default()), replayable(seed, Options::default()));
    }
    assert_ne!(replayable(1, Options::default()), replayable(2, Options::default()));
}

#[test]
fn a_disk_that_only_says_that_it_syncs_is_found_out() {
    let options = Options { disk_lies: true, disk_faults: false, ..Options::default() };
    let found = (0..5).filter(|seed| std::panic::catch_unwind(|| run(*seed, options)).is_err()).count();
    assert!(found >= 4, "only {found} of 5 runs noticed");
}
