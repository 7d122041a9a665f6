//! From a kind to its resource, without asking anybody.

/// The resource that most likely serves a kind, as Kubernetes itself guesses it: lower case, and
/// an English plural of the simplest sort.
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
