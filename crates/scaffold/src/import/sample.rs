//! The sample objects of a project.

use crate::Tree;

/// Copies the samples. The list of kustomize is left out.
pub(super) fn copy(from: &Tree, to: &mut Tree) {
    for (path, text) in from.files() {
        let name = path.strip_prefix("config/samples/").unwrap_or_default();
        if !name.is_empty() && !name.starts_with("kustomization.") {
            to.insert(path, filled(text));
        }
    }
}

/// Returns a sample whose empty `spec:`, which is null in YAML, is an empty object.
fn filled(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut filled = String::new();
    for (at, line) in lines.iter().enumerate() {
        let below = lines.get(at + 1..).unwrap_or_default();
        let is_comment =
            |line: &&&str| line.trim().is_empty() || line.trim_start().starts_with('#');
        let next = below.iter().find(|line| !is_comment(line));
        let is_empty =
            next.is_none_or(|next| !next.starts_with([' ', '-']) || next.starts_with("---"));
        match line.trim_end() {
            "spec:" if is_empty => filled += "spec: {}\n",
            _ => filled += &format!("{line}\n"),
        }
    }
    filled
}
