//! Guesses the resource of a kind without discovery.

/// Returns the resource that most likely serves a kind, as Kubernetes guesses it: the kind in lower
/// case, in a simple English plural.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::identity::guess_plural;
///
/// assert_eq!(guess_plural("Deployment"), "deployments");
/// assert_eq!(guess_plural("NetworkPolicy"), "networkpolicies");
/// assert_eq!(guess_plural("Ingress"), "ingresses");
/// assert_eq!(guess_plural("Endpoints"), "endpoints");
/// ```
pub fn guess_plural(kind: &str) -> String {
    let singular = kind.to_lowercase();
    if singular.is_empty() || singular.ends_with("endpoints") {
        return singular;
    }
    if singular.ends_with('s') {
        return singular + "es";
    }
    match singular.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => singular + "s",
    }
}
