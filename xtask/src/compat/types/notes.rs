//! The differences that a generated file lists in its first lines.

use serde_json::Value;

/// Start of the lines with the differences.
const LINE: &str = "//! - ";

/// Differences that a file lists.
#[derive(Debug, Default)]
pub(super) struct Notes {
    notes: Vec<Note>,
}

#[derive(Debug)]
struct Note {
    /// Path of the value, such as `.spec.issuerRef`; empty for the object.
    path: String,
    text: String,
}

impl Notes {
    /// Reads the notes of a generated file.
    pub(super) fn read(source: &str) -> Self {
        let head = source.lines().take_while(|line| line.starts_with("//!"));
        let notes = head.filter_map(|line| {
            let line = line.strip_prefix(LINE)?;
            let located = line.strip_prefix('`').and_then(|it| it.split_once("`: "));
            let (path, text) = located.unwrap_or(("", line));
            Some(Note {
                path: path.to_owned(),
                text: text.to_owned(),
            })
        });
        Self {
            notes: notes.collect(),
        }
    }

    /// Reports whether the type is for clients, and has no CRD.
    pub(super) fn is_without_crd(&self) -> bool {
        self.notes.iter().any(|it| it.text.ends_with("has no CRD"))
    }

    /// Reports whether a difference at a path is listed. A type that several places share is listed
    /// with the first of them.
    pub(super) fn cover(&self, schema: &Value, path: &str, keyword: &str) -> bool {
        self.notes.iter().any(|note| {
            if note.is_whole() {
                // The value has no type, so nothing below it is there.
                return places(schema, &note.path, path);
            }
            note.is_about(keyword) && same_place(schema, &note.path, path)
        })
    }
}

impl Note {
    fn is_whole(&self) -> bool {
        self.text.starts_with("the fields have no types")
            || self
                .text
                .starts_with("the fields of the embedded object have no types")
    }

    /// Reports whether the note is about a keyword of a schema or of a CRD.
    fn is_about(&self, keyword: &str) -> bool {
        let text = self.text.as_str();
        match keyword {
            "default" => {
                ["the default is left out", "the keyword default is left out"].contains(&text)
            }
            "format" => text.starts_with("the format"),
            "oneOf" if text.starts_with("the rules of the alternatives") => true,
            "required" => {
                text == "the field is not required, because it can be null"
                    || text.starts_with("the spec is required")
            }
            "x-kubernetes-validations" => {
                text.starts_with("a CEL rule") || text.starts_with("the rules of the alternatives")
            }
            "additionalPrinterColumns" => text.starts_with("the printer column"),
            "subresources" => text.contains("subresource"),
            keyword => text == format!("the keyword {keyword} is left out"),
        }
    }
}

/// Splits a path such as `.spec.rules[*].name` into its steps.
fn steps(path: &str) -> Vec<&str> {
    let steps = path
        .split_inclusive(|_| false)
        .flat_map(|path| path.split('.'));
    let steps = steps.flat_map(|step| {
        let mut parts = Vec::new();
        let mut rest = step;
        while let Some(before) = rest.strip_suffix("[*]") {
            parts.push("[*]");
            rest = before;
        }
        if !rest.is_empty() {
            parts.push(rest);
        }
        parts.reverse();
        parts
    });
    steps.collect()
}

/// Returns the schema at the end of some steps.
pub(super) fn at<'a>(schema: &'a Value, steps: &[&str]) -> Option<&'a Value> {
    steps.iter().try_fold(schema, |schema, step| match *step {
        "[*]" => schema
            .get("items")
            .or_else(|| schema.get("additionalProperties")),
        name => schema.get("properties")?.get(name),
    })
}

/// Reports whether two paths are equal, or end in the same way below values with equal schemas,
/// which have one type.
fn same_place(schema: &Value, one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let (one, other) = (steps(one), steps(other));
    let common = one.iter().rev().zip(other.iter().rev());
    let common = common.take_while(|(one, other)| one == other).count();
    (1..=common).any(|length| {
        let start = |path: &[&str]| {
            let end = path.len().saturating_sub(length);
            path.get(..end).and_then(|path| at(schema, path)).cloned()
        };
        match (start(&one), start(&other)) {
            (Some(one), Some(other)) => one.get("properties") == other.get("properties"),
            _ => false,
        }
    })
}

/// Reports whether a path is that of a note, or below it.
fn places(schema: &Value, note: &str, path: &str) -> bool {
    let steps = steps(path);
    (1..=steps.len()).any(|length| {
        let start = steps.get(..length).unwrap_or_default();
        let joined: String = start
            .iter()
            .map(|step| match *step {
                "[*]" => "[*]".to_owned(),
                name => format!(".{name}"),
            })
            .collect();
        same_place(schema, note, &joined)
    })
}
