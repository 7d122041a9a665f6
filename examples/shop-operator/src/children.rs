//! Children of a shop.

use std::collections::BTreeMap;

use opkit::k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, StatefulSet, StatefulSetSpec};
use opkit::k8s_openapi::api::core::v1::{
    ConfigMap, Container, EnvVar, LocalObjectReference, PodSpec, PodTemplateSpec, Secret, Service,
    ServiceAccount, ServicePort, ServiceSpec,
};
use opkit::k8s_openapi::api::networking::v1::{
    HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressRule,
    IngressServiceBackend, IngressSpec, ServiceBackendPort,
};
use opkit::k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use opkit::k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use opkit::k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use opkit::kube::core::PartialObjectMeta;
use opkit::prelude::*;

use crate::{Database, Shop};

/// Returns the service account of the pods, with the secrets for pulling their images.
pub(crate) fn service_account(
    shop: &Shop,
    pull_secrets: &[Arc<PartialObjectMeta<Secret>>],
) -> ServiceAccount {
    let mut names: Vec<_> = pull_secrets
        .iter()
        .map(|secret| secret.name_any())
        .collect();
    // The cache returns objects in no particular order, and another order would change the account.
    names.sort();
    let references = names.into_iter().map(|name| LocalObjectReference { name });
    ServiceAccount {
        metadata: metadata(shop, &shop.name_any(), "web"),
        image_pull_secrets: Some(references.collect()),
        ..Default::default()
    }
}

/// Returns the service of the web servers.
pub(crate) fn service(shop: &Shop) -> Service {
    Service {
        metadata: metadata(shop, &shop.name_any(), "web"),
        spec: Some(ServiceSpec {
            selector: Some(labels(shop, "web")),
            ports: Some(vec![ServicePort {
                name: Some("http".to_owned()),
                port: 80,
                ..Default::default()
            }]),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Returns the database: one pod that keeps its name.
pub(crate) fn database(shop: &Shop, database: &Database) -> StatefulSet {
    let name = format!("{}-database", shop.name_any());
    StatefulSet {
        metadata: metadata(shop, &name, "database"),
        spec: Some(StatefulSetSpec {
            replicas: Some(1),
            service_name: Some(name),
            selector: selector(shop, "database"),
            template: pods(shop, "database", &database.image, Vec::new()),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Returns the Deployment of the web servers. It does not set `replicas`: that field belongs to the
/// scaler.
pub(crate) fn web(shop: &Shop, settings: &ConfigMap) -> Deployment {
    let settings = settings.data.iter().flatten();
    // The settings are copied by value, so that a change of them changes the template, which
    // replaces the pods.
    let env = settings.map(|(name, value)| EnvVar {
        name: name.clone(),
        value: Some(value.clone()),
        ..Default::default()
    });
    Deployment {
        metadata: metadata(shop, &shop.name_any(), "web"),
        spec: Some(DeploymentSpec {
            selector: selector(shop, "web"),
            template: pods(shop, "web", &shop.spec.image, env.collect()),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Returns the budget that lets a drain of nodes evict one web server at a time.
pub(crate) fn disruption_budget(shop: &Shop) -> PodDisruptionBudget {
    PodDisruptionBudget {
        metadata: metadata(shop, &shop.name_any(), "web"),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(1)),
            selector: Some(selector(shop, "web")),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Returns the ingress for requests from outside of the cluster.
pub(crate) fn ingress(shop: &Shop, host: &str) -> Ingress {
    let backend = IngressBackend {
        service: Some(IngressServiceBackend {
            name: shop.name_any(),
            port: Some(ServiceBackendPort {
                name: Some("http".to_owned()),
                ..Default::default()
            }),
        }),
        ..Default::default()
    };
    Ingress {
        metadata: metadata(shop, &shop.name_any(), "web"),
        spec: Some(IngressSpec {
            rules: Some(vec![IngressRule {
                host: Some(host.to_owned()),
                http: Some(HTTPIngressRuleValue {
                    paths: vec![HTTPIngressPath {
                        path: Some("/".to_owned()),
                        path_type: "Prefix".to_owned(),
                        backend,
                    }],
                }),
            }]),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn labels(shop: &Shop, component: &str) -> BTreeMap<String, String> {
    [
        ("app.kubernetes.io/name", "shop"),
        ("app.kubernetes.io/instance", &shop.name_any()),
        ("app.kubernetes.io/component", component),
    ]
    .map(|(label, value)| (label.to_owned(), value.to_owned()))
    .into()
}

fn metadata(shop: &Shop, name: &str, component: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some(labels(shop, component)),
        ..Default::default()
    }
}

fn selector(shop: &Shop, component: &str) -> LabelSelector {
    LabelSelector {
        match_labels: Some(labels(shop, component)),
        ..Default::default()
    }
}

fn pods(shop: &Shop, component: &str, image: &str, env: Vec<EnvVar>) -> PodTemplateSpec {
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels(shop, component)),
            ..Default::default()
        }),
        spec: Some(PodSpec {
            service_account_name: Some(shop.name_any()),
            containers: vec![Container {
                name: component.to_owned(),
                image: Some(image.to_owned()),
                env: Some(env),
                ..Default::default()
            }],
            ..Default::default()
        }),
    }
}
