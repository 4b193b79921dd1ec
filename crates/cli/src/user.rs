//! The user that this process runs as.

use std::process::Command;

/// The operating system's name for the effective user.
///
/// # Errors
/// `id -un` cannot be run, or names nobody.
pub fn of_this_process() -> anyhow::Result<String> {
    let output = Command::new("id").arg("-un").output()?;
    let name = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    anyhow::ensure!(
        output.status.success() && !name.is_empty(),
        "`id -un` does not name the user of this process"
    );
    Ok(name)
}
