//! Selects objects by their fields.

use std::fmt;

use super::SelectorError;

/// A selector of objects by fields, such as `metadata.name=a,status.phase!=Failed`.
///
/// The server decides which fields of a kind can be selected, so [`matches`](Self::matches) gets
/// the values of the fields from a function.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::selector::FieldSelector;
///
/// let selector = FieldSelector::parse("metadata.name=a,status.phase!=Failed")?;
/// let lookup = |field: &str| match field {
///     "metadata.name" => Some("a".to_owned()),
///     _ => None,
/// };
/// assert!(selector.matches(lookup));
/// # Ok::<(), opkit_apimachinery::selector::SelectorError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    requirements: Vec<FieldRequirement>,
}

/// One term of a [`FieldSelector`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldRequirement {
    /// The field, such as `metadata.name`.
    pub field: String,
    /// Whether the field must be equal to the value (`true`) or different from it (`false`).
    pub equal: bool,
    /// The value to compare with, unescaped.
    pub value: String,
}

impl FieldSelector {
    /// Parses a selector. An empty text selects all objects.
    ///
    /// # Errors
    ///
    /// The message of Kubernetes, if a term has no operator or a value is not escaped correctly.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut requirements = Vec::new();
        for term in split_terms(text)
            .into_iter()
            .filter(|term| !term.is_empty())
        {
            let not_understood = || {
                SelectorError::new(format!(
                    "invalid selector: '{text}'; can't understand '{term}'"
                ))
            };
            let (field, equal, value) = split_term(term).ok_or_else(not_understood)?;
            let value = unescape(value)?;
            requirements.push(FieldRequirement {
                field: field.to_owned(),
                equal,
                value,
            });
        }
        Ok(Self { requirements })
    }

    /// Returns the terms of the selector, all of which must match.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// Reports whether all terms match an object. `lookup` returns the value of a field of the
    /// object by its path; a missing field counts as empty.
    pub fn matches(&self, lookup: impl Fn(&str) -> Option<String>) -> bool {
        self.requirements.iter().all(|requirement| {
            let actual = lookup(&requirement.field).unwrap_or_default();
            (actual == requirement.value) == requirement.equal
        })
    }

    /// Reports whether the selector selects all objects.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let operator = if requirement.equal { "=" } else { "!=" };
            let value = escape(&requirement.value);
            write!(f, "{comma}{}{operator}{value}", requirement.field)?;
        }
        Ok(())
    }
}

fn split_terms(text: &str) -> Vec<&str> {
    let mut escaped = false;
    text.split(|c| {
        let splits = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        splits
    })
    .collect()
}

fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.find(['=', '!']).filter(|at| {
        let rest = term.get(*at..).unwrap_or_default();
        rest.starts_with('=') || rest.starts_with("!=")
    });
    let at = at.or_else(|| {
        [term.find("!="), term.find('=')]
            .into_iter()
            .flatten()
            .min()
    })?;
    let (field, rest) = term.split_at_checked(at)?;
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((field, false, value));
    }
    rest.strip_prefix("==")
        .or_else(|| rest.strip_prefix('='))
        .map(|value| (field, true, value))
}

fn unescape(text: &str) -> Result<String, SelectorError> {
    let mut value = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => value.push(c),
                other => {
                    let sequence: String = ['\\'].into_iter().chain(other).collect();
                    return Err(SelectorError::new(format!(
                        "invalid field selector: invalid escape sequence: {sequence}"
                    )));
                }
            },
            // Go prints the rune as a number.
            ',' | '=' => {
                return Err(SelectorError::new(format!(
                    "invalid field selector: unescaped character in value: {}",
                    c as u32
                )));
            }
            c => value.push(c),
        }
    }
    Ok(value)
}

fn escape(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '\\' | ',' | '=') {
            text.push('\\');
        }
        text.push(c);
    }
    text
}
