//! The checks of `cargo xtask tidy`: what a reader of the repository may rely on.
//!
//! A check looks at the [`Workspace`] and adds [`Finding`]s; it never stops at the first. In reading order:
//! who may know whom ([`walls`], [`purity`], [`loops`]), what every source file has ([`sources`]), and whether the
//! documents point at things that exist ([`documents`]) and name every setting ([`keys`]).

mod documents;
mod keys;
mod loops;
mod modules;
mod purity;
mod sources;
mod table;
mod walls;
mod workspace;

use anyhow::Result;
use std::{fmt, path::Path, process::ExitCode};
use workspace::Workspace;

/// One thing that is not as promised, with the remedy in its sentence.
pub struct Finding {
    /// The file, relative to the root, with a line where that makes sense.
    place: String,
    sentence: String,
}

impl Finding {
    fn new(place: impl Into<String>, sentence: impl Into<String>) -> Finding {
        Finding { place: place.into(), sentence: sentence.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.sentence)
    }
}

pub fn run(root: &Path) -> Result<ExitCode> {
    let workspace = Workspace::read(root)?;
    let mut findings = Vec::new();
    walls::check(&workspace, &mut findings);
    purity::check(&workspace, &mut findings);
    sources::check(&workspace, &mut findings);
    documents::check(&workspace, &mut findings);
    keys::check(&workspace, &mut findings);
    let loops = loops::check(&workspace, &mut findings)?;

    for finding in &findings {
        eprintln!("{finding}");
    }
    let checked =
        format!("{} crates, {} source files ({loops})", workspace.crates.len(), workspace.sources.len());
    if findings.is_empty() {
        println!("tidy: {checked}, nothing to say");
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("tidy: {checked}, {} findings", findings.len());
    Ok(ExitCode::FAILURE)
}

/// Records the loops of files that there are.
pub fn record_loops(root: &Path) -> Result<ExitCode> {
    loops::record(&Workspace::read(root)?)?;
    Ok(ExitCode::SUCCESS)
}
