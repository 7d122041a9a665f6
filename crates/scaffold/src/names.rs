//! Names of projects, groups, versions and kinds, and the Rust names that follow from them.

use crate::{Error, Result};

#[cfg(test)]
mod tests;

/// Names that the modules of a project use, and that a kind would hide.
const TAKEN: &[&str] = &[
    "Action",
    "Admission",
    "AdmissionRequest",
    "AnyController",
    "Arc",
    "BTreeMap",
    "Box",
    "Capability",
    "Cleanup",
    "Condition",
    "ConditionStatus",
    "Conditions",
    "Container",
    "Context",
    "ControlPlane",
    "Controller",
    "CustomResource",
    "Default",
    "Deployment",
    "DeploymentSpec",
    "Duration",
    "Err",
    "Error",
    "EventType",
    "From",
    "Into",
    "KubeSchema",
    "LabelSelector",
    "MapContext",
    "None",
    "Normal",
    "ObjectKey",
    "ObjectMeta",
    "Ok",
    "Operator",
    "Option",
    "PodSpec",
    "PodTemplateSpec",
    "PolicyRule",
    "Quantity",
    "QuantityExt",
    "Readiness",
    "Reference",
    "Request",
    "ResourceExt",
    "Result",
    "RunContext",
    "Runnable",
    "Selection",
    "Self",
    "Some",
    "StateContext",
    "String",
    "TypedClient",
    "Vec",
    "Warning",
    "Webhook",
    "WebhookContext",
];

/// Names that a module cannot have: keywords, files of a project, and crates.
const NO_MODULES: &[&str] = &[
    "abstract", "alloc", "as", "async", "await", "become", "box", "break", "const", "continue",
    "core", "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen",
    "if", "impl", "in", "lib", "let", "loop", "macro", "main", "match", "mod", "move", "mut",
    "opkit", "operator", "override", "priv", "pub", "ref", "return", "self", "static", "std",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];

/// Reports whether a type with this name would hide one that generated code uses.
pub(crate) fn is_taken(name: &str) -> bool {
    TAKEN.contains(&name)
}

/// Fails unless `kind` is a name that Kubernetes, Rust and the generated code accept.
pub(crate) fn check_kind(kind: &str) -> Result<()> {
    let is_valid = kind.starts_with(|c: char| c.is_ascii_uppercase())
        && kind.len() <= 63
        && kind.chars().all(|c| c.is_ascii_alphanumeric());
    if !is_valid {
        let reason =
            "a kind is letters and digits, and starts with an upper-case letter, such as Robot";
        return Err(Error::argument("--kind", kind, reason));
    }
    if TAKEN.contains(&kind) {
        let reason = "this is a name of opkit, Kubernetes or Rust that the project's code uses: choose another one";
        return Err(Error::argument("--kind", kind, reason));
    }
    Ok(())
}

/// Fails unless `version` is a version of Kubernetes, such as `v1alpha1`.
pub(crate) fn check_version(version: &str) -> Result<()> {
    match priority(version) {
        Some(_) => Ok(()),
        None => {
            let reason = "a version is v1, v1beta1, v2alpha3 and the like";
            Err(Error::argument("--version", version, reason))
        }
    }
}

/// Returns the rank of a version: a higher one is newer. Stable versions are above beta versions,
/// which are above alpha versions.
pub(crate) fn priority(version: &str) -> Option<(u8, u32, u32)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit());
    let (major, rest) = rest.split_at(digits.unwrap_or(rest.len()));
    let number = |text: &str| match text.starts_with('0') {
        true => None,
        false => text.parse::<u32>().ok(),
    };
    let major = number(major)?;
    if rest.is_empty() {
        return Some((2, major, 0));
    }
    for (stage, name) in [(1, "beta"), (0, "alpha")] {
        if let Some(minor) = rest.strip_prefix(name) {
            return Some((stage, major, number(minor)?));
        }
    }
    None
}

/// Returns the group of a kind: `robot.opkit.dev` for the group `robot` in the domain `opkit.dev`.
pub(crate) fn group(group: &str, domain: &str) -> Result<String> {
    let whole = match group {
        "" => domain.to_owned(),
        group if group == domain || group.ends_with(&format!(".{domain}")) => group.to_owned(),
        group => format!("{group}.{domain}"),
    };
    match is_subdomain(&whole) {
        true => Ok(whole),
        false => {
            let reason = "a group is lower-case letters, digits and `-`, separated by dots";
            Err(Error::argument("--group", group, reason))
        }
    }
}

/// Fails unless `domain` can end a group.
pub(crate) fn check_domain(domain: &str) -> Result<()> {
    match is_subdomain(domain) {
        true => Ok(()),
        false => {
            let reason = "a domain is lower-case letters, digits and `-`, separated by dots, such as example.com";
            Err(Error::argument("--domain", domain, reason))
        }
    }
}

/// Fails unless `plural` can be the name of a resource.
pub(crate) fn check_plural(plural: &str) -> Result<()> {
    match is_label(plural) {
        true => Ok(()),
        false => {
            let reason = "a plural is lower-case letters, digits and `-`, such as robots";
            Err(Error::argument("--plural", plural, reason))
        }
    }
}

/// Fails unless `name` can be the name of a project: of a package, and of objects of Kubernetes.
pub(crate) fn check_project(name: &str) -> Result<()> {
    let is_short = name.len() <= 50;
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
    let is_package = !NO_MODULES.contains(&name) && name != "test" && name != "opkit-cli";
    if is_label(name) && is_short && starts && is_package {
        return Ok(());
    }
    let reason = "a project is named by lower-case letters, digits and `-`, starts with a letter, \
                  has at most 50 characters, and is no word of Rust";
    Err(Error::argument("NAME", name, reason))
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

fn is_label(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= 63
        && text.starts_with(is_inner)
        && text.ends_with(is_inner)
        && text.chars().all(|c| is_inner(c) || c == '-')
}

/// Returns the kind that a project's name suggests: `Robot` for `robot-operator`.
pub(crate) fn kind_of_project(name: &str) -> String {
    let stem = ["-operator", "-controller"]
        .iter()
        .find_map(|end| name.strip_suffix(end));
    let words = stem.unwrap_or(name).split('-');
    words
        .map(|word| {
            let mut letters = word.chars();
            let first = letters.next().map(|c| c.to_ascii_uppercase());
            first.into_iter().chain(letters).collect::<String>()
        })
        .collect()
}

/// Returns the name of a kind as words in snake case: `http_route` for `HTTPRoute`.
pub(crate) fn snake(kind: &str) -> String {
    let letters: Vec<char> = kind.chars().collect();
    let mut snake = String::new();
    for (index, letter) in letters.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|it| letters.get(it));
        let is_after_lower = before.is_some_and(|it| !it.is_ascii_uppercase());
        let is_before_lower = letters
            .get(index + 1)
            .is_some_and(|it| it.is_ascii_lowercase());
        if letter.is_ascii_uppercase() && index > 0 && (is_after_lower || is_before_lower) {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// Returns the module of a kind: its name in snake case, unless a module cannot have it.
pub(crate) fn module(kind: &str) -> String {
    let name = snake(kind);
    match NO_MODULES.contains(&name.as_str()) {
        true => format!("{name}_kind"),
        false => name,
    }
}

/// Returns the variable for an object of a kind. Long names would make lines too long.
pub(crate) fn variable(kind: &str) -> String {
    let name = module(kind);
    let is_taken = [
        "cx",
        "status",
        "deployment",
        "labels",
        "container",
        "plane",
        "spec",
    ];
    match name.len() <= 14 && !is_taken.contains(&name.as_str()) {
        true => name,
        false => "object".to_owned(),
    }
}

/// Returns a name of a kind in a sentence: `http route`.
pub(crate) fn words(kind: &str) -> String {
    snake(kind).replace('_', " ")
}

/// Fails unless `kind` can be the name of a type that another crate defines.
pub(crate) fn check_kind_name(kind: &str) -> Result<()> {
    let is_valid = kind.starts_with(|c: char| c.is_ascii_uppercase())
        && kind.chars().all(|c| c.is_ascii_alphanumeric());
    match is_valid {
        true => Ok(()),
        false => {
            let reason =
                "a kind is letters and digits, and starts with an upper-case letter, such as Robot";
            Err(Error::argument("--kind", kind, reason))
        }
    }
}
