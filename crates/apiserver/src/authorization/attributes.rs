//! The attributes of a request that authorization decides on, as Kubernetes derives them from the
//! method, the path and the query of the request.

use std::borrow::Cow;

use http::Method;
use opkit_apimachinery::identity::segment_flaw;
use opkit_apimachinery::selector::FieldSelector;
use percent_encoding::percent_decode_str;

use crate::query::Query;

/// Path segments that name a verb and are followed by the resource, in deprecated paths such as
/// `/api/v1/watch/pods`.
const VERBS_IN_PATHS: [&str; 2] = ["proxy", "watch"];

/// The attributes of a request. Fields that a request does not have are empty.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Attributes<'a> {
    pub(crate) verb: Cow<'a, str>,
    /// Whether the request is on a resource. Any other request has only a verb and a path.
    pub(crate) is_resource_request: bool,
    pub(crate) path: Cow<'a, str>,
    pub(crate) group: Cow<'a, str>,
    pub(crate) version: Cow<'a, str>,
    pub(crate) resource: Cow<'a, str>,
    pub(crate) subresource: Cow<'a, str>,
    pub(crate) namespace: Cow<'a, str>,
    pub(crate) name: Cow<'a, str>,
    /// Field selector of a list, watch or deletecollection, not parsed.
    pub(crate) field_selector: String,
    /// Label selector of a list, watch or deletecollection, not parsed.
    pub(crate) label_selector: String,
}

impl<'a> Attributes<'a> {
    /// Returns the attributes of a request for an object of a resource.
    pub(crate) fn of_resource(verb: &'a str, group: &'a str, resource: &'a str) -> Self {
        Self {
            verb: verb.into(),
            is_resource_request: true,
            group: group.into(),
            resource: resource.into(),
            ..Self::default()
        }
    }

    /// Sets the namespace.
    pub(crate) fn in_namespace(mut self, namespace: &'a str) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Sets the name of the object.
    pub(crate) fn named(mut self, name: &'a str) -> Self {
        self.name = name.into();
        self
    }

    /// Returns the attributes of an HTTP request.
    pub(crate) fn of_request(method: &Method, uri: &'a http::Uri) -> Self {
        let path = uri.path();
        // Kubernetes decodes the path before it splits the path.
        match path.contains('%') {
            false => Self::of_path(method, path, uri),
            true => {
                let decoded = percent_decode_str(path).decode_utf8_lossy();
                Self::of_path(method, &decoded, uri).into_owned()
            }
        }
    }

    fn of_path<'p>(method: &Method, path: &'p str, uri: &http::Uri) -> Attributes<'p> {
        let mut attributes = Attributes {
            verb: http_verb(method),
            path: path.into(),
            ..Attributes::default()
        };
        let parts: Vec<&str> = match path.trim_matches('/') {
            "" => Vec::new(),
            path => path.split('/').collect(),
        };
        let (group, version, parts) = match parts.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
            ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
            _ => return attributes,
        };
        attributes.is_resource_request = true;
        attributes.group = group.into();
        attributes.version = version.into();
        let (is_verb_in_path, parts) = match parts {
            [verb, rest @ ..] if VERBS_IN_PATHS.contains(verb) && !rest.is_empty() => {
                attributes.verb = Cow::Borrowed(*verb);
                (true, rest)
            }
            parts => {
                attributes.verb = resource_verb(method).into();
                (false, parts)
            }
        };
        let parts = match parts {
            ["namespaces", namespace, rest @ ..] => {
                attributes.namespace = Cow::Borrowed(*namespace);
                match rest {
                    // The namespace itself, or one of its subresources.
                    [] | ["status" | "finalize", ..] => parts,
                    rest => rest,
                }
            }
            parts => parts,
        };
        let part = |index: usize| parts.get(index).copied().unwrap_or_default();
        attributes.resource = part(0).into();
        attributes.name = part(1).into();
        if attributes.verb != "proxy" {
            attributes.subresource = part(2).into();
        }
        attributes.complete_collection(uri, is_verb_in_path);
        attributes
    }

    /// Sets the verb, the name and the selectors of a request on a collection.
    fn complete_collection(&mut self, uri: &http::Uri, is_verb_in_path: bool) {
        let query = || Query::parse(uri.query().unwrap_or_default());
        match (self.name.is_empty(), self.verb.as_ref()) {
            (true, "get") => {
                let query = query();
                let verb = if query.flag("watch") { "watch" } else { "list" };
                self.verb = verb.into();
                self.name = required_name(&query).unwrap_or_default().into();
            }
            (true, "delete") => self.verb = "deletecollection".into(),
            _ => {}
        }
        let has_selectors = matches!(self.verb.as_ref(), "list" | "watch" | "deletecollection");
        if !is_verb_in_path && has_selectors && uri.query().is_some() {
            let query = query();
            let text = |name: &str| query.get(name).unwrap_or_default().to_owned();
            self.field_selector = text("fieldSelector");
            self.label_selector = text("labelSelector");
        }
    }

    /// Returns a copy that borrows nothing.
    pub(crate) fn into_owned(self) -> Attributes<'static> {
        fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
            Cow::Owned(text.into_owned())
        }
        Attributes {
            verb: owned(self.verb),
            is_resource_request: self.is_resource_request,
            path: owned(self.path),
            group: owned(self.group),
            version: owned(self.version),
            resource: owned(self.resource),
            subresource: owned(self.subresource),
            namespace: owned(self.namespace),
            name: owned(self.name),
            field_selector: self.field_selector,
            label_selector: self.label_selector,
        }
    }

    /// Returns the resource with its subresource, such as `pods/log`.
    pub(crate) fn combined_resource(&self) -> Cow<'_, str> {
        match self.subresource.is_empty() {
            true => Cow::Borrowed(self.resource.as_ref()),
            false => Cow::Owned(format!("{}/{}", self.resource, self.subresource)),
        }
    }

    /// Returns the sentence with which Kubernetes describes a request that is denied.
    pub(crate) fn denial(&self, user: &str) -> String {
        let verb = &self.verb;
        if !self.is_resource_request {
            return format!("User {user:?} cannot {verb} path {:?}", self.path);
        }
        let resource = self.combined_resource();
        let group = &self.group;
        let scope = match self.namespace.as_ref() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        format!("User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {scope}")
    }
}

/// Returns the verb of a request that is not on a resource: the HTTP method in lower case.
fn http_verb(method: &Method) -> Cow<'static, str> {
    match *method {
        Method::GET => "get".into(),
        Method::POST => "post".into(),
        Method::PUT => "put".into(),
        Method::PATCH => "patch".into(),
        Method::DELETE => "delete".into(),
        Method::HEAD => "head".into(),
        Method::OPTIONS => "options".into(),
        _ => method.as_str().to_lowercase().into(),
    }
}

fn resource_verb(method: &Method) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::GET | Method::HEAD => "get",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    }
}

/// Returns the name that the field selector of a query requires, if the name is valid in a path.
fn required_name(query: &Query) -> Option<String> {
    let selector = FieldSelector::parse(query.get("fieldSelector")?).ok()?;
    let required = selector
        .requirements()
        .iter()
        .find(|requirement| requirement.field == "metadata.name" && requirement.equal)?;
    let name = required.value.as_str();
    (segment_flaw(name).is_none() && !name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests;
