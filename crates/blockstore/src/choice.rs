//! The choice of the volume for a new replica.

/// Volumes whose free space differs by less than this count as equally full, as in Hadoop's
/// available-space policy.
const BALANCED_BYTES: u64 = 10 << 30;

/// The share of replicas that go to the emptier volumes when they differ, in percent; Hadoop's default.
const PREFERENCE_PERCENT: u64 = 75;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VolumeChoice {
    #[default]
    RoundRobin,
    /// Prefers volumes with much free space once they differ by more than 10 GiB.
    AvailableSpace,
}

impl VolumeChoice {
    /// Picks one of `free` (bytes free on each candidate, none too small) by place; `turn` rises with each
    /// call, `random` is any number. `None` when there is no candidate.
    pub(crate) fn pick(self, free: &[u64], turn: usize, random: u64) -> Option<usize> {
        let most = *free.iter().max()?;
        let least = *free.iter().min()?;
        if self == Self::RoundRobin || most - least < BALANCED_BYTES {
            return Some(turn % free.len());
        }
        let is_roomy = |bytes: u64| bytes > least + BALANCED_BYTES / 2;
        let wants_roomy = random % 100 < PREFERENCE_PERCENT;
        let of_kind: Vec<usize> = (0..free.len()).filter(|at| is_roomy(free[*at]) == wants_roomy).collect();
        of_kind.get(turn % of_kind.len().max(1)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_take_turns() {
        let free = [5, 5, 900];
        let picks: Vec<_> =
            (0..4).map(|turn| VolumeChoice::RoundRobin.pick(&free, turn, 0).unwrap()).collect();
        assert_eq!(picks, [0, 1, 2, 0]);
        assert_eq!(VolumeChoice::RoundRobin.pick(&[], 0, 0), None);
    }

    #[test]
    fn roomy_volumes_take_most() {
        let free = [1 << 30, 100 << 30, 90 << 30];
        let choose = |turn, random| VolumeChoice::AvailableSpace.pick(&free, turn, random).unwrap();
        assert_eq!((choose(0, 10), choose(1, 74), choose(0, 75)), (1, 2, 0));
        let balanced = [10 << 30, 11 << 30];
        assert_eq!(VolumeChoice::AvailableSpace.pick(&balanced, 1, 99), Some(1));
    }
}
