//! Kubernetes' order of API versions.

use std::cmp::Ordering;

/// Compares two versions by Kubernetes' order of preference. The greater version is preferred.
///
/// Stable versions are preferred over betas, betas over alphas, and higher numbers over lower ones.
/// Names in another format are preferred least; of two such names, the alphabetically first one is
/// preferred.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::identity::compare_versions;
///
/// let mut versions = ["foo", "v1alpha1", "v1beta2", "v2", "v1", "v1beta10", "bar"];
/// versions.sort_by(|left, right| compare_versions(right, left));
/// assert_eq!(versions, ["v2", "v1", "v1beta10", "v1beta2", "v1alpha1", "bar", "foo"]);
/// ```
pub fn compare_versions(left: &str, right: &str) -> Ordering {
    match (parse(left), parse(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => right.cmp(left),
    }
}

/// Parses a version such as `v2beta1` into its stability, its major number, and the number of the
/// alpha or beta.
fn parse(version: &str) -> Option<(Stability, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    if let Some(major) = number(rest) {
        return Some((Stability::Released, major, 0));
    }
    let stabilities = [("alpha", Stability::Alpha), ("beta", Stability::Beta)];
    stabilities.into_iter().find_map(|(word, stability)| {
        let (major, minor) = rest.split_once(word)?;
        Some((stability, number(major)?, number(minor)?))
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stability {
    Alpha,
    Beta,
    Released,
}

fn number(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}
