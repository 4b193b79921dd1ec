//! Manual pages: one for each command, out of what `--help` says and the examples there.

use crate::help;
use anyhow::Context;
use clap::Command;
use clap_mangen::Man;
use std::{fs, io, path::Path};

/// What all commands have in common, as the end of each page.
const SEE_ALSO: &str =
    "The manual is the directory docs of the archive, and /usr/share/doc/clover of the package.";

/// Writes the pages of all commands into a directory, which is made if it is not there. Returns how many they are.
///
/// # Errors
/// The directory cannot be made, or a page cannot be written.
pub fn write(directory: &Path) -> anyhow::Result<usize> {
    fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
    let mut root = help::command();
    // Gives each command its whole name, and the options that all have.
    root.build();
    let mut pages = Vec::new();
    collect(&root, "", &mut pages);
    for (path, command) in &pages {
        let (name, text) = page(path, command)?;
        let file = directory.join(name);
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(pages.len())
}

/// The commands with the words that lead to them, those left out that only programs run.
fn collect<'a>(command: &'a Command, path: &str, pages: &mut Vec<(String, &'a Command)>) {
    pages.push((path.to_owned(), command));
    let told = command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help");
    for sub in told {
        collect(sub, format!("{path} {}", sub.get_name()).trim(), pages);
    }
}

/// The file name and the text of a page.
fn page(path: &str, command: &Command) -> io::Result<(String, Vec<u8>)> {
    let name = format!("clover {path}").trim().replace(' ', "-");
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .source(format!("clover {}", env!("CARGO_PKG_VERSION")))
        .manual("Clover");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut text)?;
    }
    if command.get_subcommands().any(|sub| !sub.is_hide_set()) {
        man.render_subcommands_section(&mut text)?;
    }
    let examples = help::examples(path);
    if !examples.is_empty() {
        text.extend_from_slice(b".SH EXAMPLES\n.nf\n");
        for line in examples {
            text.extend_from_slice(verbatim(line).as_bytes());
        }
        text.extend_from_slice(b".fi\n");
    }
    text.extend_from_slice(format!(".SH \"SEE ALSO\"\n{}{SEE_ALSO}\n", parent(path)).as_bytes());
    Ok((format!("{name}.1"), text))
}

/// The page of the command above.
fn parent(path: &str) -> String {
    match path.rsplit_once(' ').map_or("", |(above, _)| above) {
        _ if path.is_empty() => String::new(),
        above => {
            let name = format!("clover {above}").trim().replace(' ', "\\-");
            format!("\\fB{name}\\fR(1)\n.PP\n")
        }
    }
}

/// Writes a line so that the formatter prints exactly these characters.
fn verbatim(line: &str) -> String {
    let mut text = String::new();
    // An order is a line that begins with one of these.
    if line.starts_with(['.', '\'']) {
        text += "\\&";
    }
    for letter in line.chars() {
        match letter {
            '\\' => text += "\\e",
            '-' => text += "\\-",
            '\'' => text += "\\(aq",
            '`' => text += "\\(ga",
            '^' => text += "\\(ha",
            '~' => text += "\\(ti",
            other => text.push(other),
        }
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_printed_as_it_is_typed() {
        assert_eq!(verbatim("clover fs -rm '\\.x'"), "clover fs \\-rm \\(aq\\e.x\\(aq\n");
        assert_eq!(verbatim(".so /etc/passwd"), "\\&.so /etc/passwd\n");
    }

    #[test]
    fn each_command_has_a_page_with_its_options_and_examples() {
        let directory = temporary("man");
        let count = write(&directory).unwrap();
        let text = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), count);
        let page = text("clover-admin-group-hand-over.1");
        for part in [
            ".TH CLOVER-ADMIN-GROUP-HAND-OVER 1",
            ".SH SYNOPSIS",
            "\\fBclover admin group hand\\-over\\fR",
            "\\-\\-to",
            ".SH EXAMPLES",
            "clover admin group hand\\-over \\-\\-to 2\n",
            "\\fBclover\\-admin\\-group\\fR(1)",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let root = text("clover.1");
        assert!(root.contains("clover\\-status(1)") && root.contains(".SH EXAMPLES"), "{root}");
        assert!(!directory.join("clover-fs-complete-path.1").exists(), "nobody types it");
        assert!(!directory.join("clover-help.1").exists());
        fs::remove_dir_all(&directory).unwrap();
    }

    fn temporary(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("clover-{name}-{}", std::process::id()))
    }
}
