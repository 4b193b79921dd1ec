//! `clover admin login-link`: addresses that sign a user in to the web console.

use super::{
    group::show,
    secret,
    servers::{OfGroup, Servers},
};
use crate::login_address;
use anyhow::bail;
use std::process::ExitCode;

/// Print addresses that sign a user in to the web console, one for each metadata server. Each can be used once, within ten minutes.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    secret: secret::ProvedBy,
    #[command(flatten)]
    of: OfGroup,
    /// The user who is signed in; by default the one who runs this.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
}

pub async fn run(servers: Servers, args: Args) -> anyhow::Result<ExitCode> {
    let mut servers = servers.of_group(args.of).await?;
    servers.prove_by(args.secret.secret_file, args.secret.config);
    let user = args.user.unwrap_or_else(|| servers.user().to_owned());
    if !console::login::is_user(&user) {
        bail!("{user:?} is no user's name");
    }
    let secret = servers.secret()?;
    let group = servers.group().await?;
    let mut printed = 0;
    for member in &group.members {
        let Some(http) = member.http_address.as_deref().filter(|http| !http.is_empty()) else { continue };
        let link = login_address::of(&secret, member.member, http, &user);
        println!("member {} ({}): {link}", member.member, show::role(member));
        printed += 1;
    }
    match printed {
        0 => bail!(
            "no member tells an HTTP address; http_address in its configuration says where its pages are"
        ),
        _ => Ok(ExitCode::SUCCESS),
    }
}
