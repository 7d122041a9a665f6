//! The audit policy: decides which requests are recorded, and how much of each.
//!
//! The policy is an object of the kind `Policy` of the group `audit.k8s.io`. Its first rule that
//! matches a request decides. A request that no rule matches is not recorded.

use opkit_apimachinery::names;
use opkit_apimachinery::structural::FieldError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::authentication::Identity;
use crate::authorization::Attributes;
use crate::object;

const API_VERSION: &str = "audit.k8s.io/v1";
const LEVELS: [&str; 4] = ["None", "Metadata", "Request", "RequestResponse"];
const STAGES: [&str; 4] = [
    "RequestReceived",
    "ResponseStarted",
    "ResponseComplete",
    "Panic",
];

/// The amount of data that is recorded about a request.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(super) enum Level {
    /// The request is not recorded.
    None,
    /// The user, the verb, the object and the result of the request.
    Metadata,
    /// `Metadata`, and the object in the request.
    Request,
    /// `Request`, and the object in the response.
    RequestResponse,
}

/// A stage in the execution of a request. There is at most one event for each stage.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) enum Stage {
    /// The user is authenticated, and nothing else is done yet.
    RequestReceived,
    /// The headers of the response are sent. Only watches and other long requests have this stage,
    /// and requests that are not authenticated.
    ResponseStarted,
    /// The body of the response is sent.
    ResponseComplete,
    /// The server panicked.
    Panic,
}

/// The decision of the policy about one request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Recorded {
    pub(super) level: Level,
    pub(super) omit_stages: Vec<Stage>,
    pub(super) omit_managed_fields: bool,
}

/// An audit policy.
#[derive(Debug)]
pub(super) struct Policy {
    rules: Vec<(PolicyRule, Recorded)>,
    /// The decision about a request that no rule matches.
    unmatched: Recorded,
}

/// The policy as it is written in a file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PolicyFile {
    rules: Vec<PolicyRule>,
    omit_stages: Vec<String>,
    omit_managed_fields: bool,
}

/// A rule of a policy. An empty list matches every request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PolicyRule {
    level: String,
    users: Vec<String>,
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    namespaces: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
    omit_stages: Vec<String>,
    omit_managed_fields: Option<bool>,
}

/// The resources of an API group that a rule matches.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GroupResources {
    group: String,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

impl Policy {
    /// Parses a policy in YAML or JSON.
    ///
    /// # Errors
    /// Returns the reason why the policy is not valid, in Kubernetes' words where they do not
    /// depend on Go's decoders.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut value: Value = serde_saphyr::from_str(text).map_err(|error| {
            format!("failed decoding: couldn't get version/kind; json parse error: {error}")
        })?;
        remove_nulls(&mut value);
        match (
            object::text(&value, &["apiVersion"]),
            object::text(&value, &["kind"]),
        ) {
            (API_VERSION, "Policy") => {}
            ("", _) | (_, "") => {
                let found = "audit.k8s.io/__internal, Kind=Policy";
                return Err(format!("unknown group version field {found} in policy"));
            }
            (version, kind) => {
                return Err(format!(
                    "failed decoding: no kind {kind:?} is registered for version {version:?} in \
                     scheme \"pkg/runtime/scheme.go:111\""
                ));
            }
        }
        let file: PolicyFile =
            serde_json::from_value(value).map_err(|error| format!("failed decoding: {error}"))?;
        let mut errors: Vec<String> = file.flaws().iter().map(ToString::to_string).collect();
        errors.dedup();
        match errors.as_slice() {
            [] if file.rules.is_empty() => Err("loaded illegal policy with 0 rules".to_owned()),
            [] => Ok(Self::from_file(file)),
            [one] => Err(one.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }

    fn from_file(file: PolicyFile) -> Self {
        let stages = |names: &[String]| -> Vec<Stage> {
            let names = names.iter().chain(&file.omit_stages);
            names.filter_map(|name| parse(name)).collect()
        };
        let rules = file.rules.iter().map(|rule| {
            let recorded = Recorded {
                level: parse(&rule.level).unwrap_or(Level::None),
                omit_stages: stages(&rule.omit_stages),
                omit_managed_fields: rule.omit_managed_fields.unwrap_or(file.omit_managed_fields),
            };
            (rule.clone(), recorded)
        });
        Self {
            unmatched: Recorded {
                level: Level::None,
                omit_stages: stages(&[]),
                omit_managed_fields: file.omit_managed_fields,
            },
            rules: rules.collect(),
        }
    }

    /// Returns the decision about a request. A request that is not authenticated has no user.
    pub(super) fn evaluate(
        &self,
        user: Option<&Identity>,
        attributes: &Attributes<'_>,
    ) -> &Recorded {
        let matching = self
            .rules
            .iter()
            .find(|(rule, _)| rule.matches(user, attributes));
        matching.map_or(&self.unmatched, |(_, recorded)| recorded)
    }
}

impl PolicyFile {
    fn flaws(&self) -> Vec<FieldError> {
        let mut errors = stage_flaws("omitStages", &self.omit_stages);
        for (index, rule) in self.rules.iter().enumerate() {
            errors.extend(rule.flaws(&format!("rules[{index}]")));
        }
        errors
    }
}

impl PolicyRule {
    fn flaws(&self, path: &str) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let level = format!("{path}.level");
        match self.level.as_str() {
            "" => errors.push(FieldError::required(level, "")),
            name if LEVELS.contains(&name) => {}
            name => errors.push(FieldError::not_supported(level, &json!(name), &LEVELS)),
        }
        let urls = format!("{path}.nonResourceURLs");
        for (index, url) in self.non_resource_urls.iter().enumerate() {
            let mut refuse = |why| {
                let field = format!("{urls}[{index}]");
                errors.push(FieldError::invalid(field, &json!(url), why));
            };
            if url == "*" {
                continue;
            }
            if !url.starts_with('/') {
                refuse("non-resource URL rules must begin with a '/' character");
            }
            if url.strip_suffix('*').unwrap_or(url).contains('*') {
                refuse("non-resource URL wildcards '*' must be the final character of the rule");
            }
        }
        for resources in &self.resources {
            errors.extend(resources.flaws(&format!("{path}.resources")));
        }
        errors.extend(stage_flaws(
            &format!("{path}.omitStages"),
            &self.omit_stages,
        ));
        let has_resources = !self.resources.is_empty() || !self.namespaces.is_empty();
        if !self.non_resource_urls.is_empty() && has_resources {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            let value = json!(self.non_resource_urls);
            errors.push(FieldError::invalid(urls, &value, why));
        }
        errors
    }

    fn matches(&self, user: Option<&Identity>, attributes: &Attributes<'_>) -> bool {
        let is_user = || user.is_some_and(|user| self.users.contains(&user.user));
        let is_member =
            || user.is_some_and(|user| self.user_groups.iter().any(|group| user.is_member(group)));
        if !self.users.is_empty() && !is_user()
            || !self.user_groups.is_empty() && !is_member()
            || !includes(&self.verbs, &attributes.verb)
        {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return attributes.is_resource_request
                && includes(&self.namespaces, &attributes.namespace)
                && (self.resources.is_empty()
                    || self.resources.iter().any(|group| group.matches(attributes)));
        }
        if !self.non_resource_urls.is_empty() {
            let mut urls = self.non_resource_urls.iter();
            return !attributes.is_resource_request
                && urls.any(|url| path_matches(&attributes.path, url));
        }
        true
    }
}

impl GroupResources {
    fn flaws(&self, path: &str) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if !matches!(self.group.as_str(), "" | "*")
            && let Err(why) = names::check_dns_subdomain(&self.group)
        {
            let field = format!("{path}.group");
            errors.push(FieldError::invalid(field, &json!(self.group), why));
        }
        if !self.resource_names.is_empty() && self.resources.is_empty() {
            let why = "using resourceNames requires at least one resource";
            let value = json!(self.resource_names);
            errors.push(FieldError::invalid(
                format!("{path}.resourceNames"),
                &value,
                why,
            ));
        }
        errors
    }

    fn matches(&self, attributes: &Attributes<'_>) -> bool {
        if self.group != "*" && self.group != attributes.group {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let combined = attributes.combined_resource();
        let is_resource = |pattern: &String| match pattern.as_str() {
            "*" => true,
            pattern if pattern == combined => true,
            pattern => match pattern.split_once('/') {
                Some(("*", subresource)) => {
                    !subresource.is_empty() && subresource == attributes.subresource
                }
                // As in Kubernetes, this pattern also matches the resource itself.
                Some((resource, "*")) => resource == attributes.resource,
                _ => false,
            },
        };
        includes(&self.resource_names, &attributes.name) && self.resources.iter().any(is_resource)
    }
}

/// Reports whether a list contains a value. An empty list contains every value.
fn includes(list: &[String], value: &str) -> bool {
    list.is_empty() || list.iter().any(|listed| listed == value)
}

fn path_matches(path: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => path == pattern,
    }
}

fn stage_flaws(path: &str, stages: &[String]) -> Vec<FieldError> {
    let unknown = stages.iter().enumerate();
    let unknown = unknown.filter(|(_, stage)| !STAGES.contains(&stage.as_str()));
    unknown
        .map(|(index, stage)| {
            let why = format!("allowed stages are {}", STAGES.join(","));
            FieldError::invalid(format!("{path}[{index}]"), &json!(stage), why)
        })
        .collect()
}

/// Returns the variant of [`Level`] or [`Stage`] with this name.
fn parse<T: serde::de::DeserializeOwned>(name: &str) -> Option<T> {
    serde_json::from_value(json!(name)).ok()
}

/// Removes fields that are null, which Kubernetes treats as missing.
fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
