//! The one place in this crate where durability is attested.

use base::Durable;
use std::io;

/// Turns the success of a sync into the proof of it. `synced` must be the result of the sync of the very
/// writes that the proof is for.
pub(crate) fn proof_of(synced: io::Result<()>) -> io::Result<Durable> {
    synced.map(|()| Durable::attest())
}
