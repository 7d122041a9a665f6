//! Text as Go formats it, for the messages of Kubernetes.

/// Formats a list of strings as Go does with `%q`: quoted, with spaces between them.
pub(crate) fn quoted_list(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", quoted.join(" "))
}
