//! The requests of a diagnosis.

use opkit_client::Kind;

use super::{certificate_secrets, role_namespaces};
use crate::OperatorManifests;
use crate::value::name;

/// One request.
pub(super) struct Request {
    pub(super) kind: Kind,
    pub(super) scope: Scope,
}

/// Objects of a request.
pub(super) enum Scope {
    /// One object.
    Object {
        namespace: Option<String>,
        name: String,
    },
    /// All objects of a namespace or of the cluster that a field selector selects.
    List {
        namespace: Option<String>,
        fields: &'static str,
    },
}

const ADMISSION: &str = "admissionregistration.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

fn resource(group: &str, kind: &str, plural: &str, namespaced: bool) -> Kind {
    Kind {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced,
    }
}

/// Returns the request for a Secret.
pub(super) fn secret(namespace: &str, name: &str) -> Request {
    Request {
        kind: resource("", "Secret", "secrets", true),
        scope: Scope::Object {
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        },
    }
}

/// Returns all requests but those for the objects of the operator's kinds.
pub(super) fn requests(manifests: &OperatorManifests) -> Vec<Request> {
    let cluster = |group, kind, plural| Request {
        kind: resource(group, kind, plural, false),
        scope: Scope::List {
            namespace: None,
            fields: "",
        },
    };
    let in_namespace = |group, kind, plural, namespace: &str, fields| Request {
        kind: resource(group, kind, plural, true),
        scope: Scope::List {
            namespace: Some(namespace.to_owned()),
            fields,
        },
    };
    let own = manifests.namespace.as_str();
    let mut requests = vec![
        cluster("", "Namespace", "namespaces"),
        cluster("apiregistration.k8s.io", "APIService", "apiservices"),
        cluster(RBAC, "ClusterRole", "clusterroles"),
        cluster(RBAC, "ClusterRoleBinding", "clusterrolebindings"),
        cluster(
            ADMISSION,
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
        ),
        cluster(
            ADMISSION,
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
        ),
        in_namespace("apps", "Deployment", "deployments", own, ""),
        in_namespace("", "Pod", "pods", own, ""),
        in_namespace("", "Service", "services", own, ""),
        in_namespace("", "ServiceAccount", "serviceaccounts", own, ""),
        in_namespace("", "Event", "events", own, "reason=Unhealthy"),
        in_namespace(
            "discovery.k8s.io",
            "EndpointSlice",
            "endpointslices",
            own,
            "",
        ),
        in_namespace("coordination.k8s.io", "Lease", "leases", own, ""),
    ];
    for namespace in role_namespaces(manifests) {
        requests.push(in_namespace(RBAC, "Role", "roles", namespace, ""));
        requests.push(in_namespace(
            RBAC,
            "RoleBinding",
            "rolebindings",
            namespace,
            "",
        ));
    }
    for crd in manifests.all("CustomResourceDefinition") {
        requests.push(Request {
            kind: resource(
                "apiextensions.k8s.io",
                "CustomResourceDefinition",
                "customresourcedefinitions",
                false,
            ),
            scope: Scope::Object {
                namespace: None,
                name: name(crd).to_owned(),
            },
        });
    }
    let secrets = certificate_secrets(manifests);
    requests.extend(secrets.into_iter().map(|name| secret(own, name)));
    requests
}
