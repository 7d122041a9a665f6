//! Rust names of types, fields and variants.

use std::collections::BTreeSet;

use crate::names;

/// Words that cannot be the name of a field.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Types that the generated code imports or that Rust has without an import.
const IMPORTED: &[&str] = &[
    "ByteString",
    "Copy",
    "IntOrString",
    "Send",
    "Sync",
    "Time",
    "Value",
];

/// Names of types that are in use.
#[derive(Clone, Debug, Default)]
pub(super) struct TypeNames {
    used: BTreeSet<String>,
}

impl TypeNames {
    /// Reserves a name. Returns false if it is in use, or hides a name that the code needs.
    pub(super) fn take(&mut self, name: &str) -> bool {
        let is_free = !names::is_taken(name) && !IMPORTED.contains(&name);
        is_free && self.used.insert(name.to_owned())
    }

    /// Reserves the first free name: one of the candidates, or the last one with a number.
    pub(super) fn first(&mut self, candidates: &[String]) -> String {
        if let Some(free) = candidates.iter().find(|name| self.take(name)) {
            return free.clone();
        }
        let last = candidates.last().map_or("Type", String::as_str);
        let mut names = (2_u32..).map(|number| format!("{last}{number}"));
        let free = names.find(|name| self.take(name));
        free.unwrap_or_else(|| last.to_owned())
    }
}

/// Returns a JSON name in the form of a Rust type: `IssuerRef` for `issuerRef`.
pub(super) fn pascal(name: &str) -> String {
    let mut pascal = String::new();
    let mut is_start = true;
    for letter in name.chars() {
        if !letter.is_ascii_alphanumeric() {
            is_start = true;
        } else if is_start {
            pascal.push(letter.to_ascii_uppercase());
            is_start = false;
        } else {
            pascal.push(letter);
        }
    }
    pascal
}

/// Returns the singular of the name of a list: `DnsName` for `DnsNames`.
pub(super) fn singular(name: &str) -> String {
    let stem = |end: &str| name.strip_suffix(end).filter(|stem| stem.len() > 1);
    if let Some(stem) = stem("ies") {
        return format!("{stem}y");
    }
    for end in ["sses", "xes", "ches", "shes"] {
        if stem(end).is_some() {
            return name
                .get(..name.len().saturating_sub(2))
                .unwrap_or(name)
                .to_owned();
        }
    }
    match stem("s").filter(|stem| !stem.ends_with(['s', 'u', 'i'])) {
        Some(stem) => stem.to_owned(),
        None => name.to_owned(),
    }
}

/// Returns the Rust name of a JSON field, which no other field of the struct has.
pub(super) fn field(json: &str, used: &mut BTreeSet<String>) -> String {
    let mut name = snake(json);
    if KEYWORDS.contains(&name.as_str()) {
        name.push('_');
    }
    let free = match used.contains(&name) {
        false => name,
        true => {
            let mut names = (2_u32..).map(|number| format!("{name}_{number}"));
            let free = names.find(|name| !used.contains(name));
            free.unwrap_or(name)
        }
    };
    used.insert(free.clone());
    free
}

/// Returns a JSON name in snake case. The plural of an acronym is one word: `cluster_ips` for
/// `clusterIPs`.
fn snake(json: &str) -> String {
    let mut words = String::new();
    for letter in json.chars() {
        match letter.is_ascii_alphanumeric() {
            true => words.push(letter),
            false => words.push('_'),
        }
    }
    let letters: Vec<char> = words.chars().collect();
    let is_upper = |at: usize| letters.get(at).is_some_and(char::is_ascii_uppercase);
    let mut joined = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1);
        // The last letter of an acronym before its plural `s`.
        let is_end = letters.get(at.saturating_add(1)) == Some(&'s')
            && !letters
                .get(at.saturating_add(2))
                .is_some_and(char::is_ascii_lowercase);
        match before.is_some_and(is_upper) && is_upper(at) && is_end {
            true => joined.push(letter.to_ascii_lowercase()),
            false => joined.push(*letter),
        }
    }
    let snake = names::snake(&joined);
    let mut name = String::new();
    for part in snake.split('_').filter(|part| !part.is_empty()) {
        if !name.is_empty() {
            name.push('_');
        }
        name.push_str(part);
    }
    match name.chars().next() {
        Some(first) if first.is_ascii_digit() => format!("_{name}"),
        Some(_) => name,
        None => "field".to_owned(),
    }
}

/// Returns the JSON name that the macro derives from the name of a field.
pub(super) fn json_of_field(name: &str) -> String {
    let mut json = String::new();
    let mut is_start = false;
    for letter in name.trim_matches('_').chars() {
        match letter {
            '_' => is_start = true,
            letter if is_start => {
                json.push(letter.to_ascii_uppercase());
                is_start = false;
            }
            letter => json.push(letter),
        }
    }
    json
}

/// Returns the name of the variant for a value of an enum.
pub(super) fn variant(value: &str, used: &mut BTreeSet<String>) -> String {
    let mut name = pascal(value);
    // An acronym in capital letters stays as it is only if nothing is lost in other cases.
    if name.is_empty() {
        name = match value.is_empty() {
            true => "Empty".to_owned(),
            false => "Value".to_owned(),
        };
    }
    if name.starts_with(|letter: char| letter.is_ascii_digit()) {
        name.insert(0, 'V');
    }
    if name == "Self" {
        name.push('_');
    }
    if used.contains(&name) {
        let mut names = (2_u32..).map(|number| format!("{name}{number}"));
        name = names.find(|name| !used.contains(name)).unwrap_or(name);
    }
    used.insert(name.clone());
    name
}

/// Cases of `rename_all`, in the order in which they are tried.
const CASES: [&str; 3] = ["lowercase", "camelCase", "kebab-case"];

/// Returns the case in which the names of all variants are the JSON values: an empty string if
/// they are equal.
pub(super) fn case(variants: &[(String, String)]) -> Option<&'static str> {
    let is = |case: &str| {
        variants
            .iter()
            .all(|(name, json)| in_case(name, case) == *json)
    };
    if is("") {
        return Some("");
    }
    CASES.into_iter().find(|case| is(case))
}

/// Returns the name of a variant in a case, as the macro does.
pub(super) fn in_case(name: &str, case: &str) -> String {
    let first_lower = |name: &str| {
        let mut letters = name.chars();
        let first = letters.next().map(|letter| letter.to_ascii_lowercase());
        first.into_iter().chain(letters).collect()
    };
    match case {
        "lowercase" => name.to_lowercase(),
        "camelCase" => first_lower(name),
        "kebab-case" => {
            let mut text = String::new();
            for (at, letter) in name.char_indices() {
                if letter.is_uppercase() && at > 0 {
                    text.push('-');
                }
                text.extend(letter.to_lowercase());
            }
            text
        }
        _ => name.to_owned(),
    }
}
