//! What commands read and change in a project's `Cargo.toml`.
//!
//! This reads tables with one `key = value` on a line, as people and cargo write them.

use crate::tree::Tree;
use crate::{Error, Result};

#[cfg(test)]
mod tests;

/// Table with the settings of a project.
const TABLE: &str = "package.metadata.opkit";

/// Manifest of the crate with the kinds, if they have one of their own.
pub(crate) const TYPES_MANIFEST: &str = "types/Cargo.toml";
/// Folder of its sources.
pub(crate) const TYPES_SOURCE: &str = "types/src/";
/// Root of the crate.
pub(crate) const TYPES_ROOT: &str = "types/src/lib.rs";

/// Domain of the groups in a project that does not name one, as in kubebuilder.
pub(crate) const DEFAULT_DOMAIN: &str = "my.domain";

/// Manifest of a project.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    /// Name of the package.
    pub(crate) package: String,
    /// Name of the library in Rust code.
    pub(crate) library: String,
    /// Path of the library's root.
    pub(crate) root: String,
    /// Domain of the groups of its kinds.
    pub(crate) domain: String,
    /// Whether the kinds have a crate of their own.
    pub(crate) has_types_crate: bool,
}

impl Manifest {
    pub(crate) fn of(tree: &Tree) -> Result<Self> {
        let text = tree.get("Cargo.toml").unwrap_or_default();
        let package = value(text, "package", "name").ok_or_else(|| {
            let reason =
                "there is no [package] with a name: run opkit in the directory of an operator";
            Error::source("Cargo.toml", 1, reason)
        })?;
        let library = value(text, "lib", "name");
        let root = value(text, "lib", "path").unwrap_or_else(|| "src/lib.rs".to_owned());
        if tree.get(&root).is_none() {
            let reason = format!(
                "there is no {root}: opkit edits projects whose operator() is in the library; move \
                 it there, and call it in src/main.rs"
            );
            return Err(Error::Project(reason));
        }
        let types = tree.get(TYPES_MANIFEST).unwrap_or_default();
        let types = value(types, "package", "name");
        Ok(Self {
            has_types_crate: types.is_some_and(|name| name == types_package(&package)),
            library: library.unwrap_or_else(|| package.replace('-', "_")),
            package,
            root,
            domain: value(text, TABLE, "domain").unwrap_or_else(|| DEFAULT_DOMAIN.to_owned()),
        })
    }

    /// Returns the name of the package with the kinds, if they have one of their own.
    pub(crate) fn types_package(&self) -> String {
        types_package(&self.package)
    }

    /// Returns the path of the module in a source file: `["fleet", "robot"]` for
    /// `src/fleet/robot.rs`, and for that file of the crate with the kinds. The binary and its
    /// modules have none.
    pub(crate) fn module(&self, path: &str) -> Option<Vec<String>> {
        if path == self.root || path == TYPES_ROOT && self.has_types_crate {
            return Some(Vec::new());
        }
        if let Some(relative) = path.strip_prefix(TYPES_SOURCE) {
            let relative = relative
                .strip_suffix(".rs")
                .filter(|_| self.has_types_crate)?;
            return Some(relative.split('/').map(str::to_owned).collect());
        }
        let (folder, _) = self.root.rsplit_once('/').unwrap_or(("", ""));
        let relative = path.strip_prefix(folder)?.trim_start_matches('/');
        let relative = relative.strip_suffix(".rs")?;
        let relative = relative.strip_suffix("/mod").unwrap_or(relative);
        if relative == "main" || relative.starts_with("bin/") {
            return None;
        }
        Some(relative.split('/').map(str::to_owned).collect())
    }

    /// Returns the path of the file with the functions of a kind, which is not that of the kind if
    /// the kinds have a crate of their own.
    pub(crate) fn operator_file(&self, tree: &Tree, kind_file: &str) -> String {
        if kind_file == TYPES_ROOT {
            return self.root.clone();
        }
        let Some(relative) = kind_file.strip_prefix(TYPES_SOURCE) else {
            return kind_file.to_owned();
        };
        let folder = relative.strip_suffix(".rs").unwrap_or(relative);
        let in_folder = self.beside_root(&format!("{folder}/mod.rs"));
        match tree.get(&in_folder).is_some() {
            true => in_folder,
            false => self.beside_root(relative),
        }
    }

    /// Returns the path of a file beside the library's root.
    pub(crate) fn beside_root(&self, name: &str) -> String {
        match self.root.rsplit_once('/') {
            Some((folder, _)) => format!("{folder}/{name}"),
            None => name.to_owned(),
        }
    }
}

fn types_package(package: &str) -> String {
    format!("{package}-types")
}

/// Returns the keys of a table with their lines.
pub(crate) fn entries(text: &str, table: &str) -> Vec<(String, String)> {
    let lines = lines(text, table).filter(|line| !line.key.starts_with('#'));
    lines
        .map(|line| (line.key.to_owned(), line.text.to_owned()))
        .collect()
}

/// Adds lines to the end of a table, or a table with these lines to the end of the file.
pub(crate) fn add_entries(text: &str, table: &str, new: &[String]) -> String {
    if new.is_empty() {
        return text.to_owned();
    }
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let header = format!("[{table}]");
    let mut end = None;
    let (mut position, mut is_inside) = (0, false);
    for line in text.split_inclusive('\n') {
        position += line.len();
        let code = line.split('#').next().unwrap_or_default().trim();
        if line.trim_start().starts_with('[') {
            is_inside = code == header;
        }
        if is_inside && !code.is_empty() {
            end = Some(position);
        }
    }
    let added: String = new.iter().map(|line| format!("{line}{newline}")).collect();
    match end {
        Some(end) => {
            let (before, after) = text.split_at_checked(end).unwrap_or((text, ""));
            let line_end = if before.ends_with('\n') { "" } else { newline };
            format!("{before}{line_end}{added}{after}")
        }
        None => format!(
            "{}{newline}{newline}{header}{newline}{added}",
            text.trim_end()
        ),
    }
}

/// Returns the string value of a key in a table.
pub(crate) fn value(text: &str, table: &str, key: &str) -> Option<String> {
    let line = lines(text, table).find(|line| line.key == key)?;
    let value = line.value.trim();
    let quote = value.chars().next().filter(|it| ['"', '\''].contains(it))?;
    let rest = value.get(1..)?;
    rest.split_once(quote).map(|(value, _)| value.to_owned())
}

/// Returns a string value of a dependency: of `name = { key = "value" }`, of `name = "version"`, or
/// of a table of its own.
pub(crate) fn dependency(text: &str, name: &str, key: &str) -> Option<String> {
    if let Some(value) = value(text, &format!("dependencies.{name}"), key) {
        return Some(value);
    }
    let line = lines(text, "dependencies").find(|line| line.key == name)?;
    let entry = line.value.trim();
    let Some(inline) = entry.strip_prefix('{') else {
        return match key {
            "version" => value(text, "dependencies", name),
            _ => None,
        };
    };
    let found = inline.find(key).filter(|start| {
        let before = inline.get(..*start).unwrap_or_default().trim_end();
        before.is_empty() || before.ends_with(',')
    })?;
    let rest = inline.get(found + key.len()..)?.trim_start();
    let rest = rest.strip_prefix('=')?.trim_start();
    let quote = rest.chars().next().filter(|it| ['"', '\''].contains(it))?;
    let (value, _) = rest.get(1..)?.split_once(quote)?;
    Some(value.to_owned())
}

/// Sets a string value in the table with the settings of a project.
pub(crate) fn set(text: &str, key: &str, new: &str) -> String {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    if let Some(line) = lines(text, TABLE).find(|line| line.key == key) {
        let value = line.value.trim();
        let quote = value.chars().next().unwrap_or('"');
        let inner = value.get(1..).unwrap_or_default();
        let length = inner.find(quote).map_or(value.len(), |end| end + 2);
        let start = line.start + line.text.len() - line.value.trim_start().len();
        let (before, after) = (text.get(..start), text.get(start + length..));
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        return format!("{before}\"{new}\"{after}");
    }
    let entry = format!("{key} = \"{new}\"{newline}");
    let header = format!("[{TABLE}]");
    let is_header = |line: &&str| line.split('#').next().unwrap_or_default().trim() == header;
    let found = text.lines().find(is_header);
    let table = found.and_then(|line| text.find(line).map(|start| start + line.len()));
    match table {
        Some(end) => {
            let rest = text.get(end..).unwrap_or_default();
            let next = end + rest.find('\n').map_or(rest.len(), |newline| newline + 1);
            let (before, after) = (text.get(..next), text.get(next..));
            format!(
                "{}{entry}{}",
                before.unwrap_or_default(),
                after.unwrap_or_default()
            )
        }
        None => {
            let end = if text.ends_with('\n') || text.is_empty() {
                ""
            } else {
                newline
            };
            format!("{text}{end}{newline}{header}{newline}{entry}")
        }
    }
}

/// Line `key = value` of a table.
struct Line<'a> {
    key: &'a str,
    value: &'a str,
    text: &'a str,
    /// Position of the line in the file.
    start: usize,
}

fn lines<'a>(text: &'a str, table: &str) -> impl Iterator<Item = Line<'a>> {
    let mut is_inside = false;
    let mut position = 0;
    let header = format!("[{table}]");
    text.split_inclusive('\n').filter_map(move |whole| {
        let start = position;
        position += whole.len();
        let line = whole.trim_end_matches(['\n', '\r']);
        if line.trim_start().starts_with('[') {
            let code = line.split('#').next().unwrap_or_default();
            is_inside = code.trim() == header;
            return None;
        }
        let (key, value) = line.split_once('=')?;
        let line = Line {
            key: key.trim(),
            value,
            text: line,
            start,
        };
        is_inside.then_some(line)
    })
}
