//! Functions that set defaults which depend on more than one field. `data/defaults.txt` refers to
//! each function by a name.

use serde_json::{Map, Value, json};

use super::qos::qos_class;
type Fields = Map<String, Value>;
type Function = fn(&mut Fields);

/// Returns the function that `data/defaults.txt` calls `name`, such as `@image-pull-policy`.
pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "@crd-names" => crd_names,
        "@drop-empty" => drop_empty,
        "@drop-node-port" => drop_node_port,
        "@empty-volume" => empty_volume,
        "@external-traffic-policy" => external_traffic_policy,
        "@host-ports" => host_ports,
        "@image-pull-policy" => image_pull_policy,
        "@ip-mode" => ip_mode,
        "@job-selector" => job_selector,
        "@limit-range-requests" => limit_range_requests,
        "@namespace-label" => namespace_label,
        "@qos-class" => set_qos_class,
        "@replication-controller-labels" => replication_controller_labels,
        "@requests-from-limits" => requests_from_limits,
        "@service-account" => service_account,
        "@session-affinity-config" => session_affinity_config,
        "@string-data" => string_data,
        "@target-port" => target_port,
        "@template-generation" => template_generation,
        _ => return None,
    })
}

fn text(fields: &Fields, field: &str) -> String {
    fields
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn is_unset(fields: &Fields, field: &str) -> bool {
    fields.get(field).is_none_or(Value::is_null)
}

fn set_default(fields: &mut Fields, field: &str, value: Value) {
    if is_unset(fields, field) {
        fields.insert(field.to_owned(), value);
    }
}

/// Returns the object in a field. Creates an empty object if the field is missing.
fn object<'a>(fields: &'a mut Fields, field: &str) -> Option<&'a mut Fields> {
    set_default(fields, field, json!({}));
    fields.get_mut(field)?.as_object_mut()
}

fn items<'a>(fields: &'a mut Fields, field: &str) -> impl Iterator<Item = &'a mut Fields> {
    let items = fields
        .get_mut(field)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten();
    items.filter_map(Value::as_object_mut)
}

/// Sets the singular name and the list kind of a CRD from its kind.
fn crd_names(names: &mut Fields) {
    let kind = text(names, "kind");
    if !kind.is_empty() {
        set_default(names, "singular", json!(kind.to_lowercase()));
        set_default(names, "listKind", json!(format!("{kind}List")));
    }
}

/// Removes empty fields, which Go omits.
fn drop_empty(fields: &mut Fields) {
    fields.retain(|_, value| match value {
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_i64() != Some(0),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    });
}

/// Removes the node port 0 of a Service port, which Go omits.
fn drop_node_port(port: &mut Fields) {
    if matches!(port.get("nodePort"), Some(number) if *number == 0) {
        port.remove("nodePort");
    }
}

/// Sets the mode of the addresses of a load balancer.
fn ip_mode(service: &mut Fields) {
    let type_ = service.get("spec").and_then(|spec| spec.get("type"));
    if type_.is_none_or(|type_| type_ != "LoadBalancer") {
        return;
    }
    let status = service.get_mut("status");
    let balancer = status.and_then(|status| status.pointer_mut("/loadBalancer"));
    let Some(balancer) = balancer.and_then(Value::as_object_mut) else {
        return;
    };
    for ingress in items(balancer, "ingress") {
        if !text(ingress, "ip").is_empty() {
            set_default(ingress, "ipMode", json!("VIP"));
        }
    }
}

/// Sets `emptyDir` in a volume without a source.
fn empty_volume(volume: &mut Fields) {
    if volume.keys().all(|field| field == "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
}

/// Sets the external traffic policy of a Service that clients outside of the cluster can reach.
fn external_traffic_policy(spec: &mut Fields) {
    let external_ips = spec.get("externalIPs").and_then(Value::as_array);
    let is_accessible = match text(spec, "type").as_str() {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" => external_ips.is_some_and(|ips| !ips.is_empty()),
        _ => false,
    };
    if is_accessible {
        set_default(spec, "externalTrafficPolicy", json!("Cluster"));
    }
}

/// Sets the host port of each container port, if the Pod uses the network of the host.
fn host_ports(spec: &mut Fields) {
    if spec.get("hostNetwork") != Some(&Value::Bool(true)) {
        return;
    }
    for containers in ["containers", "initContainers"] {
        for container in items(spec, containers) {
            for port in items(container, "ports") {
                if let Some(number) = port.get("containerPort").cloned() {
                    set_default(port, "hostPort", number);
                }
            }
        }
    }
}

/// Sets the image pull policy of a container: `Always` if the image has the tag `latest`, or
/// neither tag nor digest, because such an image can change; otherwise `IfNotPresent`.
fn image_pull_policy(container: &mut Fields) {
    let image = text(container, "image");
    let (name, digest) = image
        .split_once('@')
        .map_or((image.as_str(), ""), |(name, digest)| (name, digest));
    // A colon before the last slash belongs to the port of a registry.
    let last = name.rsplit('/').next().unwrap_or_default();
    let tag = last.split_once(':').map_or("", |(_, tag)| tag);
    let changes = tag == "latest" || (tag.is_empty() && digest.is_empty());
    let policy = if changes { "Always" } else { "IfNotPresent" };
    set_default(container, "imagePullPolicy", json!(policy));
}

/// Sets the selector of a Job and the labels of its Pod template, so that the Job finds its Pods by
/// the UID of the Job.
fn job_selector(job: &mut Fields) {
    const UID: &str = "batch.kubernetes.io/controller-uid";
    let metadata = job
        .get("metadata")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let (name, uid) = (text(&metadata, "name"), text(&metadata, "uid"));
    let Some(spec) = job.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let is_manual = spec.get("manualSelector") == Some(&Value::Bool(true));
    if uid.is_empty() || is_manual || !is_unset(spec, "selector") {
        return;
    }
    spec.insert("selector".to_owned(), json!({"matchLabels": {UID: uid}}));
    let labels = json!({
        "batch.kubernetes.io/job-name": name, "job-name": name, UID: uid, "controller-uid": uid,
    });
    if let Some(template) = object(spec, "template") {
        add_labels(template, &labels);
    }
    add_labels(job, &labels);
}

/// Adds labels to the metadata of an object or template.
fn add_labels(fields: &mut Fields, labels: &Value) {
    let own = object(fields, "metadata").and_then(|metadata| object(metadata, "labels"));
    if let (Some(own), Some(labels)) = (own, labels.as_object()) {
        own.extend(labels.clone());
    }
}

/// Sets the default amounts of a LimitRange item for containers: default limits are the maximum,
/// and default requests are the default limits or else the minimum.
fn limit_range_requests(limit: &mut Fields) {
    for (from, to) in [
        ("max", "default"),
        ("default", "defaultRequest"),
        ("min", "defaultRequest"),
    ] {
        let amounts = limit
            .get(from)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        if amounts.is_empty() {
            continue;
        }
        for (resource, amount) in amounts {
            if let Some(target) = object(limit, to) {
                set_default(target, &resource, amount);
            }
        }
    }
}

/// Adds the label `kubernetes.io/metadata.name` to a namespace.
fn namespace_label(metadata: &mut Fields) {
    let name = text(metadata, "name");
    if !name.is_empty()
        && let Some(labels) = object(metadata, "labels")
    {
        labels.insert("kubernetes.io/metadata.name".to_owned(), json!(name));
    }
}

/// Sets the quality of service class of a Pod.
fn set_qos_class(pod: &mut Fields) {
    let class = qos_class(&Value::Object(pod.clone()));
    if let Some(status) = object(pod, "status") {
        set_default(status, "qosClass", json!(class));
    }
}

/// Sets labels and selector of a ReplicationController to the labels of its Pod template.
fn replication_controller_labels(controller: &mut Fields) {
    let labels = controller
        .get("spec")
        .and_then(|spec| spec.pointer("/template/metadata/labels"))
        .filter(|labels| labels.as_object().is_some_and(|labels| !labels.is_empty()))
        .cloned();
    let Some(labels) = labels else { return };
    if let Some(spec) = object(controller, "spec") {
        set_default(spec, "selector", labels.clone());
    }
    if let Some(metadata) = object(controller, "metadata") {
        set_default(metadata, "labels", labels);
    }
}

/// Sets the request of each resource that has a limit but no request to the value of the limit.
fn requests_from_limits(resources: &mut Fields) {
    let limits = resources
        .get("limits")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    if limits.is_empty() {
        return;
    }
    if let Some(requests) = object(resources, "requests") {
        for (resource, limit) in limits {
            set_default(requests, &resource, limit);
        }
    }
}

/// Sets `serviceAccountName` of a Pod and the deprecated field `serviceAccount` to the same value.
fn service_account(spec: &mut Fields) {
    let (new, old) = (
        text(spec, "serviceAccountName"),
        text(spec, "serviceAccount"),
    );
    if !new.is_empty() {
        spec.insert("serviceAccount".to_owned(), json!(new));
    } else if !old.is_empty() {
        spec.insert("serviceAccountName".to_owned(), json!(old));
    }
}

/// Sets the timeout of the session affinity `ClientIP` of a Service to 3 hours, and removes the
/// configuration of a Service without session affinity.
fn session_affinity_config(spec: &mut Fields) {
    if text(spec, "sessionAffinity") == "None" {
        spec.remove("sessionAffinityConfig");
    } else if text(spec, "sessionAffinity") == "ClientIP" {
        let config = spec.get("sessionAffinityConfig");
        let timeout = config.and_then(|config| config.pointer("/clientIP/timeoutSeconds"));
        if timeout.is_none_or(Value::is_null) {
            let config = json!({"clientIP": {"timeoutSeconds": 10_800}});
            spec.insert("sessionAffinityConfig".to_owned(), config);
        }
    }
}

/// Moves `stringData` of a Secret into `data`.
fn string_data(secret: &mut Fields) {
    let Some(Value::Object(strings)) = secret.remove("stringData") else {
        return;
    };
    if let Some(data) = object(secret, "data") {
        for (key, value) in strings {
            data.insert(
                key,
                json!(base64(value.as_str().unwrap_or_default().as_bytes())),
            );
        }
    }
}

/// Sets the field `targetPort` of a Service port to the value of its field `port`. An empty string
/// and 0 count as not set.
fn target_port(port: &mut Fields) {
    if matches!(port.get("targetPort"), Some(target) if *target == 0 || *target == "") {
        port.remove("targetPort");
    }
    if let Some(number) = port.get("port").cloned() {
        set_default(port, "targetPort", number);
    }
}

/// Sets the annotation of a DaemonSet that counts the changes of its Pod template.
fn template_generation(metadata: &mut Fields) {
    if let Some(annotations) = object(metadata, "annotations") {
        let annotation = "deprecated.daemonset.template.generation";
        set_default(annotations, annotation, json!("1"));
    }
}

/// Encodes `bytes` as standard base64 with padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let group = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for at in 0..4 {
            let index = (group >> (18 - 6 * at)) & 63;
            let character = ALPHABET.get(index as usize).copied().unwrap_or(b'=');
            out.push(if at <= chunk.len() {
                char::from(character)
            } else {
                '='
            });
        }
    }
    out
}
