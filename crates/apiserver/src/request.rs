//! What a request asks for, read from its path and query.

use std::borrow::Cow;

/// The query parameters of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = form_urlencoded::parse(text.as_bytes());
        Self(
            pairs
                .map(|(k, v)| (k.into_owned(), v.into_owned()))
                .collect(),
        )
    }

    /// The last value given for `name`; an empty one counts as not given.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.iter().rev().find(|(key, _)| key == name)?;
        Some(value.1.as_str()).filter(|value| !value.is_empty())
    }

    /// Whether `name` is given as Kubernetes reads a boolean: whatever does not deny it.
    pub(crate) fn flag(&self, name: &str) -> bool {
        let value = self.0.iter().rev().find(|(key, _)| key == name);
        value.is_some_and(|(_, value)| !matches!(value.to_lowercase().as_str(), "false" | "0"))
    }
}

/// The address of a resource, an object or a subresource.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) plural: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

impl ResourcePath {
    /// Reads the segments of a path; `None` when it is no resource's.
    pub(crate) fn parse(segments: &[&str]) -> Option<Self> {
        let (group, version, rest) = match segments {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            // A namespace itself and its subresources.
            ["namespaces"] | ["namespaces", _] => (None, rest),
            ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, rest @ ..] => (Some(decode(namespace)), rest),
            _ => (None, rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (plural, None, None),
            [plural, name] => (plural, Some(decode(name)), None),
            [plural, name, subresource] => (plural, Some(decode(name)), Some(decode(subresource))),
            _ => return None,
        };
        Some(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace,
            plural: (*plural).to_owned(),
            name,
            subresource,
        })
    }
}

/// Undoes percent encoding. A `+` stands for itself in a path.
fn decode(segment: &str) -> String {
    if !segment.contains('%') {
        return segment.to_owned();
    }
    let escaped = format!("x={}", segment.replace('+', "%2B").replace('&', "%26"));
    let value = form_urlencoded::parse(escaped.as_bytes())
        .next()
        .map(|(_, value)| value);
    value.map_or_else(|| segment.to_owned(), Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `want`: group, namespace, plural, name, subresource, with `-` for what is not given.
    fn check(path: &str, want: Option<[&str; 5]>) {
        let segments: Vec<_> = path.trim_matches('/').split('/').collect();
        let parsed = ResourcePath::parse(&segments);
        let given = |part: &Option<String>| part.clone().unwrap_or_else(|| "-".to_owned());
        let got = parsed.map(|p| {
            let (namespace, name) = (given(&p.namespace), given(&p.name));
            [p.group, namespace, p.plural, name, given(&p.subresource)]
        });
        assert_eq!(got, want.map(|want| want.map(str::to_owned)), "{path}");
    }

    #[test]
    fn paths_name_resources() {
        check("/api/v1/pods", Some(["", "-", "pods", "-", "-"]));
        check(
            "/api/v1/namespaces",
            Some(["", "-", "namespaces", "-", "-"]),
        );
        check(
            "/api/v1/namespaces/a",
            Some(["", "-", "namespaces", "a", "-"]),
        );
        check(
            "/api/v1/namespaces/a/finalize",
            Some(["", "-", "namespaces", "a", "finalize"]),
        );
        check(
            "/api/v1/namespaces/a/pods",
            Some(["", "a", "pods", "-", "-"]),
        );
        check(
            "/apis/apps/v1/namespaces/a/deployments/b/status",
            Some(["apps", "a", "deployments", "b", "status"]),
        );
        let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode";
        let rbac = "rbac.authorization.k8s.io";
        check(roles, Some([rbac, "-", "clusterroles", "system:node", "-"]));
        check("/apis/apps", None);
        check("/version", None);
    }

    #[test]
    fn an_empty_parameter_is_not_given() {
        let query = Query::parse("watch=true&labelSelector=a%3Db&limit=");
        assert!(query.flag("watch"));
        assert_eq!(query.get("labelSelector"), Some("a=b"));
        assert_eq!(query.get("limit"), None);
    }
}
