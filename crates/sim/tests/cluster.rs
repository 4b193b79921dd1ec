//! Seeds of the clusters' stories. More: `make faults-sim SEEDS=100`.

use base::Level;
use group::Broken;
use sim::{
    cluster::Shape,
    scenario::cluster::{Failure, Outcome, STORIES, Story, run, run_with, story},
};

fn replayable(story: &Story, seed: u64) -> Outcome {
    run(story, seed).unwrap_or_else(|failure| {
        panic!("{}\nto see it again: cargo run -p clover-sim -- replay {} {seed}", failure.rule, story.name)
    })
}

/// Plays a named seed as it went when it was found: in a group of the first level, where no answers are noted in the journal, and
/// whose members hold no calls. Each note is an entry more, so a story goes otherwise with them.
fn at_the_first_level(
    story: &Story,
    seed: u64,
    change: impl FnOnce(&mut Shape),
) -> Result<Outcome, Box<Failure>> {
    run_with(story, seed, |shape| {
        (shape.level, shape.holds_calls, shape.standbys_read) = (Level::FIRST, false, false);
        change(shape);
    })
}

/// For stories that were found before hosts told of ends, and before standbys answered reads: both change what happens afterwards.
fn as_found_earlier(shape: &mut Shape) {
    (shape.ends_are_told_percent, shape.standbys_read) = (0, false);
}

/// All of them, so many times each, where `CLOVER_SIM_SEEDS` says so; otherwise those that go through the most.
#[test]
fn every_story_ends_well() {
    let seeds: Option<u64> = std::env::var("CLOVER_SIM_SEEDS").ok().and_then(|text| text.parse().ok());
    let short = [
        "restarts",
        "takeover-steps",
        "active-steps",
        "power",
        "renewing",
        "everything",
        "old-copies",
        "lone-starts",
        "rot",
        "standing-clocks",
        "proved-reads",
        "hanging-threads",
        "all-disks",
        "all-restored",
        "journals",
        "rotten-journals",
        "stored-images",
        "held-calls",
    ];
    for story in STORIES.iter().filter(|story| seeds.is_some() || short.contains(&story.name)) {
        let seeds = seeds.unwrap_or(2);
        let (mut answers, mut writes) = (0, 0);
        for seed in 0..seeds {
            let outcome = replayable(story, seed);
            answers += outcome.answers;
            writes += outcome.writes;
        }
        assert!(
            answers > seeds * 200 && writes > seeds * 50,
            "{} did too little to show anything",
            story.name
        );
    }
}

/// The story is told with the shipping journal, so its recovery must meet what it is made for.
#[test]
fn journals_meet_torn_ends_and_failed_disks() {
    let story = story("journals").unwrap();
    let mut transcript = Vec::new();
    for seed in 0..20 {
        let outcome = run(story, seed).unwrap_or_else(|failure| panic!("{seed}: {}", failure.rule));
        transcript.extend(outcome.transcript);
    }
    for what in ["'s log has a torn end", "'s fsync fails", "is accepted"] {
        let count = transcript.iter().filter(|line| line.contains(what)).count();
        assert!(count > 2, "{what}: only {count} times");
    }
}

/// Rot is found by the journal's own recovery, and its own repair closes the holes with what other members have.
#[test]
fn rotten_journals_are_repaired_in_each_way() {
    let story = story("rotten-journals").unwrap();
    let mut transcript = Vec::new();
    for seed in 0..20 {
        transcript.extend(replayable(story, seed).transcript);
    }
    let ways = [
        ("  rot: ", 50),
        (", and the end", 2),
        (" of promise of member ", 2),
        (" of member.0 of member ", 2),
        ("is whole again", 50),
        ("goes on with the log of member", 2),
        ("nobody who answers has them", 2),
        ("store is cut off", 2),
    ];
    for (what, least) in ways {
        let count = transcript.iter().filter(|line| line.contains(what)).count();
        assert!(count >= least, "{what}: only {count} times");
    }
}

/// Images go the ways that they go between servers: written, made usable, fetched beside the log, staged and put in its place.
#[test]
fn stored_images_are_kept_and_renew_members() {
    let story = story("stored-images").unwrap();
    let mut transcript = Vec::new();
    for seed in 0..20 {
        transcript.extend(replayable(story, seed).transcript);
    }
    let ways = [
        ("has written the image of", 100),
        ("uses the image of", 200),
        ("installs the image of", 5),
        ("is cut off in the middle of an image", 2),
    ];
    for (what, least) in ways {
        let count = transcript.iter().filter(|line| line.contains(what)).count();
        assert!(count >= least, "{what}: only {count} times");
    }
}

/// A start that silently cuts off what it cannot read is found out.
#[test]
fn a_log_that_is_cut_before_what_has_rotted_is_found_out() {
    let story = story("rotten-journals").unwrap();
    let found = (0..20).find_map(|seed| {
        run_with(story, seed, |shape| shape.cuts_silently = true).err().map(|failure| failure.rule)
    });
    let found = found.expect("a member was elected that lacked what had committed");
    assert!(found.starts_with("eligible members are complete"), "{found}");
}

#[test]
fn a_disk_that_only_says_that_it_syncs_is_found_out() {
    let story = story("journals").unwrap();
    // By the journal, which misses bytes, or because the log ends before an entry that was durable.
    let is_told = |text: &String| text.contains("is damaged") || text.contains("the journal had made");
    let found = (0..20).filter(|seed| {
        let told = std::panic::catch_unwind(|| run_with(story, *seed, |shape| shape.disks_lie = true));
        told.is_err_and(|panic| panic.downcast_ref::<String>().is_some_and(is_told))
    });
    let found = found.count();
    assert!(found > 10, "what was synced is gone, and that was noticed in {found} runs of 20");
}

/// Runs in which something was lost once.
#[test]
fn what_was_mended_stays_mended() {
    let runs = [
        // The word that the active's log begins later passed for a contradiction, and a member waited for an operator for ever.
        ("stored-images", 320012650),
        ("stored-images", 320014364),
        // A claim of an epoch of before took a coordinator that had been put back, and had come to the same version again, for its own.
        ("backups", 53),
        ("backups", 84),
        // The rest of a log was forgotten when another member answered while it was taken over.
        ("lone-starts", 117),
        // One that began alone by an older view answered reads of before.
        ("lone-starts", 57),
        // A member that had caught up waited for an image, because of an answer of before that came late.
        ("everything", 61),
        // A claim that came to nothing took the old active out of the view, and only that one held what others had lost.
        ("rot", 9_000_344),
        // By an older view a member that lagged claimed first, and heard those only that were complete by that view.
        ("backups", 20_000_104),
        ("backups", 20_000_069),
        ("backups", 9_001_231),
        // A change was refused by an older view, and never asked for again when its own view was written anew.
        ("backups", 15_573),
        // A committed beginning of an epoch, with nothing behind it, goes under an older view.
        ("backups", 200_012_968),
        // The store of the leader is lost, and a torn log waits for it.
        ("everything", 200_010_290),
        ("everything", 200_001_695),
        // A member is taken out, and let in again by an acknowledgement that came meanwhile.
        ("lossy", 200_000_616),
        ("hanging-threads", 200_010_036),
        // A member was let in again without having acknowledged anything, because what it was sent had been sent anew.
        ("lossy", 9_001_214),
        // A member called the own image of an entry usable when the checkpoint of another member's had committed.
        ("stored-images", 310_000_023),
        // An epoch was given up in the middle of its start.
        ("unclean", 31_000_004),
        // A member that lacked nothing did not hear that it was to say so.
        ("stalled-answers", 2_719),
    ];
    for (name, seed) in runs {
        let story = story(name).expect("it is in the list");
        replayable(story, seed);
        at_the_first_level(story, seed, |_| ())
            .unwrap_or_else(|failure| panic!("{name} {seed}: {}", failure.rule));
    }
}

#[test]
fn below_the_minimum_what_is_certain_is_answered_and_nothing_else() {
    let story = story("few").expect("it is in the list");
    let certain: u64 = (0..6).map(|seed| replayable(story, seed).certain).sum();
    assert!(certain > 50, "{certain} reads were answered below the minimum");
    let found = (0..60).find_map(|seed| {
        let rule = serving::Broken::InheritedTakenAsCommitted;
        run_with(story, seed, |shape| shape.breaks = Some(rule)).err().map(|failure| failure.rule)
    });
    let found = found.expect("somebody was told of what had not committed");
    assert!(found.starts_with("reads tell what has committed"), "{found}");
}

/// The rules of serving, left out one at a time. Some runs in ten thousand need the last two, so their seeds are named.
#[test]
fn an_answer_that_goes_out_too_early_is_found_out() {
    use serving::Broken;
    let runs = [
        ("kills", Broken::OwnTakenAsCommitted, 0..20),
        ("few", Broken::InheritedTakenAsCommitted, 0..60),
        ("stalled-answers", Broken::ReadsNeedNoProof, 0..60),
        ("stalled-answers", Broken::ProofOfLaterReads, 3_041..3_042),
    ];
    for (name, rule, mut seeds) in runs {
        let story = story(name).expect("it is in the list");
        let found = seeds.find_map(|seed| {
            let leave_out = |shape: &mut Shape| {
                as_found_earlier(shape);
                shape.breaks = Some(rule);
            };
            at_the_first_level(story, seed, leave_out).err().map(|failure| failure.rule)
        });
        let found = found.unwrap_or_else(|| panic!("{name}: nobody noticed that {rule:?}"));
        assert!(found.starts_with("reads "), "{rule:?}: {found}");
    }
}

/// The rules by which standbys answer reads are left out one at a time. One run in a thousand needs the second rule, so its seed is named.
#[test]
fn a_read_at_a_standby_that_is_answered_too_early_is_found_out() {
    use serving::Broken;
    let runs = [
        ("held-calls", Broken::PointsNotWaitedFor, 0..60, "reads see what committed before"),
        ("held-calls", Broken::PointsOfLaterReads, 389..390, "reads see what committed before"),
        ("held-calls", Broken::PointsOfAnyEpoch, 0..60, "answers rest on what has committed"),
    ];
    for (name, rule, mut seeds, expected) in runs {
        let story = story(name).expect("it is in the list");
        let found = seeds.find_map(|seed| {
            run_with(story, seed, |shape| shape.breaks = Some(rule)).err().map(|failure| failure.rule)
        });
        let found = found.unwrap_or_else(|| panic!("{name}: nobody noticed that {rule:?}"));
        assert!(found.starts_with(expected), "{rule:?}: {found}");
    }
}

/// The active has told one standby of a commit, and has not raised its own watermark yet. That standby shows the entry; a second standby is asked later, and must
/// show it too.
#[test]
fn a_read_point_that_is_behind_what_others_know_is_found_out() {
    let story = story("stalled-answers").expect("it is in the list");
    let found = (0..100).find_map(|seed| {
        run_with(story, seed, |shape| shape.tells_the_watermark = true).err().map(|failure| failure.rule)
    });
    let found = found.expect("somebody was shown less than somebody before");
    assert!(found.starts_with("reads see what committed before"), "{found}");
}

#[test]
fn standbys_answer_many_reads() {
    let story = story("kills").expect("it is in the list");
    let counts: Vec<(u64, u64)> = (0..4)
        .map(|seed| replayable(story, seed))
        .map(|outcome| (outcome.by_standbys, outcome.answers - outcome.writes))
        .collect();
    let (by_standbys, reads) = counts.iter().fold((0, 0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
    assert!(by_standbys > 100 && by_standbys < reads, "{by_standbys} of {reads} reads");
}

/// One run in some thousand needs this rule, so the seed is named.
#[test]
fn an_answer_with_the_proof_of_another_reign_is_found_out() {
    let story = story("stalled-answers").expect("it is in the list");
    let rule = serving::Broken::ProofOfAnyReign;
    let run = run_with(story, 400, |shape| (shape.breaks, shape.standbys_read) = (Some(rule), false));
    let found = run.err().map(|failure| failure.rule).expect("an answer was older than its proof");
    assert!(found.starts_with("reads tell what has committed"), "{found}");
}

/// A late copy of a call that its client was refused changes nothing.
#[test]
fn a_refusal_that_is_forgotten_is_found_out() {
    let story = story("kills").expect("it is in the list");
    let rule = serving::Broken::RefusalsForgotten;
    let found = (0..20).find_map(|seed| {
        run_with(story, seed, |shape| shape.breaks = Some(rule)).err().map(|failure| failure.rule)
    });
    let found = found.expect("a call was carried out that had been refused");
    assert!(found.starts_with("refused calls have no effect"), "{found}");
}

/// A member holds a call while another one refuses the next copy of it, and leads again.
#[test]
fn a_refusal_that_is_not_noted_in_the_journal_is_found_out() {
    let story = story("held-calls").expect("it is in the list");
    let rule = serving::Broken::AnswersNotNoted;
    let found = (0..60).find_map(|seed| {
        run_with(story, seed, |shape| shape.breaks = Some(rule)).err().map(|failure| failure.rule)
    });
    let found = found.expect("a call was carried out that another member had refused");
    assert!(found.starts_with("refused calls have no effect"), "{found}");
}

/// Most reads are held against what has committed.
#[test]
fn reads_are_judged() {
    for name in ["calm", "stalled-answers"] {
        let story = story(name).expect("it is in the list");
        let outcomes: Vec<Outcome> = (0..4).map(|seed| replayable(story, seed)).collect();
        let judged: u64 = outcomes.iter().map(|outcome| outcome.judged).sum();
        assert!(judged > 200, "{name}: {judged} reads were judged");
    }
}

/// A process that is back in a moment is let in once it is heard, and the coordinator is not asked before, nor at once again.
#[test]
fn a_view_that_changes_for_no_reason_is_found_out() {
    let story = story("restarts").expect("it is in the list");
    let found = (0..60).find_map(|seed| {
        run_with(story, seed, |shape| shape.settings.broken = Some(Broken::LetsInOldLives))
            .err()
            .map(|failure| failure.rule)
    });
    let found = found.expect("somebody asked again at once for what was refused");
    assert!(found.starts_with("changes have causes"), "{found}");
}

/// A claim's answer that comes late must not confirm the change that was asked for next.
#[test]
fn an_answer_taken_for_another_is_found_out() {
    let found = ["old-actives", "restarts"].iter().find_map(|name| {
        let story = story(name).expect("it is in the list");
        (0..100).find_map(|seed| {
            run_with(story, seed, |shape| shape.settings.broken = Some(Broken::AnyAnswerTaken))
                .err()
                .map(|failure| failure.rule)
        })
    });
    let found = found.expect("an entry committed without a member that the coordinator calls complete");
    assert!(found.starts_with("eligible members are complete"), "{found}");
}

/// Without this rule, a coordinator that was put back elects a member which lacks committed entries, although the
/// others prove it. Since a first claim hears every member that runs, one run in some hundred needs this.
#[test]
fn what_a_copy_is_believed_for_is_found_out() {
    let story = story("backups").expect("it is in the list");
    replayable(story, 1);
    let found = (60..120).find_map(|seed| {
        let run = std::panic::AssertUnwindSafe(|| {
            run_with(story, seed, |shape| shape.settings.broken = Some(Broken::IgnoresEvidence))
                .err()
                .map(|failure| failure.rule)
        });
        std::panic::catch_unwind(run).unwrap_or_else(|_| Some("the machine's own assertion".into()))
    });
    assert!(found.is_some(), "nobody noticed that evidence is ignored");
}

/// Two rules protect a group in which all copies but one are struck at once: hints of what has committed, and the wait
/// for all members before the first claim with a minimum of one. One run in some hundred needs the latter: the seeds
/// begin shortly before one of them.
#[test]
fn what_guards_when_all_but_one_are_struck_is_found_out() {
    let guards = [("old-copies", Broken::NoHints, 0), ("lone-starts", Broken::LonelyFirstClaim, 600)];
    for (name, rule, first) in guards {
        let story = story(name).expect("it is in the list");
        let found = (first..first + 200).find_map(|seed| {
            let leave_out = |shape: &mut Shape| {
                as_found_earlier(shape);
                shape.settings.broken = Some(rule);
            };
            run_with(story, seed, leave_out).err().map(|failure| failure.rule)
        });
        assert!(found.is_some(), "{name}: nobody noticed that {rule:?}");
    }
}

/// One run in some hundred needs this guard, so the seed is named.
#[test]
fn a_first_claim_that_hears_the_view_only_is_found_out() {
    let story = story("backups").expect("it is in the list");
    let rule = Broken::FirstClaimHearsTheViewOnly;
    let run = run_with(story, 910_000_074, |shape| {
        as_found_earlier(shape);
        shape.settings.broken = Some(rule);
    });
    let found =
        run.err().map(|failure| failure.rule).expect("entries were lost that a member held which ran");
    assert!(found.starts_with("commits agree"), "{found}");
}

/// In a group of four with a minimum of two, the two members that lag are the first to come back, and the coordinator
/// was put back. One run in some thousand meets this, so the seed is named.
#[test]
fn a_first_claim_while_as_many_are_silent_as_may_hold_more_is_found_out() {
    let (story, seed) = (story("backups").expect("it is in the list"), 108_859);
    replayable(story, seed);
    let rule = Broken::FirstClaimInAnyCompany;
    let leave_out = |shape: &mut Shape| {
        as_found_earlier(shape);
        shape.settings.broken = Some(rule);
    };
    let failure = at_the_first_level(story, seed, leave_out).err();
    let found = failure.expect("entries were lost, or parted from, that two silent members held").rule;
    assert!(found.starts_with("eligible members are complete"), "{found}");
}

/// The checkers are told what an operator's word gives up, and mind the loss of anything else.
#[test]
fn an_unclean_election_loses_what_was_accepted_and_nothing_else() {
    let story = story("unclean").expect("it is in the list");
    let outcomes: Vec<Outcome> = (0..6).map(|seed| replayable(story, seed)).collect();
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    let (unclean, given_up) = (sum(|outcome| outcome.unclean), sum(|outcome| outcome.given_up));
    assert!(unclean >= 4 && given_up >= 10, "{unclean} unclean elections gave up {given_up} entries");
    assert!(outcomes.iter().all(|outcome| outcome.writes > 20));
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let story = story("everything").expect("it is in the list");
    assert_eq!(replayable(story, 3), replayable(story, 3));
}

/// Two rules that rest on clocks, left out on purpose.
#[test]
fn a_lease_that_is_not_waited_for_is_found_out() {
    let story = story("old-actives").expect("it is in the list");
    for rule in [Broken::ClaimBeforeGrantsEnd, Broken::LeaseOfInSyncOnly] {
        let found = (0..8).find_map(|seed| {
            run_with(story, seed, |shape| shape.settings.broken = Some(rule))
                .err()
                .map(|failure| failure.rule)
        });
        let found = found.unwrap_or_else(|| panic!("nobody noticed that {rule:?}"));
        assert!(
            found.starts_with("leases have one holder") || found.starts_with("reads see"),
            "{rule:?}: {found}"
        );
    }
}

/// A lease rests on clocks that go. Where they stand, reads may be old, and nothing else goes wrong; the coordinator knows better.
#[test]
fn a_clock_that_stands_makes_reads_old_unless_the_coordinator_is_asked() {
    let (story, seed) = (story("standing-clocks").expect("it is in the list"), 55);
    let played = |change: fn(&mut Shape)| at_the_first_level(story, seed, change);
    let outcome = played(|_| ()).unwrap_or_else(|failure| panic!("{}", failure.rule));
    assert!(outcome.stale > 0, "the seed shows nothing");
    let proved = played(|shape| shape.proves_reads = true).unwrap_or_else(|failure| {
        panic!("{}", failure.rule);
    });
    assert_eq!(proved.stale, 0);
}
