//! A world that can be searched: what the searches need to know of it.

use crate::truth::Broken;
use std::fmt::Debug;

/// The lines that a world tells while it goes on; `None` if they are not wanted.
pub type Told<'a> = Option<&'a mut Vec<String>>;

/// The bounds of a search. They know the world from which it begins, and all that may happen in it.
pub trait Search {
    type World: Clone;
    /// Four bytes at most, so that a world that was seen takes 18 bytes.
    type Event: Copy + PartialEq + Debug;
    /// Stands for the event that leads to the outset, which none does.
    const NO_EVENT: Self::Event;

    fn outset(&self) -> Self::World;

    /// Everything that may happen next.
    fn events(&self, world: &Self::World) -> Vec<Self::Event>;

    /// Lets it happen.
    ///
    /// # Errors
    /// A rule is broken; the sentence names it.
    fn go(&self, world: &mut Self::World, event: Self::Event, told: &mut Told) -> Result<(), Broken>;

    /// The same for worlds that are the same.
    fn fingerprint(world: &Self::World) -> u64;

    /// Whether this may happen, in a story that was shortened.
    fn allows(&self, world: &Self::World, event: Self::Event) -> bool {
        self.events(world).contains(&event)
    }

    /// At most so many worlds.
    fn states(&self) -> usize;

    /// At most so many events one after the other.
    fn depth(&self) -> usize;
}
