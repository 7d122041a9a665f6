//! A Grafana dashboard of the metrics that every operator exports.

use serde_json::{Value, json};

use crate::object::document;

/// Panel of the dashboard: its title, the unit of the values, and the queries with their legends.
struct Panel {
    title: &'static str,
    unit: &'static str,
    queries: &'static [(&'static str, &'static str)],
}

/// Panels, each about the operator of the variable `job`.
const PANELS: [Panel; 13] = [
    Panel {
        title: "Reconciles",
        unit: "ops",
        queries: &[(
            "sum by (controller, result) (rate(controller_runtime_reconcile_total{job=\"$job\"}[5m]))",
            "{{controller}} {{result}}",
        )],
    },
    Panel {
        title: "Reconcile errors",
        unit: "ops",
        queries: &[(
            "sum by (controller) (rate(controller_runtime_reconcile_errors_total{job=\"$job\"}[5m]))",
            "{{controller}}",
        )],
    },
    Panel {
        title: "Reconcile time (median, p99)",
        unit: "s",
        queries: &[
            (
                "histogram_quantile(0.5, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{job=\"$job\"}[5m])))",
                "{{controller}} median",
            ),
            (
                "histogram_quantile(0.99, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{job=\"$job\"}[5m])))",
                "{{controller}} p99",
            ),
        ],
    },
    Panel {
        title: "Active workers",
        unit: "short",
        queries: &[
            (
                "sum by (controller) (controller_runtime_active_workers{job=\"$job\"})",
                "{{controller}}",
            ),
            (
                "sum by (controller) (controller_runtime_max_concurrent_reconciles{job=\"$job\"})",
                "{{controller}} max",
            ),
        ],
    },
    Panel {
        title: "Queue depth",
        unit: "short",
        queries: &[("sum by (name) (workqueue_depth{job=\"$job\"})", "{{name}}")],
    },
    Panel {
        title: "Age of the oldest key in the queue",
        unit: "s",
        queries: &[(
            "max by (name) (opkit_workqueue_oldest_key_age_seconds{job=\"$job\"})",
            "{{name}}",
        )],
    },
    Panel {
        title: "Time in the queue (p99)",
        unit: "s",
        queries: &[(
            "histogram_quantile(0.99, sum by (name, le) (rate(workqueue_queue_duration_seconds_bucket{job=\"$job\"}[5m])))",
            "{{name}}",
        )],
    },
    Panel {
        title: "Requests to the API server",
        unit: "reqps",
        queries: &[(
            "sum by (method, code) (rate(rest_client_requests_total{job=\"$job\"}[5m]))",
            "{{method}} {{code}}",
        )],
    },
    Panel {
        title: "Cached objects",
        unit: "short",
        queries: &[(
            "sum by (kind) (opkit_cache_objects{job=\"$job\"})",
            "{{kind}}",
        )],
    },
    Panel {
        title: "Cache lag",
        unit: "s",
        queries: &[(
            "max by (kind) (opkit_cache_lag_seconds{job=\"$job\"})",
            "{{kind}}",
        )],
    },
    Panel {
        title: "Leader",
        unit: "short",
        queries: &[(
            "max by (pod) (leader_election_master_status{job=\"$job\"})",
            "{{pod}}",
        )],
    },
    Panel {
        title: "Slots of each replica",
        unit: "short",
        queries: &[(
            "max by (name, member) (opkit_shard_slots{job=\"$job\"})",
            "{{member}}",
        )],
    },
    Panel {
        title: "Memory",
        unit: "bytes",
        queries: &[(
            "max by (pod) (process_resident_memory_bytes{job=\"$job\"})",
            "{{pod}}",
        )],
    },
];

/// Returns the dashboard as the JSON that Grafana imports.
pub fn dashboard(operator: &str) -> Value {
    let panels = PANELS.iter().enumerate().map(|(at, panel)| {
        let queries = panel.queries.iter().enumerate();
        let targets: Vec<_> = queries
            .map(|(at, (query, legend))| {
                let id = char::from(b'A'.saturating_add(u8::try_from(at).unwrap_or_default()));
                json!({"expr": query, "legendFormat": legend, "refId": id.to_string()})
            })
            .collect();
        let (column, row) = (at % 2, at / 2);
        json!({
            "id": at.saturating_add(1), "type": "timeseries", "title": panel.title,
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
            "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
            "gridPos": {"h": 8, "w": 12, "x": column * 12, "y": row * 8},
            "targets": targets,
        })
    });
    let panels: Vec<_> = panels.collect();
    let query = "label_values(controller_runtime_reconcile_total, job)";
    json!({
        "title": format!("{operator}: controllers"),
        "uid": operator,
        "tags": ["opkit", operator],
        "schemaVersion": 39,
        "editable": true,
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": [
            {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
            {
                "name": "job", "label": "Job", "type": "query",
                "datasource": {"type": "prometheus", "uid": "${datasource}"},
                "definition": query, "query": {"query": query, "refId": "job"},
                "regex": format!("/{operator}.*/"), "refresh": 2,
            },
        ]},
        "panels": panels,
    })
}

/// Returns the ConfigMap from which Grafana's sidecar loads the dashboard.
pub(crate) fn config_map(operator: &str, namespace: &str) -> Value {
    let name = format!("{operator}-dashboard");
    let mut map = document(operator, "v1", "ConfigMap", &name, Some(namespace));
    crate::deployment::set_label(&mut map, "grafana_dashboard", "1");
    let text = serde_json::to_string_pretty(&dashboard(operator)).unwrap_or_default();
    if let Some(fields) = map.as_object_mut() {
        let file = format!("{operator}.json");
        fields.insert("data".to_owned(), json!({file: text}));
    }
    map
}

#[cfg(test)]
mod tests;
