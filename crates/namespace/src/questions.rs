//! What the root group asks homes before it changes directories: whether a name is free of files, whether a directory has files.

use crate::{
    Namespace,
    codec::{DecodeError, Field, Reader, Writer},
    footprint::Mark,
    homes::files_of,
};
use base::{InodeId, directory_log};
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

/// More questions to one home than this fit into no ask.
pub const QUESTIONS_MAX: usize = 1_000;

/// A question that a directory's home answers with yes or no. While the answer is held, nothing changes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// Whether a file has this name in the directory.
    HasFile { directory: InodeId, name: Box<str> },
    /// Whether any file is in the directory.
    HasFiles { directory: InodeId },
    /// Whether any file is in the directory that this user does not own.
    HasFilesOfOthers { directory: InodeId, user: Box<str> },
}

/// What homes have told, and what a plan has asked beyond that.
///
/// A plan that asks what nobody has told goes on as if the answer were no. It must be thrown away then, and be made again when
/// [`Told::take_unanswered`] is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    answers: BTreeMap<Question, bool>,
    unanswered: RefCell<BTreeSet<Question>>,
}

impl Question {
    pub fn directory(&self) -> InodeId {
        match self {
            Self::HasFile { directory, .. }
            | Self::HasFiles { directory }
            | Self::HasFilesOfOthers { directory, .. } => *directory,
        }
    }

    /// The mark that a home holds for its answer.
    pub fn mark(&self) -> directory_log::Mark {
        match self {
            Self::HasFile { directory, name } => Mark::entry(*directory, name.as_bytes()).into(),
            Self::HasFiles { directory } | Self::HasFilesOfOthers { directory, .. } => files_of(*directory),
        }
    }
}

impl Field for Question {
    fn encode(&self, out: &mut Writer<'_>) {
        match self {
            Self::HasFile { directory, name } => {
                out.byte(1);
                out.number(directory.0);
                out.bytes(name.as_bytes());
            }
            Self::HasFiles { directory } => {
                out.byte(2);
                out.number(directory.0);
            }
            Self::HasFilesOfOthers { directory, user } => {
                out.byte(3);
                out.number(directory.0);
                out.bytes(user.as_bytes());
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let kind = input.byte()?;
        let directory = InodeId(input.number()?);
        match kind {
            1 => Ok(Self::HasFile { directory, name: text(input)? }),
            3 => Ok(Self::HasFilesOfOthers { directory, user: text(input)? }),
            2 => Ok(Self::HasFiles { directory }),
            _ => Err(input.malformed("a question of a kind that is not known")),
        }
    }
}

fn text(input: &mut Reader<'_>) -> Result<Box<str>, DecodeError> {
    match std::str::from_utf8(input.bytes()?) {
        Ok(text) => Ok(text.into()),
        Err(_) => Err(input.malformed("a name that is no text")),
    }
}

/// The bytes of questions to one home.
pub fn encode(questions: &[Question]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = Writer(&mut bytes);
    out.number(questions.len() as u64);
    questions.iter().for_each(|question| question.encode(&mut out));
    bytes
}

/// # Errors
/// These are no questions, or more than [`QUESTIONS_MAX`].
pub fn decode(bytes: &[u8]) -> Result<Vec<Question>, DecodeError> {
    let mut input = Reader::new(bytes);
    let count = input.number()?;
    if count > QUESTIONS_MAX as u64 {
        return Err(input.malformed("too many questions"));
    }
    let mut questions = Vec::new();
    for _ in 0..count {
        questions.push(Field::decode(&mut input)?);
    }
    input.finish()?;
    Ok(questions)
}

/// The bytes of the answers, a byte each.
pub fn encode_answers(answers: impl IntoIterator<Item = bool>) -> Vec<u8> {
    answers.into_iter().map(u8::from).collect()
}

impl Told {
    /// Takes the answers to these questions. False: they are not the answers to so many.
    #[must_use]
    pub fn take(&mut self, questions: &[Question], answers: &[u8]) -> bool {
        let is_whole = questions.len() == answers.len() && answers.iter().all(|answer| *answer < 2);
        if is_whole {
            self.answers.extend(questions.iter().cloned().zip(answers.iter().map(|answer| *answer == 1)));
        }
        is_whole
    }

    pub(crate) fn ask(&self, question: Question) -> bool {
        self.answers.get(&question).copied().unwrap_or_else(|| {
            self.unanswered.borrow_mut().insert(question);
            false
        })
    }

    /// All questions of the plan that has just been made, if one of them was not answered: those to which it has the answers have to be
    /// held by their homes as well.
    pub fn take_unanswered(&self) -> Option<Vec<Question>> {
        let unanswered = self.unanswered.take();
        (!unanswered.is_empty()).then(|| self.answers.keys().cloned().chain(unanswered).collect())
    }
}

impl Namespace {
    fn files_in(&self, directory: u32) -> impl Iterator<Item = u32> {
        self.tree.children_of(directory, 0).filter(|child| self.tree.inode(*child).is_file())
    }

    /// The answer to a question. `None`: this group is not the directory's home.
    pub fn tell(&self, question: &Question) -> Option<bool> {
        let directory = question.directory();
        if self.home_of(directory) != self.group() {
            return None;
        }
        // A directory that this tree does not have any more has no files.
        let Some(handle) = self.handle(directory) else { return Some(false) };
        Some(match question {
            Question::HasFile { name, .. } => {
                self.tree.child(handle, name.as_bytes()).is_some_and(|child| self.tree.inode(child).is_file())
            }
            Question::HasFiles { .. } => self.files_in(handle).next().is_some(),
            Question::HasFilesOfOthers { user, .. } => {
                self.files_in(handle).any(|file| *self.tree.attributes_of(file).owner != **user)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Vec<Question> {
        let directory = InodeId::of_slot(64, 7);
        vec![
            Question::HasFile { directory, name: "f".into() },
            Question::HasFiles { directory },
            Question::HasFilesOfOthers { directory, user: "ann".into() },
        ]
    }

    #[test]
    fn questions_and_answers_come_back() {
        let questions = some();
        assert_eq!(decode(&encode(&questions)), Ok(questions.clone()));
        let mut told = Told::default();
        assert!(told.take(&questions, &encode_answers([true, false, true])));
        assert_eq!(
            questions.iter().map(|question| told.ask(question.clone())).collect::<Vec<_>>(),
            [true, false, true]
        );
        assert_eq!(told.take_unanswered(), None);
        let new = Question::HasFiles { directory: InodeId::ROOT };
        assert!(!told.ask(new.clone()), "as if there were none");
        let all: Vec<Question> = told.take_unanswered().expect("one was not answered");
        assert!(all.contains(&new) && questions.iter().all(|question| all.contains(question)));
    }

    /// The bytes come from other servers.
    #[test]
    fn bytes_that_are_no_questions_and_answers_are_refused() {
        let good = encode(&some());
        for at in 0..good.len() {
            assert!(decode(&good[..at]).is_err(), "{at} bytes of {}", good.len());
            for byte in [0, 4, 0x7f, 0x80, 0xff] {
                let mut other = good.clone();
                other[at] = byte;
                // An error, or other questions; never a panic.
                if let Ok(questions) = decode(&other) {
                    assert!(questions.len() <= some().len());
                }
            }
        }
        let mut many = Vec::new();
        Writer(&mut many).number(QUESTIONS_MAX as u64 + 1);
        assert!(decode(&many).is_err_and(|error| error.to_string().contains("too many questions")));
        let mut told = Told::default();
        for answers in [&[0, 1][..], &[0, 1, 2], &[0, 1, 0, 1], &[]] {
            assert!(!told.take(&some(), answers), "{answers:?}");
        }
    }
}
