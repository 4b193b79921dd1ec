//! Hadoop's XML configuration files.
//!
//! The file is foreign: it is bounded in size, in included files and in depth, document types are refused
//! (and with them entities that grow), and an error names its file and line.

use super::error::ConfigError;
use roxmltree::{Document, Node};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

/// Bytes of one file. The largest in the field (the defaults of all of Hadoop in one file) have 500 KiB.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Elements and texts of one file, which bounds what parsing it allocates.
const NODES_MAX: u32 = 1_000_000;
/// Files that one file may pull in, itself included.
const INCLUDES_MAX: usize = 32;
/// Rounds of filling in `${…}`, as many as Hadoop makes.
const EXPANSIONS_MAX: usize = 20;
/// Bytes that a value may grow to while `${…}` is filled in.
const EXPANDED_BYTES_MAX: usize = 1 << 20;
/// XML's own name of the `xi:` prefix.
const XINCLUDE: &str = "http://www.w3.org/2001/XInclude";

#[derive(Clone, Debug)]
struct Property {
    value: String,
    /// Later files must not change it.
    is_final: bool,
    /// The file and the line; `None` if a program or a command line set it.
    source: Option<(Arc<Path>, u32)>,
}

/// Names and values, later sources over earlier ones.
#[derive(Clone, Debug, Default)]
pub struct Properties {
    map: BTreeMap<String, Property>,
}

impl Properties {
    /// Reads a file over what is there.
    ///
    /// # Errors
    /// The error names the file if it cannot be read, is too large or is not UTF-8; and those of
    /// [`Properties::read_text`].
    pub fn read_file(&mut self, file: &Path) -> Result<(), ConfigError> {
        self.read_file_at(file, &mut BTreeSet::new())
    }

    /// Reads a document over what is there; `file` is named in errors and is where includes are looked for.
    ///
    /// # Errors
    /// The error names the file and the line where the text is no XML or no configuration of Hadoop's, or includes a
    /// file that cannot be read or includes it in turn.
    pub fn read_text(&mut self, file: &Path, text: &str) -> Result<(), ConfigError> {
        self.read_text_at(file, text, &mut BTreeSet::new())
    }

    /// Sets a property, also one that a file declares final.
    pub fn set(&mut self, key: &str, value: &str) {
        self.map.insert(key.to_owned(), Property { value: value.to_owned(), is_final: true, source: None });
    }

    pub fn keys(&self) -> Vec<String> {
        self.map.keys().cloned().collect()
    }

    pub fn get(&self, key: &str) -> Option<String> {
        self.map.get(key).map(|property| self.expand(&property.value))
    }

    pub fn refuse(&self, key: &str, reason: &str) -> ConfigError {
        match self.map.get(key).map(|property| (&property.source, &property.value)) {
            Some((Some((file, line)), value)) => {
                ConfigError::at(file, *line, format!("{key} = `{value}` {reason}"))
            }
            Some((None, value)) => {
                ConfigError { place: "command line".into(), reason: format!("{key} = `{value}` {reason}") }
            }
            None => ConfigError { place: "configuration".into(), reason: format!("{key} {reason}") },
        }
    }

    fn read_file_at(&mut self, file: &Path, seen: &mut BTreeSet<PathBuf>) -> Result<(), ConfigError> {
        let wrong = |error: std::io::Error| ConfigError::at(file, 0, format!("cannot be read: {error}"));
        let length = std::fs::metadata(file).map_err(wrong)?.len();
        if length > FILE_BYTES_MAX {
            let reason = format!("has {length} bytes; a configuration file may have {FILE_BYTES_MAX}");
            return Err(ConfigError::at(file, 0, reason));
        }
        let bytes = std::fs::read(file).map_err(wrong)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            let line = 1 + error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count();
            ConfigError::at(file, line as u32, "is not UTF-8")
        })?;
        self.read_text_at(file, &text, seen)
    }

    fn read_text_at(
        &mut self,
        file: &Path,
        text: &str,
        seen: &mut BTreeSet<PathBuf>,
    ) -> Result<(), ConfigError> {
        if !seen.insert(file.to_owned()) {
            return Err(ConfigError::at(file, 0, "includes itself"));
        }
        if seen.len() > INCLUDES_MAX {
            return Err(ConfigError::at(
                file,
                0,
                format!("is one of more than {INCLUDES_MAX} included files"),
            ));
        }
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(ConfigError::at(file, 0, format!("has more than {FILE_BYTES_MAX} bytes")));
        }
        let options =
            roxmltree::ParsingOptions { allow_dtd: false, nodes_limit: NODES_MAX, ..Default::default() };
        let document = Document::parse_with_options(text, options).map_err(|error| {
            ConfigError::at(file, error.pos().row, format!("is not well-formed XML: {error}"))
        })?;
        let root = document.root_element();
        if root.tag_name().name() != "configuration" {
            let reason = format!("begins with <{}>, not with <configuration>", root.tag_name().name());
            return Err(ConfigError::at(file, line_of(&root), reason));
        }
        self.read_configuration(Arc::from(file), root, seen)?;
        seen.remove(file);
        Ok(())
    }

    fn read_configuration(
        &mut self,
        file: Arc<Path>,
        root: Node<'_, '_>,
        seen: &mut BTreeSet<PathBuf>,
    ) -> Result<(), ConfigError> {
        // A list instead of recursion: nesting costs no stack.
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            match node.tag_name().name() {
                "configuration" => {
                    let children: Vec<_> = node.children().filter(Node::is_element).collect();
                    open.extend(children.into_iter().rev());
                }
                "property" => self.read_property(&file, &node)?,
                "include" if node.tag_name().namespace() == Some(XINCLUDE) => {
                    self.read_include(&file, &node, seen)?;
                }
                other => {
                    let reason = format!("<{other}> where <property> is expected");
                    return Err(ConfigError::at(&file, line_of(&node), reason));
                }
            }
        }
        Ok(())
    }

    fn read_property(&mut self, file: &Arc<Path>, property: &Node<'_, '_>) -> Result<(), ConfigError> {
        let line = line_of(property);
        let attribute = |name| property.attribute(name).map(str::to_owned);
        let (mut name, mut value) = (attribute("name"), attribute("value"));
        let mut is_final = attribute("final").as_deref() == Some("true");
        for part in property.children().filter(Node::is_element) {
            let text: String =
                part.descendants().filter(Node::is_text).filter_map(|text| text.text()).collect();
            match part.tag_name().name() {
                "name" => name = Some(text.trim().to_owned()),
                "value" => value = Some(text.trim().to_owned()),
                "final" => is_final = text.trim() == "true",
                // Descriptions, sources and tags say nothing to a program.
                _ => {}
            }
        }
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Err(ConfigError::at(file, line, "a <property> without a <name>"));
        };
        // Hadoop passes over a property without a value.
        let Some(value) = value else { return Ok(()) };
        if self.map.get(&name).is_some_and(|earlier| earlier.is_final) {
            tracing::debug!("{}:{line}: {name} is final and stays as it is", file.display());
            return Ok(());
        }
        let source = Some((Arc::clone(file), line));
        self.map.insert(name, Property { value, is_final, source });
        Ok(())
    }

    fn read_include(
        &mut self,
        file: &Arc<Path>,
        include: &Node<'_, '_>,
        seen: &mut BTreeSet<PathBuf>,
    ) -> Result<(), ConfigError> {
        let line = line_of(include);
        let Some(href) = include.attribute("href").filter(|href| !href.is_empty()) else {
            return Err(ConfigError::at(file, line, "an <xi:include> without href"));
        };
        if href.contains("://") && !href.starts_with("file://") {
            return Err(ConfigError::at(
                file,
                line,
                format!("includes `{href}`; only files can be included"),
            ));
        }
        let path = Path::new(href.strip_prefix("file://").unwrap_or(href));
        let path = file.parent().unwrap_or(Path::new("")).join(path);
        if path.exists() {
            return self.read_file_at(&path, seen);
        }
        let fallback = include.children().find(|child| child.tag_name().name() == "fallback");
        let Some(fallback) = fallback else {
            return Err(ConfigError::at(
                file,
                line,
                format!("includes {}, which is not there", path.display()),
            ));
        };
        for child in fallback.children().filter(Node::is_element) {
            self.read_configuration(Arc::clone(file), child, seen)?;
        }
        Ok(())
    }

    /// Fills in `${name}` from other properties and `${env.NAME}` from the environment; what is not known
    /// stays as it is written.
    fn expand(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for _ in 0..EXPANSIONS_MAX {
            let Some((from, to, replacement)) = self.next_expansion(&text) else { break };
            text.replace_range(from..to, &replacement);
            if text.len() > EXPANDED_BYTES_MAX {
                break;
            }
        }
        text
    }

    /// The first `${…}` of a known name: its range, and what stands there instead.
    fn next_expansion(&self, text: &str) -> Option<(usize, usize, String)> {
        let mut start = 0;
        while let Some(found) = text[start..].find("${") {
            let from = start + found;
            let to = from + text[from..].find('}')? + 1;
            let name = &text[from + 2..to - 1];
            // `${a${b}}`: the inner one first.
            if let Some(inner) = name.rfind("${") {
                start = from + 2 + inner;
                continue;
            }
            if let Some(value) = self.look_up(name)
                && !value.contains(&text[from..to])
            {
                return Some((from, to, value));
            }
            start = to;
        }
        None
    }

    fn look_up(&self, name: &str) -> Option<String> {
        if let Some(variable) = name.strip_prefix("env.") {
            let (variable, default, empty_is_unset) = match variable.split_once('-') {
                Some((variable, default)) => match variable.strip_suffix(':') {
                    Some(variable) => (variable, Some(default), true),
                    None => (variable, Some(default), false),
                },
                None => (variable, None, false),
            };
            let value = std::env::var(variable).ok().filter(|value| !empty_is_unset || !value.is_empty());
            return value.or(default.map(str::to_owned));
        }
        match name {
            "user.name" => super::user::of_system().ok(),
            "user.home" => std::env::var("HOME").ok(),
            _ => self.map.get(name).map(|property| property.value.clone()),
        }
    }
}

fn line_of(node: &Node<'_, '_>) -> u32 {
    node.document().text_pos_at(node.range().start).row
}
