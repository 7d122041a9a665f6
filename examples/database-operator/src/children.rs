//! Children of a database.

use opkit::k8s_openapi::api::apps::v1::StatefulSet;
use opkit::k8s_openapi::api::batch::v1::{CronJob, Job};
use opkit::k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service};
use opkit::kube::core::{Expression, Selector};
use opkit::prelude::*;
use opkit::serde_json::{Value, from_value, json};
use rand::distr::{Alphanumeric, SampleString};

use crate::{Backup, Database, Engine};

pub(crate) const PASSWORD: &str = "password";
pub(crate) const INSTANCE: &str = "app.kubernetes.io/instance";

/// Returns the name of the Secret that the servers read: the one in the spec, or the operator's
/// own.
pub(crate) fn secret_name(db: &Database) -> String {
    match &db.spec.password_secret_ref {
        Some(named) => named.name.clone(),
        None => format!("{}-password", db.name_any()),
    }
}

pub(crate) fn password_secret(db: &Database) -> Result<Secret> {
    let password = Alphanumeric.sample_string(&mut rand::rng(), 24);
    Ok(from_value(json!({
        "metadata": meta(db, &secret_name(db)),
        "stringData": {PASSWORD: password},
    }))?)
}

pub(crate) fn config_map(db: &Database) -> Result<ConfigMap> {
    let settings = match db.spec.engine {
        Engine::Postgres => "max_connections = 200\nwal_level = replica\n",
        Engine::Mysql => "[mysqld]\nmax_connections = 200\n",
    };
    Ok(from_value(json!({
        "metadata": meta(db, &format!("{}-config", db.name_any())),
        "data": {"server.conf": settings},
    }))?)
}

pub(crate) fn service(db: &Database) -> Result<Service> {
    let port = match db.spec.engine {
        Engine::Postgres => 5432,
        Engine::Mysql => 3306,
    };
    let ports = json!([{"name": "sql", "port": port}]);
    Ok(from_value(json!({
        "metadata": meta(db, &db.name_any()),
        "spec": {"clusterIP": "None", "selector": labels(db), "ports": ports},
    }))?)
}

/// Returns the StatefulSet of the servers. `secret_hash` is part of the pod template, so that a new
/// password replaces the pods. `storage` is the size at creation: the template of a claim cannot
/// change.
pub(crate) fn stateful_set(
    db: &Database,
    registry: &str,
    secret_hash: &str,
    storage: Quantity,
) -> Result<StatefulSet> {
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}},
    });
    let mounts = json!([{"name": "data", "mountPath": "/var/lib/data"}]);
    let container = container(db, registry, "server", Value::Null, mounts);
    Ok(from_value(json!({
        "metadata": meta(db, &db.name_any()),
        "spec": {
            "replicas": db.spec.replicas,
            "serviceName": db.name_any(),
            "selector": {"matchLabels": labels(db)},
            "template": {
                "metadata": {
                    "labels": labels(db),
                    "annotations": {"db.example.com/secret-hash": secret_hash},
                },
                "spec": {"containers": [container]},
            },
            "volumeClaimTemplates": [claim],
        },
    }))?)
}

pub(crate) fn cron_job(db: &Database, registry: &str, backup: &Backup) -> Result<CronJob> {
    Ok(from_value(json!({
        "metadata": meta(db, &format!("{}-backup", db.name_any())),
        "spec": {
            "schedule": backup.schedule,
            "concurrencyPolicy": "Forbid",
            "jobTemplate": {"spec": backup_job(db, registry)},
        },
    }))?)
}

pub(crate) fn final_backup(db: &Database, registry: &str) -> Result<Job> {
    Ok(from_value(json!({
        "metadata": meta(db, &format!("{}-final-backup", db.name_any())),
        "spec": backup_job(db, registry),
    }))?)
}

fn backup_job(db: &Database, registry: &str) -> Value {
    let command = json!(["/backup.sh"]);
    let container = container(db, registry, "backup", command, Value::Null);
    let pod = json!({"restartPolicy": "Never", "containers": [container]});
    json!({"backoffLimit": 3, "template": {"spec": pod}})
}

fn container(db: &Database, registry: &str, name: &str, command: Value, mounts: Value) -> Value {
    let variable = match db.spec.engine {
        Engine::Postgres => "POSTGRES_PASSWORD",
        Engine::Mysql => "MYSQL_ROOT_PASSWORD",
    };
    let password = json!({"secretKeyRef": {"name": secret_name(db), "key": PASSWORD}});
    json!({
        "name": name,
        "image": format!("{registry}/{}:{}", db.spec.engine.name(), db.spec.version),
        "command": command,
        "env": [{"name": variable, "valueFrom": password}],
        "volumeMounts": mounts,
    })
}

/// Returns the storage size with which the servers were created.
pub(crate) fn storage(servers: &StatefulSet) -> Option<Quantity> {
    let claims = servers.spec.as_ref()?.volume_claim_templates.as_ref()?;
    claimed(claims.first()?)
}

/// Returns the storage size that a claim requests.
pub(crate) fn claimed(claim: &PersistentVolumeClaim) -> Option<Quantity> {
    let requests = claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
    requests.get("storage")?.to_number().ok()
}

pub(crate) fn has_condition(job: &Job, name: &str) -> bool {
    let mut conditions = job
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == name && condition.status == "True")
}

/// Returns a hash (FNV-1a) that is the same in every release of the operator.
pub(crate) fn hash(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Returns a selector for the labels of a database's children.
pub(crate) fn selector(db: &Database) -> Selector {
    Expression::Equal(INSTANCE.to_owned(), db.name_any()).into()
}

fn labels(db: &Database) -> Value {
    json!({"app.kubernetes.io/name": "database", INSTANCE: db.name_any()})
}

fn meta(db: &Database, name: &str) -> Value {
    json!({"name": name, "labels": labels(db)})
}
