//! Every message of Hadoop's protocols: samples made from the compiled definitions, and the decoders.

use crate::Target;
use bytes::Bytes;
use prost::{Message, Name};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};
use proto::wire::put_varint;
use std::{collections::BTreeMap, sync::LazyLock};

pub fn targets() -> [Target; 1] {
    [Target { name: "request_messages", samples: requests, check: check_request }]
}

/// Decodes the bytes as every request there is. The first two bytes choose one that must not disagree with the
/// check of required fields.
fn check_request(bytes: &[u8]) -> bool {
    let Some((number, body)) = bytes.split_first_chunk::<2>() else { return false };
    let index = u16::from_le_bytes(*number) as usize % REQUESTS.len();
    let (name, decode) = REQUESTS[index];
    let name = name();
    let is_whole = proto::required::check(&name, body).is_ok();
    let decoded = decode(Bytes::copy_from_slice(body));
    assert!(is_whole || !decoded, "{name}: a message that lacks a required field is refused");
    decoded
}

fn requests() -> Vec<Vec<u8>> {
    let samples = REQUESTS.iter().enumerate().map(|(index, (name, _))| {
        let mut bytes = (index as u16).to_le_bytes().to_vec();
        bytes.extend_from_slice(&sample(&name()));
        bytes
    });
    samples.collect()
}

type FullName = fn() -> String;
type Decode = fn(Bytes) -> bool;

fn decodes<M: Message + Default + Name>(bytes: Bytes) -> bool {
    proto::decode::<M>(bytes).is_ok()
}

struct Definitions {
    messages: BTreeMap<String, DescriptorProto>,
    enums: BTreeMap<String, EnumDescriptorProto>,
}

static DEFINITIONS: LazyLock<Definitions> = LazyLock::new(|| {
    let set = FileDescriptorSet::decode(proto::DESCRIPTORS).expect("our own definitions can be read");
    let mut all = Definitions { messages: BTreeMap::new(), enums: BTreeMap::new() };
    for file in set.file {
        let package = format!(".{}", file.package());
        for message in file.message_type {
            all.add(&package, message);
        }
        for one in file.enum_type {
            all.enums.insert(format!("{package}.{}", one.name()), one);
        }
    }
    all
});

impl Definitions {
    fn add(&mut self, scope: &str, message: DescriptorProto) {
        let name = format!("{scope}.{}", message.name());
        for nested in &message.nested_type {
            self.add(&name, nested.clone());
        }
        for one in &message.enum_type {
            self.enums.insert(format!("{name}.{}", one.name()), one.clone());
        }
        self.messages.insert(name, message);
    }
}

/// A valid message of this full name, with every field, nested ones to a small depth.
pub fn sample(name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    fill(&format!(".{name}"), 3, &mut out);
    out
}

fn fill(name: &str, depth: u32, out: &mut Vec<u8>) {
    let message = DEFINITIONS.messages.get(name).unwrap_or_else(|| panic!("no message {name}"));
    for field in &message.field {
        let is_required = field.label() == Label::Required;
        if is_required || depth > 0 {
            put_field(field, depth.saturating_sub(1), out);
        }
    }
}

fn put_field(field: &FieldDescriptorProto, depth: u32, out: &mut Vec<u8>) {
    let number = field.number() as u64;
    let mut tag = |wire: u64| put_varint(out, number << 3 | wire);
    match field.r#type() {
        Type::Double | Type::Fixed64 | Type::Sfixed64 => {
            tag(1);
            out.extend_from_slice(&3_u64.to_le_bytes());
        }
        Type::Float | Type::Fixed32 | Type::Sfixed32 => {
            tag(5);
            out.extend_from_slice(&3_u32.to_le_bytes());
        }
        Type::String | Type::Bytes => {
            tag(2);
            put_varint(out, 5);
            out.extend_from_slice(b"/path");
        }
        Type::Message | Type::Group => {
            tag(2);
            let mut nested = Vec::new();
            fill(field.type_name(), depth, &mut nested);
            put_varint(out, nested.len() as u64);
            out.extend_from_slice(&nested);
        }
        Type::Enum => {
            tag(0);
            let value = DEFINITIONS.enums[field.type_name()].value[0].number();
            put_varint(out, value as i64 as u64);
        }
        _ => {
            tag(0);
            put_varint(out, 1);
        }
    }
}

macro_rules! requests {
    ($($message:path,)*) => {
        &[$((<$message as Name>::full_name, decodes::<$message>)),*]
    };
}

/// All requests: their full names, and their decoders.
const REQUESTS: &[(FullName, Decode)] = requests! {
    proto::hdfs::ModifyAclEntriesRequestProto,
    proto::hdfs::RemoveAclRequestProto,
    proto::hdfs::RemoveAclEntriesRequestProto,
    proto::hdfs::RemoveDefaultAclRequestProto,
    proto::hdfs::SetAclRequestProto,
    proto::hdfs::GetAclStatusRequestProto,
    proto::hdfs::StartReconfigurationRequestProto,
    proto::hdfs::GetReconfigurationStatusRequestProto,
    proto::hdfs::ListReconfigurablePropertiesRequestProto,
    proto::hdfs::GetReplicaVisibleLengthRequestProto,
    proto::hdfs::RefreshNamenodesRequestProto,
    proto::hdfs::DeleteBlockPoolRequestProto,
    proto::hdfs::GetBlockLocalPathInfoRequestProto,
    proto::hdfs::ShutdownDatanodeRequestProto,
    proto::hdfs::EvictWritersRequestProto,
    proto::hdfs::GetDatanodeInfoRequestProto,
    proto::hdfs::GetVolumeReportRequestProto,
    proto::hdfs::TriggerBlockReportRequestProto,
    proto::hdfs::GetBalancerBandwidthRequestProto,
    proto::hdfs::SubmitDiskBalancerPlanRequestProto,
    proto::hdfs::CancelPlanRequestProto,
    proto::hdfs::QueryPlanStatusRequestProto,
    proto::hdfs::DiskBalancerSettingRequestProto,
    proto::hdfs::SetXAttrRequestProto,
    proto::hdfs::GetXAttrsRequestProto,
    proto::hdfs::ListXAttrsRequestProto,
    proto::hdfs::RemoveXAttrRequestProto,
    proto::hdfs::CreateEncryptionZoneRequestProto,
    proto::hdfs::ListEncryptionZonesRequestProto,
    proto::hdfs::ReencryptEncryptionZoneRequestProto,
    proto::hdfs::ListReencryptionStatusRequestProto,
    proto::hdfs::GetEzForPathRequestProto,
    proto::hdfs::SetErasureCodingPolicyRequestProto,
    proto::hdfs::GetErasureCodingPoliciesRequestProto,
    proto::hdfs::GetErasureCodingCodecsRequestProto,
    proto::hdfs::GetErasureCodingPolicyRequestProto,
    proto::hdfs::AddErasureCodingPoliciesRequestProto,
    proto::hdfs::RemoveErasureCodingPolicyRequestProto,
    proto::hdfs::EnableErasureCodingPolicyRequestProto,
    proto::hdfs::DisableErasureCodingPolicyRequestProto,
    proto::hdfs::UnsetErasureCodingPolicyRequestProto,
    proto::hdfs::GetEcTopologyResultForPoliciesRequestProto,
    proto::hdfs::GetBlockLocationsRequestProto,
    proto::hdfs::GetServerDefaultsRequestProto,
    proto::hdfs::CreateRequestProto,
    proto::hdfs::AppendRequestProto,
    proto::hdfs::SetReplicationRequestProto,
    proto::hdfs::SetStoragePolicyRequestProto,
    proto::hdfs::UnsetStoragePolicyRequestProto,
    proto::hdfs::GetStoragePolicyRequestProto,
    proto::hdfs::GetStoragePoliciesRequestProto,
    proto::hdfs::SetPermissionRequestProto,
    proto::hdfs::SetOwnerRequestProto,
    proto::hdfs::AbandonBlockRequestProto,
    proto::hdfs::AddBlockRequestProto,
    proto::hdfs::GetAdditionalDatanodeRequestProto,
    proto::hdfs::CompleteRequestProto,
    proto::hdfs::ReportBadBlocksRequestProto,
    proto::hdfs::ConcatRequestProto,
    proto::hdfs::TruncateRequestProto,
    proto::hdfs::RenameRequestProto,
    proto::hdfs::Rename2RequestProto,
    proto::hdfs::DeleteRequestProto,
    proto::hdfs::MkdirsRequestProto,
    proto::hdfs::GetListingRequestProto,
    proto::hdfs::GetBatchedListingRequestProto,
    proto::hdfs::GetSnapshottableDirListingRequestProto,
    proto::hdfs::GetSnapshotListingRequestProto,
    proto::hdfs::GetSnapshotDiffReportRequestProto,
    proto::hdfs::GetSnapshotDiffReportListingRequestProto,
    proto::hdfs::RenewLeaseRequestProto,
    proto::hdfs::RecoverLeaseRequestProto,
    proto::hdfs::GetFsStatusRequestProto,
    proto::hdfs::GetFsReplicatedBlockStatsRequestProto,
    proto::hdfs::GetFsEcBlockGroupStatsRequestProto,
    proto::hdfs::GetDatanodeReportRequestProto,
    proto::hdfs::GetDatanodeStorageReportRequestProto,
    proto::hdfs::GetPreferredBlockSizeRequestProto,
    proto::hdfs::GetSlowDatanodeReportRequestProto,
    proto::hdfs::GetEnclosingRootRequestProto,
    proto::hdfs::SetSafeModeRequestProto,
    proto::hdfs::SaveNamespaceRequestProto,
    proto::hdfs::RollEditsRequestProto,
    proto::hdfs::RestoreFailedStorageRequestProto,
    proto::hdfs::RefreshNodesRequestProto,
    proto::hdfs::FinalizeUpgradeRequestProto,
    proto::hdfs::UpgradeStatusRequestProto,
    proto::hdfs::RollingUpgradeRequestProto,
    proto::hdfs::ListCorruptFileBlocksRequestProto,
    proto::hdfs::MetaSaveRequestProto,
    proto::hdfs::GetFileInfoRequestProto,
    proto::hdfs::GetLocatedFileInfoRequestProto,
    proto::hdfs::IsFileClosedRequestProto,
    proto::hdfs::AddCacheDirectiveRequestProto,
    proto::hdfs::ModifyCacheDirectiveRequestProto,
    proto::hdfs::RemoveCacheDirectiveRequestProto,
    proto::hdfs::ListCacheDirectivesRequestProto,
    proto::hdfs::AddCachePoolRequestProto,
    proto::hdfs::ModifyCachePoolRequestProto,
    proto::hdfs::RemoveCachePoolRequestProto,
    proto::hdfs::ListCachePoolsRequestProto,
    proto::hdfs::GetFileLinkInfoRequestProto,
    proto::hdfs::GetContentSummaryRequestProto,
    proto::hdfs::GetQuotaUsageRequestProto,
    proto::hdfs::SetQuotaRequestProto,
    proto::hdfs::FsyncRequestProto,
    proto::hdfs::SetTimesRequestProto,
    proto::hdfs::CreateSymlinkRequestProto,
    proto::hdfs::GetLinkTargetRequestProto,
    proto::hdfs::UpdateBlockForPipelineRequestProto,
    proto::hdfs::UpdatePipelineRequestProto,
    proto::hdfs::SetBalancerBandwidthRequestProto,
    proto::hdfs::GetDataEncryptionKeyRequestProto,
    proto::hdfs::CreateSnapshotRequestProto,
    proto::hdfs::RenameSnapshotRequestProto,
    proto::hdfs::AllowSnapshotRequestProto,
    proto::hdfs::DisallowSnapshotRequestProto,
    proto::hdfs::DeleteSnapshotRequestProto,
    proto::hdfs::CheckAccessRequestProto,
    proto::hdfs::GetCurrentEditLogTxidRequestProto,
    proto::hdfs::GetEditsFromTxidRequestProto,
    proto::hdfs::ListOpenFilesRequestProto,
    proto::hdfs::MsyncRequestProto,
    proto::hdfs::SatisfyStoragePolicyRequestProto,
    proto::hdfs::HaServiceStateRequestProto,
    proto::hdfs::VersionRequestProto,
    proto::hdfs::ReleaseShortCircuitAccessRequestProto,
    proto::hdfs::ShortCircuitShmRequestProto,
    proto::hdfs::InitReplicaRecoveryRequestProto,
    proto::hdfs::UpdateReplicaUnderRecoveryRequestProto,
    proto::hdfs::datanode::RegisterDatanodeRequestProto,
    proto::hdfs::datanode::HeartbeatRequestProto,
    proto::hdfs::datanode::BlockReportRequestProto,
    proto::hdfs::datanode::CacheReportRequestProto,
    proto::hdfs::datanode::BlockReceivedAndDeletedRequestProto,
    proto::hdfs::datanode::ErrorReportRequestProto,
    proto::hdfs::datanode::ReportBadBlocksRequestProto,
    proto::hdfs::datanode::CommitBlockSynchronizationRequestProto,
    proto::hdfs::namenode::GetBlocksRequestProto,
    proto::hdfs::namenode::GetBlockKeysRequestProto,
    proto::hdfs::namenode::GetTransactionIdRequestProto,
    proto::hdfs::namenode::RollEditLogRequestProto,
    proto::hdfs::namenode::GetMostRecentCheckpointTxIdRequestProto,
    proto::hdfs::namenode::GetMostRecentNameNodeFileTxIdRequestProto,
    proto::hdfs::namenode::ErrorReportRequestProto,
    proto::hdfs::namenode::RegisterRequestProto,
    proto::hdfs::namenode::StartCheckpointRequestProto,
    proto::hdfs::namenode::EndCheckpointRequestProto,
    proto::hdfs::namenode::GetEditLogManifestRequestProto,
    proto::hdfs::namenode::IsUpgradeFinalizedRequestProto,
    proto::hdfs::namenode::IsRollingUpgradeRequestProto,
    proto::hdfs::namenode::GetFilePathRequestProto,
    proto::hdfs::namenode::GetNextSpsPathRequestProto,
    proto::common::GetDelegationTokenRequestProto,
    proto::common::RenewDelegationTokenRequestProto,
    proto::common::CancelDelegationTokenRequestProto,
    proto::common::MonitorHealthRequestProto,
    proto::common::TransitionToActiveRequestProto,
    proto::common::TransitionToStandbyRequestProto,
    proto::common::TransitionToObserverRequestProto,
    proto::common::GetServiceStatusRequestProto,
    proto::common::GenericRefreshRequestProto,
    proto::common::GetGroupsForUserRequestProto,
    proto::common::GetProtocolVersionsRequestProto,
    proto::common::GetProtocolSignatureRequestProto,
    proto::common::RefreshServiceAclRequestProto,
    proto::common::RefreshCallQueueRequestProto,
    proto::common::RefreshUserToGroupsMappingsRequestProto,
    proto::common::RefreshSuperUserGroupsConfigurationRequestProto,
    proto::common::CedeActiveRequestProto,
    proto::common::GracefulFailoverRequestProto,
};
