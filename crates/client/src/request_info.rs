//! What a request asks for, read from its method, path and query: Kubernetes' `RequestInfo`.

use std::borrow::Cow;

use http::{Method, Request, Uri};

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
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`; the HTTP
    /// method in lower case where the path is none of a resource.
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
    /// The namespace. That of a request about a Namespace is the Namespace itself, as in Kubernetes.
    pub namespace: Option<String>,
    /// The object; none for the collection.
    pub name: Option<String>,
    /// The path.
    pub path: String,
}

impl RequestInfo {
    /// What `request` asks for.
    pub fn of<B>(request: &Request<B>) -> Self {
        RequestInfo::parse(request.method(), request.uri())
    }

    /// What a method on a path asks for.
    pub fn parse(method: &Method, uri: &Uri) -> Self {
        let path = uri.path();
        let mut info = RequestInfo {
            verb: Cow::Owned(method.as_str().to_ascii_lowercase()),
            is_resource: false,
            group: String::new(),
            version: String::new(),
            plural: String::new(),
            subresource: None,
            namespace: None,
            name: None,
            path: path.to_owned(),
        };
        // A server may live below a path of its own, as those behind a proxy do.
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let root = parts
            .iter()
            .position(|part| *part == "api" || *part == "apis");
        // Here the schemas of a group are at the group's path.
        let root = root.filter(|root| !parts.iter().take(*root).any(|part| *part == "openapi"));
        let mut parts = parts.into_iter().skip(root.unwrap_or(usize::MAX));
        match parts.next() {
            Some("api") => {}
            Some("apis") => info.group = parts.next().unwrap_or_default().to_owned(),
            _ => return info,
        }
        info.version = parts.next().unwrap_or_default().to_owned();
        let rest: Vec<String> = parts.map(decoded).collect();
        let mut rest = rest.iter().map(String::as_str).peekable();
        let Some(mut resource) = rest.next() else {
            return info;
        };
        info.is_resource = true;
        if resource == "namespaces"
            && let Some(namespace) = rest.next()
        {
            info.namespace = Some(namespace.to_owned());
            match rest.peek() {
                // These belong to the Namespace itself.
                None | Some(&"status" | &"finalize") => {
                    info.name = Some(namespace.to_owned());
                }
                Some(_) => {
                    resource = rest.next().unwrap_or_default();
                    info.name = rest.next().map(str::to_owned);
                }
            }
        } else {
            info.name = rest.next().map(str::to_owned);
        }
        info.plural = resource.to_owned();
        let subresource: Vec<&str> = rest.collect();
        if !subresource.is_empty() {
            info.subresource = Some(subresource.join("/"));
        }
        info.verb = verb(method, info.name.is_some(), uri.query().unwrap_or_default());
        info
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

fn verb(method: &Method, named: bool, query: &str) -> Cow<'static, str> {
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

fn decoded(part: &str) -> String {
    percent_encoding::percent_decode_str(part)
        .decode_utf8_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests;
