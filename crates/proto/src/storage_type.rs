//! The media of storages by Hadoop's names and numbers.

use crate::hdfs::StorageTypeProto;
use base::StorageType;

impl From<StorageType> for StorageTypeProto {
    fn from(storage_type: StorageType) -> Self {
        match storage_type {
            StorageType::RamDisk => Self::RamDisk,
            StorageType::Ssd => Self::Ssd,
            StorageType::Disk => Self::Disk,
            StorageType::Archive => Self::Archive,
            StorageType::Provided => Self::Provided,
            StorageType::Nvdimm => Self::Nvdimm,
        }
    }
}

impl From<StorageTypeProto> for StorageType {
    fn from(storage_type: StorageTypeProto) -> Self {
        match storage_type {
            StorageTypeProto::RamDisk => Self::RamDisk,
            StorageTypeProto::Ssd => Self::Ssd,
            StorageTypeProto::Disk => Self::Disk,
            StorageTypeProto::Archive => Self::Archive,
            StorageTypeProto::Provided => Self::Provided,
            StorageTypeProto::Nvdimm => Self::Nvdimm,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_medium_has_hadoops_name_and_number() {
        for medium in StorageType::ALL {
            let proto = StorageTypeProto::from(medium);
            assert_eq!((proto.as_str_name(), StorageType::from(proto)), (medium.name(), medium));
        }
    }
}
