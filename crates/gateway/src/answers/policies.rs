//! Storage policies, erasure coding policies, and what servers choose by themselves.

use super::{named, signed};
use proto::hdfs::{
    BlockStoragePolicyProto, CodecProto, ErasureCodingPolicyProto, FsServerDefaultsProto,
    GetFsStatsResponseProto, StorageTypesProto,
};
use serde_json::{Map, Value, json};

/// Ids of the policies that come with Hadoop are below it.
const OWN_POLICIES_FROM: u32 = 64;

/// The value of `BlockStoragePolicy`.
pub fn storage_policy(policy: &BlockStoragePolicyProto) -> Value {
    let media = |types: Option<&StorageTypesProto>| -> Vec<&'static str> {
        types
            .map(|types| types.storage_types().map(|medium| medium.as_str_name()).collect())
            .unwrap_or_default()
    };
    json!({
        // Replicas of a file on such media can only be made when it is created.
        "copyOnCreateFile": policy.name.eq_ignore_ascii_case("LAZY_PERSIST"),
        "creationFallbacks": media(policy.creation_fallback_policy.as_ref()),
        "id": policy.policy_id,
        "name": policy.name,
        "replicationFallbacks": media(policy.replication_fallback_policy.as_ref()),
        "storageTypes": media(Some(&policy.creation_policy)),
    })
}

fn options(policy: &ErasureCodingPolicyProto) -> Value {
    let options = policy.schema.as_ref().map(|schema| &schema.options[..]).unwrap_or_default();
    Value::Object(options.iter().map(|one| (one.key.clone(), json!(one.value))).collect::<Map<_, _>>())
}

/// A policy in the form of `GETECPOLICY`.
pub fn erasure_coding(policy: &ErasureCodingPolicyProto) -> Value {
    let schema = policy.schema.clone().unwrap_or_default();
    json!({
        "cellSize": policy.cell_size(),
        "codecName": schema.codec_name,
        "id": policy.id,
        "name": policy.name(),
        "numDataUnits": schema.data_units,
        "numParityUnits": schema.parity_units,
        "replicationPolicy": policy.id == 0,
        "schema": {
            "codecName": schema.codec_name,
            "extraOptions": options(policy),
            "numDataUnits": schema.data_units,
            "numParityUnits": schema.parity_units,
        },
        "systemPolicy": policy.id < OWN_POLICIES_FROM,
    })
}

/// A policy in the form in which a file's status has it.
pub fn erasure_coding_in_status(policy: &ErasureCodingPolicyProto) -> Value {
    let schema = policy.schema.clone().unwrap_or_default();
    json!({
        "cellSize": policy.cell_size(),
        "codecName": schema.codec_name,
        "extraOptions": options(policy),
        "id": policy.id,
        "name": policy.name(),
        "numDataUnits": schema.data_units,
        "numParityUnits": schema.parity_units,
    })
}

pub fn erasure_coding_policies(policies: &[ErasureCodingPolicyProto]) -> Value {
    let info = |policy: &ErasureCodingPolicyProto| json!({ "policy": erasure_coding(policy), "state": policy.state().as_str_name() });
    let infos: Vec<_> = policies.iter().map(info).collect();
    named("ErasureCodingPolicies", json!({ "ErasureCodingPolicyInfo": infos }))
}

pub fn erasure_coding_codecs(codecs: &[CodecProto]) -> Value {
    let codecs: Map<_, _> = codecs.iter().map(|one| (one.codec.clone(), json!(one.coders))).collect();
    named("ErasureCodingCodecs", codecs)
}

pub fn server_defaults(defaults: &FsServerDefaultsProto) -> Value {
    named(
        "FsServerDefaults",
        json!({
            "blockSize": signed(defaults.block_size),
            "bytesPerChecksum": defaults.bytes_per_checksum,
            "checksumType": defaults.checksum_type() as i32,
            "defaultStoragePolicyId": defaults.policy_id(),
            "encryptDataTransfer": defaults.encrypt_data_transfer(),
            "fileBufferSize": defaults.file_buffer_size,
            "keyProviderUri": defaults.key_provider_uri(),
            "replication": defaults.replication,
            "trashInterval": signed(defaults.trash_interval()),
            "writePacketSize": defaults.write_packet_size,
        }),
    )
}

pub fn fs_status(stats: &GetFsStatsResponseProto) -> Value {
    let (capacity, used, remaining) = (signed(stats.capacity), signed(stats.used), signed(stats.remaining));
    named("FsStatus", json!({ "capacity": capacity, "remaining": remaining, "used": used }))
}
