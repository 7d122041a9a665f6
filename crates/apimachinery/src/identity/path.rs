//! Paths of resources: clients build paths, and servers parse them, by the same rules.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::{GroupVersion, IdentityError};

/// Characters that are written as `%XX` in a path segment: all but RFC 3986's `pchar`.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// Subresources of a Namespace. In a path, any other segment after the name of a Namespace is a
/// resource in this Namespace.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

/// Parts of the path of a resource: of a collection, of an object, or of a subresource of an
/// object.
///
/// [`build`](Self::build) writes the path and [`parse`](Self::parse) reads it; a built path parses
/// to the same value. `build` rejects a field that a server would parse as more than one segment or
/// as another field.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::identity::{GroupVersionResource, ResourcePath};
///
/// let pods = GroupVersionResource::new("", "v1", "pods");
/// assert_eq!(pods.path().build()?, "/api/v1/pods");
/// assert_eq!(pods.path().namespace("web").build()?, "/api/v1/namespaces/web/pods");
/// let log = pods.path().namespace("web").name("shop").subresource("log");
/// assert_eq!(log.build()?, "/api/v1/namespaces/web/pods/shop/log");
/// assert_eq!(ResourcePath::parse("/api/v1/namespaces/web/pods/shop/log"), Some(log));
///
/// let error = pods.path().namespace("web/secrets/x?").build().unwrap_err();
/// assert!(error.to_string().starts_with("the namespace \"web/secrets/x?\" "));
/// # Ok::<(), opkit_apimachinery::identity::IdentityError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResourcePath<'a> {
    /// The group; empty for the core group.
    pub group: Cow<'a, str>,
    /// The version, such as `v1`.
    pub version: Cow<'a, str>,
    /// The namespace. `None` selects all namespaces, and is used for cluster-scoped resources.
    pub namespace: Option<Cow<'a, str>>,
    /// The resource, such as `pods`.
    pub plural: Cow<'a, str>,
    /// Name of the object. `None` selects the collection.
    pub name: Option<Cow<'a, str>>,
    /// The subresource, such as `status`. A parsed subresource includes the rest of the path, as in
    /// `proxy/a/b`.
    pub subresource: Option<Cow<'a, str>>,
}

impl<'a> ResourcePath<'a> {
    /// Creates the path of all objects of a resource in all namespaces.
    pub fn new(group: &'a str, version: &'a str, plural: &'a str) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            namespace: None,
            plural: plural.into(),
            name: None,
            subresource: None,
        }
    }

    /// Sets the namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<Cow<'a, str>>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets the name of the object.
    #[must_use]
    pub fn name(mut self, name: impl Into<Cow<'a, str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the subresource of the object.
    #[must_use]
    pub fn subresource(mut self, subresource: impl Into<Cow<'a, str>>) -> Self {
        self.subresource = Some(subresource.into());
        self
    }

    /// Returns the path as sent in a request, with special characters percent-encoded.
    ///
    /// # Errors
    ///
    /// [`IdentityError::Segment`] with the name of the field, if a field is not a valid path
    /// segment (see [`segment_flaw`]), or if a server would parse the path as that of another
    /// resource.
    pub fn build(&self) -> Result<String, IdentityError> {
        self.check_reserved()?;
        let mut path = root(&self.group, &self.version)?;
        if let Some(namespace) = &self.namespace {
            path.push_str("/namespaces");
            push(&mut path, "namespace", namespace)?;
        }
        push(&mut path, "resource", &self.plural)?;
        if let Some(name) = &self.name {
            push(&mut path, "name", name)?;
        }
        if let Some(subresource) = &self.subresource {
            push(&mut path, "subresource", subresource)?;
        }
        Ok(path)
    }

    /// Returns an error if a field has another meaning at its position in the path, such as a
    /// resource named `watch`.
    fn check_reserved(&self) -> Result<(), IdentityError> {
        let subresource = self.subresource.as_deref();
        if subresource.is_some() && self.name.is_none() {
            return Err(invalid_segment("name", "", "is needed for a subresource"));
        }
        let plural = self.plural.as_ref();
        match &self.namespace {
            Some(_) if NAMESPACE_SUBRESOURCES.contains(&plural) => {
                let reason = "is a subresource of the namespace at this position";
                Err(invalid_segment("resource", plural, reason))
            }
            None if matches!(plural, "watch" | "proxy") => Err(invalid_segment(
                "resource",
                plural,
                "is a verb at this position",
            )),
            None if plural == "namespaces" => match subresource {
                Some(part) if !NAMESPACE_SUBRESOURCES.contains(&part) => {
                    let reason = "is a resource in the namespace at this position";
                    Err(invalid_segment("subresource", part, reason))
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Parses a path as Kubernetes' `RequestInfo` does: the path is percent-decoded and then split,
    /// and an empty namespace selects all namespaces. Returns `None` if the path is not that of a
    /// resource.
    pub fn parse(path: &str) -> Option<ResourcePath<'static>> {
        let path = percent_decode_str(path).decode_utf8_lossy();
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        from_segments(&segments)
    }

    /// Parses the path of a request to a server that may serve the API below a path prefix, as
    /// behind a proxy. Returns the prefix (empty, or starting with `/`) and the path of the
    /// resource.
    ///
    /// # Examples
    ///
    /// ```
    /// use opkit_apimachinery::identity::ResourcePath;
    ///
    /// let found = ResourcePath::find("/k8s/clusters/c-1/api/v1/pods");
    /// assert_eq!(found, Some(("/k8s/clusters/c-1".to_owned(), ResourcePath::new("", "v1", "pods"))));
    /// ```
    pub fn find(path: &str) -> Option<(String, ResourcePath<'static>)> {
        let path = percent_decode_str(path).decode_utf8_lossy();
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let is_root = |part: &&str| matches!(*part, "api" | "apis");
        let (before, from_root) = segments.split_at_checked(segments.iter().position(is_root)?)?;
        // The OpenAPI schemas of a group are below `/openapi`, at a path that contains the group's
        // own.
        if before.contains(&"openapi") {
            return None;
        }
        let mut prefix = String::new();
        for part in before {
            push_escaped(&mut prefix, part);
        }
        Some((prefix, from_segments(from_root)?))
    }
}

fn from_segments(segments: &[&str]) -> Option<ResourcePath<'static>> {
    let (group, version, rest) = match segments {
        ["api", version, rest @ ..] => ("", version, rest),
        ["apis", "", ..] => return None,
        ["apis", group, version, rest @ ..] => (*group, version, rest),
        _ => return None,
    };
    let (namespace, rest) = match rest {
        ["namespaces"] | ["namespaces", _] => (None, rest),
        ["namespaces", _, part, ..] if NAMESPACE_SUBRESOURCES.contains(part) => (None, rest),
        ["namespaces", namespace, rest @ ..] => (Some(*namespace), rest),
        _ => (None, rest),
    };
    let (plural, rest) = rest.split_first()?;
    let (name, rest) = match rest {
        [] => (None, rest),
        [name, rest @ ..] => (Some(*name), rest),
    };
    let owned = |text: &str| Cow::Owned(text.to_owned());
    Some(ResourcePath {
        group: owned(group),
        version: owned(version),
        namespace: namespace.filter(|it| !it.is_empty()).map(owned),
        plural: owned(plural),
        name: name.map(owned),
        subresource: (!rest.is_empty()).then(|| Cow::Owned(rest.join("/"))),
    })
}

impl GroupVersion {
    /// Returns the path at which the API serves the group and version: `/api/v1` or
    /// `/apis/apps/v1`.
    ///
    /// # Errors
    ///
    /// [`IdentityError::Segment`] if the group or the version is not a valid path segment.
    pub fn path(&self) -> Result<String, IdentityError> {
        root(&self.group, &self.version)
    }
}

fn root(group: &str, version: &str) -> Result<String, IdentityError> {
    let mut path = String::from("/api");
    if !group.is_empty() {
        path.push('s');
        push(&mut path, "group", group)?;
    }
    push(&mut path, "version", version)?;
    Ok(path)
}

/// Returns the rule of Kubernetes that a path segment violates, or `None` if the segment is valid.
/// A segment must not be empty, `.` or `..`, and must not contain `/` or `%`, because servers
/// decode a path before they split it.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::identity::segment_flaw;
///
/// assert_eq!(segment_flaw("system:node"), None);
/// assert_eq!(segment_flaw("a/b"), Some("may not contain '/'"));
/// ```
pub fn segment_flaw(text: &str) -> Option<&'static str> {
    match text {
        "" => Some("may not be empty"),
        "." => Some("may not be '.'"),
        ".." => Some("may not be '..'"),
        text if text.contains('/') => Some("may not contain '/'"),
        text if text.contains('%') => Some("may not contain '%'"),
        _ => None,
    }
}

/// Appends a segment to a path, or returns an error with the name `field` if `text` is not a valid
/// path segment.
fn push(path: &mut String, field: &'static str, text: &str) -> Result<(), IdentityError> {
    if let Some(flaw) = segment_flaw(text) {
        return Err(invalid_segment(field, text, flaw));
    }
    push_escaped(path, text);
    Ok(())
}

fn push_escaped(path: &mut String, text: &str) {
    path.push('/');
    path.extend(utf8_percent_encode(text, ESCAPED));
}

fn invalid_segment(field: &'static str, text: &str, reason: &'static str) -> IdentityError {
    IdentityError::Segment {
        field,
        text: text.to_owned(),
        reason,
    }
}

#[cfg(test)]
mod tests;
