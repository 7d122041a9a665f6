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
    /// Which server.
    #[opkit(printcolumn = "Engine")]
    pub engine: Engine,
    /// Version of the server: the tag of its image.
    #[opkit(pattern = r"^[0-9]+(\.[0-9]+)*$", printcolumn = "Version")]
    pub version: String,
    /// How many servers.
    #[opkit(default = 1, min = 1, max = 9)]
    pub replicas: i32,
    /// How much storage each server has. It may grow, and not shrink.
    pub storage: Quantity,
    /// Backups; none by default.
    pub backup: Option<Backup>,
    /// The Secret with the key `password`; without one, the operator creates a Secret with a
    /// password.
    pub password_secret_ref: Option<SecretRef>,
}

/// A sort of server.
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
    /// The name of the image, and the value of the label of metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
        }
    }
}

/// When to back up.
#[opkit::schema]
pub struct Backup {
    /// As in a CronJob.
    #[opkit(min_length = 1)]
    pub schedule: String,
    /// Whether backups are made.
    #[opkit(default = true)]
    pub enabled: bool,
}

/// A Secret in the same namespace.
#[opkit::schema]
pub struct SecretRef {
    /// Its name.
    pub name: String,
}

/// What is known of a database.
#[opkit::status]
pub struct DatabaseStatus {
    /// How many servers are ready.
    pub ready_replicas: i32,
    /// The generation that this is about.
    pub observed_generation: Option<i64>,
    /// `Available`, `Progressing`, `Degraded`.
    pub conditions: Conditions,
}
