//! The names by which Hadoop's clients ask for a protocol, and the methods of each.

use crate::required::SERVICES;

/// The version of every protocol spoken here; Hadoop has never raised one.
pub const VERSION: u64 = 1;

pub const CLIENT_NAMENODE: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
pub const DATANODE: &str = "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol";
pub const DATANODE_LIFELINE: &str = "org.apache.hadoop.hdfs.server.protocol.DatanodeLifelineProtocol";
pub const NAMENODE: &str = "org.apache.hadoop.hdfs.server.protocol.NamenodeProtocol";
pub const INTER_DATANODE: &str = "org.apache.hadoop.hdfs.server.protocol.InterDatanodeProtocol";
pub const CLIENT_DATANODE: &str = "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol";
pub const RECONFIGURATION: &str = "org.apache.hadoop.hdfs.protocol.ReconfigurationProtocol";
pub const HA_SERVICE: &str = "org.apache.hadoop.ha.HAServiceProtocol";
pub const ZKFC: &str = "org.apache.hadoop.ha.ZKFCProtocol";
pub const PROTOCOL_META_INFO: &str = "org.apache.hadoop.ipc.ProtocolMetaInfoPB";
pub const GENERIC_REFRESH: &str = "org.apache.hadoop.ipc.GenericRefreshProtocol";
pub const REFRESH_CALL_QUEUE: &str = "org.apache.hadoop.ipc.RefreshCallQueueProtocol";
pub const REFRESH_AUTHORIZATION_POLICY: &str =
    "org.apache.hadoop.security.authorize.RefreshAuthorizationPolicyProtocol";
pub const REFRESH_USER_MAPPINGS: &str = "org.apache.hadoop.security.RefreshUserMappingsProtocol";
pub const GET_USER_MAPPINGS: &str = "org.apache.hadoop.tools.GetUserMappingsProtocol";

/// Which service of the definitions a protocol's name means.
const SERVICE_OF: &[(&str, &str)] = &[
    (CLIENT_NAMENODE, "hadoop.hdfs.ClientNamenodeProtocol"),
    (DATANODE, "hadoop.hdfs.datanode.DatanodeProtocolService"),
    (DATANODE_LIFELINE, "hadoop.hdfs.datanodelifeline.DatanodeLifelineProtocolService"),
    (NAMENODE, "hadoop.hdfs.namenode.NamenodeProtocolService"),
    (INTER_DATANODE, "hadoop.hdfs.InterDatanodeProtocolService"),
    (CLIENT_DATANODE, "hadoop.hdfs.ClientDatanodeProtocolService"),
    (RECONFIGURATION, "hadoop.hdfs.ReconfigurationProtocolService"),
    (HA_SERVICE, "hadoop.common.HAServiceProtocolService"),
    (ZKFC, "hadoop.common.ZKFCProtocolService"),
    (PROTOCOL_META_INFO, "hadoop.common.ProtocolInfoService"),
    (GENERIC_REFRESH, "hadoop.common.GenericRefreshProtocolService"),
    (REFRESH_CALL_QUEUE, "hadoop.common.RefreshCallQueueProtocolService"),
    (REFRESH_AUTHORIZATION_POLICY, "hadoop.common.RefreshAuthorizationPolicyProtocolService"),
    (REFRESH_USER_MAPPINGS, "hadoop.common.RefreshUserMappingsProtocolService"),
    (GET_USER_MAPPINGS, "hadoop.common.GetUserMappingsProtocolService"),
];

/// The methods of a protocol in alphabetical order; empty for one that is not Hadoop's.
pub fn methods(protocol: &str) -> &'static [&'static str] {
    let Some((_, service)) = SERVICE_OF.iter().find(|(name, _)| *name == protocol) else { return &[] };
    SERVICES.iter().find(|(name, _)| name == service).map_or(&[], |(_, methods)| methods)
}

/// The method as the definitions spell it, if the protocol has it.
pub fn method(protocol: &str, name: &str) -> Option<&'static str> {
    find_method(methods(protocol), name)
}

/// `name` among methods in alphabetical order.
pub fn find_method(methods: &'static [&'static str], name: &str) -> Option<&'static str> {
    methods.binary_search(&name).ok().map(|index| methods[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_has_its_methods() {
        for (protocol, service) in SERVICE_OF {
            assert!(!methods(protocol).is_empty(), "{protocol} has no service {service}");
        }
        assert_eq!(SERVICE_OF.len(), SERVICES.len());
    }

    #[test]
    fn methods_are_found_by_their_exact_name() {
        assert_eq!(method(CLIENT_NAMENODE, "mkdirs"), Some("mkdirs"));
        assert_eq!(method(CLIENT_NAMENODE, "mkdirz"), None);
        assert_eq!(method(CLIENT_NAMENODE, ""), None);
        assert_eq!(method(DATANODE, "mkdirs"), None);
    }
}
