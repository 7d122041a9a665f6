//! The ServiceMonitor with which the Prometheus operator finds the metrics.

use serde_json::{Value, json};

use crate::deployment::{pod_labels, set_label};
use crate::model::MetricsPort;
use crate::object::document;

/// Returns the ServiceMonitor, or nothing if no metrics are served.
pub(crate) fn service_monitor(
    operator: &str,
    namespace: &str,
    metrics: Option<MetricsPort>,
) -> Vec<Value> {
    let Some(metrics) = metrics else {
        return Vec::new();
    };
    let name = format!("{operator}-controller-manager-metrics-monitor");
    let api = "monitoring.coreos.com/v1";
    let mut monitor = document(operator, api, "ServiceMonitor", &name, Some(namespace));
    set_label(&mut monitor, "control-plane", "controller-manager");
    let endpoint = match metrics.secure {
        true => json!({
            "path": "/metrics", "port": "https", "scheme": "https",
            "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
            // The certificate of the metrics server is self-signed by default.
            "tlsConfig": {"insecureSkipVerify": true},
        }),
        false => json!({"path": "/metrics", "port": "http", "scheme": "http"}),
    };
    let spec = json!({
        "endpoints": [endpoint],
        "namespaceSelector": {"matchNames": [namespace]},
        "selector": {"matchLabels": pod_labels(operator)},
    });
    if let Some(fields) = monitor.as_object_mut() {
        fields.insert("spec".to_owned(), spec);
    }
    vec![monitor]
}
