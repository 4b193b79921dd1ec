//! Snapshots that users make, rename and delete, and directories of which they may.

use crate::{asked::Asked, changes::Form, page, refusal::Refusal, snapshots};
use axum::response::Response;

fn done(directory: &str) -> Response {
    page::elsewhere(&snapshots::address(directory))
}

/// Makes a snapshot; without a name in the form the server gives it one.
pub async fn create(asked: Asked, form: Form) -> Result<Response, Refusal> {
    let directory = form.path("path")?;
    asked.files().await?.create_snapshot(&directory, form.filled("name")).await?;
    Ok(done(&directory))
}

pub async fn rename(asked: Asked, form: Form) -> Result<Response, Refusal> {
    let directory = form.path("path")?;
    let (Some(old), Some(new)) = (form.filled("name"), form.filled("to")) else {
        return Err(Refusal::nonsense("The form lacks a name."));
    };
    asked.files().await?.rename_snapshot(&directory, old, new).await?;
    Ok(done(&directory))
}

/// Deletes a snapshot. It does not come back: the form names it once more.
pub async fn delete(asked: Asked, form: Form) -> Result<Response, Refusal> {
    let directory = form.path("path")?;
    let name = form.filled("name").ok_or_else(|| Refusal::nonsense("The form lacks a name."))?;
    if form.filled("again") != Some(name) {
        return Err(Refusal::nonsense(format!(
            "A snapshot that is deleted does not come back. Write its name, {name}, to delete it."
        )));
    }
    asked.files().await?.delete_snapshot(&directory, name).await?;
    Ok(done(&directory))
}

/// Lets users make snapshots of a directory. For superusers, as the file system says.
pub async fn allow(asked: Asked, form: Form) -> Result<Response, Refusal> {
    let directory = form.path("path")?;
    asked.files().await?.allow_snapshot(&directory).await?;
    Ok(done(&directory))
}

/// Forbids it again; no snapshot may be left.
pub async fn disallow(asked: Asked, form: Form) -> Result<Response, Refusal> {
    let directory = form.path("path")?;
    asked.files().await?.disallow_snapshot(&directory).await?;
    Ok(page::elsewhere("/snapshots"))
}
