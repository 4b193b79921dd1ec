//! The facts that pages may see of the server on whose port they are.

use crate::{health::HealthSource, jmx::BeanSource};
use measures::MethodFigures;
use std::sync::Arc;

/// Tells how often each method was called, and how long the calls took. It is asked some times a minute.
pub type CallSource = Arc<dyn Fn() -> Vec<MethodFigures> + Send + Sync>;

/// Tells the paths of the first files that have a block with too few replicas, as many as are wanted at most. It looks at a bounded number of
/// blocks, so that it may name fewer.
pub type EndangeredSource = Arc<dyn Fn(usize) -> Vec<String> + Send + Sync>;

/// Whether a user is a superuser of the file system. It may run a command that tells the user's groups.
pub type Superusers = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The sources that a server may have for pages beside its health. A server that only waits to start has none.
#[derive(Clone, Default)]
pub struct Sources {
    pub beans: Option<BeanSource>,
    pub calls: Option<CallSource>,
    pub endangered: Option<EndangeredSource>,
    pub superusers: Option<Superusers>,
}

/// The facts that a page may see of its server: copies, made when they are asked for.
#[derive(Clone)]
pub struct Facts {
    pub health: HealthSource,
    pub sources: Sources,
}
