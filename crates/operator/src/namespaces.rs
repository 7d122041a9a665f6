//! Namespaces that an operator watches.

use opkit_controller::Scope;

/// Returns the namespaces to watch: `asked` (from flags or options) if it is not empty, otherwise
/// `own` (from the operator's declaration), otherwise all namespaces. Duplicates and empty names
/// are dropped.
pub(crate) fn scope(asked: &[String], own: &[String]) -> Scope {
    match chosen(asked, own) {
        names if names.is_empty() => Scope::All,
        names => Scope::Namespaces(names),
    }
}

/// Returns the namespaces to watch as a list, which is empty for all namespaces; see [`scope`].
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
