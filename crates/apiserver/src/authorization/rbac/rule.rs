//! One rule of a Role or ClusterRole.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::authorization::Attributes;
use crate::object;

/// A `PolicyRule`.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct Rule {
    pub(crate) api_groups: Vec<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) non_resource_urls: Vec<String>,
    pub(crate) resource_names: Vec<String>,
    pub(crate) verbs: Vec<String>,
}

/// A request in the form in which rules are compared with it.
#[derive(Debug)]
pub(super) struct RequestToMatch<'a> {
    attributes: &'a Attributes<'a>,
    combined_resource: Cow<'a, str>,
}

impl<'a> RequestToMatch<'a> {
    pub(super) fn new(attributes: &'a Attributes<'a>) -> Self {
        Self {
            attributes,
            combined_resource: attributes.combined_resource(),
        }
    }
}

impl Rule {
    /// Returns the rules of a Role or ClusterRole.
    pub(crate) fn of_role(role: &Value) -> Vec<Self> {
        let rules = object::items(role, &["rules"]).iter();
        rules.map(Self::parse).collect()
    }

    fn parse(rule: &Value) -> Self {
        let texts = |field: &str| {
            let items = object::items(rule, &[field]).iter();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            api_groups: texts("apiGroups"),
            resources: texts("resources"),
            non_resource_urls: texts("nonResourceURLs"),
            resource_names: texts("resourceNames"),
            verbs: texts("verbs"),
        }
    }

    /// Returns the rule that allows everything, or everything outside of resources.
    pub(crate) fn of_full_authority() -> Vec<Self> {
        let all = || vec!["*".to_owned()];
        let resources = Self {
            api_groups: all(),
            resources: all(),
            verbs: all(),
            ..Self::default()
        };
        let urls = Self {
            non_resource_urls: all(),
            verbs: all(),
            ..Self::default()
        };
        vec![resources, urls]
    }

    /// Returns the rule as JSON, without the fields that are empty. `verbs` is always present.
    pub(crate) fn to_json(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("verbs".to_owned(), json!(self.verbs));
        for (name, values) in [
            ("apiGroups", &self.api_groups),
            ("resources", &self.resources),
            ("resourceNames", &self.resource_names),
            ("nonResourceURLs", &self.non_resource_urls),
        ] {
            if !values.is_empty() {
                fields.insert(name.to_owned(), json!(values));
            }
        }
        Value::Object(fields)
    }

    /// Reports whether the rule allows a request.
    pub(super) fn allows(&self, request: &RequestToMatch<'_>) -> bool {
        let attributes = request.attributes;
        if !has_or_all(&self.verbs, &attributes.verb) {
            return false;
        }
        match attributes.is_resource_request {
            true => {
                has_or_all(&self.api_groups, &attributes.group)
                    && self.matches_resource(request)
                    && (self.resource_names.is_empty()
                        || has(&self.resource_names, &attributes.name))
            }
            false => self.matches_url(&attributes.path),
        }
    }

    fn matches_resource(&self, request: &RequestToMatch<'_>) -> bool {
        let subresource = request.attributes.subresource.as_ref();
        self.resources.iter().any(|resource| {
            resource == "*"
                || *resource == request.combined_resource
                || (!subresource.is_empty() && resource.strip_prefix("*/") == Some(subresource))
        })
    }

    fn matches_url(&self, path: &str) -> bool {
        let mut urls = self.non_resource_urls.iter();
        urls.any(|url| covers_url(url, path))
    }
}

/// Reports whether `url`, which can end with `*`, covers `path`.
pub(super) fn covers_url(url: &str, path: &str) -> bool {
    url == path || (url.ends_with('*') && path.starts_with(url.trim_end_matches('*')))
}

pub(super) fn has(values: &[String], wanted: &str) -> bool {
    values.iter().any(|value| value == wanted)
}

pub(super) fn has_or_all(values: &[String], wanted: &str) -> bool {
    values.iter().any(|value| value == "*" || value == wanted)
}
