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

/// How stock clients of a group find its active: the class that their configuration names.
pub const CONFIGURED_FAILOVER: &str =
    "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider";

/// Clover's own: operators and members speak them.
pub const ADMIN: &str = "org.clover.AdminProtocol";
pub const FORWARD: &str = "org.clover.ForwardProtocol";
pub const POOL: &str = "org.clover.PoolProtocol";

/// The methods of each protocol, by the protocol's name.
const METHODS_OF: &[(&str, &[&str])] = &[
    (CLIENT_NAMENODE, methods_of_service("hadoop.hdfs.ClientNamenodeProtocol")),
    (DATANODE, methods_of_service("hadoop.hdfs.datanode.DatanodeProtocolService")),
    (DATANODE_LIFELINE, methods_of_service("hadoop.hdfs.datanodelifeline.DatanodeLifelineProtocolService")),
    (NAMENODE, methods_of_service("hadoop.hdfs.namenode.NamenodeProtocolService")),
    (INTER_DATANODE, methods_of_service("hadoop.hdfs.InterDatanodeProtocolService")),
    (CLIENT_DATANODE, methods_of_service("hadoop.hdfs.ClientDatanodeProtocolService")),
    (RECONFIGURATION, methods_of_service("hadoop.hdfs.ReconfigurationProtocolService")),
    (HA_SERVICE, methods_of_service("hadoop.common.HAServiceProtocolService")),
    (ZKFC, methods_of_service("hadoop.common.ZKFCProtocolService")),
    (PROTOCOL_META_INFO, methods_of_service("hadoop.common.ProtocolInfoService")),
    (GENERIC_REFRESH, methods_of_service("hadoop.common.GenericRefreshProtocolService")),
    (REFRESH_CALL_QUEUE, methods_of_service("hadoop.common.RefreshCallQueueProtocolService")),
    (
        REFRESH_AUTHORIZATION_POLICY,
        methods_of_service("hadoop.common.RefreshAuthorizationPolicyProtocolService"),
    ),
    (REFRESH_USER_MAPPINGS, methods_of_service("hadoop.common.RefreshUserMappingsProtocolService")),
    (GET_USER_MAPPINGS, methods_of_service("hadoop.common.GetUserMappingsProtocolService")),
    (ADMIN, methods_of_service("clover.admin.AdminProtocolService")),
    (FORWARD, methods_of_service("clover.forward.ForwardProtocolService")),
    (POOL, methods_of_service("clover.pool.PoolProtocolService")),
];

/// Finds a service of the definitions, while compiling: a name that is none does not compile.
const fn methods_of_service(name: &str) -> &'static [&'static str] {
    let mut index = 0;
    while index < SERVICES.len() {
        if same(SERVICES[index].0.as_bytes(), name.as_bytes()) {
            return SERVICES[index].1;
        }
        index += 1;
    }
    panic!("no service of the definitions has this name")
}

const fn same(left: &[u8], right: &[u8]) -> bool {
    let mut index = 0;
    while index < left.len() && index < right.len() && left[index] == right[index] {
        index += 1;
    }
    index == left.len() && index == right.len()
}

/// The methods of a protocol in alphabetical order; empty for one that is not known.
pub fn methods(protocol: &str) -> &'static [&'static str] {
    METHODS_OF.iter().find(|(name, _)| *name == protocol).map_or(&[], |(_, methods)| methods)
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
        for (protocol, methods) in METHODS_OF {
            assert!(!methods.is_empty(), "{protocol}");
            assert!(methods.is_sorted(), "{protocol}");
        }
        assert_eq!(METHODS_OF.len(), SERVICES.len());
    }

    #[test]
    fn methods_are_found_by_their_exact_name() {
        assert_eq!(method(CLIENT_NAMENODE, "mkdirs"), Some("mkdirs"));
        assert_eq!(method(CLIENT_NAMENODE, "mkdirz"), None);
        assert_eq!(method(CLIENT_NAMENODE, ""), None);
        assert_eq!(method(DATANODE, "mkdirs"), None);
    }
}
