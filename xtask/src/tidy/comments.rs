//! Words and width of comments.

use super::{File, Violation};

/// Limit of columns. rustfmt wraps comments only with options of the nightly toolchain.
const COLUMNS_MAX: usize = 100;

/// Words that are never the field's word in a doc comment, each with a word to use instead.
const WORDS: &[(&str, &str)] = &[
    ("anew", "again"),
    ("hears", "receives"),
    ("nobody", "no client"),
    ("says", "states"),
    ("somebody", "another client"),
    ("stranger", "another client"),
    ("strangers", "other clients"),
    ("tells", "reports"),
    ("told", "reported"),
    ("underway", "in progress"),
    ("whoever", "the caller"),
];

/// Returns the violations in the comments of `files`.
pub(super) fn check(files: &[File]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        let mut is_example = false;
        for (index, line) in file.text.lines().enumerate() {
            let Some(comment) = Comment::parse(line) else {
                is_example = false;
                continue;
            };
            if comment.is_fence() {
                is_example = !is_example;
                continue;
            }
            if is_example {
                continue;
            }
            let mut report = |what: String| {
                violations.push(Violation {
                    path: file.path.clone(),
                    line: index + 1,
                    what,
                });
            };
            let columns = line.chars().count();
            if columns > COLUMNS_MAX && comment.can_wrap() {
                report(format!(
                    "a comment of {columns} columns: wrap it at {COLUMNS_MAX}"
                ));
            }
            for (word, instead) in comment.banned_words() {
                report(format!(
                    "{word:?} is not plain English: write {instead:?} or similar"
                ));
            }
        }
    }
    violations
}

/// Line of a comment.
struct Comment<'a> {
    text: &'a str,
    is_doc: bool,
}

impl<'a> Comment<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let rest = line.trim_start().strip_prefix("//")?;
        let doc = rest.strip_prefix('/').or_else(|| rest.strip_prefix('!'));
        Some(Self {
            text: doc.unwrap_or(rest).trim_start(),
            is_doc: doc.is_some(),
        })
    }

    /// Reports whether the line starts or ends a code block.
    fn is_fence(&self) -> bool {
        self.is_doc && self.text.starts_with("```")
    }

    /// Reports whether the line can be wrapped: rows of tables and single long words, such as
    /// links, cannot.
    fn can_wrap(&self) -> bool {
        let is_link = self.text.starts_with('[') && self.text.contains("]: ");
        !self.text.starts_with('|') && !is_link && self.text.contains(' ')
    }

    fn banned_words(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let words = self.text.split(|c: char| !c.is_alphanumeric() && c != '_');
        let words: Vec<&str> = if self.is_doc {
            words.collect()
        } else {
            Vec::new()
        };
        let banned = WORDS.iter().copied();
        banned.filter(move |(word, _)| words.iter().any(|it| it.eq_ignore_ascii_case(word)))
    }
}
