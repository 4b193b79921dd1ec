//! What a stock Hadoop client is told so that it finds a group of metadata servers, and notices within about a
//! second and a half that one of them is silent.
//!
//! Where the numbers come from, read in Hadoop's client:
//! - A server that died refuses connections or resets them, which the client sees at once. One that is frozen or
//!   cut off says nothing: then `ipc.client.rpc-timeout.ms` ends the wait. It counts the time without a byte from
//!   the server while calls are outstanding; pings, which servers do not answer, change nothing about it. A
//!   connection that is only being made is given up after `ipc.client.connect.timeout`.
//! - The first failover of a call is immediate; the pause before the next is
//!   `dfs.client.failover.sleep.base.millis` times 2, 4, 8 …, give or take half, up to `…sleep.max.millis`.
//! - A failover proxy makes no second attempt at a connection (`dfs.client.failover.connection.retries` and
//!   `…on.timeouts` are 0 unless set): the next server is asked.
//! - A call that was sent and not answered goes to the next server under the same name (client id and call id),
//!   and has one effect.
//!
//! Members hold calls while no active is known, for less than the client's own patience ([`HOLD_MS`]): a held
//! call is answered the moment that the new active serves, a refused one waits for the client's pause.

use proto::protocol;

/// The silence after which a client turns to another member.
pub const RPC_TIMEOUT_MS: u64 = 1_500;

/// How long members may hold a call of such a client: so much less than its patience that the answer is on its way
/// in time.
pub const HOLD_MS: u64 = 1_200;

/// A connection to a server of the same network stands in far less; one to a server that is cut off never does.
pub const CONNECT_TIMEOUT_MS: u64 = 1_000;

/// A member as clients are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameNode {
    /// Its name within the nameservice, such as `m1`.
    pub id: String,
    /// `host:port`.
    pub rpc_address: String,
    pub http_address: Option<String>,
}

/// One property of `core-site.xml` or `hdfs-site.xml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    pub is_core: bool,
    pub name: String,
    pub value: String,
    pub description: &'static str,
}

/// All that a stock client needs to use `hdfs://<nameservice>`.
pub fn properties(nameservice: &str, members: &[NameNode]) -> Vec<Property> {
    let ids: Vec<&str> = members.iter().map(|member| member.id.as_str()).collect();
    let core = |name: &str, value: String, description| Property {
        is_core: true,
        name: name.to_owned(),
        value,
        description,
    };
    let hdfs =
        |name: String, value: String, description| Property { is_core: false, name, value, description };
    let mut properties = vec![
        core("fs.defaultFS", format!("hdfs://{nameservice}"), "Where paths without a scheme are."),
        core(
            "ipc.client.rpc-timeout.ms",
            RPC_TIMEOUT_MS.to_string(),
            "A server that says nothing for so long while a call waits is left for the next one. Hadoop's default \
             is 120000.",
        ),
        core(
            "ipc.client.connect.timeout",
            CONNECT_TIMEOUT_MS.to_string(),
            "For so long a connection may take to stand.",
        ),
        hdfs("dfs.nameservices".into(), nameservice.into(), "The name of this group of servers."),
        hdfs(format!("dfs.ha.namenodes.{nameservice}"), ids.join(","), "Its members."),
    ];
    for NameNode { id, rpc_address, http_address } in members {
        let key = |kind| format!("dfs.namenode.{kind}-address.{nameservice}.{id}");
        properties.push(hdfs(key("rpc"), rpc_address.clone(), "Where a member takes calls."));
        if let Some(http) = http_address {
            properties.push(hdfs(key("http"), http.clone(), "Where a member shows its health and metrics."));
        }
    }
    properties.extend([
        hdfs(
            format!("dfs.client.failover.proxy.provider.{nameservice}"),
            protocol::FAILOVER_PROXY_PROVIDER.into(),
            "Asks one member and turns to the next when it fails.",
        ),
        hdfs(
            "dfs.client.failover.sleep.base.millis".into(),
            "50".into(),
            "The pause before the second failover of a call and later ones; it doubles. Members hold calls during \
             a switch, so a refusal is rare and worth asking again soon.",
        ),
        hdfs("dfs.client.failover.sleep.max.millis".into(), "1000".into(), "Where doubling ends."),
        hdfs(
            "dfs.client.failover.max.attempts".into(),
            "60".into(),
            "With these pauses about a minute, in which a member is started again by hand.",
        ),
        hdfs(
            "dfs.client.failover.random.order".into(),
            "false".into(),
            "Any member takes any call, but only the active one without forwarding it.",
        ),
    ]);
    properties
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Location, config::Config};

    #[test]
    fn the_native_client_finds_the_members_by_what_is_written_for_stock_ones() {
        let member = |number| NameNode {
            id: format!("m{number}"),
            rpc_address: format!("10.0.0.{number}:8020"),
            http_address: Some(format!("10.0.0.{number}:9870")),
        };
        let mut config = Config::new();
        for property in properties("clover", &[member(1), member(2), member(3)]) {
            config.set(&property.name, &property.value);
        }
        let location = Location::resolve("hdfs://clover/a", &config).unwrap();
        assert_eq!(location.servers, ["10.0.0.1:8020", "10.0.0.2:8020", "10.0.0.3:8020"]);
        let settings = crate::config::Settings::new(&config).unwrap();
        assert_eq!(settings.rpc_timeout, Some(std::time::Duration::from_millis(RPC_TIMEOUT_MS)));
        assert_eq!(settings.connect_timeout.as_millis(), u128::from(CONNECT_TIMEOUT_MS));
        assert_eq!(settings.retries.failover_pause.as_millis(), 50);
    }

    #[test]
    fn a_member_lets_go_of_a_call_before_the_client_does() {
        const { assert!(HOLD_MS + 100 < RPC_TIMEOUT_MS && CONNECT_TIMEOUT_MS < RPC_TIMEOUT_MS) }
    }
}
