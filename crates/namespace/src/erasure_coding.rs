//! Erasure coding, for which there is no data path yet: HDFS's own policies are known and all disabled, and no codec is
//! there to enable them with. A directory can only be told to replicate, which all do
//! ([`crate::ops::set_erasure_coding`]).

use crate::{ops::set_erasure_coding::REPLICATION, privilege::Privileged};
use base::{FsError, FsResult};

/// One of the policies that HDFS is born with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub id: u32,
    pub name: &'static str,
    pub codec: &'static str,
    pub data_units: u32,
    pub parity_units: u32,
}

/// The bytes of a cell, in each of the policies.
pub const CELL_BYTES: u32 = 1 << 20;

/// HDFS's `SystemErasureCodingPolicies`, in the order in which its clients list them.
pub const POLICIES: &[Policy] = &[
    Policy { id: 5, name: "RS-10-4-1024k", codec: "rs", data_units: 10, parity_units: 4 },
    Policy { id: 2, name: "RS-3-2-1024k", codec: "rs", data_units: 3, parity_units: 2 },
    Policy { id: 1, name: DEFAULT, codec: "rs", data_units: 6, parity_units: 3 },
    Policy { id: 3, name: "RS-LEGACY-6-3-1024k", codec: "rs-legacy", data_units: 6, parity_units: 3 },
    Policy { id: 4, name: "XOR-2-1-1024k", codec: "xor", data_units: 2, parity_units: 1 },
];

/// The policy that HDFS takes if a call names none (`dfs.namenode.ec.system.default.policy`).
pub const DEFAULT: &str = "RS-6-3-1024k";

/// The refusal of each policy that is to be added: HDFS's where an operator has not allowed policies of users.
pub const ADDING_IS_OFF: &str = "Addition of user defined erasure coding policy is disabled.";

fn is_known(name: &str) -> bool {
    POLICIES.iter().any(|policy| policy.name == name)
}

/// An order about the policies of the cluster.
#[derive(Clone, Copy, Debug)]
pub enum Order<'a> {
    Add,
    Remove(&'a str),
    Enable(&'a str),
    Disable(&'a str),
}

impl Order<'_> {
    /// The privilege that its caller needs.
    pub fn privilege(self) -> Privileged {
        match self {
            Self::Add => Privileged::AddErasureCodingPolicies,
            Self::Remove(_) => Privileged::RemoveErasureCodingPolicy,
            Self::Enable(_) => Privileged::EnableErasureCodingPolicy,
            Self::Disable(_) => Privileged::DisableErasureCodingPolicy,
        }
    }

    /// The beginning of Hadoop's sentence where safe mode refuses it.
    pub fn what(self) -> String {
        match self {
            Self::Add => "Cannot add erasure coding policy".into(),
            Self::Remove(name) => format!("Cannot remove erasure coding policy {name}"),
            Self::Enable(name) => format!("Cannot enable erasure coding policy {name}"),
            Self::Disable(name) => format!("Cannot disable erasure coding policy {name}"),
        }
    }

    /// The answer to an order that is allowed. Of added policies each is refused by itself ([`ADDING_IS_OFF`]), and the
    /// call as a whole is not. All policies are disabled, so that there is nothing left to disable.
    ///
    /// # Errors
    /// [`FsError::InvalidArgument`] if no policy has the name, or one that HDFS is born with is to be removed;
    /// [`FsError::Unsupported`] if one is to be enabled.
    pub fn answer(self) -> FsResult<()> {
        match self {
            Self::Add => Ok(()),
            Self::Remove(name) | Self::Enable(name) | Self::Disable(name) if !is_known(name) => {
                Err(FsError::InvalidArgument(format!("The policy name {name} does not exist")))
            }
            Self::Remove(name) => Err(FsError::InvalidArgument(format!(
                "System erasure coding policy {name} cannot be removed"
            ))),
            Self::Enable(name) => Err(FsError::Unsupported(format!(
                "Cannot enable erasure coding policy {name}: erasure coding is not built yet in this version of \
                 Clover."
            ))),
            Self::Disable(_) => Ok(()),
        }
    }
}

/// Whether the data servers suffice for some policies, and a sentence about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    pub is_supported: bool,
    pub message: String,
}

/// Looks whether the data servers suffice for these policies; if none is named, for those that are enabled.
///
/// # Errors
/// [`FsError::InvalidArgument`] if there is no policy of one of the names.
pub fn topology(names: &[String]) -> FsResult<Topology> {
    let is_there = |name: &str| is_known(name) || name.eq_ignore_ascii_case(REPLICATION);
    if let Some(name) = names.iter().find(|name| !is_there(name)) {
        return Err(FsError::InvalidArgument(format!(
            "The given erasure coding policy {name} does not exist."
        )));
    }
    Ok(match names.is_empty() {
        true => Topology { is_supported: true, message: "No erasure coding policy is given.".into() },
        false => Topology {
            is_supported: false,
            message: format!(
                "Erasure coding is not built yet in this version of Clover, whatever the number of data servers: {}",
                names.join(", ")
            ),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_policy_can_be_added_removed_or_enabled() {
        let invalid = |text: &str| Err(FsError::InvalidArgument(text.into()));
        assert_eq!(Order::Add.answer(), Ok(()));
        for order in [Order::Remove("mine"), Order::Enable("mine"), Order::Disable("mine")] {
            assert_eq!(order.answer(), invalid("The policy name mine does not exist"));
        }
        let removed = Order::Remove(DEFAULT).answer();
        assert_eq!(removed, invalid("System erasure coding policy RS-6-3-1024k cannot be removed"));
        let enabled = Order::Enable(DEFAULT).answer();
        assert!(
            matches!(&enabled, Err(FsError::Unsupported(text)) if text.starts_with("Cannot enable erasure coding policy RS-6-3-1024k: ")),
            "{enabled:?}"
        );
        assert_eq!(Order::Disable(DEFAULT).answer(), Ok(()), "it is disabled already");
    }

    #[test]
    fn safe_mode_refuses_orders_in_hadoop_s_words() {
        assert_eq!(Order::Add.what(), "Cannot add erasure coding policy");
        assert_eq!(
            Order::Disable("RS-3-2-1024k").what(),
            "Cannot disable erasure coding policy RS-3-2-1024k"
        );
        assert_eq!(Order::Enable("x").privilege().name(), "enableErasureCodingPolicy");
    }

    #[test]
    fn the_data_servers_suffice_for_no_policy() {
        assert!(topology(&[]).unwrap().is_supported, "no policy is enabled");
        // HDFS knows whole blocks by this name too, however it is written.
        let some = topology(&[DEFAULT.into(), "REPLICATION".into()]).unwrap();
        assert!(!some.is_supported);
        assert!(some.message.ends_with(": RS-6-3-1024k, REPLICATION"), "{}", some.message);
        let unknown = topology(&[DEFAULT.into(), "mine".into()]);
        let text = "The given erasure coding policy mine does not exist.";
        assert_eq!(unknown, Err(FsError::InvalidArgument(text.into())));
    }

    #[test]
    fn policies_have_ids_and_names_of_their_own() {
        for (at, policy) in POLICIES.iter().enumerate() {
            let rest = &POLICIES[at + 1..];
            assert!(rest.iter().all(|other| other.id != policy.id && other.name != policy.name));
        }
    }
}
