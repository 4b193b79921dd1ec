//! Calls to one data server, which operators name by its IPC address.

use crate::target::Target;
use anyhow::Context;
use client::Settings;
use prost::{Message, Name};
use rpc::{Client, ClientOptions};
use std::time::Duration;

/// A server on a machine that is off says nothing at all.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// It may have to look at its disks.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// One data server, as Hadoop's commands name it.
#[derive(Clone, Debug, clap::Args)]
pub struct Named {
    /// The data server's IPC address (`ipc_address`), as data-1:9867.
    #[arg(value_name = "HOST:PORT")]
    pub address: String,
}

pub struct DataServer {
    client: Client,
}

impl DataServer {
    /// # Errors
    /// The configuration cannot be read, or the address is none.
    pub fn find(target: &Target, named: &Named) -> anyhow::Result<Self> {
        if !crate::config::place::is_host_port(&named.address) {
            anyhow::bail!("`{}` is not host:port; write it as data-1:9867", named.address);
        }
        let user = Settings::new(&target.configuration()?)?.user;
        let options = ClientOptions {
            connect_timeout: CONNECT_TIMEOUT,
            call_timeout: ANSWER_TIMEOUT,
            ..ClientOptions::default()
        };
        let client = Client::connect(&named.address, proto::protocol::CLIENT_DATANODE, &user, options);
        Ok(Self { client })
    }

    /// # Errors
    /// The server refused, or could not be asked.
    pub async fn ask<Q: Message + Name, A: Message + Name + Default>(
        &self,
        method: &'static str,
        request: &Q,
    ) -> anyhow::Result<A> {
        self.client
            .call(method, request)
            .await
            .map_err(|error| anyhow::anyhow!("{}", proto::exception::without_stack_trace(&error.to_string())))
            .with_context(|| format!("data server {}", self.client.address()))
    }
}
