//! `cx.apply` of many kinds: values that the server rewrites cause neither a loop nor a write after
//! a restart.

use k8s_openapi::api::apps::v1::{DaemonSet, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, ServiceAccount};
use k8s_openapi::api::core::v1::{ResourceQuota, Secret, Service};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use opkit::prelude::*;
use serde_json::{Value, json};

use super::{Rig, object};

fn pod() -> Value {
    json!({
        "restartPolicy": "Never",
        "serviceAccountName": "",
        "securityContext": {},
        "hostNetwork": false,
        "terminationGracePeriodSeconds": 0,
        "imagePullSecrets": [],
        "initContainers": [],
        "volumes": [
            {"name": "tmp", "emptyDir": {"sizeLimit": "1024Mi"}},
            {"name": "config", "configMap": {"name": "child", "defaultMode": 420, "items": []}},
        ],
        "containers": [{
            "name": "robot", "image": "nginx:1.27", "args": [],
            "env": [
                {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1000m"}}},
                {"name": "EMPTY", "value": ""},
            ],
            "envFrom": [],
            "resources": {"requests": {"cpu": "0.1", "memory": "1Gi"}, "limits": {}},
            "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "initialDelaySeconds": 0},
            "ports": [{"name": "http", "containerPort": 80, "protocol": "TCP"}],
            "securityContext": {"privileged": false, "capabilities": {"drop": ["ALL"], "add": []}},
        }],
    })
}

fn always() -> Value {
    let mut pod = pod();
    pod["restartPolicy"] = json!("Always");
    json!({"metadata": {"labels": {"app": "robot"}}, "spec": pod})
}

async fn apply_all(cx: &Context) -> opkit::Result {
    let meta = || json!({"name": "child", "labels": {}, "annotations": {"a": ""}});
    let labels = || json!({"matchLabels": {"app": "robot"}});
    cx.apply::<ConfigMap>(object(json!({
        "metadata": meta(), "data": {"a": "", "b": "1000m"}, "binaryData": {"c": "AAEC"},
        "immutable": false,
    })))
    .await?;
    cx.apply::<Secret>(object(
        json!({"metadata": meta(), "type": "Opaque", "data": {}}),
    ))
    .await?;
    cx.apply::<ServiceAccount>(object(json!({
        "metadata": meta(), "automountServiceAccountToken": false, "imagePullSecrets": [],
    })))
    .await?;
    cx.apply::<Role>(object(json!({"metadata": meta(), "rules": [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"], "resourceNames": []},
    ]})))
    .await?;
    cx.apply::<RoleBinding>(object(json!({
        "metadata": meta(),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "child"},
        "subjects": [{"kind": "ServiceAccount", "name": "child", "apiGroup": ""}],
    })))
    .await?;
    cx.apply::<PersistentVolumeClaim>(object(json!({"metadata": meta(), "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "0.5Gi"}},
        "storageClassName": "",
    }})))
    .await?;
    cx.apply::<ResourceQuota>(object(json!({"metadata": meta(), "spec": {
        "hard": {"requests.cpu": "1000m", "count/pods": "1k"},
    }})))
    .await?;
    cx.apply::<Job>(object(json!({"metadata": meta(), "spec": {
        "suspend": true, "backoffLimit": 0, "template": {"spec": pod()},
    }})))
    .await?;
    cx.apply::<CronJob>(object(json!({"metadata": meta(), "spec": {
        "schedule": "0 0 1 1 *", "suspend": true, "successfulJobsHistoryLimit": 0,
        "jobTemplate": {"metadata": {"labels": {}}, "spec": {"template": {"spec": pod()}}},
    }})))
    .await?;
    cx.apply::<StatefulSet>(object(json!({"metadata": meta(), "spec": {
        "replicas": 0, "serviceName": "child", "selector": labels(), "template": always(),
        "volumeClaimTemplates": [{
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}},
        }],
    }})))
    .await?;
    cx.apply::<DaemonSet>(object(json!({"metadata": meta(), "spec": {
        "selector": labels(), "template": always(),
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 0}},
    }})))
    .await?;
    cx.apply::<Service>(object(json!({"metadata": meta(), "spec": {
        "clusterIP": "None", "selector": {"app": "robot"}, "externalIPs": [],
        "ports": [{"name": "http", "port": 80, "targetPort": 80}, {"name": "more", "port": 81}],
    }})))
    .await?;
    cx.apply::<Ingress>(object(json!({"metadata": meta(), "spec": {"rules": [{
        "host": "robot.example.com",
        "http": {"paths": [{
            "path": "/", "pathType": "Prefix",
            "backend": {"service": {"name": "child", "port": {"number": 80}}},
        }]},
    }], "tls": []}})))
        .await?;
    cx.apply::<NetworkPolicy>(object(json!({"metadata": meta(), "spec": {
        "podSelector": {}, "policyTypes": ["Ingress"], "egress": [],
        "ingress": [{"from": [], "ports": [{"port": 80}]}],
    }})))
    .await?;
    cx.apply::<PodDisruptionBudget>(object(json!({"metadata": meta(), "spec": {
        "minAvailable": 0, "selector": labels(),
    }})))
    .await?;
    cx.apply::<HorizontalPodAutoscaler>(object(json!({"metadata": meta(), "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "child"},
        "minReplicas": 1, "maxReplicas": 3,
        "metrics": [{"type": "Pods", "pods": {
            "metric": {"name": "orders"}, "target": {"type": "AverageValue", "averageValue": "0.5"},
        }}],
    }})))
    .await?;
    Ok(())
}

async fn start(plane: &ControlPlane) -> opkit::Result<Rig<ConfigMap>> {
    let owner: ConfigMap = object(json!({"metadata": {"name": "owner"}}));
    plane.apply(owner).await?;
    Rig::start_with(plane, |controller| {
        controller
            .owns::<ConfigMap>()
            .owns::<Secret>()
            .owns::<ServiceAccount>()
            .owns::<Role>()
            .owns::<RoleBinding>()
            .owns::<PersistentVolumeClaim>()
            .owns::<ResourceQuota>()
            .owns::<Job>()
            .owns::<CronJob>()
            .owns::<StatefulSet>()
            .owns::<DaemonSet>()
            .owns::<Service>()
            .owns::<Ingress>()
            .owns::<NetworkPolicy>()
            .owns::<PodDisruptionBudget>()
            .owns::<HorizontalPodAutoscaler>()
    })
    .await
}

#[opkit::test]
async fn no_kind_loops_or_is_written_after_a_restart(plane: ControlPlane) -> opkit::Result {
    let mut rig = start(&plane).await?;
    let (_, cx) = rig.run().await?;
    apply_all(&cx).await?;
    rig.writes();
    apply_all(&cx).await?;
    assert_eq!(rig.writes(), [""; 0], "the second apply");
    let (_, cx) = rig.run().await?;
    apply_all(&cx).await?;
    assert_eq!(rig.writes(), [""; 0], "the next run");
    drop(cx);
    rig.stop().await?;
    let mut rig = start(&plane).await?;
    let (_, cx) = rig.run().await?;
    rig.writes();
    apply_all(&cx).await?;
    assert_eq!(rig.writes(), [""; 0], "after a restart");
    rig.stop().await
}
