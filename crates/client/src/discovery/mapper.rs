//! Mapping of names, as users type them, and of kinds, as manifests have them, to resources.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use opkit_apimachinery::identity::{GroupVersionKind, GroupVersionResource};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{ApiResource, Discovered, Discovery, DiscoveryError};

/// Maximum number of refreshes because of unknown names within [`REFRESH_WINDOW`], so that a wrong
/// name causes little load on the server.
const REFRESHES_MAX: usize = 5;
/// Period to which [`REFRESHES_MAX`] applies.
const REFRESH_WINDOW: Duration = Duration::from_secs(60);

/// Finds resources by kind, and by the names that kubectl accepts.
///
/// An unknown name causes a refresh of the discovery cache, since the resource may have been
/// installed in the meantime. There are at most five such refreshes per minute, so that a wrong
/// name causes little load on the server.
///
/// # Examples
/// ```
/// use opkit_client::{DiscoveryError, RestMapper};
///
/// async fn deployments(kube: kube::Client) -> Result<(), DiscoveryError> {
///     let mapper = RestMapper::new(kube);
///     let by_short_name = mapper.resource("deploy").await?;
///     assert_eq!(by_short_name, mapper.resource("deployments.v1.apps").await?);
///     assert_eq!(by_short_name, mapper.kind("apps", "Deployment", None).await?);
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct RestMapper {
    discovery: Discovery,
    refreshes: Arc<Mutex<VecDeque<Instant>>>,
}

impl RestMapper {
    /// Creates a mapper with its own discovery cache.
    pub fn new(kube: kube::Client) -> Self {
        Self::of(Discovery::new(kube))
    }

    /// Creates a mapper that uses a shared discovery cache.
    pub fn of(discovery: Discovery) -> Self {
        Self {
            discovery,
            refreshes: Arc::default(),
        }
    }

    /// Returns the discovery cache.
    pub fn discovery(&self) -> &Discovery {
        &self.discovery
    }

    /// Returns the resource with a name in the forms that kubectl accepts: plural, singular, short
    /// name or kind, alone (`deploy`), with the group (`deployments.apps`) or with version and
    /// group (`deployments.v1.apps`). Without a version, the preferred version is used.
    ///
    /// # Errors
    /// Returns [`DiscoveryError::NoMatch`] if there is no such resource, and
    /// [`DiscoveryError::Ambiguous`] if several groups have such a resource and none of the groups
    /// is a Kubernetes group.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn resource(&self, name: &str) -> Result<ApiResource, DiscoveryError> {
        self.find(name, |known| by_name(known, name)).await
    }

    /// Returns the resource of a kind. Without a version, the preferred version is used.
    ///
    /// # Errors
    /// Returns [`DiscoveryError::NoMatch`] if there is no such resource.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn kind(
        &self,
        group: &str,
        kind: &str,
        version: Option<&str>,
    ) -> Result<ApiResource, DiscoveryError> {
        let name = match (group, version) {
            ("", None) => kind.to_owned(),
            ("", Some(version)) => format!("{kind}.{version}"),
            (group, None) => format!("{kind}.{group}"),
            (group, Some(version)) => format!("{kind}.{version}.{group}"),
        };
        self.find(&name, |known| {
            let mut resources = known.resources.iter();
            let found = resources.find(|it| {
                it.group == group && it.kind == kind && version.is_none_or(|v| it.version == v)
            });
            found.cloned().ok_or_else(|| no_match(known, &name))
        })
        .await
    }

    /// Returns the resource of a kind in exactly the given version, such as the version in a
    /// manifest.
    ///
    /// # Errors
    /// Returns [`DiscoveryError::NoMatch`] if there is no such resource.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn of_kind(&self, kind: &GroupVersionKind) -> Result<ApiResource, DiscoveryError> {
        self.kind(&kind.group, &kind.kind, Some(&kind.version))
            .await
    }

    /// Returns the details of a resource, such as its kind.
    ///
    /// # Errors
    /// Returns [`DiscoveryError::NoMatch`] if there is no such resource.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn of_resource(
        &self,
        resource: &GroupVersionResource,
    ) -> Result<ApiResource, DiscoveryError> {
        let name = resource.to_string();
        self.find(&name, |known| {
            let (group, version) = (&resource.group, &resource.version);
            let found = known.resource(group, version, &resource.resource);
            found.cloned().ok_or_else(|| no_match(known, &name))
        })
        .await
    }

    /// Returns the resources for several names, separated by commas. A name may be a category, such
    /// as `all`. Names without a version select the preferred version.
    ///
    /// # Errors
    /// Same as [`resource`](RestMapper::resource).
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn resources(&self, names: &str) -> Result<Vec<ApiResource>, DiscoveryError> {
        let mut found: Vec<ApiResource> = Vec::new();
        for name in names.split(',').map(str::trim) {
            let some = self.find(name, |known| match category(known, name) {
                members if members.is_empty() => by_name(known, name).map(|it| vec![it]),
                members => Ok(members),
            });
            for resource in some.await? {
                if !found.contains(&resource) {
                    found.push(resource);
                }
            }
        }
        Ok(found)
    }

    async fn find<T>(
        &self,
        name: &str,
        lookup: impl Fn(&Discovered) -> Result<T, DiscoveryError>,
    ) -> Result<T, DiscoveryError> {
        let known = self.discovery.get().await?;
        match lookup(&known) {
            Err(error) if error.is_no_match() && self.count_refresh() => {
                tracing::debug!(name, "unknown resource, refreshing discovery");
                lookup(&*self.discovery.refresh().await?)
            }
            outcome => outcome,
        }
    }

    /// Counts a refresh that an unknown name causes. Returns `false` if no further refresh is
    /// allowed within [`REFRESH_WINDOW`].
    fn count_refresh(&self) -> bool {
        let now = Instant::now();
        let mut refreshes = self.refreshes.lock();
        while refreshes
            .front()
            .is_some_and(|then| now.duration_since(*then) >= REFRESH_WINDOW)
        {
            refreshes.pop_front();
        }
        let is_allowed = refreshes.len() < REFRESHES_MAX;
        if is_allowed {
            refreshes.push_back(now);
        }
        is_allowed
    }
}

fn no_match(known: &Discovered, name: &str) -> DiscoveryError {
    DiscoveryError::NoMatch {
        name: name.to_owned(),
        failures: known.failures.clone(),
    }
}

/// Returns the resources of a category, each only in its preferred version.
fn category(known: &Discovered, name: &str) -> Vec<ApiResource> {
    let mut found: Vec<ApiResource> = Vec::new();
    for resource in &known.resources {
        let belongs = resource.categories.iter().any(|it| it == name);
        let same = |it: &ApiResource| it.group == resource.group && it.plural == resource.plural;
        if belongs && !found.iter().any(same) {
            found.push(resource.clone());
        }
    }
    found
}

fn by_name(known: &Discovered, name: &str) -> Result<ApiResource, DiscoveryError> {
    // The part after the first dot is either a group, or a version and a group. The latter is tried
    // first: it matches rarely, and as a group the same text would start with the version.
    let readings = match name.split_once('.') {
        None => vec![(name, None, None)],
        Some((first, rest)) => {
            let (version, group) = rest.split_once('.').unwrap_or((rest, ""));
            vec![
                (first, Some(version), Some(group)),
                (first, None, Some(rest)),
            ]
        }
    };
    for (word, version, group) in readings {
        let matches = |it: &&ApiResource| {
            version.is_none_or(|version| it.version == version)
                && group.is_none_or(|group| it.group == group)
        };
        let candidates: Vec<&ApiResource> = known.resources.iter().filter(matches).collect();
        if let Some(found) = find_named(&candidates, word, name)? {
            return Ok(found);
        }
    }
    Err(no_match(known, name))
}

/// Returns the candidate with the name `word`. Full names take precedence over short names, and
/// Kubernetes groups over other groups.
///
/// # Errors
/// Returns [`DiscoveryError::Ambiguous`] if several groups match and none is a Kubernetes group.
/// The error contains `name`.
fn find_named(
    candidates: &[&ApiResource],
    word: &str,
    name: &str,
) -> Result<Option<ApiResource>, DiscoveryError> {
    let word = word.to_lowercase();
    let name_forms: [fn(&ApiResource, &str) -> bool; 4] = [
        |it, word| it.plural == word,
        |it, word| it.singular == word,
        |it, word| it.kind.to_lowercase() == word,
        |it, word| it.short_names.iter().any(|short| short == word),
    ];
    for matches in name_forms {
        let mut groups: Vec<&ApiResource> = Vec::new();
        for candidate in candidates.iter().filter(|it| matches(it, &word)) {
            if !groups.iter().any(|it| it.group == candidate.group) {
                groups.push(candidate);
            }
        }
        if groups.len() > 1
            && let Some(builtin) = groups.iter().position(|it| is_kubernetes_group(&it.group))
        {
            groups = vec![groups.swap_remove(builtin)];
        }
        match groups.as_slice() {
            [] => {}
            [only] => return Ok(Some((*only).clone())),
            several => {
                return Err(DiscoveryError::Ambiguous {
                    name: name.to_owned(),
                    candidates: several.iter().map(|it| it.qualified()).collect(),
                });
            }
        }
    }
    Ok(None)
}

/// Returns whether a group belongs to Kubernetes itself.
fn is_kubernetes_group(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

#[cfg(test)]
mod tests;
