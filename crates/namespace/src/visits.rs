//! Tells how far long walks have come.

/// A function that is called for each inode that a long walk visits, on the thread that walks. A watcher sees by it
/// that a plan which takes seconds goes on. No plan and no edit rests on it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Visits(Option<fn()>);

impl Visits {
    pub fn tell(told: fn()) -> Self {
        Self(Some(told))
    }

    pub fn add(self) {
        if let Some(told) = self.0 {
            told();
        }
    }
}
