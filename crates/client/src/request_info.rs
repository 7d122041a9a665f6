//! What a request asks for, read from its method, path and query: Kubernetes' `RequestInfo`.

use std::borrow::Cow;

use http::{Method, Request, Uri};
use opkit_apimachinery::identity::{IdentityError, ResourcePath};

/// A request in the words of RBAC.
///
/// # Examples
/// ```
/// use http::Method;
/// use opkit_client::RequestInfo;
///
/// let uri = "/apis/apps/v1/namespaces/shops/deployments/web/scale".parse().unwrap();
/// let info = RequestInfo::parse(&Method::PATCH, &uri);
/// assert_eq!(info.verb, "patch");
/// assert_eq!(info.resource(), "deployments.apps/scale");
/// assert_eq!((info.namespace.as_deref(), info.name.as_deref()), (Some("shops"), Some("web")));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestInfo {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`; the
    /// HTTP method in lower case where the path is none of a resource.
    pub verb: Cow<'static, str>,
    /// Whether the path leads to a resource.
    pub is_resource: bool,
    /// The API group; empty for the core group.
    pub group: String,
    /// The version within the group.
    pub version: String,
    /// The resource, such as `deployments`.
    pub plural: String,
    /// The subresource, such as `status`, with what follows it (`proxy/a/b`).
    pub subresource: Option<String>,
    /// The namespace. That of a request about a Namespace is the Namespace itself, as in
    /// Kubernetes.
    pub namespace: Option<String>,
    /// The object; none for the collection.
    pub name: Option<String>,
    /// The path.
    pub path: String,
    /// What stands before `/api` or `/apis`, for servers behind a proxy.
    prefix: String,
}

impl RequestInfo {
    /// What `request` asks for.
    pub fn of<B>(request: &Request<B>) -> Self {
        Self::parse(request.method(), request.uri())
    }

    /// What a method on a path asks for.
    pub fn parse(method: &Method, uri: &Uri) -> Self {
        let Some((prefix, resource)) = ResourcePath::find(uri.path()) else {
            return Self {
                verb: Cow::Owned(method.as_str().to_ascii_lowercase()),
                is_resource: false,
                group: String::new(),
                version: String::new(),
                plural: String::new(),
                subresource: None,
                namespace: None,
                name: None,
                path: uri.path().to_owned(),
                prefix: String::new(),
            };
        };
        let name = resource.name.map(Cow::into_owned);
        let of_namespace = || name.clone().filter(|_| resource.plural == "namespaces");
        let query = uri.query().unwrap_or_default();
        Self {
            verb: verb(method, name.is_some(), query),
            is_resource: true,
            group: resource.group.into_owned(),
            version: resource.version.into_owned(),
            subresource: resource.subresource.map(Cow::into_owned),
            namespace: match resource.namespace {
                Some(namespace) => Some(namespace.into_owned()),
                None => of_namespace(),
            },
            plural: resource.plural.into_owned(),
            name,
            path: uri.path().to_owned(),
            prefix,
        }
    }

    /// Returns the path of an object of the same collection.
    ///
    /// # Errors
    /// As [`ResourcePath::build`].
    pub(crate) fn object_path(&self, name: &str) -> Result<String, IdentityError> {
        let mut path = ResourcePath::new(&self.group, &self.version, &self.plural).name(name);
        let is_namespace = self.group.is_empty() && self.plural == "namespaces";
        if let Some(namespace) = self.namespace.as_deref().filter(|_| !is_namespace) {
            path = path.namespace(namespace);
        }
        Ok(format!("{}{}", self.prefix, path.build()?))
    }

    /// Whether it follows a collection.
    pub fn is_watch(&self) -> bool {
        self.verb == "watch"
    }

    /// Whether it changes something.
    pub fn is_write(&self) -> bool {
        !matches!(
            self.verb.as_ref(),
            "get" | "list" | "watch" | "head" | "options"
        )
    }

    /// Whether it is a write in form only: a dry run, or a review of access or tokens. `uri` is the
    /// request's.
    pub(crate) fn changes_nothing(&self, uri: &Uri) -> bool {
        let query = uri.query().unwrap_or_default();
        let dry_run = query.split('&').any(|pair| pair == "dryRun=All");
        let review = matches!(
            self.group.as_str(),
            "authentication.k8s.io" | "authorization.k8s.io"
        );
        dry_run || review
    }

    /// Whether a request may change something. `exec` and the like do, whatever their method.
    pub(crate) fn acts<B>(request: &Request<B>) -> bool {
        let info = Self::of(request);
        let subresource = info.subresource.as_deref().unwrap_or_default();
        let connects = matches!(
            subresource.split('/').next(),
            Some("exec" | "attach" | "portforward" | "proxy")
        );
        // The query of a deletion is not looked at if there is a body, which has options of its
        // own.
        let deletes = *request.method() == Method::DELETE;
        connects || deletes || info.is_write() && !info.changes_nothing(request.uri())
    }

    /// The resource as RBAC and kubectl write it: `deployments.apps/scale`.
    pub fn resource(&self) -> String {
        let mut resource = self.plural.clone();
        if !self.group.is_empty() {
            resource.push('.');
            resource.push_str(&self.group);
        }
        if let Some(subresource) = &self.subresource {
            resource.push('/');
            resource.push_str(subresource);
        }
        resource
    }
}

/// Returns the verb of RBAC for a method on a resource.
pub(crate) fn verb(method: &Method, named: bool, query: &str) -> Cow<'static, str> {
    let watches =
        |value: &str| value.is_empty() || value == "1" || value.eq_ignore_ascii_case("true");
    let watch = query.split('&').any(|pair| match pair.split_once('=') {
        Some(("watch", value)) => watches(value),
        _ => pair == "watch",
    });
    Cow::Borrowed(match *method {
        Method::GET | Method::HEAD if watch => "watch",
        Method::GET | Method::HEAD if named => "get",
        Method::GET | Method::HEAD => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        _ => return Cow::Owned(method.as_str().to_ascii_lowercase()),
    })
}

#[cfg(test)]
mod tests;
