//! The kind `Backup` of types.opkit.dev/v1, generated from its CRD.

use opkit::k8s_openapi::ByteString;
use opkit::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use opkit::k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use opkit::prelude::{BTreeMap, Conditions, Quantity};
use opkit::serde_json::Value;

/// Desired state of a backup.
#[opkit::kind(
    group = "types.opkit.dev",
    version = "v1",
    namespaced,
    status = BackupStatus,
    shortname = "bkp",
    category = "all",
    category = "storage",
    deprecated = "types.opkit.dev/v1 Backup is deprecated",
    scale(
        spec_replicas_path = ".spec.copies",
        status_replicas_path = ".status.copies",
        label_selector_path = ".status.selector"
    ),
    selectable = ".spec.mode",
    description = "A backup of volumes.\n\nIt is taken once.",
    optional_spec
)]
#[opkit(printcolumn("Mode", path = ".spec.mode", type_ = "string"))]
#[opkit(printcolumn(
    "Copies",
    path = ".spec.copies",
    type_ = "integer",
    description = "Number of copies.",
    format = "int32",
    priority = 1
))]
#[opkit(printcolumn(
    "Ready",
    path = ".status.conditions[?(@.type==\"Ready\")].status",
    type_ = "string"
))]
#[opkit(printcolumn(age), label("app.kubernetes.io/part-of", "backups"))]
#[opkit(annotation("types.opkit.dev/owner", "storage"))]
#[opkit(object_rule("size(self.metadata.name) <= 40", message = "the name is too long"))]
#[opkit(min_properties = 1)]
#[opkit(rule(
    "!has(self.until) || self.copies > 0",
    message = "a backup with an end needs copies",
    reason = FieldValueInvalid,
    field = ".copies"
))]
#[derive(Default)]
pub struct BackupSpec {
    /// Any value.
    pub any: Option<Value>,
    /// The most that it may cost.
    #[opkit(nullable)]
    #[opkit(
        pattern = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
    )]
    pub budget: Option<Quantity>,
    #[opkit(type_ = "string", format = "byte")]
    pub bytes: Option<ByteString>,
    #[opkit(rename = "clusterIPs", list_set)]
    #[opkit(items(description = "An address.", max_length = 45), max_items = 2)]
    pub cluster_ips: Vec<String>,
    /// Number of copies.
    #[opkit(default = 1, min = 0, exclusive_max = 9)]
    pub copies: i32,
    #[opkit(type_ = "integer", multiple_of = 2)]
    pub count: Option<i64>,
    /// Where it is stored.
    pub destination: Option<BackupDestination>,
    #[opkit(embedded_resource)]
    pub embedded: Option<Value>,
    #[opkit(type_ = "object", preserve_unknown_fields)]
    pub free: Option<Value>,
    #[opkit(values(max_length = 63), max_properties = 8)]
    pub labels: BTreeMap<String, String>,
    #[opkit(enum(1, 2, 9))]
    pub level: Option<i32>,
    /// Limits of a run.
    #[opkit(
        default = BackupLimits { hosts: vec!["a".to_owned(), "b".to_owned()], rate: 7, strict: true }
    )]
    #[opkit(struct_type = "atomic")]
    pub limits: BackupLimits,
    #[opkit(list_atomic)]
    pub matrix: Vec<BackupMatrix>,
    /// How many may be missing.
    #[opkit(default = "25%")]
    pub max_unavailable: IntOrString,
    /// How it is taken.
    #[opkit(default = BackupMode::Incremental, max_length = 20)]
    pub mode: BackupMode,
    pub power: Option<BackupPower>,
    #[opkit(allow_float, min = 0.5)]
    pub ratio: Option<f64>,
    /// # Where it runs
    ///
    /// A region.
    #[opkit(pattern = r"^[a-z]+\d$")]
    #[opkit(rule("self == oldSelf", message = "region is immutable"))]
    #[opkit(title = "Region", example = "eu")]
    #[opkit(external_docs(url = "https://example.com", description = "Regions"))]
    pub region: Option<String>,
    /// A secret.
    pub secret_ref: Option<BackupSecretRef>,
    #[opkit(list_map = ["name", "port"])]
    #[opkit(items(rule("self.port > 0", message_expression = "\"port of \" + self.name")))]
    pub steps: Vec<BackupStep>,
    #[opkit(rename = "tool-name", format = "hostname")]
    pub tool_name: Option<String>,
    pub type_: Option<String>,
    /// The end.
    pub until: Option<Time>,
}

/// Observed state of a backup.
#[opkit::status]
pub struct BackupStatus {
    pub conditions: Conditions,
    pub copies: Option<i32>,
    pub observed_generation: Option<i64>,
    pub selector: Option<String>,
}

#[opkit::schema]
pub struct BackupDestinationBucket {
    #[opkit(min_length = 1)]
    pub name: String,
}

/// A volume.
#[opkit::schema]
pub struct BackupDestinationVolume {}

/// Where it is stored.
#[opkit::schema]
pub enum BackupDestination {
    Bucket(BackupDestinationBucket),
    /// A volume.
    Volume(BackupDestinationVolume),
}

/// Limits of a run.
#[opkit::schema]
pub struct BackupLimits {
    #[opkit(default = ["a", "b"])]
    pub hosts: Vec<String>,
    #[opkit(default = 7)]
    pub rate: i64,
    #[opkit(default = true)]
    pub strict: bool,
}

/// A row.
#[opkit::schema]
#[opkit(max_items = 3)]
pub struct BackupMatrix(pub Vec<i64>);

/// How it is taken.
#[opkit::schema]
pub enum BackupMode {
    Full,
    #[opkit(rename = "incremental")]
    Incremental,
    #[opkit(rename = "us-east")]
    UsEast,
    #[opkit(rename = "")]
    Empty,
}

#[opkit::schema]
pub struct BackupPowerBattery {
    pub hours: i32,
}

#[opkit::schema(union = "type")]
pub enum BackupPower {
    Mains,
    Battery(BackupPowerBattery),
}

/// A secret.
#[opkit::schema]
pub struct BackupSecretRef {
    pub name: String,
}

/// A step of a backup.
#[opkit::schema]
pub struct BackupStep {
    pub name: String,
    pub port: i32,
    /// A secret.
    pub secret_ref: Option<BackupSecretRef>,
}
