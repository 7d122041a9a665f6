//! The field path of a rule: `.spec.replicas` or `.labels['a.b']`.

use opkit_apimachinery::schema::{AdditionalProperties, Schema};

/// Returns the path in the form of field errors, or `None` if it does not refer to a field.
pub(super) fn field_path(path: &str, schema: &Schema) -> Option<String> {
    let mut shown = String::new();
    let mut current = schema;
    let mut tokens = Tokens(path);
    while let Some(token) = tokens.next() {
        let name = match token {
            "." => tokens.next()?.to_owned(),
            "[" => {
                let quoted = tokens.next()?;
                let inner = quoted.strip_prefix('\'')?.strip_suffix('\'')?;
                let name = unescape(inner)?;
                if tokens.next()? != "]" {
                    return None;
                }
                name
            }
            _ => return None,
        };
        if !current.properties.is_empty() {
            if !shown.is_empty() {
                shown.push('.');
            }
            shown.push_str(&name);
            current = current.properties.get(&name)?;
        } else {
            shown.push_str(&format!("[{name}]"));
            current = match current.additional_properties.as_ref()? {
                AdditionalProperties::Schema(values) => values,
                _ => return None,
            };
        }
    }
    Some(shown)
}

/// Splits a path into delimiters, names and quoted names.
struct Tokens<'p>(&'p str);

impl<'p> Tokens<'p> {
    fn next(&mut self) -> Option<&'p str> {
        let first = self.0.chars().next()?;
        let end = match first {
            '\'' => self
                .0
                .char_indices()
                .skip(1)
                .find(|(index, c)| {
                    let before = self.0.get(..*index).unwrap_or_default();
                    *c == '\'' && !before.ends_with('\\')
                })
                .map_or(self.0.len(), |(index, _)| index + 1),
            '.' | '[' | ']' => 1,
            _ => self.0.find(['.', '[', ']']).unwrap_or(self.0.len()),
        };
        let (token, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        Some(token)
    }
}

fn unescape(text: &str) -> Option<String> {
    let mut name = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            name.push(c);
            continue;
        }
        match chars.next() {
            Some('a') => name.push('\u{07}'),
            Some('b') => name.push('\u{08}'),
            Some('f') => name.push('\u{0c}'),
            Some('n') => name.push('\n'),
            Some('r') => name.push('\r'),
            Some('t') => name.push('\t'),
            Some('v') => name.push('\u{0b}'),
            Some('\'') => name.push('\''),
            Some('\\') => name.push('\\'),
            Some(_) => return None,
            None => name.push('\\'),
        }
    }
    Some(name)
}
