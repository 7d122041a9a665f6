//! Form of imports: one `use` for each module, in three blocks.
//!
//! rustfmt can do both only with options of the nightly toolchain.

use super::{File, Violation};

/// Blocks of imports, in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Block {
    Standard,
    Crates,
    Own,
}

/// Returns the violations in the imports of `files`.
pub(super) fn check(files: &[File]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let sources = files.iter().filter(|file| file.path.ends_with(".rs"));
    // Code that must not compile is compared with messages that name its lines.
    for file in sources.filter(|file| !file.path.contains("/cases/")) {
        let mut last = Block::Standard;
        for (line, path) in imports(&file.text) {
            let mut report = |what: &str| {
                violations.push(Violation {
                    path: file.path.clone(),
                    line,
                    what: what.to_owned(),
                });
            };
            let braces = path.split_once('{').map_or("", |(_, inner)| inner);
            if braces.contains("::") {
                report("write one `use` for each module, without `::` in braces");
            }
            let block = block_of(&path, &file.text);
            if block < last {
                report("order imports: std, other crates, then crate, super and self");
            }
            last = last.max(block);
        }
    }
    violations
}

/// Returns the private imports at the top level of a file, with their lines.
fn imports(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut current, mut is_string) = (None::<(usize, String)>, false);
    for (index, line) in text.lines().enumerate() {
        // A program in a raw string is not part of the file.
        if line.contains("r##\"") || line.contains("\"##") {
            is_string = !is_string;
        }
        if is_string {
            continue;
        }
        if let Some(path) = line.strip_prefix("use ") {
            current = Some((index + 1, String::new()));
            push(&mut current, path);
        } else {
            push(&mut current, line);
        }
        if line.trim_end().ends_with(';') {
            found.extend(current.take());
        }
    }
    found
}

fn push(import: &mut Option<(usize, String)>, line: &str) {
    if let Some((_, path)) = import {
        path.push_str(line.trim());
    }
}

fn block_of(path: &str, text: &str) -> Block {
    let head = path
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next();
    match head.unwrap_or_default() {
        "std" | "core" | "alloc" => Block::Standard,
        "crate" | "super" | "self" => Block::Own,
        // A type or a module of the file itself.
        head if head.starts_with(char::is_uppercase) => Block::Own,
        head if text.contains(&format!("mod {head};")) => Block::Own,
        _ => Block::Crates,
    }
}
