//! The proof that something reached stable storage.

/// Says that the writes it was made for are on stable storage. Replies and messages that must not run
/// ahead of the disk are unreachable without it.
///
/// [`Durable::attest`] is called in exactly two places: after the fsync in `journal`, and in `sim`.
#[derive(Debug)]
#[must_use = "whoever holds the proof has something to release with it"]
pub struct Durable(());

impl Durable {
    /// The caller has just seen the fsync of these very writes succeed.
    pub fn attest() -> Self {
        Self(())
    }
}
