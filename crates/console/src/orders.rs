//! Orders to the group that a console passes on, proved by the program beside which it runs.

use std::{future::Future, pin::Pin, sync::Arc};

/// The outcome of an order: sentences, a line for each, or the reason why nothing is known to be done.
pub type Outcome = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// Has another member become active, in the name of a user, and waits until it serves. The number is that of the member; `None`: any that is
/// ready.
pub type HandOver = Arc<dyn Fn(String, Option<u32>) -> Outcome + Send + Sync>;
