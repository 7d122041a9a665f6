//! TokenRequest: the subresource `token` of ServiceAccounts, which creates a token.

use jiff::SignedDuration;
use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::{Registry, Write, identity};
use crate::authentication::{Claims, KubernetesClaims, Reference, service_account_user};
use crate::clock::rfc3339;
use crate::object;
use crate::status::{ApiError, ApiResult};
use crate::store::Key;
use crate::target::Target;

const GROUP: &str = "authentication.k8s.io";
/// Lifetime of a token if the request does not name one, in seconds.
const DEFAULT_EXPIRATION: i64 = 60 * 60;
/// Minimum lifetime of a token, in seconds.
const MIN_EXPIRATION: i64 = 10 * 60;
/// Maximum lifetime of a token, in seconds.
const MAX_EXPIRATION: i64 = 1 << 32;
/// Lifetime that kubelets request for the token of a pod, in seconds: an hour, and 7 seconds by
/// which the server recognizes the requests of kubelets.
const POD_EXPIRATION: i64 = 60 * 60 + 7;
/// Lifetime of a token that was requested with [`POD_EXPIRATION`], in seconds: a year. After the
/// requested lifetime its use is reported.
const EXTENDED_EXPIRATION: i64 = 365 * 24 * 60 * 60;

impl Registry {
    /// Creates a token for the ServiceAccount that `target` names. Returns the TokenRequest with
    /// the token in its status.
    pub(crate) fn request_token(
        &self,
        target: &Target,
        mut request: Value,
        write: &mut Write,
    ) -> ApiResult<Value> {
        identity::check_namespace(target, &request)?;
        check_name(target, &request)?;
        let account = Target::new(&target.kind, &target.namespace, &target.name);
        let account = self.stored(&account)?.decode();
        let uid = object::uid(&request);
        if !uid.is_empty() && uid != object::uid(&account) {
            let why = format!(
                "the UID in the token request ({uid}) does not match the UID of the service \
                 account ({})",
                object::uid(&account)
            );
            return Err(ApiError::conflict_named(
                GROUP,
                "TokenRequest",
                &target.name,
                &why,
            ));
        }
        let now = self.clock.now();
        let tokens = self.authentication.service_accounts();
        let managers = managed_fields(&request, &write.manager, &rfc3339(now));
        if object::items(&request, &["spec", "audiences"]).is_empty() {
            let audiences = json!(tokens.audiences());
            object::set(&mut request, &["spec", "audiences"], audiences);
        }
        for (field, value) in [
            ("name", json!(target.name)),
            ("namespace", json!(target.namespace)),
            ("uid", json!(object::uid(&account))),
            ("creationTimestamp", json!(rfc3339(now))),
            ("managedFields", managers),
        ] {
            object::set_meta(&mut request, field, value);
        }
        let mut expiration = expiration(&request)?;
        let bound = self.bound_objects(target, &request)?;
        if let Some(max) = tokens
            .max_expiration_seconds
            .filter(|max| expiration > *max)
        {
            write.warnings.push(format!(
                "requested expiration of {expiration} seconds shortened to {max} seconds"
            ));
            expiration = max;
        }
        object::set(
            &mut request,
            &["spec", "expirationSeconds"],
            json!(expiration),
        );

        let audiences = object::items(&request, &["spec", "audiences"]).iter();
        let audiences: Vec<String> = audiences
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        let is_own = |audience: &String| tokens.audiences().contains(audience);
        let is_extended = tokens.extend_expiration
            && bound.pod.is_some()
            && expiration == POD_EXPIRATION
            && audiences.iter().all(is_own);
        let seconds = now.as_second();
        let lifetime = if is_extended {
            EXTENDED_EXPIRATION
        } else {
            expiration
        };
        let claims = Claims {
            aud: audiences,
            exp: Some(seconds.saturating_add(lifetime)),
            iat: Some(seconds),
            nbf: Some(seconds),
            iss: String::new(),
            jti: self.random.uid(),
            sub: service_account_user(&target.namespace, &target.name),
            kubernetes: KubernetesClaims {
                namespace: target.namespace.clone(),
                serviceaccount: Reference::to(&account),
                warnafter: is_extended.then(|| seconds.saturating_add(expiration)),
                ..bound
            },
        };
        let token = tokens.sign(claims);
        let token = token
            .map_err(|error| ApiError::internal(format!("failed to generate token: {error}")))?;
        let expiry = now.saturating_add(SignedDuration::from_secs(expiration));
        let status = json!({
            "token": token, "expirationTimestamp": rfc3339(expiry.unwrap_or(now)),
        });
        object::set_field(&mut request, "status", status);
        // Kubernetes prints the missing reference as null.
        if let Some(spec) = request.get_mut("spec").and_then(Value::as_object_mut) {
            spec.entry("boundObjectRef").or_insert(Value::Null);
        }
        Ok(request)
    }

    /// Returns the claims about the object to which the token is to be bound.
    fn bound_objects(&self, target: &Target, request: &Value) -> ApiResult<KubernetesClaims> {
        let reference = object::at(request, &["spec", "boundObjectRef"]);
        let mut claims = KubernetesClaims::default();
        if !reference.is_object() {
            return Ok(claims);
        }
        let text = |field: &str| object::text(reference, &[field]);
        let (api_version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let bound = match (group, kind) {
            ("", "Pod") => {
                let pod = self.bound("pods", &target.namespace, name)?;
                let account = object::text(&pod, &["spec", "serviceAccountName"]);
                if account != target.name {
                    return Err(ApiError::bad_request(format!(
                        "cannot bind token for serviceaccount {:?} to pod running with different \
                         serviceaccount name.",
                        target.name
                    )));
                }
                claims.pod = Some(Reference::to(&pod));
                claims.node = self.node_of(&pod);
                pod
            }
            ("", "Node") => {
                let node = self.bound("nodes", "", name)?;
                claims.node = Some(Reference::to(&node));
                node
            }
            ("", "Secret") => {
                let secret = self.bound("secrets", &target.namespace, name)?;
                claims.secret = Some(Reference::to(&secret));
                secret
            }
            _ => {
                return Err(ApiError::bad_request(format!(
                    "cannot bind token to object of type {group}/{version}, Kind={kind}"
                )));
            }
        };
        let uid = text("uid");
        if !uid.is_empty() && uid != object::uid(&bound) {
            let why = format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. \
                 The object might have been deleted and then recreated"
            );
            return Err(ApiError::conflict_named(group, kind, name, &why));
        }
        Ok(claims)
    }

    /// Returns the node of a pod, or `None` if the pod is not scheduled.
    fn node_of(&self, pod: &Value) -> Option<Reference> {
        let name = object::text(pod, &["spec", "nodeName"]);
        if name.is_empty() {
            return None;
        }
        let node = self.store.get("nodes", &Key::new("", name));
        Some(match node {
            Some(node) => Reference::to(&node),
            None => Reference {
                name: name.to_owned(),
                uid: String::new(),
            },
        })
    }

    fn bound(&self, plural: &str, namespace: &str, name: &str) -> ApiResult<Value> {
        let kind = self.builtin("", plural)?;
        Ok(self.stored(&Target::new(&kind, namespace, name))?.decode())
    }
}

/// Checks that the name in the body, if it is set, is that in the path.
fn check_name(target: &Target, request: &Value) -> ApiResult<()> {
    let given = object::name(request);
    if given.is_empty() || given == target.name {
        return Ok(());
    }
    let detail = "must match the service account name if specified";
    let error = FieldError::invalid("metadata.name", &json!(given), detail);
    Err(ApiError::invalid_token_request(&target.name, error))
}

/// Returns the managed fields of a TokenRequest: those fields of the spec that the client has set,
/// and the lifetime, which has a default.
fn managed_fields(request: &Value, manager: &str, time: &str) -> Value {
    let mut fields = json!({"f:expirationSeconds": {}});
    if !object::items(request, &["spec", "audiences"]).is_empty() {
        object::set(&mut fields, &["f:audiences"], json!({}));
    }
    let reference = object::at(request, &["spec", "boundObjectRef"]).as_object();
    for (name, _) in reference.into_iter().flatten() {
        let name = format!("f:{name}");
        object::set(&mut fields, &["f:boundObjectRef", &name], json!({}));
    }
    json!([{
        "manager": manager, "operation": "Update", "apiVersion": format!("{GROUP}/v1"),
        "time": time, "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields},
        "subresource": "token",
    }])
}

/// Returns the requested lifetime of the token, in seconds.
fn expiration(request: &Value) -> ApiResult<i64> {
    let seconds = match object::at(request, &["spec", "expirationSeconds"]).as_i64() {
        Some(seconds) => seconds,
        None => DEFAULT_EXPIRATION,
    };
    let detail = match seconds {
        ..MIN_EXPIRATION => "may not specify a duration less than 10 minutes",
        MIN_EXPIRATION..=MAX_EXPIRATION => return Ok(seconds),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let error = FieldError::invalid("spec.expirationSeconds", &json!(seconds), detail);
    Err(ApiError::invalid_token_request("", error))
}
