//! Names to resources: what a user types, and what a manifest says.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use opkit_apimachinery::identity::{GroupVersionKind, GroupVersionResource};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{ApiResource, Discovered, Discovery, DiscoveryError};

/// How often a miss may ask the server again: so many times within so long.
const REFRESHES_MAX: usize = 5;
const WITHIN: Duration = Duration::from_secs(60);

/// Finds resources by kind, and by the names that kubectl takes.
///
/// A name that is not known asks the server again, for it may have been installed since; not more
/// than five times a minute, so that a wrong name costs the server little.
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
    /// With a memory of its own.
    pub fn new(kube: kube::Client) -> Self {
        Self::of(Discovery::new(kube))
    }

    /// Over a memory that others use as well.
    pub fn of(discovery: Discovery) -> Self {
        Self {
            discovery,
            refreshes: Arc::default(),
        }
    }

    /// What it knows from.
    pub fn discovery(&self) -> &Discovery {
        &self.discovery
    }

    /// The resource of a name as kubectl takes it: plural, singular, short name or kind, alone
    /// (`deploy`), with the group (`deployments.apps`) or with version and group
    /// (`deployments.v1.apps`). Where the version is not named, it is the preferred one.
    ///
    /// # Errors
    /// [`DiscoveryError::NoMatch`], and [`DiscoveryError::Ambiguous`] if several groups that are
    /// not Kubernetes' own have it.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn resource(&self, name: &str) -> Result<ApiResource, DiscoveryError> {
        self.find(name, |known| by_name(known, name)).await
    }

    /// The resource of a group's kind, in a version or in the preferred one.
    ///
    /// # Errors
    /// [`DiscoveryError::NoMatch`].
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

    /// The resource of a kind in exactly its version, such as that of a manifest.
    ///
    /// # Errors
    /// [`DiscoveryError::NoMatch`].
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn of_kind(&self, kind: &GroupVersionKind) -> Result<ApiResource, DiscoveryError> {
        self.kind(&kind.group, &kind.kind, Some(&kind.version))
            .await
    }

    /// What is served as a resource, its kind included.
    ///
    /// # Errors
    /// [`DiscoveryError::NoMatch`].
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

    /// The resources of a name that may be a category, such as `all`, or several names behind
    /// commas; each in its preferred version.
    ///
    /// # Errors
    /// As [`resource`](RestMapper::resource).
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
        look: impl Fn(&Discovered) -> Result<T, DiscoveryError>,
    ) -> Result<T, DiscoveryError> {
        let known = self.discovery.get().await?;
        match look(&known) {
            Err(error) if error.is_no_match() && self.may_refresh() => {
                tracing::debug!(name, "resource is not known; the API server is asked again");
                look(&*self.discovery.refresh().await?)
            }
            outcome => outcome,
        }
    }

    /// Whether a miss may ask the server now; counts it if so.
    fn may_refresh(&self) -> bool {
        let now = Instant::now();
        let mut refreshes = self.refreshes.lock();
        while refreshes
            .front()
            .is_some_and(|then| now.duration_since(*then) >= WITHIN)
        {
            refreshes.pop_front();
        }
        let free = refreshes.len() < REFRESHES_MAX;
        if free {
            refreshes.push_back(now);
        }
        free
    }
}

fn no_match(known: &Discovered, name: &str) -> DiscoveryError {
    DiscoveryError::NoMatch {
        name: name.to_owned(),
        failures: known.failures.clone(),
    }
}

/// The members of a category, each once, in the version that comes first.
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
    // A dot may begin a group, or a version and then a group: the longer reading is the rarer one,
    // and the group of the shorter reading would begin with the version.
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
        let fits = |it: &&ApiResource| {
            version.is_none_or(|version| it.version == version)
                && group.is_none_or(|group| it.group == group)
        };
        let candidates: Vec<&ApiResource> = known.resources.iter().filter(fits).collect();
        if let Some(found) = named(&candidates, word, name)? {
            return Ok(found);
        }
    }
    Err(no_match(known, name))
}

/// The candidate that a word names. A full name goes before a short one, a group of Kubernetes'
/// own before others; among those of others the user has to choose.
fn named(
    candidates: &[&ApiResource],
    word: &str,
    name: &str,
) -> Result<Option<ApiResource>, DiscoveryError> {
    let word = word.to_lowercase();
    let kinds: [fn(&ApiResource, &str) -> bool; 4] = [
        |it, word| it.plural == word,
        |it, word| it.singular == word,
        |it, word| it.kind.to_lowercase() == word,
        |it, word| it.short_names.iter().any(|short| short == word),
    ];
    for is in kinds {
        let mut groups: Vec<&ApiResource> = Vec::new();
        for candidate in candidates.iter().filter(|it| is(it, &word)) {
            if !groups.iter().any(|it| it.group == candidate.group) {
                groups.push(candidate);
            }
        }
        if groups.len() > 1
            && let Some(own) = groups.iter().position(|it| is_own(&it.group))
        {
            groups = vec![groups.swap_remove(own)];
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

/// Whether a group is Kubernetes' own.
fn is_own(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

#[cfg(test)]
mod tests;
