//! Verb, resource and object of a request, parsed from its method, path and query, like Kubernetes'
//! `RequestInfo`.

use std::borrow::Cow;

use http::{Method, Request, Uri};
use opkit_apimachinery::identity::IdentityError;
use opkit_apimachinery::identity::ResourcePath;

/// Verb, resource and object of a request, in the terms of RBAC rules.
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
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`. If the
    /// path does not belong to a resource, the HTTP method in lower case.
    pub verb: Cow<'static, str>,
    /// Whether the path belongs to a resource, unlike a path such as `/version`.
    pub is_resource: bool,
    /// API group; empty for the core group.
    pub group: String,
    /// Version of the group.
    pub version: String,
    /// Plural name of the resource, such as `deployments`.
    pub plural: String,
    /// Subresource with the rest of the path, such as `status` or `proxy/a/b`.
    pub subresource: Option<String>,
    /// Namespace of the object. For a request about a Namespace, the name of the Namespace, as in
    /// Kubernetes.
    pub namespace: Option<String>,
    /// Name of the object; `None` for a request about the collection.
    pub name: Option<String>,
    /// Path of the request's URI.
    pub path: String,
    /// Part of the path before `/api` or `/apis`, for servers behind a proxy.
    prefix: String,
}

impl RequestInfo {
    /// Parses the method and URI of `request`.
    pub fn of<B>(request: &Request<B>) -> Self {
        Self::parse(request.method(), request.uri())
    }

    /// Parses a method and a URI.
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

    /// Returns the path of the object `name` in the collection of this request.
    ///
    /// # Errors
    /// Same as [`ResourcePath::build`].
    pub(crate) fn object_path(&self, name: &str) -> Result<String, IdentityError> {
        let mut path = ResourcePath::new(&self.group, &self.version, &self.plural).name(name);
        let is_namespace = self.group.is_empty() && self.plural == "namespaces";
        if let Some(namespace) = self.namespace.as_deref().filter(|_| !is_namespace) {
            path = path.namespace(namespace);
        }
        Ok(format!("{}{}", self.prefix, path.build()?))
    }

    /// Returns whether the request is a watch.
    pub fn is_watch(&self) -> bool {
        self.verb == "watch"
    }

    /// Returns whether the verb is a write. Includes dry runs and reviews.
    pub fn is_write(&self) -> bool {
        !matches!(
            self.verb.as_ref(),
            "get" | "list" | "watch" | "head" | "options"
        )
    }

    /// Returns whether the request is a dry run, or a review of access or tokens. Both change
    /// nothing even if the verb is a write. `uri` is the request's URI.
    pub(crate) fn is_dry_run_or_review(&self, uri: &Uri) -> bool {
        let query = uri.query().unwrap_or_default();
        let dry_run = query.split('&').any(|pair| pair == "dryRun=All");
        let review = matches!(
            self.group.as_str(),
            "authentication.k8s.io" | "authorization.k8s.io"
        );
        dry_run || review
    }

    /// Returns whether a request may change something. `exec`, `attach`, `portforward` and `proxy`
    /// may change something with any method.
    pub(crate) fn may_change<B>(request: &Request<B>) -> bool {
        let info = Self::of(request);
        let subresource = info.subresource.as_deref().unwrap_or_default();
        let connects = matches!(
            subresource.split('/').next(),
            Some("exec" | "attach" | "portforward" | "proxy")
        );
        // The server ignores the query of a deletion, and so its `dryRun`, if there is a body with
        // options.
        let deletes = *request.method() == Method::DELETE;
        connects || deletes || info.is_write() && !info.is_dry_run_or_review(request.uri())
    }

    /// Returns the resource in the notation of RBAC and kubectl, such as `deployments.apps/scale`.
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

/// Returns the RBAC verb for a method on a resource. `named` is whether the path names an object.
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
