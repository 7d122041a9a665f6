use super::*;

/// A panel of a metric that does not exist is silently empty.
#[test]
fn every_metric_is_in_the_guide() {
    let guide = include_str!("../../../../docs/observability.md");
    let mut checked = 0;
    for panel in &PANELS {
        for (query, _) in panel.queries {
            let end = query.find("{job").unwrap();
            let start = query[..end].rfind(|it: char| !it.is_alphanumeric() && it != '_');
            let name = &query[start.map_or(0, |at| at + 1)..end];
            let name = name.strip_suffix("_bucket").unwrap_or(name);
            assert!(guide.contains(&format!("`{name}`")), "{name}");
            checked += 1;
        }
    }
    assert!(checked >= PANELS.len());
}

#[test]
fn the_config_map_has_the_dashboard_as_text() {
    let map = config_map("op", "op-system");
    assert_eq!(map["metadata"]["labels"]["grafana_dashboard"], "1");
    let text = map["data"]["op.json"].as_str().unwrap();
    let read: Value = serde_json::from_str(text).unwrap();
    assert_eq!(read, dashboard("op"));
    assert_eq!(read["panels"].as_array().unwrap().len(), PANELS.len());
}
