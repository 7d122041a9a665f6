//! The items of the queue: the key of an object to reconcile, and its cluster.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use foldhash::fast::RandomState;
use opkit_client::ObjectKey;

/// The key of an object to reconcile, with the name of the object's cluster if the operator has
/// several clusters. Cloning is cheap. Dereferences to the key.
///
/// # Examples
/// ```
/// # use opkit_controller as opkit;
/// use opkit::Request;
/// let request = Request::from(("shops", "web"));
/// assert_eq!(request.name, "web");
/// assert_eq!(request.cluster(), None);
/// assert_eq!(request.in_cluster("east").to_string(), "east://shops/web");
/// ```
#[derive(Clone)]
pub struct Request(Arc<Inner>);

#[derive(PartialEq, Eq)]
struct Inner {
    /// Hash of the key and the cluster. It is computed once, because a request is looked up several
    /// times.
    hash: u64,
    key: ObjectKey,
    cluster: Option<Arc<str>>,
}

/// Hasher shared by all requests, so that equal requests have equal hashes.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::default);

impl Request {
    pub(crate) fn new(cluster: Option<Arc<str>>, key: ObjectKey) -> Self {
        let hash = HASHER.hash_one((&key.namespace, &key.name, &cluster));
        Self(Arc::new(Inner { hash, key, cluster }))
    }

    /// Returns the key of the object.
    pub fn key(&self) -> &ObjectKey {
        &self.0.key
    }

    /// Returns the name of the cluster, or `None` for the cluster that the operator runs in.
    pub fn cluster(&self) -> Option<&str> {
        self.0.cluster.as_deref()
    }

    /// Returns a request for the same key in the named cluster.
    pub fn in_cluster(&self, cluster: &str) -> Self {
        Self::new(Some(cluster.into()), self.0.key.clone())
    }
}

impl PartialEq for Request {
    fn eq(&self, other: &Self) -> bool {
        // Most lookups compare clones of the same request.
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for Request {}

impl PartialOrd for Request {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Request {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let keys = self.0.key.cmp(&other.0.key);
        keys.then_with(|| self.0.cluster.cmp(&other.0.cluster))
    }
}

impl Hash for Request {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
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
        Self::new(None, key.into())
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
