//! `clover admin groups`: the groups that hold one namespace together.

mod give_slots;
mod look;
mod show;

use super::{secret, servers::Servers};
pub use look::Look;
use std::process::ExitCode;

/// Show the groups that hold the namespace together: who leads each, what each holds, and how far it follows the directory log; or give
/// a group a part of the namespace.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON.
    #[arg(long, global = true, help_heading = crate::EVERYWHERE)]
    json: bool,
    #[command(flatten)]
    secret: secret::ProvedBy,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show the groups, as without an order.
    #[command(alias = "status")]
    Show,
    /// Make a group the home of files: from then on, new directories have their files there as often as in any other group.
    GiveSlots(give_slots::Args),
}

/// # Errors
/// No server answers, or an order was refused. The text says why.
pub async fn run(mut servers: Servers, args: Args) -> anyhow::Result<ExitCode> {
    servers.prove_by(args.secret.secret_file, args.secret.config);
    match args.command {
        None | Some(Command::Show) => {
            let look = Look::at(&servers).await?;
            match args.json {
                true => println!("{}", serde_json::to_string_pretty(&show::json(&look))?),
                false => print!("{}", show::text(&look)),
            }
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::GiveSlots(order)) => give_slots::run(&servers, order, args.json).await,
    }
}
