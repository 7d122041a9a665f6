//! Calls of the webhooks, from the operator's metrics.
//!
//! The metrics are read as text: a reference to the webhooks themselves would add them to operators
//! that have none.

use std::collections::BTreeMap;

use opkit_debug::WebhookCalls;

const PREFIX: &str = "controller_runtime_webhook_";

/// Returns the calls of each webhook in the text of a metrics registry.
pub(super) fn calls(metrics: &str) -> Vec<WebhookCalls> {
    let mut webhooks: BTreeMap<&str, WebhookCalls> = BTreeMap::new();
    let mut seconds: BTreeMap<&str, f64> = BTreeMap::new();
    for line in metrics.lines() {
        let Some((name, path, value)) = sample(line) else {
            continue;
        };
        let calls = webhooks.entry(path).or_default();
        match name {
            "requests_total" => calls.requests = calls.requests.saturating_add(value as u64),
            "requests_in_flight" => calls.in_flight = value as u64,
            "latency_seconds_sum" => drop(seconds.insert(path, value)),
            _ => {}
        }
    }
    let calls = webhooks.into_iter().map(|(path, mut calls)| {
        let total = seconds.get(path).copied().unwrap_or_default();
        calls.path = path.to_owned();
        calls.mean_seconds = match calls.requests {
            0 => 0.0,
            requests => total / requests as f64,
        };
        calls
    });
    calls.collect()
}

/// Returns the name without the common beginning, the path and the value of a line about a webhook.
fn sample(line: &str) -> Option<(&str, &str, f64)> {
    let (name, rest) = line.strip_prefix(PREFIX)?.split_once('{')?;
    let (labels, value) = rest.rsplit_once("} ")?;
    let mut labels = labels.split(',');
    let path = labels.find_map(|label| label.strip_prefix("webhook=\"")?.strip_suffix('"'))?;
    // A value may be followed by an exemplar or a time.
    let value = value.split(' ').next()?.parse().ok()?;
    Some((name, path, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_from_the_metrics() {
        let text = "\
# TYPE controller_runtime_webhook_requests counter
controller_runtime_webhook_requests_total{webhook=\"/mutate\",code=\"200\"} 3
controller_runtime_webhook_requests_total{webhook=\"/mutate\",code=\"500\"} 1
controller_runtime_webhook_requests_in_flight{webhook=\"/mutate\"} 2
controller_runtime_webhook_latency_seconds_sum{webhook=\"/mutate\"} 0.008
controller_runtime_webhook_latency_seconds_bucket{le=\"0.1\",webhook=\"/mutate\"} 4
controller_runtime_webhook_requests_total{webhook=\"/validate\",code=\"200\"} 0
controller_runtime_webhook_panics_total 0
workqueue_depth{name=\"robot\"} 4
";
        let calls = calls(text);
        let paths: Vec<_> = calls.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(paths, ["/mutate", "/validate"]);
        assert_eq!((calls[0].requests, calls[0].in_flight), (4, 2));
        assert_eq!(calls[0].mean_seconds, 0.002);
        assert_eq!(calls[1].mean_seconds, 0.0);
    }
}
