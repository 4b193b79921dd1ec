//! How a plan of the root group asks for what homes know.

use crate::{
    Amounts, Context, Namespace,
    questions::{FileFact, Question, Told},
    resolve::Resolved,
};
use base::{GroupId, InodeId};

impl Context<'_> {
    /// Whether the home of a directory, if it is another group, has a file of this name there.
    pub(crate) fn has_file(&self, ns: &Namespace, directory: u32, name: &str) -> bool {
        self.ask(ns, ns.tree.inode(directory).id(), |directory| Question::HasFile {
            directory,
            name: name.into(),
        })
    }

    /// Whether a path names a file of another home. This tree has nothing there.
    pub(crate) fn names_file(&self, ns: &Namespace, resolved: &Resolved<'_>) -> bool {
        let parent = resolved.parent().filter(|_| resolved.target.is_none());
        parent.is_some_and(|parent| self.has_file(ns, parent, resolved.path.name()))
    }

    /// The file of another home that a path names.
    pub(crate) fn file_named(&self, ns: &Namespace, resolved: &Resolved<'_>) -> FileFact {
        let parent = resolved.parent().filter(|_| resolved.target.is_none());
        parent.map_or(FileFact::None, |parent| self.file(ns, parent, resolved.path.name()))
    }

    /// Whether the home of a directory, if it is another group, has any file there.
    pub(crate) fn has_files(&self, ns: &Namespace, directory: u32) -> bool {
        self.ask(ns, ns.tree.inode(directory).id(), |directory| Question::HasFiles { directory })
    }

    /// Whether the home of a directory, if it is another group, has a file there that is not the caller's.
    pub(crate) fn has_files_of_others(&self, ns: &Namespace, directory: u32) -> bool {
        self.ask(ns, ns.tree.inode(directory).id(), |directory| Question::HasFilesOfOthers {
            directory,
            user: (&*self.caller.user).into(),
        })
    }

    /// The file of this name in a directory, as its home tells, if that is another group.
    pub(crate) fn file(&self, ns: &Namespace, directory: u32, name: &str) -> FileFact {
        let directory = ns.tree.inode(directory).id();
        let asked = self.asked(ns, directory);
        let question = Question::File { directory, name: name.into() };
        asked.map_or(FileFact::None, |told| {
            told.ask_file(question, |question, at| ns.is_overtaken(question, at))
        })
    }

    /// What another group uses of a directory's quota.
    pub(crate) fn used(&self, ns: &Namespace, directory: InodeId, group: GroupId) -> Amounts {
        self.ask_amounts(ns, Question::Used { directory, group })
    }

    /// What a directory, and all below it, would count for in another group under this storage policy.
    pub(crate) fn amounts(&self, ns: &Namespace, directory: InodeId, group: GroupId, policy: u8) -> Amounts {
        self.ask_amounts(ns, Question::Amounts { directory, group, policy })
    }

    fn ask_amounts(&self, ns: &Namespace, question: Question) -> Amounts {
        let told = self.told.filter(|_| ns.group() == GroupId::ROOT);
        told.map_or(Amounts::default(), |told| told.ask_amounts(question))
    }

    fn ask(&self, ns: &Namespace, directory: InodeId, question: impl FnOnce(InodeId) -> Question) -> bool {
        self.asked(ns, directory).is_some_and(|told| told.ask(question(directory)))
    }

    /// What homes have told, if another home has to be asked about this directory.
    fn asked(&self, ns: &Namespace, directory: InodeId) -> Option<&Told> {
        self.told.filter(|_| ns.group() == GroupId::ROOT && ns.home_of(directory) != GroupId::ROOT)
    }
}
