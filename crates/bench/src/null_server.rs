//! `clover bench null-server`: what RPC costs when there is nothing behind it.

use anyhow::Context;
use cli::runtime;
use rpc::{NullService, Server, ServerConfig};
use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr},
    process::ExitCode,
    sync::Arc,
};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The port on loopback; 0 chooses a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// End when standard input does.
    #[arg(long)]
    until_input_ends: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    runtime::block_on(async move {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
        let server = Server::bind(ServerConfig::new(address, Arc::new(NullService)))
            .with_context(|| format!("listening on {address}"))?;
        println!("hdfs://{}", server.local_addr());
        std::io::stdout().flush()?;
        let input_end = async {
            if !args.until_input_ends {
                return std::future::pending().await;
            }
            let read_all = || std::io::stdin().read_to_end(&mut Vec::new());
            let _ = tokio::task::spawn_blocking(read_all).await;
        };
        tokio::select! {
            signal = runtime::stop_signal() => signal?,
            () = input_end => {}
        }
        server.shutdown().await;
        Ok(ExitCode::SUCCESS)
    })
}
