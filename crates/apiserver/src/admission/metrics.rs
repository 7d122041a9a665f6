//! Metrics of admission webhooks, with the names of Kubernetes.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Upper bounds of the buckets of a webhook's duration, in seconds.
const BUCKETS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
/// The highest code in a label. Higher codes are counted as this one.
const CODE_MAX: u16 = 600;

/// The metrics of all webhooks.
#[derive(Debug)]
pub(crate) struct AdmissionMetrics {
    registry: Registry,
    duration: Family<DurationLabels, Histogram, fn() -> Histogram>,
    requests: Family<RequestLabels, Counter>,
    rejections: Family<RejectionLabels, Counter>,
    fail_open: Family<FailOpenLabels, Counter>,
    condition_errors: Family<ConditionLabels, Counter>,
    condition_exclusions: Family<ConditionLabels, Counter>,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct DurationLabels {
    name: String,
    r#type: &'static str,
    operation: &'static str,
    rejected: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct RequestLabels {
    name: String,
    r#type: &'static str,
    operation: &'static str,
    code: u32,
    rejected: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct RejectionLabels {
    name: String,
    r#type: &'static str,
    operation: &'static str,
    error_type: &'static str,
    rejection_code: u32,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct FailOpenLabels {
    name: String,
    r#type: &'static str,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
struct ConditionLabels {
    name: String,
    kind: &'static str,
    r#type: &'static str,
    operation: &'static str,
}

/// A call of a webhook that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) name: &'a str,
    /// `admit` or `validating`.
    pub(crate) step: &'static str,
    pub(crate) operation: &'static str,
    pub(crate) elapsed: Duration,
    pub(crate) code: u16,
    /// The sort of error of a rejection, or `None` if the request passes.
    pub(crate) rejection: Option<&'static str>,
}

impl AdmissionMetrics {
    pub(crate) fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            duration: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            requests: Family::default(),
            rejections: Family::default(),
            fail_open: Family::default(),
            condition_errors: Family::default(),
            condition_exclusions: Family::default(),
        };
        let registry = &mut metrics.registry;
        registry.register(
            "apiserver_admission_webhook_admission_duration_seconds",
            "Duration of the calls of admission webhooks, by name, type and operation",
            metrics.duration.clone(),
        );
        registry.register(
            "apiserver_admission_webhook_request",
            "Calls of admission webhooks, by name, type, operation and HTTP code",
            metrics.requests.clone(),
        );
        // Kubernetes' name of this counter and of the next has no suffix, so it is registered as
        // a part of the name.
        registry.register(
            "apiserver_admission_webhook_rejection_count",
            "Requests that admission webhooks have rejected, or that were rejected because a webhook could not be called",
            metrics.rejections.clone(),
        );
        registry.register(
            "apiserver_admission_webhook_fail_open_count",
            "Requests that passed although a webhook could not be called",
            metrics.fail_open.clone(),
        );
        registry.register(
            "apiserver_admission_match_condition_evaluation_errors",
            "Match conditions that could not be evaluated",
            metrics.condition_errors.clone(),
        );
        registry.register(
            "apiserver_admission_match_condition_exclusions",
            "Requests that match conditions have excluded",
            metrics.condition_exclusions.clone(),
        );
        metrics
    }

    /// Counts a call.
    pub(crate) fn observe(&self, call: &Call<'_>) {
        let rejected = if call.rejection.is_some() {
            "true"
        } else {
            "false"
        };
        let code = u32::from(call.code.min(CODE_MAX));
        self.requests
            .get_or_create(&RequestLabels {
                name: call.name.to_owned(),
                r#type: call.step,
                operation: call.operation,
                code,
                rejected,
            })
            .inc();
        self.duration
            .get_or_create(&DurationLabels {
                name: call.name.to_owned(),
                r#type: call.step,
                operation: call.operation,
                rejected,
            })
            .observe(call.elapsed.as_secs_f64());
        if let Some(error_type) = call.rejection {
            self.rejections
                .get_or_create(&RejectionLabels {
                    name: call.name.to_owned(),
                    r#type: call.step,
                    operation: call.operation,
                    error_type,
                    rejection_code: code,
                })
                .inc();
        }
    }

    /// Counts a request that passes although a webhook could not be called.
    pub(crate) fn fail_open(&self, name: &str, step: &'static str) {
        let labels = FailOpenLabels {
            name: name.to_owned(),
            r#type: step,
        };
        self.fail_open.get_or_create(&labels).inc();
    }

    /// Counts match conditions that could not be evaluated.
    pub(crate) fn condition_error(
        &self,
        name: &str,
        kind: &'static str,
        step: &'static str,
        operation: &'static str,
    ) {
        let labels = condition_labels(name, kind, step, operation);
        self.condition_errors.get_or_create(&labels).inc();
    }

    /// Counts a request that match conditions exclude.
    pub(crate) fn condition_exclusion(
        &self,
        name: &str,
        kind: &'static str,
        step: &'static str,
        operation: &'static str,
    ) {
        let labels = condition_labels(name, kind, step, operation);
        self.condition_exclusions.get_or_create(&labels).inc();
    }

    /// Returns the metrics in the text format of Prometheus.
    pub(crate) fn encode(&self) -> String {
        let mut text = String::new();
        match prometheus_client::encoding::text::encode(&mut text, &self.registry) {
            Ok(()) => without_suffix(&text),
            Err(_) => String::new(),
        }
    }
}

fn condition_labels(
    name: &str,
    kind: &'static str,
    step: &'static str,
    operation: &'static str,
) -> ConditionLabels {
    ConditionLabels {
        name: name.to_owned(),
        kind,
        r#type: step,
        operation,
    }
}

/// Removes the suffix `_total`, which the encoder adds to every counter, from the counters that
/// have none in Kubernetes.
fn without_suffix(text: &str) -> String {
    let mut text = text.replace("_rejection_count_total", "_rejection_count");
    text = text.replace("_fail_open_count_total", "_fail_open_count");
    text
}
