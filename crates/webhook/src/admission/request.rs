//! The request that an admission webhook decides about.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use k8s_openapi::api::authentication::v1::UserInfo;
use opkit_client::{GroupVersionKind, GroupVersionResource};
use serde::Deserialize;

/// Operation of an admission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// The object is created.
    Create,
    /// The object is changed, by an update, a patch or an apply.
    Update,
    /// The object is deleted.
    Delete,
    /// A client connects to a subresource, such as `exec` of a Pod.
    Connect,
}

impl Operation {
    /// Returns the name of the operation in the rules of a webhook, such as `CREATE`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Everything about an admission request but its objects.
#[derive(Debug, Clone)]
pub(crate) struct Attributes {
    pub(crate) uid: String,
    pub(crate) operation: Operation,
    pub(crate) kind: GroupVersionKind,
    pub(crate) resource: GroupVersionResource,
    pub(crate) subresource: String,
    pub(crate) request_kind: Option<GroupVersionKind>,
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) user: UserInfo,
    pub(crate) is_dry_run: bool,
    /// Options of the request, as JSON.
    pub(crate) options: Option<Bytes>,
}

/// Request to create, change or delete an object, as an admission webhook gets it.
///
/// In a unit test, [`create`](Self::create), [`update`](Self::update) and [`delete`](Self::delete)
/// return a request without a server.
///
/// # Examples
/// ```
/// # use opkit_webhook as opkit;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit::{Admission, AdmissionRequest};
///
/// fn check(request: &AdmissionRequest<ConfigMap>) -> Admission {
///     let is_allowed = request.namespace() != "kube-system";
///     Admission::allowed_if(is_allowed, "this namespace is not for you")
/// }
/// let mut map = ConfigMap::default();
/// map.metadata.namespace = Some("kube-system".to_owned());
/// assert!(!check(&AdmissionRequest::create(map)).is_allowed());
/// ```
#[derive(Debug, Clone)]
pub struct AdmissionRequest<K> {
    pub(crate) attributes: Arc<Attributes>,
    pub(crate) object: K,
    pub(crate) old: Option<K>,
}

impl<K> AdmissionRequest<K> {
    /// Returns the object as it will be after the request. For a deletion, the object that is
    /// deleted.
    pub fn object(&self) -> &K {
        &self.object
    }

    /// Returns the object, and drops the rest of the request.
    pub fn into_object(self) -> K {
        self.object
    }

    /// Returns the object before an update, and `None` for other operations.
    pub fn old(&self) -> Option<&K> {
        self.old.as_ref()
    }

    /// Returns the operation.
    pub fn operation(&self) -> Operation {
        self.attributes.operation
    }

    /// Returns the name of the object. It is empty if the API server will generate the name.
    pub fn name(&self) -> &str {
        &self.attributes.name
    }

    /// Returns the namespace of the object. It is empty for a cluster-scoped object.
    pub fn namespace(&self) -> &str {
        &self.attributes.namespace
    }

    /// Returns the user who sent the request to the API server.
    pub fn user(&self) -> &UserInfo {
        &self.attributes.user
    }

    /// Reports whether the request is a dry run, which stores nothing.
    pub fn is_dry_run(&self) -> bool {
        self.attributes.is_dry_run
    }

    /// Returns the subresource of the request, such as `status`. It is empty for the object itself.
    pub fn subresource(&self) -> &str {
        &self.attributes.subresource
    }

    /// Returns the UID of the request, which is not the UID of the object.
    pub fn uid(&self) -> &str {
        &self.attributes.uid
    }

    /// Returns the kind of the objects in the request.
    pub fn kind(&self) -> &GroupVersionKind {
        &self.attributes.kind
    }

    /// Returns the resource of the request.
    pub fn resource(&self) -> &GroupVersionResource {
        &self.attributes.resource
    }

    /// Returns the kind in the version that the client sent, before the API server converted the
    /// objects to the version of the webhook.
    pub fn request_kind(&self) -> &GroupVersionKind {
        let attributes = &self.attributes;
        attributes.request_kind.as_ref().unwrap_or(&attributes.kind)
    }

    /// Returns the options of the request, such as `CreateOptions`, as JSON, or `None` if the
    /// request has none.
    pub fn options(&self) -> Option<&[u8]> {
        self.attributes.options.as_deref()
    }
}

impl<K: kube::Resource<DynamicType = ()>> AdmissionRequest<K> {
    /// Creates a request that creates `object`, for a test.
    pub fn create(object: K) -> Self {
        Self::of(Operation::Create, object, None)
    }

    /// Creates a request that changes `old` to `object`, for a test.
    pub fn update(object: K, old: K) -> Self {
        Self::of(Operation::Update, object, Some(old))
    }

    /// Creates a request that deletes `object`, for a test.
    pub fn delete(object: K) -> Self {
        Self::of(Operation::Delete, object, None)
    }

    fn of(operation: Operation, object: K, old: Option<K>) -> Self {
        let (group, version) = (K::group(&()), K::version(&()));
        let meta = object.meta();
        let attributes = Attributes {
            uid: "00000000-0000-0000-0000-000000000000".to_owned(),
            operation,
            kind: GroupVersionKind::new(&*group, &*version, &*K::kind(&())),
            resource: GroupVersionResource::new(&*group, &*version, &*K::plural(&())),
            subresource: String::new(),
            request_kind: None,
            name: meta.name.clone().unwrap_or_default(),
            namespace: meta.namespace.clone().unwrap_or_default(),
            user: UserInfo::default(),
            is_dry_run: false,
            options: None,
        };
        Self {
            attributes: Arc::new(attributes),
            object,
            old,
        }
    }

    /// Returns the request with another user, for a test.
    pub fn by(mut self, user: UserInfo) -> Self {
        Arc::make_mut(&mut self.attributes).user = user;
        self
    }

    /// Returns the request as a dry run, for a test.
    pub fn dry_run(mut self) -> Self {
        Arc::make_mut(&mut self.attributes).is_dry_run = true;
        self
    }
}
