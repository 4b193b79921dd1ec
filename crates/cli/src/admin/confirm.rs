//! The question before an order that cannot be undone.

use std::io::{IsTerminal, Write};

/// Asks on the terminal, and says so where the answer is no. Without a terminal nobody can be asked, and the answer is no.
///
/// # Errors
/// The system's error if the terminal cannot be written to or read.
pub fn is_confirmed(question: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        eprintln!("Nothing has been done. There is no terminal on which to ask: say --yes.");
        return Ok(false);
    }
    print!("{question} (y/N) ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    let is_yes = matches!(answer.trim(), "y" | "Y" | "yes");
    if !is_yes {
        println!("Nothing has been done.");
    }
    Ok(is_yes)
}
