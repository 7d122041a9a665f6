//! What the view shows.

use std::time::Duration;

use jiff::Timestamp;
use opkit_debug::{QueuedRequest, Reconcile, WebhookCalls};

/// State of the operator and of its control plane at one time.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Time of the snapshot; ages are relative to it.
    pub now: Timestamp,
    /// Name of the operator.
    pub operator: String,
    /// State of the operator in a few words, such as `running`.
    pub state: String,
    /// Whether the state needs attention, such as a failed build.
    pub has_problem: bool,
    /// Address of the API server.
    pub server: String,
    /// Shell command that selects the kubeconfig.
    pub kubeconfig: String,
    /// Names of the controllers.
    pub controllers: Vec<String>,
    /// Objects of the operator's kinds.
    pub objects: Vec<ObjectRow>,
    /// Latest reconciles of all objects, oldest first.
    pub reconciles: Vec<Reconcile>,
    /// Requests in the queues.
    pub queue: Vec<QueuedRequest>,
    /// Calls of the webhooks.
    pub webhooks: Vec<WebhookCalls>,
    /// Events in the cluster, newest first.
    pub events: Vec<Event>,
    /// Lines of the operator's log, oldest first.
    pub log: Vec<LogLine>,
    /// Messages of the command and output of the compiler, oldest first.
    pub messages: Vec<String>,
}

/// Object of one of the operator's kinds.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ObjectRow {
    /// Kind of the object.
    pub kind: String,
    /// Namespace; `None` if the object is cluster-scoped.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
    /// Ready and wanted replicas, or the status of the condition `Ready`.
    pub ready: String,
    /// Reason of the condition `Ready`, or another summary of the status.
    pub status: String,
}

impl ObjectRow {
    /// Creates a row.
    pub fn new(kind: &str, namespace: Option<&str>, name: &str, ready: &str, status: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            ready: ready.to_owned(),
            status: status.to_owned(),
        }
    }

    /// Reports whether a reconcile was of this object.
    pub(crate) fn is_of(&self, reconcile: &Reconcile) -> bool {
        reconcile.kind == self.kind
            && reconcile.name == self.name
            && reconcile.namespace == self.namespace
    }

    /// Returns the name, with the namespace unless it is the default one.
    pub(crate) fn title(&self) -> String {
        match self.namespace.as_deref() {
            None | Some("default") => self.name.clone(),
            Some(namespace) => format!("{namespace}/{}", self.name),
        }
    }
}

/// An event in the cluster.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// Time of the last occurrence.
    pub time: Timestamp,
    /// Whether the type of the event is `Warning`.
    pub is_warning: bool,
    /// Kind and name of the object.
    pub object: String,
    /// Reason, one word.
    pub reason: String,
    /// Message.
    pub message: String,
    /// Number of occurrences.
    pub count: u64,
}

/// A line of the operator's log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogLine {
    /// Time of day, such as `12:04:31`; empty if the line has none.
    pub time: String,
    /// Level, such as `WARN`; empty if the line has none.
    pub level: String,
    /// The rest of the line.
    pub text: String,
}

impl LogLine {
    /// Splits a line as opkit's operators write it: time, level, target and text. The target is
    /// left out.
    pub fn parse(line: &str) -> Self {
        let mut words = line.splitn(2, ' ');
        let (time, rest) = (words.next().unwrap_or_default(), words.next());
        let is_time = time.parse::<Timestamp>().is_ok();
        let (Some(rest), true) = (rest.map(str::trim_start), is_time) else {
            return Self {
                text: line.to_owned(),
                ..Self::default()
            };
        };
        let (level, rest) = rest.split_once(' ').unwrap_or(("", rest));
        let text = match rest.split_once(": ") {
            Some((target, text)) if !target.contains(' ') => text,
            _ => rest,
        };
        Self {
            time: time.get(11..19).unwrap_or_default().to_owned(),
            level: level.to_owned(),
            text: text.to_owned(),
        }
    }
}

/// Returns the time between two timestamps, or zero.
pub(crate) fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}
