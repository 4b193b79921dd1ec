//! What the root group asks homes before it changes directories, or moves a file to another home: whether a name is free of files, whether a directory has
//! files, what a file is.

use crate::{
    Namespace,
    codec::{DecodeError, Field, Reader, Writer},
    exports::{self, FileImage},
    footprint::Mark,
    homes::{contents_of, files_of},
    quota::Amounts,
    snapshots::AFTER_ALL,
};
use base::{
    FsError, FsResult, GroupId, InodeId,
    directory_log::{self, Dix},
};
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

/// The questions of one operation, at most: a home holds as many marks for one ask.
pub const QUESTIONS_MAX: usize = 8_192;
/// The bytes of these, at most, so that an ask fits well into a message.
const QUESTIONS_BYTES_MAX: usize = 4 << 20;

/// A question that a directory's home answers. While the answer is held, nothing changes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// Whether a file has this name in the directory.
    HasFile { directory: InodeId, name: Box<str> },
    /// Whether any file is in the directory.
    HasFiles { directory: InodeId },
    /// Whether any file is in the directory that this user does not own.
    HasFilesOfOthers { directory: InodeId, user: Box<str> },
    /// The file of this name in the directory, as it is.
    File { directory: InodeId, name: Box<str> },
    /// What this group uses of the directory's quota; what it would use, if there is none.
    Used { directory: InodeId, group: GroupId },
    /// What the directory, and all below it, would count for in this group if this storage policy were in force at its top.
    Amounts { directory: InodeId, group: GroupId, policy: u8 },
}

/// What a home tells of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FileFact {
    /// No file has the name.
    #[default]
    None,
    File(Box<FileImage>),
    /// The file cannot leave its home now.
    Busy {
        file: InodeId,
        why: Busy,
    },
}

/// Why a file cannot leave its home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busy {
    /// It is being written, or truncated.
    Open = 1,
    /// Other groups have still to carry out what changed about its blocks. A late order would undo what comes after.
    OrdersUnderWay = 2,
    TooLarge = 3,
    /// A snapshot sees it, here or where it was before.
    InSnapshot = 4,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Is(bool),
    File(FileFact),
    Amounts(Amounts),
}

impl FileFact {
    /// The file that has the name.
    pub fn file(&self) -> Option<InodeId> {
        match self {
            Self::None => None,
            Self::File(file) => Some(file.inode),
            Self::Busy { file, .. } => Some(*file),
        }
    }
}

impl Answer {
    /// Whether the answer may be another one in a moment, without anybody changing anything.
    pub fn is_in_the_way(&self) -> bool {
        matches!(self, Self::File(FileFact::Busy { why: Busy::OrdersUnderWay, .. }))
    }
}

impl Field for Answer {
    fn encode(&self, out: &mut Writer<'_>) {
        match self {
            Self::Is(is) => is.encode(out),
            Self::File(FileFact::None) => out.byte(2),
            Self::File(FileFact::File(file)) => {
                out.byte(3);
                file.encode(out);
            }
            Self::File(FileFact::Busy { file, why }) => {
                out.byte(4);
                file.encode(out);
                out.byte(*why as u8);
            }
            Self::Amounts(amounts) => {
                out.byte(5);
                amounts.encode(out);
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match input.byte()? {
            0 => Self::Is(false),
            1 => Self::Is(true),
            2 => Self::File(FileFact::None),
            3 => Self::File(FileFact::File(Box::new(Field::decode(input)?))),
            4 => {
                let file = Field::decode(input)?;
                let why = match input.byte()? {
                    1 => Busy::Open,
                    2 => Busy::OrdersUnderWay,
                    3 => Busy::TooLarge,
                    4 => Busy::InSnapshot,
                    _ => return Err(input.malformed("a reason that is not known")),
                };
                Self::File(FileFact::Busy { file, why })
            }
            5 => Self::Amounts(Field::decode(input)?),
            _ => return Err(input.malformed("an answer of a kind that is not known")),
        })
    }
}

/// What homes have told, and what a plan has asked beyond that.
///
/// A plan that asks what nobody has told goes on as if the answer were no. It must be thrown away then, and be made again when
/// [`Told::take_unanswered`] is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    answers: BTreeMap<Question, (Answer, Dix)>,
    unanswered: RefCell<BTreeSet<Question>>,
}

impl Question {
    pub fn directory(&self) -> InodeId {
        match self {
            Self::HasFile { directory, .. }
            | Self::HasFiles { directory }
            | Self::HasFilesOfOthers { directory, .. }
            | Self::File { directory, .. }
            | Self::Used { directory, .. }
            | Self::Amounts { directory, .. } => *directory,
        }
    }

    /// The marks that a home holds for its answer.
    pub fn marks(&self) -> Vec<directory_log::Mark> {
        match self {
            Self::HasFile { directory, name } | Self::File { directory, name } => {
                vec![Mark::entry(*directory, name.as_bytes()).into()]
            }
            Self::HasFiles { directory } | Self::HasFilesOfOthers { directory, .. } => {
                vec![files_of(*directory)]
            }
            // Whatever is planned below passes through it. Entries say whether they bring something there.
            Self::Used { directory, .. } | Self::Amounts { directory, .. } => {
                vec![Mark::passage(*directory).into(), contents_of(*directory)]
            }
        }
    }

    /// The group that is asked: the directory's home, or every group for its own part.
    pub fn group(&self, ns: &Namespace) -> GroupId {
        match self {
            Self::Used { group, .. } | Self::Amounts { group, .. } => *group,
            Self::HasFile { directory, .. }
            | Self::HasFiles { directory }
            | Self::HasFilesOfOthers { directory, .. }
            | Self::File { directory, .. } => ns.home_of(*directory),
        }
    }

    /// Whether an answer is one to this question.
    fn fits(&self, answer: &Answer) -> bool {
        match self {
            Self::HasFile { .. } | Self::HasFiles { .. } | Self::HasFilesOfOthers { .. } => {
                matches!(answer, Answer::Is(_))
            }
            Self::File { .. } => matches!(answer, Answer::File(_)),
            Self::Used { .. } | Self::Amounts { .. } => matches!(answer, Answer::Amounts(_)),
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
            Self::File { directory, name } => {
                out.byte(4);
                out.number(directory.0);
                out.bytes(name.as_bytes());
            }
            Self::Used { directory, group } => {
                out.byte(5);
                out.number(directory.0);
                out.number(group.0.into());
            }
            Self::Amounts { directory, group, policy } => {
                out.byte(6);
                out.number(directory.0);
                out.number(group.0.into());
                out.byte(*policy);
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
            4 => Ok(Self::File { directory, name: text(input)? }),
            5 => Ok(Self::Used { directory, group: group(input)? }),
            6 => Ok(Self::Amounts { directory, group: group(input)?, policy: input.byte()? }),
            _ => Err(input.malformed("a question of a kind that is not known")),
        }
    }
}

fn group(input: &mut Reader<'_>) -> Result<GroupId, DecodeError> {
    let group = GroupId(input.number()?.try_into().unwrap_or(0));
    match group.is_possible() {
        true => Ok(group),
        false => Err(input.malformed("a group that no namespace has")),
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

/// Refuses an operation that would have to ask homes more than they take.
///
/// # Errors
/// [`FsError::Unsupported`] if these are too many questions.
pub fn check(questions: &[Question]) -> FsResult<()> {
    match questions.len() > QUESTIONS_MAX || encode(questions).len() > QUESTIONS_BYTES_MAX {
        true => Err(FsError::Unsupported(format!(
            "Whether this is allowed rests on the files of {} directories in other groups of metadata servers, and {QUESTIONS_MAX} can be asked \
             about at once; delete what is below in parts.",
            questions.len()
        ))),
        false => Ok(()),
    }
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

/// The bytes of the answers, by a group that has carried out the directory log up to this place.
pub fn encode_answers(at: Dix, answers: impl IntoIterator<Item = Answer>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Writer(&mut bytes).number(at.0);
    answers.into_iter().for_each(|answer| answer.encode(&mut Writer(&mut bytes)));
    bytes
}

/// The answers to these questions. `None`: the bytes are something else.
fn decode_answers(questions: &[Question], bytes: &[u8]) -> Option<Vec<(Answer, Dix)>> {
    let mut input = Reader::new(bytes);
    let at = Dix(input.number().ok()?);
    let mut answers = Vec::new();
    for question in questions {
        let answer = Answer::decode(&mut input).ok()?;
        if !question.fits(&answer) {
            return None;
        }
        answers.push((answer, at));
    }
    input.is_at_end().then_some(answers)
}

impl Told {
    /// Takes the answers to these questions. False: they are not the answers to so many.
    #[must_use]
    pub fn take(&mut self, questions: &[Question], answers: &[u8]) -> bool {
        let answers = decode_answers(questions, answers);
        let is_whole = answers.is_some();
        self.answers.extend(questions.iter().cloned().zip(answers.into_iter().flatten()));
        is_whole
    }

    pub(crate) fn ask(&self, question: Question) -> bool {
        matches!(self.answer(question, |_, _| false), Some(Answer::Is(true)))
    }

    /// `is_overtaken`: whether an answer that was given at this place in the directory log counts no longer.
    pub(crate) fn ask_file(
        &self,
        question: Question,
        is_overtaken: impl Fn(&Question, Dix) -> bool,
    ) -> FileFact {
        match self.answer(question, is_overtaken) {
            Some(Answer::File(fact)) => fact.clone(),
            _ => FileFact::None,
        }
    }

    pub(crate) fn ask_amounts(&self, question: Question) -> Amounts {
        match self.answer(question, |_, _| false) {
            Some(Answer::Amounts(amounts)) => *amounts,
            _ => Amounts::default(),
        }
    }

    fn answer(&self, question: Question, is_overtaken: impl Fn(&Question, Dix) -> bool) -> Option<&Answer> {
        let answer = self.answers.get(&question).filter(|(_, at)| !is_overtaken(&question, *at));
        let answer = answer.map(|(answer, _)| answer);
        if answer.is_none() {
            self.unanswered.borrow_mut().insert(question);
        }
        answer
    }

    /// All questions of the plan that has just been made, if one of them was not answered: those to which it has the answers have to be
    /// held by their homes as well.
    pub fn take_unanswered(&self) -> Option<Vec<Question>> {
        let unanswered = self.unanswered.take();
        if unanswered.is_empty() {
            return None;
        }
        // A question whose answer is overtaken stands in both.
        let all: BTreeSet<Question> = self.answers.keys().cloned().chain(unanswered).collect();
        Some(all.into_iter().collect())
    }
}

impl Namespace {
    fn files_in(&self, directory: u32) -> impl Iterator<Item = u32> {
        self.tree.children_of(directory, 0).filter(|child| self.tree.inode(*child).is_file())
    }

    /// What a home tells of a file of this tree.
    pub(crate) fn file_fact(&self, file: u32) -> FileFact {
        let id = self.tree.inode(file).id();
        let why = if self.tree.inode(file).is_open() {
            Busy::Open
        } else if self.tree.post.is_about(id) {
            Busy::OrdersUnderWay
        } else if self.cover(file).is_some() {
            Busy::InSnapshot
        } else if self.has_past(file) {
            // Of a snapshot that was deleted: it is swept away soon.
            Busy::OrdersUnderWay
        } else if self.tree.blocks_of(file).nth(exports::BLOCKS_MAX).is_some() {
            Busy::TooLarge
        } else {
            return FileFact::File(Box::new(self.file_image(file)));
        };
        FileFact::Busy { file: id, why }
    }

    /// The answer to a question. `None`: it is for another group.
    pub fn tell(&self, question: &Question) -> Option<Answer> {
        let directory = question.directory();
        if question.group(self) != self.group() {
            return None;
        }
        let id = directory;
        // A directory that this tree does not have any more has no files.
        let directory = self.handle(directory);
        let files = || directory.into_iter().flat_map(|directory| self.files_in(directory));
        let file_of = |name: &str| {
            let child = directory.and_then(|directory| self.tree.child(directory, name.as_bytes()));
            child.filter(|child| self.tree.inode(*child).is_file())
        };
        Some(match question {
            Question::HasFile { name, .. } => Answer::Is(file_of(name).is_some()),
            Question::HasFiles { .. } => Answer::Is(files().next().is_some()),
            Question::HasFilesOfOthers { user, .. } => {
                Answer::Is(files().any(|file| *self.tree.attributes_of(file).owner != **user))
            }
            Question::File { name, .. } => {
                Answer::File(file_of(name).map_or(FileFact::None, |file| self.file_fact(file)))
            }
            Question::Used { .. } => Answer::Amounts(self.usage_of(id)),
            Question::Amounts { policy, .. } => Answer::Amounts(match directory {
                Some(directory) => {
                    let is_same = *policy == self.tree.policy_of(directory);
                    self.subtree_amounts(directory, *policy, AFTER_ALL, !is_same)
                }
                None => Amounts::default(),
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Block, Timestamp};

    fn some() -> Vec<Question> {
        let directory = InodeId::of_slot(64, 7);
        vec![
            Question::HasFile { directory, name: "f".into() },
            Question::HasFiles { directory },
            Question::HasFilesOfOthers { directory, user: "ann".into() },
            Question::File { directory, name: "f".into() },
        ]
    }

    fn file() -> FileImage {
        let block = Block { id: base::BlockId::of_pool(1, 7), ..Block::default() };
        FileImage {
            inode: InodeId::of_group(1, 9),
            owner: "ann".into(),
            group: "staff".into(),
            mode: 0o1640,
            replication: 3,
            block_size: 1 << 20,
            storage_policy: 0,
            acl: None,
            xattrs: Vec::new(),
            modified: Timestamp::from_ms(7),
            accessed: Timestamp::from_ms(8),
            blocks: vec![block; 3],
        }
    }

    fn answers(file: FileFact) -> Vec<u8> {
        let is = [true, false, true].map(Answer::Is);
        encode_answers(Dix(9), is.into_iter().chain([Answer::File(file)]))
    }

    #[test]
    fn questions_and_answers_come_back() {
        let questions = some();
        assert_eq!(decode(&encode(&questions)), Ok(questions.clone()));
        let file_id = file().inode;
        for fact in [
            FileFact::None,
            FileFact::File(Box::new(file())),
            FileFact::Busy { file: file_id, why: Busy::Open },
            FileFact::Busy { file: file_id, why: Busy::OrdersUnderWay },
            FileFact::Busy { file: file_id, why: Busy::TooLarge },
        ] {
            let mut told = Told::default();
            assert!(told.take(&questions, &answers(fact.clone())));
            let told_of = |question: &Question| told.ask(question.clone());
            assert_eq!(questions[..3].iter().map(told_of).collect::<Vec<_>>(), [true, false, true]);
            assert_eq!(told.ask_file(questions[3].clone(), |_, at| at != Dix(9)), fact);
            assert_eq!(told.take_unanswered(), None);
            let new = Question::HasFiles { directory: InodeId::ROOT };
            assert!(!told.ask(new.clone()), "as if there were none");
            let all: Vec<Question> = told.take_unanswered().expect("one was not answered");
            assert!(all.contains(&new) && questions.iter().all(|question| all.contains(question)));
        }
    }

    /// The bytes come from other servers.
    #[test]
    fn bytes_that_are_no_questions_and_answers_are_refused() {
        let good = encode(&some());
        for at in 0..good.len() {
            assert!(decode(&good[..at]).is_err(), "{at} bytes of {}", good.len());
            for byte in [0, 5, 0x7f, 0x80, 0xff] {
                let mut other = good.clone();
                other[at] = byte;
                // An error, or other questions; never a panic.
                if let Ok(questions) = decode(&other) {
                    assert!(questions.len() <= some().len());
                }
            }
        }
        let questions: Vec<Question> = (0..=QUESTIONS_MAX as u64)
            .map(|count| Question::HasFiles { directory: InodeId::of_slot(64, count) })
            .collect();
        assert_eq!(check(&questions[1..]), Ok(()));
        assert_eq!(decode(&encode(&questions[1..])).as_deref(), Ok(&questions[1..]));
        let refused = check(&questions).unwrap_err().to_string();
        assert!(refused.contains("the files of 8193 directories"), "{refused}");
        let user: Box<str> = "u".repeat(1_000).into();
        let of = |question: &Question| Question::HasFilesOfOthers {
            directory: question.directory(),
            user: user.clone(),
        };
        assert!(check(&questions[..5_000].iter().map(of).collect::<Vec<_>>()).is_err(), "too many bytes");
        let mut many = Vec::new();
        Writer(&mut many).number(QUESTIONS_MAX as u64 + 1);
        assert!(decode(&many).is_err_and(|error| error.to_string().contains("too many questions")));
        let good = answers(FileFact::File(Box::new(file())));
        for at in 0..good.len() {
            assert!(!Told::default().take(&some(), &good[..at]), "{at} bytes of {}", good.len());
            for byte in [0, 5, 0x7f, 0x80, 0xff] {
                let mut other = good.clone();
                other[at] = byte;
                let _ = Told::default().take(&some(), &other);
            }
        }
        let swapped = encode_answers(Dix(9), [Answer::File(FileFact::None), Answer::Is(true)]);
        assert!(!Told::default().take(&some()[..2], &swapped), "a file where a yes or no was asked for");
    }
}
