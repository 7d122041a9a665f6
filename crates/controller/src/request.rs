//! What is queued: which object to reconcile, and in which cluster.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use opkit_client::ObjectKey;

/// An object to reconcile: its key, and the name of its cluster where an operator has several.
/// Cloning is cheap; it dereferences to the key.
///
/// # Examples
/// ```
/// use opkit_controller::Request;
/// let request = Request::from(("shops", "web"));
/// assert_eq!(request.name, "web");
/// assert_eq!(request.cluster(), None);
/// assert_eq!(request.in_cluster("east").to_string(), "east://shops/web");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Request(Arc<Inner>);

#[derive(PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Inner {
    key: ObjectKey,
    cluster: Option<Arc<str>>,
}

impl Request {
    pub(crate) fn new(cluster: Option<Arc<str>>, key: ObjectKey) -> Self {
        Request(Arc::new(Inner { key, cluster }))
    }

    /// The object.
    pub fn key(&self) -> &ObjectKey {
        &self.0.key
    }

    /// The name of the cluster; none for the one that the operator runs in.
    pub fn cluster(&self) -> Option<&str> {
        self.0.cluster.as_deref()
    }

    /// The same key in the cluster of this name.
    pub fn in_cluster(&self, cluster: &str) -> Self {
        Request::new(Some(cluster.into()), self.0.key.clone())
    }
}

impl Deref for Request {
    type Target = ObjectKey;

    fn deref(&self) -> &ObjectKey {
        &self.0.key
    }
}

impl<K: Into<ObjectKey>> From<K> for Request {
    fn from(key: K) -> Self {
        Request::new(None, key.into())
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cluster() {
            Some(cluster) => write!(f, "{cluster}://{}", self.0.key),
            None => self.0.key.fmt(f),
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({self})")
    }
}
