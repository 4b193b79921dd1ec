//! Readable stories of a member: what happened, and everything it then wanted.
//!
//! A line that begins with `>` is an input; the indented lines below it are its full effects. Effects that are
//! to be made durable are kept under a name until `> durable <name>` proves them. After a change on purpose:
//! `CLOVER_REWRITE=1 cargo test -p clover-group --test transcripts`, and read the diff.

use base::{Durable, EntryKind, Epoch, GroupView, LogPoint, MemberId, MemberStore, Moment, Sn, TxId};
use bytes::Bytes;
use group::{
    ChangeFailed, ChangeName, Effects, EpochStart, Input, Member, Outgoing, Proposal, Restored, Settings,
};
use std::{collections::BTreeMap, fmt::Write, path::Path};

struct Story {
    member: Option<Member>,
    /// The change of the view asked for last.
    asked: Option<ChangeName>,
    now: Moment,
    /// Effects that wait for the disk, by the name the story gives them.
    waiting: BTreeMap<String, Effects>,
    out: String,
}

fn me() -> MemberStore {
    MemberStore { member: MemberId(1), generation: 0 }
}

impl Story {
    fn say(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.out, "  {line}").expect("a String takes it");
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.out, "{line}").expect("a String takes it");
        let words: Vec<&str> = line.trim_start_matches('>').split_whitespace().collect();
        let number = |index: usize| words[index].parse::<u64>().expect("a number");
        match words[0] {
            "start" => {
                let end = LogPoint { id: txid(words[2]), ..LogPoint::default() };
                let promised = Epoch(number(1));
                let restored = Restored { promised, base: end, boot: 1, ..Restored::default() };
                self.member = Some(Member::new(Settings::default(), me(), restored, self.now, 1));
            }
            "view" => {
                let mut view = GroupView::new(&[me()], 1);
                view.epoch = Epoch(number(1));
                view.commit_hint = txid(words[2]);
                view.active = (view.epoch.0 > 0).then_some(MemberId(number(3) as u32));
                self.step(Input::View { view, version: number(4) }, "view");
            }
            "changed" => {
                let answer = match words[1] {
                    "bad-version" => Err(ChangeFailed::BadVersion),
                    "unknown" => Err(ChangeFailed::Unknown),
                    "not-made" => Err(ChangeFailed::NotMade),
                    version => Ok(version.parse().expect("a version")),
                };
                let asked = self.asked.expect("a change was asked for");
                self.step(Input::Changed { asked, answer }, "changed");
            }
            "propose" => {
                let proposals = words[2..]
                    .iter()
                    .map(|text| Proposal {
                        kind: EntryKind::Operation,
                        payload: Bytes::copy_from_slice(text.as_bytes()),
                    })
                    .collect();
                self.step(Input::Propose(proposals), words[1]);
            }
            "durable" => {
                let effects = self.waiting.remove(words[1]).expect("it waits for the disk");
                let outgoing = effects.release(Durable::attest());
                self.deliver(outgoing, words[1]);
            }
            "disk-failed" => self.step(Input::DiskFailed, "disk-failed"),
            "step-down" => self.step(Input::StepDown, "step-down"),
            "wait" => {
                self.now = self.now.plus_ms(number(1));
                self.step(Input::Tick, "tick");
            }
            other => panic!("no such input: {other}"),
        }
    }

    fn step(&mut self, input: Input, name: &str) {
        let member = self.member.as_mut().expect("the story starts");
        let mut effects = member.step(self.now, input);
        member.is_consistent().expect("the member is consistent");
        if let Some(change) = effects.take_change() {
            self.asked = Some(change.name());
            let view = &change.view;
            self.say(format_args!(
                "coordinator: at version {} make epoch {}, active {:?}, committed {}, change {:x}",
                change.expected_version,
                view.epoch,
                view.active.map(|member| member.0),
                view.commit_hint,
                view.change_id
            ));
        }
        if let Some(epoch) = effects.promise() {
            self.say(format_args!("disk: promise {epoch}"));
        }
        for entry in effects.take_entries() {
            let text = match EpochStart::decode(&entry.payload) {
                Some(start) => format!("epoch start after {}", start.previous.id),
                None => String::from_utf8_lossy(&entry.payload).into_owned(),
            };
            self.say(format_args!("disk: append {} {text}", entry.id));
        }
        if effects.needs_disk() {
            self.waiting.insert(name.to_owned(), effects);
        } else {
            let outgoing = effects.release_at_once();
            self.deliver(outgoing, name);
        }
    }

    fn deliver(&mut self, outgoing: Outgoing, name: &str) {
        if let Some(role) = &outgoing.role {
            self.say(format_args!("role: {role:?}"));
        }
        if let Some(sn) = outgoing.committed {
            self.say(format_args!("committed: {sn}"));
        }
        if outgoing.read_view {
            self.say(format_args!("coordinator: read the view"));
        }
        if !outgoing.refused.is_empty() {
            self.say(format_args!("refused: {} proposals", outgoing.refused.len()));
        }
        if let Some(proof) = outgoing.proof {
            self.step(Input::Durable(proof), &format!("{name}'"));
        }
    }
}

fn txid(text: &str) -> TxId {
    let (epoch, sn) = text.split_once('-').expect("epoch-sn");
    TxId { epoch: Epoch(epoch.parse().expect("an epoch")), sn: Sn(sn.parse().expect("an sn")) }
}

#[test]
fn every_story_goes_as_it_is_told() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut files: Vec<_> =
        std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let told = std::fs::read_to_string(&file).unwrap();
        let mut story = Story {
            member: None,
            asked: None,
            now: Moment::from_ms(0),
            waiting: BTreeMap::new(),
            out: String::new(),
        };
        for line in told.lines() {
            if line.starts_with('>') {
                story.tell(line);
            } else if line.starts_with('#') || line.is_empty() {
                writeln!(story.out, "{line}").unwrap();
            }
        }
        if std::env::var_os("CLOVER_REWRITE").is_some() {
            std::fs::write(&file, story.out).unwrap();
        } else {
            assert_eq!(story.out, told, "{}", file.display());
        }
    }
}
