//! Which volume takes the next replica.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VolumeChoice {
    #[default]
    RoundRobin,
    /// Prefers volumes with much free space once they differ by more than 10 GiB.
    AvailableSpace,
}
