//! The path of a resource.

use std::fmt;

use super::GroupVersionResource;

/// Where a resource is served: a collection, an object of it, or a part of an object.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::identity::GroupVersionResource;
///
/// let pods = GroupVersionResource::new("", "v1", "pods");
/// assert_eq!(pods.path().to_string(), "/api/v1/pods");
/// assert_eq!(pods.path().namespace("web").to_string(), "/api/v1/namespaces/web/pods");
/// let log = pods.path().namespace("web").name("shop").subresource("log");
/// assert_eq!(log.to_string(), "/api/v1/namespaces/web/pods/shop/log");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourcePath<'a> {
    resource: &'a GroupVersionResource,
    namespace: &'a str,
    name: &'a str,
    subresource: &'a str,
}

impl<'a> ResourcePath<'a> {
    pub(super) fn new(resource: &'a GroupVersionResource) -> Self {
        Self {
            resource,
            namespace: "",
            name: "",
            subresource: "",
        }
    }

    /// In one namespace; an empty one means all, or a resource that is in none.
    #[must_use]
    pub fn namespace(self, namespace: &'a str) -> Self {
        Self { namespace, ..self }
    }

    /// One object.
    #[must_use]
    pub fn name(self, name: &'a str) -> Self {
        Self { name, ..self }
    }

    /// A part of the object, such as `status`. It is not in the path while there is no name.
    #[must_use]
    pub fn subresource(self, subresource: &'a str) -> Self {
        Self {
            subresource,
            ..self
        }
    }
}

impl fmt::Display for ResourcePath<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.resource.group_version().path())?;
        if !self.namespace.is_empty() {
            out.write_str("/namespaces")?;
            segment(out, self.namespace)?;
        }
        segment(out, &self.resource.resource)?;
        if !self.name.is_empty() {
            segment(out, self.name)?;
            // A subresource may have a path of its own behind it, as `proxy` has.
            for part in self.subresource.split('/').filter(|part| !part.is_empty()) {
                segment(out, part)?;
            }
        }
        Ok(())
    }
}

/// A part of a path. Names that Kubernetes takes need no escape; others must not be able to
/// reach another resource.
fn segment(out: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    out.write_str("/")?;
    if text == "." || text == ".." {
        return out.write_str(&text.replace('.', "%2E"));
    }
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte) {
            write!(out, "{}", char::from(byte))?;
        } else {
            write!(out, "%{byte:02X}")?;
        }
    }
    Ok(())
}
