//! Regular expressions with Go's semantics.
//!
//! Kubernetes compiles `pattern` with Go's RE2. The `regex` crate differs in two points: `\d`,
//! `\w`, `\s` and `\b` match Unicode characters, and character classes have set operations. This
//! module translates a pattern so that both behave as in Go.

use std::fmt;

use regex::{Regex, RegexBuilder};

/// A compiled `pattern` with its source text.
#[derive(Debug, Clone)]
pub struct Pattern {
    source: String,
    compiled: Regex,
}

impl Pattern {
    /// Compiles an expression in Go's syntax. The error is the message of the compiler.
    pub(crate) fn compile(source: &str) -> Result<Self, String> {
        RegexBuilder::new(&translate(source))
            .size_limit(64 << 20)
            .build()
            .map(|compiled| Self {
                source: source.to_owned(),
                compiled,
            })
            .map_err(|error| error.to_string())
    }

    /// Reports whether the expression matches somewhere in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        self.compiled.is_match(text)
    }

    /// Returns the expression as written in the schema.
    pub fn as_str(&self) -> &str {
        &self.source
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

/// Returns the error of Go's compiler for an expression, or `None` if the expression is valid.
///
/// # Examples
/// ```
/// use opkit_apimachinery::schema::pattern_error;
/// assert_eq!(pattern_error("^a+$"), None);
/// assert_eq!(
///     pattern_error("[").as_deref(),
///     Some("error parsing regexp: missing closing ]: `[`"),
/// );
/// ```
pub fn pattern_error(source: &str) -> Option<String> {
    let cause = Pattern::compile(source).err()?;
    let has = |part: &str| cause.contains(part);
    let reason = if has("unclosed character class") {
        let start = source.rfind('[').unwrap_or_default();
        let rest = source.get(start..).unwrap_or_default();
        format!("missing closing ]: `{rest}`")
    } else if has("unclosed group") {
        format!("missing closing ): `{source}`")
    } else if has("unopened group") {
        format!("unexpected ): `{source}`")
    } else if has("repetition operator missing expression") {
        let operator = source.chars().find(|c| "*+?".contains(*c));
        let operator = operator.map(String::from).unwrap_or_default();
        format!("missing argument to repetition operator: `{operator}`")
    } else if has("look-around") {
        let start = source.find("(?").unwrap_or_default();
        let operator: String = source.chars().skip(start).take(3).collect();
        format!("invalid or unsupported Perl syntax: `{operator}`")
    } else if source.ends_with('\\') && has("incomplete escape") {
        "trailing backslash at end of expression: ``".to_owned()
    } else if has("unrecognized escape sequence") {
        let start = cause
            .rfind('^')
            .map_or(0, |_| source.find('\\').unwrap_or_default());
        let escape: String = source.chars().skip(start).take(2).collect();
        format!("invalid escape sequence: `{escape}`")
    } else {
        let last = cause.lines().last().unwrap_or_default();
        format!("{}: `{source}`", last.trim_start_matches("error: "))
    };
    Some(format!("error parsing regexp: {reason}"))
}

fn translate(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 16);
    let mut chars = source.chars().peekable();
    let mut in_class = false;
    // Whether the next character is the first of its class, where `]` is a literal.
    let mut class_opens = false;
    while let Some(c) = chars.next() {
        let first_in_class = std::mem::take(&mut class_opens);
        match c {
            '\\' => escape(chars.next(), in_class, &mut out),
            '[' if !in_class => {
                in_class = true;
                class_opens = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            '[' if chars.peek() == Some(&':') => {
                out.push('[');
                for c in chars.by_ref() {
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            ']' if in_class && first_in_class => out.push_str("\\]"),
            ']' => {
                in_class = false;
                out.push(']');
            }
            '[' | '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

fn escape(escaped: Option<char>, in_class: bool, out: &mut String) {
    let replacement = match (escaped, in_class) {
        (Some('d'), true) => "0-9",
        (Some('d'), false) => "[0-9]",
        (Some('w'), true) => "0-9A-Za-z_",
        (Some('w'), false) => "[0-9A-Za-z_]",
        (Some('s'), true) => "\\t\\n\\x0c\\r ",
        (Some('s'), false) => "[\\t\\n\\x0c\\r ]",
        (Some('D'), _) => "[^0-9]",
        (Some('W'), _) => "[^0-9A-Za-z_]",
        (Some('S'), _) => "[^\\t\\n\\x0c\\r ]",
        (Some('b'), false) => "(?-u:\\b)",
        (Some('B'), false) => "(?-u:\\B)",
        (Some(other), _) => {
            out.push('\\');
            out.push(other);
            return;
        }
        (None, _) => "\\",
    };
    out.push_str(replacement);
}
