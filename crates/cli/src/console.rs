//! Puts the web console beside a metadata server, where the configuration has one.

use crate::{
    admin::{self, servers::Servers},
    config::{self, settings::Settings, table},
    log, login_address, webhdfs,
};
use ::console::{Config, Console, HandOver, Keys, Program, Verify, login::PURPOSE};
use anyhow::Context;
use env::Env;
use metad::{MetaConfig, peers::Secret};
use std::{net::SocketAddr, sync::Arc};
use web::origin::Origins;

/// The console of the metadata server that is about to start with `config`, and that has its WebHDFS already. It shares the port with that, and the
/// threads.
///
/// # Errors
/// The system starts no thread.
pub fn beside_metadata(
    settings: &Settings,
    user: &str,
    env: &Env,
    config: &mut MetaConfig,
) -> anyhow::Result<Option<Console>> {
    if !settings.flag("console") || config.http_address.is_none() {
        return Ok(None);
    }
    let connections_max = webhdfs::connections_max(env);
    let wanted = Config {
        origins: Origins::new(settings.texts("cors_origins")),
        operator: webhdfs::operator(settings, user).to_owned(),
        program: program(settings),
        connections_max,
        transfers_max: (settings.number("max_webhdfs_transfers") as usize).min(connections_max),
    };
    let (console, pages) = Console::start(wanted, std::mem::take(&mut config.pages))
        .context("starting the threads of the web console")?;
    config.pages = pages;
    Ok(Some(console))
}

/// What the program tells of itself.
fn program(settings: &Settings) -> Program {
    let rows = table::of(settings, config::META);
    Program { settings: Some(Arc::new(move || rows.clone())), log: log::last_lines() }
}

/// Tells a console the metadata server beside which it stands, once that has its address and a cluster.
pub fn locate(console: &Console, env: &Env, config: &MetaConfig, bound: SocketAddr) {
    let own = webhdfs::reached(bound).to_string();
    console.locate(own.clone());
    match secret(env, config) {
        Ok((Some(secret), group)) => {
            console.take_orders(hand_over(secret.clone(), own));
            let verify: Verify = Arc::new(move |signed, proof| secret.verifies(PURPOSE, &[signed], proof));
            console.take_links(Keys { group, member: config.group.member.0, verify });
        }
        // An early version made the cluster: there is no secret to prove anything with.
        Ok((None, _)) => {}
        Err(error) => tracing::warn!(%error, "the web console takes no login links"),
    }
}

/// The order of `clover admin group hand-over`, given to the server at the address `own`.
fn hand_over(secret: Secret, own: String) -> HandOver {
    Arc::new(move |user, to| {
        let mut servers = Servers::of(user, vec![own.clone()]);
        servers.prove_with(secret.clone());
        Box::pin(async move {
            let done = admin::have_handed_over(&servers, to).await.map_err(|error| format!("{error:#}"))?;
            let warning = done.warning().map(|warning| format!("\nWARNING: {warning}."));
            Ok(done.sentences() + &warning.unwrap_or_default())
        })
    })
}

/// The secret of the group to which a member belongs, and the text that tells this group from all others.
fn secret(env: &Env, config: &MetaConfig) -> anyhow::Result<(Option<Secret>, String)> {
    let cluster = metad::read_cluster(env, &config.name_directory)?;
    let secret = metad::format::secret(env, config.group.secret.as_deref(), &cluster)
        .map_err(|(path, what)| anyhow::anyhow!("{}: {what}", path.display()))?;
    Ok((secret, format!("{} {}", cluster.cluster_id, cluster.block_pool)))
}

/// The address that signs a user in to the console of a server that runs in this process, if it takes links.
pub fn own_login_link(env: &Env, config: &MetaConfig, http: SocketAddr, user: &str) -> Option<String> {
    let (secret, _) = secret(env, config).ok()?;
    let secret = secret?;
    Some(login_address::of(&secret, config.group.member.0, &webhdfs::reached(http).to_string(), user))
}
