//! Audit events in the format of `audit.k8s.io/v1`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;

use http::header::{HeaderName, USER_AGENT};
use http::request::Parts;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::policy::{Level, Stage};
use crate::authentication::Identity;
use crate::authorization::Attributes;
use crate::object;
use crate::request::header_text;

/// Length in bytes from which a user agent is cut off.
const USER_AGENT_MAX: usize = 1024;

/// An audit event. The fields have the order of Kubernetes.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event {
    kind: &'static str,
    api_version: &'static str,
    pub(super) level: Level,
    #[serde(rename = "auditID")]
    audit_id: String,
    pub(super) stage: Stage,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: String,
    user: UserInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) impersonated_user: Option<UserInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) authentication_metadata: Option<AuthenticationMetadata>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "Vec::is_empty")]
    source_ips: Vec<IpAddr>,
    #[serde(skip_serializing_if = "String::is_empty")]
    user_agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_ref: Option<ObjectReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_status: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request_object: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_object: Option<Value>,
    request_received_timestamp: String,
    stage_timestamp: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) annotations: BTreeMap<Cow<'static, str>, String>,
}

/// A user, as in the group `authentication.k8s.io`. All fields are empty for a request that is not
/// authenticated.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct UserInfo {
    #[serde(skip_serializing_if = "String::is_empty")]
    username: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: BTreeMap<String, Vec<String>>,
}

/// Details of the authentication of a request.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuthenticationMetadata {
    /// The verb of the constrained mode of impersonation.
    pub(super) impersonation_constraint: String,
}

/// The object of a request.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectReference {
    #[serde(skip_serializing_if = "String::is_empty")]
    resource: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    api_group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    api_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    resource_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    subresource: String,
}

impl From<&Identity> for UserInfo {
    fn from(identity: &Identity) -> Self {
        Self {
            username: identity.user.clone(),
            uid: identity.uid.clone(),
            groups: identity.groups.clone(),
            extra: identity.extra.clone(),
        }
    }
}

/// The origin of a request, which is known before the request is authenticated.
#[derive(Debug)]
pub(super) struct Origin {
    audit_id: String,
    request_uri: String,
    source_ips: Vec<IpAddr>,
    user_agent: String,
    received: Timestamp,
}

impl Origin {
    /// Returns the origin of a request. `source` is the address of the client, which a caller in
    /// this process does not have.
    pub(super) fn new(
        audit_id: String,
        parts: &Parts,
        source: Option<IpAddr>,
        received: Timestamp,
    ) -> Self {
        let path = parts.uri.path_and_query();
        Self {
            audit_id,
            request_uri: path.map(ToString::to_string).unwrap_or_default(),
            source_ips: source_ips(parts, source),
            user_agent: shortened(header_text(&parts.headers, USER_AGENT)),
            received,
        }
    }
}

impl Event {
    /// Returns the event of the stage `RequestReceived`. A request that is not authenticated has no
    /// user.
    pub(super) fn received(
        level: Level,
        origin: Origin,
        user: Option<&Identity>,
        attributes: &Attributes<'_>,
    ) -> Self {
        let time = micro_time(origin.received);
        Self {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level,
            audit_id: origin.audit_id,
            stage: Stage::RequestReceived,
            request_uri: origin.request_uri,
            verb: attributes.verb.to_string(),
            user: user.map(UserInfo::from).unwrap_or_default(),
            impersonated_user: None,
            authentication_metadata: None,
            source_ips: origin.source_ips,
            user_agent: origin.user_agent,
            object_ref: attributes
                .is_resource_request
                .then(|| ObjectReference::of(attributes)),
            response_status: None,
            request_object: None,
            response_object: None,
            request_received_timestamp: time.clone(),
            stage_timestamp: time,
            annotations: BTreeMap::new(),
        }
    }

    /// Sets the stage, and the time at which the request reached this stage.
    pub(super) fn reach(&mut self, stage: Stage, now: Timestamp) {
        self.stage = stage;
        self.stage_timestamp = micro_time(now);
    }

    /// Completes the reference to the object of the request with the metadata of the object in the
    /// body.
    pub(super) fn complete_reference(&mut self, body: &Value) {
        let Some(reference) = &mut self.object_ref else {
            return;
        };
        for (part, field) in [
            (&mut reference.namespace, "namespace"),
            (&mut reference.name, "name"),
            (&mut reference.uid, "uid"),
            (&mut reference.resource_version, "resourceVersion"),
        ] {
            if part.is_empty() {
                object::meta(body, field).clone_into(part);
            }
        }
    }

    /// Sets the fields of the response status from a `Status`.
    pub(super) fn set_status(&mut self, status: &Value) {
        let mut copy = json!({"metadata": {}});
        for field in ["status", "message", "reason", "details", "code"] {
            if let Some(value) = status.get(field) {
                object::set_field(&mut copy, field, value.clone());
            }
        }
        self.response_status = Some(copy);
    }

    /// Sets the HTTP status code of the response.
    pub(super) fn set_code(&mut self, code: u16) {
        let status = self
            .response_status
            .get_or_insert_with(|| json!({"metadata": {}}));
        object::set_field(status, "code", json!(code));
    }

    /// Returns the event as a line of JSON. As Go does, characters with a meaning in HTML are
    /// escaped.
    pub(super) fn to_line(&self) -> serde_json::Result<String> {
        let json = serde_json::to_string(self)?;
        let mut line = String::with_capacity(json.len() + 1);
        for character in json.chars() {
            // These characters occur only inside of strings.
            match character {
                '&' => line.push_str("\\u0026"),
                '<' => line.push_str("\\u003c"),
                '>' => line.push_str("\\u003e"),
                '\u{2028}' => line.push_str("\\u2028"),
                '\u{2029}' => line.push_str("\\u2029"),
                character => line.push(character),
            }
        }
        line.push('\n');
        Ok(line)
    }
}

impl ObjectReference {
    fn of(attributes: &Attributes<'_>) -> Self {
        Self {
            resource: attributes.resource.to_string(),
            namespace: attributes.namespace.to_string(),
            name: attributes.name.to_string(),
            uid: String::new(),
            api_group: attributes.group.to_string(),
            api_version: attributes.version.to_string(),
            resource_version: String::new(),
            subresource: attributes.subresource.to_string(),
        }
    }
}

/// Returns the addresses from which a request came: those that proxies report in headers, and then
/// the address of the client.
fn source_ips(parts: &Parts, source: Option<IpAddr>) -> Vec<IpAddr> {
    let header = |name| header_text(&parts.headers, HeaderName::from_static(name));
    let forwarded = header("x-forwarded-for").split(',');
    let mut addresses: Vec<IpAddr> = forwarded
        .filter_map(|part| part.trim().parse().ok())
        .collect();
    if let Ok(real) = header("x-real-ip").parse()
        && !addresses.contains(&real)
    {
        addresses.push(real);
    }
    if let Some(source) = source.map(|source| source.to_canonical())
        && addresses.last() != Some(&source)
    {
        addresses.push(source);
    }
    addresses
}

fn shortened(user_agent: &str) -> String {
    match user_agent.get(..USER_AGENT_MAX) {
        Some(start) if user_agent.len() > USER_AGENT_MAX => format!("{start}...TRUNCATED"),
        _ => user_agent.to_owned(),
    }
}

/// Formats a time as Kubernetes writes a `MicroTime`.
fn micro_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[cfg(test)]
mod tests;
