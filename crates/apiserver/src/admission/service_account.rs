//! The plugin `ServiceAccount`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Attributes;
use crate::object;
use crate::registry::Registry;
use crate::status::ApiResult;
use crate::store::Key;

/// The prefix of the name of the volume with the token.
const VOLUME: &str = "kube-api-access-";
/// The path at which containers find the token.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The annotation that the kubelet sets on the Pods of its static manifests.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// The annotation of a ServiceAccount whose Pods may use only the secrets of the account.
const ENFORCE_MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

/// Sets the ServiceAccount of a Pod, and adds the volume with its token and its image pull secrets.
pub(super) async fn admit(
    registry: &Registry,
    attributes: &Attributes<'_>,
    pod: &mut Value,
) -> ApiResult<()> {
    let annotations = object::at(pod, &["metadata", "annotations"]);
    if annotations.get(MIRROR).is_some() {
        return check_mirror(attributes, pod);
    }
    if object::text(pod, &["spec", "serviceAccountName"]).is_empty() {
        set_account(pod, "default");
    }
    let account = account_of(registry, attributes, pod).await?;
    let own = object::at(pod, &["spec", "automountServiceAccountToken"]).as_bool();
    let general = object::at(&account, &["automountServiceAccountToken"]).as_bool();
    if own.or(general).unwrap_or(true) {
        mount_token(pod, || format!("{VOLUME}{}", registry.random.suffix()));
    }
    if object::items(pod, &["spec", "imagePullSecrets"]).is_empty() {
        let secrets = object::items(&account, &["imagePullSecrets"]);
        if !secrets.is_empty() {
            object::set(pod, &["spec", "imagePullSecrets"], json!(secrets));
        }
    }
    check_secrets(attributes, &account, pod)
}

/// Sets `serviceAccountName` and the deprecated field `serviceAccount`.
fn set_account(pod: &mut Value, name: &str) {
    for field in ["serviceAccountName", "serviceAccount"] {
        object::set(pod, &["spec", field], json!(name));
    }
}

/// Returns the ServiceAccount of a Pod.
async fn account_of(
    registry: &Registry,
    attributes: &Attributes<'_>,
    pod: &Value,
) -> ApiResult<Arc<Value>> {
    let namespace = object::namespace(pod);
    let name = object::text(pod, &["spec", "serviceAccountName"]);
    let find = || {
        registry
            .store
            .get("serviceaccounts", &Key::new(namespace, name))
    };
    let mut found = find();
    // Kubernetes waits here for the controller that creates the account of a new namespace.
    if found.is_none() && name == "default" && registry.controllers && !attributes.is_dry_run() {
        // Boxed, because the account is created in the same way as the Pod.
        Box::pin(registry.create_default_account(namespace)).await?;
        found = find();
    }
    found.ok_or_else(|| {
        attributes.forbid(format!(
            "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
        ))
    })
}

/// Checks a Pod that represents a static Pod of a kubelet: it may not use the API.
fn check_mirror(attributes: &Attributes<'_>, pod: &Value) -> ApiResult<()> {
    if !object::text(pod, &["spec", "serviceAccountName"]).is_empty() {
        return Err(attributes.forbid("a mirror pod may not reference service accounts"));
    }
    if !secrets_of(pod).is_empty() {
        return Err(attributes.forbid("a mirror pod may not reference secrets"));
    }
    let has_token = object::items(pod, &["spec", "volumes"])
        .iter()
        .flat_map(|volume| object::items(volume, &["projected", "sources"]))
        .any(|source| !object::at(source, &["serviceAccountToken"]).is_null());
    match has_token {
        true => {
            let why = "a mirror pod may not use ServiceAccountToken volume projections";
            Err(attributes.forbid(why))
        }
        false => Ok(()),
    }
}

/// Adds the volume with the token, and mounts it in each container that mounts nothing at its path.
fn mount_token(pod: &mut Value, new_name: impl Fn() -> String) {
    let volumes = object::items(pod, &["spec", "volumes"]).iter();
    let existing = volumes
        .map(|volume| object::text(volume, &["name"]))
        .find(|name| name.starts_with(VOLUME))
        .map(str::to_owned);
    let has_volume = existing.is_some();
    let name = existing.unwrap_or_else(new_name);
    let mut is_mounted = false;
    for list in ["initContainers", "containers"] {
        let containers = pod.pointer_mut(&format!("/spec/{list}"));
        let containers = containers.and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mut mounts = object::items(container, &["volumeMounts"]).to_vec();
            let is_used = |mount: &Value| object::text(mount, &["mountPath"]) == MOUNT_PATH;
            if mounts.iter().any(is_used) {
                continue;
            }
            mounts.push(json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH}));
            object::set(container, &["volumeMounts"], json!(mounts));
            is_mounted = true;
        }
    }
    if is_mounted && !has_volume {
        let mut volumes = object::items(pod, &["spec", "volumes"]).to_vec();
        volumes.push(token_volume(&name));
        object::set(pod, &["spec", "volumes"], json!(volumes));
    }
}

/// Returns the volume with the token, the certificate of the API server and the namespace.
fn token_volume(name: &str) -> Value {
    json!({
        "name": name,
        "projected": {
            "defaultMode": 420,
            "sources": [
                // The token is valid for a few seconds more than an hour, which marks it as one of
                // this plugin.
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {
                    "name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }},
                {"downwardAPI": {"items": [{
                    "path": "namespace",
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                }]}},
            ],
        },
    })
}

/// A reference of a Pod to a secret: the start of the error message, and the name of the secret.
type SecretReference = (String, String);

/// Refuses a Pod with secrets that its ServiceAccount does not list, if the account requires it.
fn check_secrets(attributes: &Attributes<'_>, account: &Value, pod: &Value) -> ApiResult<()> {
    let annotations = object::at(account, &["metadata", "annotations"]);
    let enforce = object::text(annotations, &[ENFORCE_MOUNTABLE_SECRETS]);
    // The values that Go's ParseBool takes for true.
    if !matches!(enforce, "1" | "t" | "T" | "TRUE" | "true" | "True") {
        return Ok(());
    }
    let names = |object: &Value, path: &[&str]| -> Vec<String> {
        let items = object::items(object, path).iter();
        items
            .map(|item| object::text(item, &["name"]).to_owned())
            .collect()
    };
    let called = object::name(account);
    let allowed = names(account, &["secrets"]);
    let (volumes, containers) = (secret_volumes(pod), secret_variables(pod));
    for (what, secret) in volumes.into_iter().chain(containers) {
        if !allowed.contains(&secret) {
            return Err(attributes.forbid(format!(
                "{what}secret.secretName=\"{secret}\" is not allowed because service account \
                 {called} does not reference that secret"
            )));
        }
    }
    let allowed = names(account, &["imagePullSecrets"]);
    let own = names(pod, &["spec", "imagePullSecrets"]);
    for (index, secret) in own.iter().enumerate() {
        if !allowed.contains(secret) {
            return Err(attributes.forbid(format!(
                "imagePullSecrets[{index}].name=\"{secret}\" is not allowed because service account \
                 {called} does not reference that imagePullSecret"
            )));
        }
    }
    Ok(())
}

fn secret_volumes(pod: &Value) -> Vec<SecretReference> {
    let volumes = object::items(pod, &["spec", "volumes"]).iter();
    volumes
        .filter(|volume| !object::at(volume, &["secret"]).is_null())
        .map(|volume| object::text(volume, &["secret", "secretName"]))
        .map(|secret| ("volume with ".to_owned(), secret.to_owned()))
        .collect()
}

fn secret_variables(pod: &Value) -> Vec<SecretReference> {
    let mut found = Vec::new();
    for (list, kind) in [
        ("initContainers", "init container"),
        ("containers", "container"),
    ] {
        for container in object::items(pod, &["spec", list]) {
            let name = object::text(container, &["name"]);
            for variable in object::items(container, &["env"]) {
                let secret = object::at(variable, &["valueFrom", "secretKeyRef"]);
                if !secret.is_null() {
                    let variable = object::text(variable, &["name"]);
                    let what = format!("{kind} {name} with envVar {variable} referencing ");
                    found.push((what, object::text(secret, &["name"]).to_owned()));
                }
            }
            for source in object::items(container, &["envFrom"]) {
                let secret = object::at(source, &["secretRef"]);
                if !secret.is_null() {
                    let what = format!("{kind} {name} with envFrom referencing ");
                    found.push((what, object::text(secret, &["name"]).to_owned()));
                }
            }
        }
    }
    found
}

/// Returns the names of the secrets to which a mirror Pod refers.
fn secrets_of(pod: &Value) -> Vec<String> {
    let mut names: Vec<String> = secret_volumes(pod)
        .into_iter()
        .chain(secret_variables(pod))
        .map(|(_, secret)| secret)
        .collect();
    for secret in object::items(pod, &["spec", "imagePullSecrets"]) {
        names.push(object::text(secret, &["name"]).to_owned());
    }
    for volume in object::items(pod, &["spec", "volumes"]) {
        let projected = object::items(volume, &["projected", "sources"]).iter();
        let secrets = projected.map(|source| object::text(source, &["secret", "name"]));
        names.extend(secrets.filter(|name| !name.is_empty()).map(str::to_owned));
    }
    names
}
