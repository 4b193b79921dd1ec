//! The admin states of data servers by Hadoop's names and numbers.

use crate::hdfs::datanode_info_proto::AdminState as AdminStateProto;
use base::AdminState;

impl From<AdminState> for AdminStateProto {
    fn from(state: AdminState) -> Self {
        match state {
            AdminState::InService => Self::Normal,
            AdminState::DecommissionInProgress => Self::DecommissionInprogress,
            AdminState::Decommissioned => Self::Decommissioned,
            AdminState::EnteringMaintenance => Self::EnteringMaintenance,
            AdminState::InMaintenance => Self::InMaintenance,
        }
    }
}

impl From<AdminStateProto> for AdminState {
    fn from(state: AdminStateProto) -> Self {
        match state {
            AdminStateProto::Normal => Self::InService,
            AdminStateProto::DecommissionInprogress => Self::DecommissionInProgress,
            AdminStateProto::Decommissioned => Self::Decommissioned,
            AdminStateProto::EnteringMaintenance => Self::EnteringMaintenance,
            AdminStateProto::InMaintenance => Self::InMaintenance,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_comes_back_from_its_number() {
        for number in 0..=4 {
            let told = AdminStateProto::try_from(number).unwrap();
            assert_eq!(AdminStateProto::from(AdminState::from(told)), told);
        }
    }
}
