//! The kind `Database`.

use opkit::prelude::*;

/// A database server with its storage.
#[opkit::kind(
    group = "db.example.com", version = "v1", namespaced, status = DatabaseStatus,
    shortname = "db", category = "all",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.readyReplicas")
)]
#[opkit(
    printcolumn("Available", condition = "Available"),
    printcolumn("Ready", path = ".status.readyReplicas", type_ = "integer"),
    printcolumn(age)
)]
pub struct DatabaseSpec {
    /// Database software.
    #[opkit(printcolumn = "Engine")]
    pub engine: Engine,
    /// Version of the server: the tag of its image.
    #[opkit(pattern = r"^[0-9]+(\.[0-9]+)*$", printcolumn = "Version")]
    pub version: String,
    /// Number of servers.
    #[opkit(default = 1, min = 1, max = 9)]
    pub replicas: i32,
    /// Storage size of each server. It can grow, but not shrink.
    pub storage: Quantity,
    /// Backup schedule; no backups by default.
    pub backup: Option<Backup>,
    /// Secret with the key `password`; without one, the operator creates a Secret with a generated
    /// password.
    pub password_secret_ref: Option<SecretRef>,
}

/// Database software.
#[opkit::schema]
#[derive(Copy, PartialEq, Eq)]
pub enum Engine {
    /// PostgreSQL.
    #[opkit(rename = "postgres")]
    Postgres,
    /// MySQL.
    #[opkit(rename = "mysql")]
    Mysql,
}

impl Engine {
    /// Returns the name of the image, which is also the label value in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
        }
    }
}

/// Schedule of backups.
#[opkit::schema]
pub struct Backup {
    /// Schedule in the format of a CronJob.
    #[opkit(min_length = 1)]
    pub schedule: String,
    /// Whether backups run.
    #[opkit(default = true)]
    pub enabled: bool,
}

/// Reference to a Secret in the same namespace.
#[opkit::schema]
pub struct SecretRef {
    /// Name of the Secret.
    pub name: String,
}

/// Observed state of a database.
#[opkit::status]
pub struct DatabaseStatus {
    /// Number of servers that are ready.
    pub ready_replicas: i32,
    /// Generation of the spec that this status belongs to.
    pub observed_generation: Option<i64>,
    /// `Available`, `Progressing` and `Degraded`.
    pub conditions: Conditions,
}
