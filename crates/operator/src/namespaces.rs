//! Which namespaces an operator watches.

use opkit_controller::Scope;

/// The namespaces that were asked for from outside, or else the operator's own choice, or else all.
/// Each is watched once, however often it is named; empty names are none.
pub(crate) fn scope(asked: &[String], own: &[String]) -> Scope {
    match chosen(asked, own) {
        names if names.is_empty() => Scope::All,
        names => Scope::Namespaces(names),
    }
}

/// As [`scope`]; none for all.
pub(crate) fn chosen(asked: &[String], own: &[String]) -> Vec<String> {
    let asked = names(asked);
    match asked.is_empty() {
        true => names(own),
        false => asked,
    }
}

fn names(given: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in given.iter().map(|name| name.trim()) {
        if !name.is_empty() && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests;
