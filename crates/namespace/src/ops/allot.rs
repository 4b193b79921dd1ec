//! Hands out allowances of a quota to the groups that share it: see [`crate::shares`]. An entry of the directory log, which all groups carry out.
//!
//! The root group gives from what is free. If that does not suffice it asks all groups what they use, which they hold until the entry is there: then
//! nothing but that is left to them, and the rest is handed out anew. So nothing is refused that fits, and nothing is taken that does not.

use crate::{
    Context, Namespace, Reply,
    charge::ledger::Ledger,
    codec::record_fields,
    edit::{Edit, Planned},
    footprint::Marks,
    looks::Counted,
    operation::{Applying, Operation},
    quota::{Amounts, Quota},
    shares::{ByGroup, Lack, Share, is_limit, sum},
    snapshots::AFTER_ALL,
};
use base::{GroupId, InodeId};

#[derive(Clone, Debug, PartialEq)]
pub struct AllotEdit {
    pub directory: InodeId,
    /// In a box: other edits are much smaller.
    pub terms: Box<Terms>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    pub limits: Amounts,
    /// What each group may use from here on.
    pub allowed: ByGroup,
    /// The part of the limits that no group is allowed to use yet. The root group gives from it.
    pub free: Amounts,
    /// What each group uses, if all were asked.
    pub told: Option<ByGroup>,
    /// What this group uses, if the directory had no quota that would have kept count of it.
    pub counted: Option<Amounts>,
}

record_fields! { AllotEdit { directory, terms } }
record_fields! { Terms { limits, allowed, free, told, counted } }

/// Plans what the root group does about a lack.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, lack: &Lack) -> Planned<AllotEdit> {
    let directory = lack.directory;
    let known = ns.tree.quotas.get(&directory).zip(ns.tree.shares.get(&directory));
    // The quota is gone, or the directory: the call sees for itself.
    let Some((quota, share)) = known else { return Planned::NoChange(Reply::Unit) };
    let limits = quota.limits;
    let missing = sum(&lack.missing);
    let short = limits.zip([&missing, &share.free], |limit, [missing, free]| {
        i64::from(is_limit(limit) && missing > 0 && missing > free)
    });
    if short.is_zero() {
        if missing.is_zero() {
            return Planned::NoChange(Reply::Unit);
        }
        let edit = grant(directory, limits, share, lack);
        return Planned::Edit(Edit::of_service(ns, ctx, edit));
    }
    Planned::Edit(Edit::of_service(ns, ctx, hand_out(ns, ctx, directory, limits, &lack.wanted)))
}

/// Gives from what is free: what is missing, and half of the rest to those that lack something, so that they need not ask for each file.
fn grant(directory: InodeId, limits: Amounts, share: &Share, lack: &Lack) -> AllotEdit {
    let (mut allowed, mut free) = (share.allowed.clone(), share.free);
    let groups = lack.missing.len().max(1) as i64;
    let mut left = free;
    left -= sum(&lack.missing);
    for (group, missing) in &lack.missing {
        let given = limits.zip([missing, &left], |limit, [missing, left]| match is_limit(limit) {
            true => missing.saturating_add(left.max(0) / 2 / groups),
            false => 0,
        });
        *allowed.entry(*group).or_default() += given;
        free -= given;
    }
    let terms = Terms { limits, allowed, free, told: None, counted: None };
    AllotEdit { directory, terms: Box::new(terms) }
}

/// Asks all groups what they use below a directory, and hands the rest of these limits out: first what is wanted, if it fits.
pub(crate) fn hand_out(
    ns: &Namespace,
    ctx: &Context<'_>,
    directory: InodeId,
    limits: Amounts,
    wanted: &ByGroup,
) -> AllotEdit {
    let own = own_usage(ns, ctx, directory);
    let mut told = ByGroup::from([(GroupId::ROOT, own)]);
    told.extend(ns.other_homes().map(|group| (group, ctx.used(ns, directory, group))));
    let mut left = limits;
    left -= sum(&told);
    // Who needs less gives it back later, and not for the others now.
    let wanted: ByGroup = wanted.iter().map(|(group, wanted)| (*group, wanted.no_less_than_zero())).collect();
    let all = sum(&wanted);
    // Where more is used than a limit allows already, nobody has an allowance: what one group frees, none may use again.
    let within = |of: &Amounts| {
        limits.zip([of, &left], |limit, [of, left]| if is_limit(limit) && left >= 0 { of } else { 0 })
    };
    let mut allowed: ByGroup = told.iter().map(|(group, told)| (*group, within(told))).collect();
    let mut free = within(&left);
    let groups = wanted.len().max(1) as i64;
    for (group, wanted) in &wanted {
        let given = limits.zip([wanted, &left, &all, &free], |limit, [wanted, left, all, free]| {
            match is_limit(limit) {
                // It fits. Half of what is left then is for those that want something.
                true if all <= left => wanted.saturating_add((left - all) / 2 / groups),
                // Not all of it does; some may want less than all.
                true => wanted.clamp(0, free.max(0)),
                false => 0,
            }
        });
        *allowed.entry(*group).or_default() += given;
        free -= given;
    }
    let counted = (!ns.tree.quotas.contains_key(&directory)).then_some(own);
    let terms = Terms { limits, allowed, free, told: Some(told), counted };
    AllotEdit { directory, terms: Box::new(terms) }
}

/// What the root group uses. It counts at the first time.
fn own_usage(ns: &Namespace, ctx: &Context<'_>, directory: InodeId) -> Amounts {
    match ns.tree.quotas.get(&directory) {
        Some(quota) => quota.used,
        None => {
            let policy = ns.handle(directory).map_or(0, |directory| ns.tree.policy_of(directory));
            ns.amounts_for(ctx, Counted { top: directory, policy, died: AFTER_ALL, anew: false })
        }
    }
}

impl Namespace {
    /// What this group uses below a directory.
    pub(crate) fn usage_of(&self, directory: InodeId) -> Amounts {
        match (self.tree.quotas.get(&directory), self.handle(directory)) {
            (Some(quota), _) => quota.used,
            (None, Some(handle)) => {
                let policy = self.tree.policy_of(handle);
                self.amounts_of(Counted { top: directory, policy, died: AFTER_ALL, anew: false })
            }
            (None, None) => Amounts::default(),
        }
    }
}

impl Operation for AllotEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        match self.terms.told {
            // No allowance becomes smaller. So a group may go on charging by the allowance that it had before this entry, until it applies the entry.
            None => marks.inode(self.directory),
            Some(_) => marks.passage(self.directory),
        }
    }

    fn changed(&self, _: &Namespace, add: &mut dyn FnMut(InodeId)) {
        add(self.directory);
    }

    fn charge(&self, _: &Namespace, _: &mut Ledger<'_>) {
        // A quota that is set brings its usage with it.
    }

    fn followed(&self, ns: &Namespace) -> Option<Self> {
        // A count that was told before may be too high: a block may have become final meanwhile.
        let counts = self.terms.told.is_some() && !ns.tree.quotas.contains_key(&self.directory);
        let counted = counts.then(|| ns.usage_of(self.directory));
        let terms = Terms { counted, ..(*self.terms).clone() };
        ns.has_directory(self.directory).then(|| Self { terms: Box::new(terms), ..self.clone() })
    }

    fn apply(&self, ns: &mut Namespace, _: &mut Applying<'_>) -> Reply {
        let directory = ns.expect(self.directory);
        let Terms { limits, allowed, free, told, counted } = &*self.terms;
        let known = ns.tree.quotas.get(&self.directory).map(|quota| quota.used);
        let used = known.or(*counted).unwrap_or_default();
        let before = ns.tree.shares.get(&self.directory).cloned().unwrap_or_default();
        ns.set_quota(directory, Some(Quota { limits: *limits, used }));
        let next = ns.directory_log().dix.next();
        let share = Share { allowed: allowed.clone(), free: *free, ..before };
        let share = match told {
            Some(told) => Share { told_at: next, told: told.clone(), ..share },
            None => share,
        };
        ns.set_share(self.directory, Some(share));
        Reply::Unit
    }
}
