//! JSON names of fields and variants, plural names of resources, and validation of names.

/// Returns the JSON name of a Rust field: `minReplicas` for `min_replicas`, and `type` for `type_`
/// and `r#type`.
pub(crate) fn camel_case(field: &str) -> String {
    let mut name = String::new();
    let mut is_start = false;
    for letter in field.trim_start_matches("r#").trim_matches('_').chars() {
        match letter {
            '_' => is_start = true,
            letter if is_start => {
                name.extend(letter.to_uppercase());
                is_start = false;
            }
            letter => name.push(letter),
        }
    }
    name
}

/// Allowed values of the argument `rename_all` on an enum, with the names of serde.
pub(crate) const CASES: [&str; 5] = [
    "lowercase",
    "UPPERCASE",
    "camelCase",
    "kebab-case",
    "snake_case",
];

/// Converts the name of an enum variant to one of the [`CASES`].
pub(crate) fn variant(name: &str, case: &str) -> String {
    match case {
        "lowercase" => name.to_lowercase(),
        "UPPERCASE" => name.to_uppercase(),
        "camelCase" => {
            let mut letters = name.chars();
            let first = letters.next().into_iter().flat_map(char::to_lowercase);
            first.chain(letters).collect()
        }
        "kebab-case" => separated(name, '-'),
        "snake_case" => separated(name, '_'),
        _ => name.to_owned(),
    }
}

fn separated(name: &str, separator: char) -> String {
    let mut text = String::new();
    for (at, letter) in name.char_indices() {
        if letter.is_uppercase() && at > 0 {
            text.push(separator);
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// Returns the regular plural of an English word, with the same rules as kube's derive.
pub(crate) fn plural(word: &str) -> String {
    if ["s", "x", "z", "ch", "sh"]
        .iter()
        .any(|end| word.ends_with(end))
    {
        return format!("{word}es");
    }
    match word.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{word}s"),
    }
}

/// Reports whether `text` is a DNS label, as versions and plural names must be.
pub(crate) fn is_dns_label(text: &str) -> bool {
    let is_inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    text.len() <= 63
        && text.starts_with(is_inner)
        && text.ends_with(is_inner)
        && text.chars().all(|letter| is_inner(letter) || letter == '-')
}

/// Reports whether `text` can be the group of a custom resource: DNS labels separated by dots.
pub(crate) fn is_group(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_label)
}

/// Reports whether `text` is a valid value of a label.
pub(crate) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name(text)
}

/// Reports whether `text` is a valid key of a label or annotation: a name, or a domain and a name
/// separated by a slash.
pub(crate) fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((domain, name)) => is_group(domain) && is_name(name),
        None => is_name(text),
    }
}

fn is_name(text: &str) -> bool {
    let is_end = |letter: char| letter.is_ascii_alphanumeric();
    let is_inner = |letter: char| is_end(letter) || matches!(letter, '-' | '_' | '.');
    text.len() <= 63
        && text.starts_with(is_end)
        && text.ends_with(is_end)
        && text.chars().all(is_inner)
}

/// Returns the name of a field in CEL expressions: reserved words and special characters are
/// escaped.
pub(crate) fn cel(field: &str) -> String {
    const RESERVED: [&str; 21] = [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "namespace",
        "null",
        "package",
        "return",
        "true",
        "var",
        "void",
        "while",
    ];
    if RESERVED.contains(&field) {
        return format!("__{field}__");
    }
    let escaped = field.replace("__", "__underscores__");
    let escaped = escaped.replace('.', "__dot__").replace('-', "__dash__");
    escaped.replace('/', "__slash__")
}

#[cfg(test)]
mod tests;
