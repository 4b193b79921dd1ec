//! Changes whose plans rest on large subtrees.
//!
//! The plan is made in the writer's turn. If it needs a look at a large subtree ([`namespace::Looks`]) the writer goes on with
//! other calls, the look is taken in slices by the thread of the walks, as that of a read is, and then the call joins the
//! writer's queue again. A watch tells whether the subtree has changed in between.

use super::{
    answers::Answer,
    steps::{self, Ran},
    turns,
};
use crate::{core::Core, partition::turn::Turn};
use base::{FsResult, Moment};
use namespace::{Look, Looks, Reply, Request, Watch};
use rpc::{Call, Replier};
use serving::admission;
use std::sync::Arc;

/// A change under way.
struct Change<C, F> {
    request: Request,
    /// Refuses the call in the turn, before anything else does.
    check: C,
    /// Makes the answer out of the edit's.
    answer: F,
    looks: Looks,
    /// When it was attempted first.
    began: Moment,
}

/// A change that has waited for looks for so long looks in the writer's turn. Others' walks take turns with its own, and its client does not
/// wait for ever.
const PATIENCE_MS: u64 = 10_000;

/// Carries a request out, and answers it after the commit. `check` may refuse it in the turn, before anything else does.
pub fn write<A, C, F>(core: &Arc<Core>, call: Call, reply: Replier, request: Request, check: C, answer: F)
where
    A: Answer,
    C: Fn(&Turn<'_>, &Call) -> FsResult<()> + Send + 'static,
    F: FnOnce(&Turn<'_>, Reply) -> A + Send + 'static,
{
    let looks = Looks::new(core.config.limits.content_summary_step);
    let began = core.moment();
    attempt(core, call, reply, Change { request, check, answer, looks, began });
}

fn attempt<A, C, F>(core: &Arc<Core>, call: Call, reply: Replier, change: Change<C, F>)
where
    A: Answer,
    C: Fn(&Turn<'_>, &Call) -> FsResult<()> + Send + 'static,
    F: FnOnce(&Turn<'_>, Reply) -> A + Send + 'static,
{
    turns::in_turn(core, call, reply, move |core, turn, call, reply| {
        let before = turn.applied();
        let Change { request, check, answer, looks, began } = change;
        let (ran, mut looks) = turn.looking(looks, |turn| match check(turn, &call) {
            Ok(()) => steps::run_to_look(turn, &call, &request),
            Err(refused) => Ran::Answered(Err(refused)),
        });
        match ran {
            Ran::Answered(essentials) => {
                let answer = essentials.map(|essentials| answer(turn, essentials));
                turns::answer_behind(core, turn, call, reply, before, answer);
            }
            Ran::Look(question) => {
                let watch = turn.watch(question.top());
                if watch.is_none() {
                    looks.give_up();
                }
                let change = Change { request, check, answer, looks, began };
                match watch {
                    Some(watch) => take(core, call, reply, change, Look::new(question), watch),
                    None => attempt(core, call, reply, change),
                }
            }
        }
    });
}

/// Takes a look in slices, and attempts the change again.
fn take<A, C, F>(
    core: &Arc<Core>,
    call: Call,
    reply: Replier,
    mut change: Change<C, F>,
    look: Look,
    watch: Arc<Watch>,
) where
    A: Answer,
    C: Fn(&Turn<'_>, &Call) -> FsResult<()> + Send + 'static,
    F: FnOnce(&Turn<'_>, Reply) -> A + Send + 'static,
{
    if admission::admit_walk(core.walks.waiting()).is_err() {
        // A change is not refused for that.
        change.looks.give_up();
        return attempt(core, call, reply, change);
    }
    let walker = core.clone();
    let mut under_way = Some((call, reply, change, look, watch));
    core.walks.push(Box::new(move || {
        let Some((call, reply, mut change, mut look, watch)) = under_way.take() else { return false };
        if reply.is_abandoned() {
            return false;
        }
        walker.walks.count_slice();
        let holding = walker.in_hand(&call).hold();
        let is_over = {
            let tree = walker.partition.tree();
            let context = walker.partition.context(&call.caller, Some(call.origin));
            look.step(&tree.namespace, &context, context.limits.content_summary_step)
        };
        drop(holding);
        let is_late = walker.moment().ms_since(change.began) > PATIENCE_MS;
        if is_over || is_late || !watch.is_intact() {
            look.tell(&mut change.looks, watch);
            if is_late {
                change.looks.give_up();
            }
            attempt(&walker, call, reply, change);
            return false;
        }
        under_way = Some((call, reply, change, look, watch));
        true
    }));
}
