//! What every request for a look can tell: Hadoop's name for it, the paths that it names, the part of the tree that it looks at, and
//! what is there.

use crate::{Context, Namespace, footprint::Sight, paths::Paths};
use base::FsResult;
use std::fmt::Debug;

/// A request that changes nothing. It stands in the file of its read, beside the look itself.
pub trait Readable: Debug {
    /// What a look finds. It may borrow from the tree.
    type Seen<'ns>;

    /// The name of Hadoop's call. In the table of methods, what holds for the call stands under this name: its word in the audit
    /// log, and which group answers it.
    fn method(&self) -> &'static str;

    /// The paths that the request names, as its caller wrote them.
    fn paths(&self) -> Paths<'_>;

    /// The names of the two snapshots that are compared, if the request compares any. An empty name is the present.
    fn compared(&self) -> Option<[&str; 2]> {
        None
    }

    /// The part of the tree that a look depends on.
    fn sight(&self) -> Sight<'_> {
        Sight::Paths(self.paths())
    }

    /// Looks at this tree. It may be done again, on another tree or at another time.
    ///
    /// # Errors
    /// The list stands at the function that looks, in the file of [`crate::reads`].
    fn look<'ns>(&self, ns: &'ns Namespace, ctx: &Context<'ns>) -> FsResult<Self::Seen<'ns>>;
}

/// A request that may look at a great deal, and can be answered in slices: others have their turn in between.
pub trait Walkable: Readable {
    /// How far a walk has come. One that has not begun is the default.
    type Progress: Default + Send + 'static;

    /// What a walk finds.
    type Found;

    /// Looks at one slice, and answers behind the last one. `Ok(None)`: let others have their turn, and go on.
    ///
    /// # Errors
    /// The list stands at the function that looks, in the file of [`crate::reads`].
    fn step(
        &self,
        progress: &mut Self::Progress,
        ns: &Namespace,
        ctx: &Context<'_>,
    ) -> FsResult<Option<Self::Found>>;

    /// Takes all steps of a new walk at once.
    ///
    /// # Errors
    /// Those of [`Walkable::step`].
    fn walk(&self, ns: &Namespace, ctx: &Context<'_>) -> FsResult<Self::Found> {
        let mut progress = Self::Progress::default();
        loop {
            if let Some(found) = self.step(&mut progress, ns, ctx)? {
                return Ok(found);
            }
        }
    }
}

/// Implements [`Readable`]: the type of the request, what it sees, the fields that are paths, Hadoop's name for the call, and the
/// look. Behind a `;` other methods of the trait may follow.
macro_rules! readable {
    ($request:ident => $seen:ty, ($($path:ident),*) $method:literal,
        |$ns:pat_param, $ctx:pat_param, $req:ident| $look:expr $(; $($others:tt)*)?) => {
        impl $crate::Readable for $request {
            type Seen<'ns> = $seen;

            fn method(&self) -> &'static str {
                $method
            }

            fn paths(&self) -> $crate::Paths<'_> {
                $crate::Paths::of([$(&*self.$path),*])
            }

            fn look<'ns>(&self, $ns: &'ns $crate::Namespace, $ctx: &$crate::Context<'ns>) -> base::FsResult<$seen> {
                let $req = self;
                $look
            }

            $($($others)*)?
        }
    };
}

pub(crate) use readable;
