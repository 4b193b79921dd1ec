//! The network of the members: this machine's loopback, or, for cables that can be cut, a network namespace for each
//! member, all on one bridge.

use anyhow::{Context, ensure};
use std::{
    io,
    net::{TcpListener, TcpStream},
    process::Command,
    thread,
};

/// An address range that nobody else on a test machine uses.
const PREFIX: &str = "10.211.0";
const BRIDGE: &str = "02:00:00:00:00:02";

pub enum Network {
    Loopback,
    /// The name that all parts of it begin with.
    Cables(String),
}

impl Network {
    /// Needs root, `ip` and network namespaces.
    pub fn with_cables(members: u16) -> anyhow::Result<Self> {
        let name = format!("cb{}", std::process::id());
        let network = Self::Cables(name.clone());
        let bridge = format!("{name}-b");
        // The bridge has an address of its own: otherwise it takes the lowest of its ports', which changes as they
        // come.
        ip(&["link", "add", &bridge, "address", BRIDGE, "type", "bridge"])
            .context("cutting cables needs root")?;
        ip(&["address", "add", &format!("{PREFIX}.1/24"), "dev", &bridge])?;
        ip(&["link", "set", &bridge, "up"])?;
        for member in 1..=members {
            let (space, here) = (format!("{name}-{member}"), format!("{name}-v{member}"));
            ip(&["netns", "add", &space])?;
            ip(&["link", "add", &here, "type", "veth", "peer", "name", "cable", "netns", &space])?;
            ip(&["link", "set", &here, "master", &bridge, "up"])?;
            ip(&["-n", &space, "link", "set", "lo", "up"])?;
            ip(&["-n", &space, "address", "add", &format!("{}/24", network.host(member)), "dev", "cable"])?;
            ip(&["-n", &space, "link", "set", "cable", "up"])?;
        }
        Ok(network)
    }

    /// The address at which this member listens.
    pub fn host(&self, member: u16) -> String {
        match self {
            Self::Loopback => "127.0.0.1".to_owned(),
            Self::Cables(_) => format!("{PREFIX}.{}", 10 + member),
        }
    }

    /// The address under which members reach the programs that run beside them.
    pub fn hub(&self) -> &'static str {
        match self {
            Self::Loopback => "127.0.0.1",
            Self::Cables(_) => "10.211.0.1",
        }
    }

    /// A command that runs where the member lives.
    pub fn command(&self, member: u16, program: &std::path::Path) -> Command {
        match self {
            Self::Loopback => Command::new(program),
            Self::Cables(name) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net=/run/netns/{name}-{member}")).arg("--").arg(program);
                command
            }
        }
    }

    pub fn cut(&self, member: u16, is_cut: bool) -> anyhow::Result<()> {
        let Self::Cables(name) = self else { anyhow::bail!("loopback has no cables") };
        ip(&["link", "set", &format!("{name}-v{member}"), if is_cut { "down" } else { "up" }])
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let Self::Cables(name) = self else { return };
        let listed = Command::new("ip").args(["netns", "list"]).output();
        let listed = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        for space in listed.unwrap_or_default().lines().filter_map(|line| line.split_whitespace().next()) {
            if space.starts_with(&format!("{name}-")) {
                let _ = ip(&["netns", "del", space]);
            }
        }
        let _ = ip(&["link", "del", &format!("{name}-b")]);
    }
}

fn ip(words: &[&str]) -> anyhow::Result<()> {
    let output = Command::new("ip").args(words).output().context("running `ip`")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {}: {}", words.join(" "), said.trim());
    Ok(())
}

/// Passes connections to `from` on to `to`, for as long as this program runs: a ZooKeeper that listens on loopback
/// alone is reached by members that live elsewhere.
pub fn relay(from: String, to: String) -> anyhow::Result<()> {
    let listener = TcpListener::bind(&from).with_context(|| format!("listening on {from}"))?;
    thread::spawn(move || {
        for accepted in listener.incoming().flatten() {
            let Ok(onward) = TcpStream::connect(&to) else { continue };
            for (mut source, mut sink) in
                [(accepted.try_clone(), onward.try_clone()), (onward.try_clone(), accepted.try_clone())]
                    .into_iter()
                    .filter_map(|(source, sink)| Some((source.ok()?, sink.ok()?)))
            {
                thread::spawn(move || {
                    let _ = io::copy(&mut source, &mut sink);
                    let _ = sink.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    Ok(())
}
