//! An operator for database servers: children of six kinds, a password that is created once, and a
//! final backup.

mod children;
mod database;
#[cfg(test)]
mod tests;

use std::fmt;

use opkit::clap;
use opkit::k8s_openapi::api::apps::v1::StatefulSet;
use opkit::k8s_openapi::api::batch::v1::{CronJob, Job};
use opkit::k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service};
use opkit::kube::api::{Api, Patch, PatchParams};
use opkit::metrics::Counter;
use opkit::prelude::*;
use opkit::serde_json::json;

pub use database::{Backup, Database, DatabaseSpec, DatabaseStatus, Engine, SecretRef};

/// Time until the next attempt if another controller owns an object with the name of a child: no
/// event reports when the name is free.
const TAKEN: Duration = Duration::from_secs(60);

/// Returns the operator.
pub fn operator() -> Operator {
    let passwords = Counter::new("database_passwords", "Passwords created", ["engine"]);
    let final_backups = Counter::new(
        "database_final_backups",
        "Final backups completed",
        ["engine"],
    );
    let counters = (passwords.clone(), final_backups.clone());
    let app = move |settings: Settings| async move {
        let (passwords, final_backups) = counters;
        Ok::<_, Error>(App {
            settings,
            passwords,
            final_backups,
        })
    };
    Operator::new("database-operator")
        .crd::<Database>()
        .args::<Settings>()
        .metric(&passwords)
        .metric(&final_backups)
        .state(app.clone())
        // The state writes nowhere else, so a plan can use the same one.
        .state_for_plan(app)
        .controller(
            Controller::new(reconcile)
                .owns::<StatefulSet>()
                .owns::<Service>()
                .owns::<ConfigMap>()
                .owns::<CronJob>()
                .owns::<Job>()
                .creates_once::<Secret>()
                .references::<Secret>(|db: &Database| vec![children::secret_name(db).into()])
                .watches::<PersistentVolumeClaim>(|claim, _| database_of(claim))
                .error_policy(retry)
                .finalizer("db.example.com/final-backup", final_backup)
                .max_concurrent_reconciles(4),
        )
        .rule(PolicyRule::new("", ["persistentvolumeclaims"], ["patch"]))
        .leader_election("database-operator.db.example.com")
}

/// Flags of this operator.
#[derive(clap::Args)]
struct Settings {
    /// Registry that the images of the servers come from
    #[arg(long, env = "DATABASE_REGISTRY", default_value = "docker.io/library")]
    registry: String,
}

/// Shared state of the reconciles.
struct App {
    settings: Settings,
    passwords: Counter<1>,
    final_backups: Counter<1>,
}

/// Problem of a database that only its user can solve.
#[derive(Debug)]
enum DatabaseError {
    NoSecret(String),
    NoPassword(String),
    Shrinks { from: Quantity, to: Quantity },
}

impl std::error::Error for DatabaseError {}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSecret(name) => write!(f, "there is no Secret {name}"),
            Self::NoPassword(name) => write!(f, "Secret {name} has no key password"),
            Self::Shrinks { from, to } => write!(f, "storage cannot shrink from {from} to {to}"),
        }
    }
}

/// None of these is retried: a change of the Secret or of the spec triggers the next reconcile.
fn retry(_: Arc<Database>, _: &DatabaseError, _: Arc<App>) -> Action {
    Action::await_change()
}

/// Returns the reason of a condition or an event.
fn reason_of(error: &Error) -> &'static str {
    match error.downcast_ref::<DatabaseError>() {
        Some(DatabaseError::NoSecret(_)) => "SecretNotFound",
        Some(DatabaseError::NoPassword(_)) => "PasswordMissing",
        Some(DatabaseError::Shrinks { .. }) => "StorageShrinks",
        None if error.is_not_ours() => "NameTaken",
        None => "Error",
    }
}

async fn reconcile(db: Arc<Database>, cx: Context<App>) -> Result<Action> {
    let result = provision(&db, &cx).await;
    report(&db, &cx, result.as_deref()).await?;
    match result {
        Ok(_) => Ok(Action::await_change()),
        Err(error) if error.is_not_ours() => Err(Error::retry_after(TAKEN, error)),
        Err(error) => Err(error),
    }
}

async fn provision(db: &Database, cx: &Context<App>) -> Result<Arc<StatefulSet>> {
    let before = cx.get::<StatefulSet>(db.name_any())?;
    let storage = before.as_deref().and_then(children::storage);
    let (from, to) = (storage.unwrap_or(db.spec.storage), db.spec.storage);
    if to < from {
        Err(DatabaseError::Shrinks { from, to })?;
    }
    let hash = password_hash(db, cx).await?;
    cx.apply(children::config_map(db)?).await?;
    cx.apply(children::service(db)?).await?;
    let registry = &cx.state().settings.registry;
    if let Some(backup) = db.spec.backup.as_ref().filter(|backup| backup.enabled) {
        cx.apply(children::cron_job(db, registry, backup)?).await?;
    }
    let servers = children::stateful_set(db, registry, &hash, from)?;
    let servers = cx.apply(servers).await?;
    grow_claims(db, cx).await?;
    if before.is_none() {
        cx.event(Normal, "Created", format!("{} servers", db.spec.replicas));
    }
    cx.prune().await?;
    Ok(servers)
}

/// Returns a hash of the password. Creates a password if the database names no Secret.
async fn password_hash(db: &Database, cx: &Context<App>) -> Result<String> {
    let name = children::secret_name(db);
    let secret = match cx.get::<Secret>(&name)? {
        Some(secret) => secret,
        None if db.spec.password_secret_ref.is_some() => {
            Err(DatabaseError::NoSecret(name.clone()))?
        }
        None => {
            let secret = cx.create_once(children::password_secret(db)?).await?;
            let engine = db.spec.engine.name();
            cx.state().passwords.with([engine]).inc();
            cx.event(Normal, "PasswordCreated", format!("in Secret {name}"));
            secret
        }
    };
    let data = secret.data.as_ref();
    let password = data
        .and_then(|data| data.get(children::PASSWORD))
        .ok_or(DatabaseError::NoPassword(name))?;
    Ok(children::hash(&password.0))
}

/// Grows the claims of the servers to the size in the spec.
async fn grow_claims(db: &Database, cx: &Context<App>) -> Result {
    let namespace = db.namespace().unwrap_or_default();
    let api: Api<PersistentVolumeClaim> = Api::namespaced(cx.client(), &namespace);
    for claim in cx.list::<PersistentVolumeClaim>(children::selector(db))? {
        if children::claimed(&claim).is_some_and(|present| present < db.spec.storage) {
            let requests = json!({"requests": {"storage": db.spec.storage}});
            let patch = Patch::Merge(json!({"spec": {"resources": requests}}));
            let name = claim.name_any();
            api.patch(&name, &PatchParams::default(), &patch).await?;
            cx.event(Normal, "Resized", format!("{name} to {}", db.spec.storage));
        }
    }
    Ok(())
}

/// Writes the state of the servers, or the problem, to the status.
async fn report(
    db: &Arc<Database>,
    cx: &Context<App>,
    result: Result<&StatefulSet, &Error>,
) -> Result {
    let degraded = match result {
        Ok(_) => Condition::new("Degraded", false).reason("AsExpected"),
        Err(error) => Condition::new("Degraded", true)
            .reason(reason_of(error))
            .message(error.to_string()),
    };
    let before = db
        .status
        .as_ref()
        .and_then(|status| status.conditions.get("Degraded"));
    if let Err(error) = result
        && before.is_none_or(|before| before.reason != reason_of(error))
    {
        cx.event(Warning, reason_of(error), error.to_string());
    }
    cx.update_status(db, |status| {
        let conditions = &mut status.conditions;
        conditions.set(&degraded);
        if let Ok(servers) = result {
            let (ready, expected) = (servers.ready_replicas(), db.spec.replicas);
            let message = format!("{ready} of {expected} servers are ready");
            let available = Condition::new("Available", ready > expected / 2).reason("Servers");
            conditions.set(available.message(message));
            conditions.set(Condition::new("Progressing", !servers.is_ready()).reason("Rollout"));
            status.ready_replicas = ready;
        }
    })
    .await?;
    Ok(())
}

/// Runs a final backup before the database is deleted.
async fn final_backup(db: Arc<Database>, cx: Context<App>) -> Result<Cleanup> {
    let registry = &cx.state().settings.registry;
    let job = cx.apply(children::final_backup(&db, registry)?).await?;
    if children::has_condition(&job, "Complete") {
        let engine = db.spec.engine.name();
        cx.state().final_backups.with([engine]).inc();
        cx.event(Normal, "FinalBackup", "the final backup is complete");
        return Ok(Cleanup::Done);
    }
    if children::has_condition(&job, "Failed") {
        // No data is lost: the database stays until an administrator resolves the failure.
        cx.event(
            Warning,
            "FinalBackupFailed",
            "the final backup failed: see its Job",
        );
    }
    // The Job is a child: its end triggers the next call.
    Ok(Cleanup::AwaitChange)
}

/// Returns the database whose servers use the claim.
fn database_of(claim: &PersistentVolumeClaim) -> Vec<ObjectKey> {
    let name = claim.labels().get(children::INSTANCE);
    name.map(ObjectKey::from).into_iter().collect()
}
