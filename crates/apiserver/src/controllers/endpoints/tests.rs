use super::slices::plan;
use super::subsets::subsets;
use super::*;

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "shop", "uid": "s"},
        "spec": {
            "clusterIP": "10.96.0.9", "ipFamilies": ["IPv4"], "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP"}],
        },
    })
}

fn pod(index: usize, port: i64) -> Arc<Value> {
    Arc::new(json!({
        "metadata": {"name": format!("p{index:03}"), "namespace": "shop", "uid": format!("u{index}")},
        "spec": {"nodeName": "n", "containers": [{
            "ports": [{"name": "web", "containerPort": port, "protocol": "TCP"}],
        }]},
        "status": {
            "podIPs": [{"ip": format!("10.244.{}.{}", index / 200, index % 200 + 2)}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }))
}

/// Returns the slices as they are stored, with names and owners.
fn stored(slices: Vec<Value>) -> Vec<Arc<Value>> {
    let named = slices.into_iter().enumerate().map(|(index, mut slice)| {
        object::set_meta(&mut slice, "name", json!(format!("web-{index}")));
        Arc::new(slice)
    });
    named.collect()
}

#[test]
fn a_slice_has_at_most_100_endpoints() {
    let pods: Vec<_> = (0..250).map(|index| pod(index, 8080)).collect();
    let plan = plan(&service(), &pods, Vec::new());
    let sizes: Vec<usize> = plan
        .create
        .iter()
        .map(|slice| object::items(slice, &["endpoints"]).len())
        .collect();
    assert_eq!(sizes, [100, 100, 50]);
}

#[test]
fn endpoints_stay_in_their_slice() {
    let mut pods: Vec<_> = (0..150).map(|index| pod(index, 8080)).collect();
    let existing = stored(plan(&service(), &pods, Vec::new()).create);
    pods.remove(120);
    let changed = plan(&service(), &pods, existing.clone());
    assert_eq!((changed.create.len(), changed.delete.len()), (0, 0));
    assert_eq!(changed.update.len(), 1);
    assert_eq!(object::name(&changed.update[0]), "web-1");
    let same = plan(&service(), &pods[..100], existing);
    assert!(same.update.is_empty());
    assert_eq!(same.delete.len(), 1);
}

#[test]
fn pods_with_other_ports_are_in_other_slices() {
    let pods = [pod(0, 8080), pod(1, 9090), pod(2, 8080)];
    let plan = plan(&service(), &pods, Vec::new());
    assert_eq!(plan.create.len(), 2);
    assert_eq!(subsets(&service(), &pods).len(), 2);
}

#[test]
fn a_placeholder_becomes_the_first_slice() {
    let placeholder = stored(plan(&service(), &[], Vec::new()).create);
    assert_eq!(placeholder.len(), 1);
    let unchanged = plan(&service(), &[], placeholder.clone());
    assert!(unchanged.create.is_empty() && unchanged.update.is_empty());
    assert!(unchanged.delete.is_empty());
    let filled = plan(&service(), &[pod(0, 8080)], placeholder);
    assert_eq!((filled.create.len(), filled.delete.len()), (0, 0));
    assert_eq!(object::name(&filled.update[0]), "web-0");
    let emptied = plan(&service(), &[], stored(filled.update));
    assert_eq!((emptied.create.len(), emptied.delete.len()), (0, 0));
    assert!(object::items(&emptied.update[0], &["endpoints"]).is_empty());
}

#[test]
fn a_pod_that_is_deleted_is_terminating() {
    let mut leaving = Value::clone(&pod(0, 8080));
    object::set_meta(&mut leaving, "deletionTimestamp", json!("now"));
    let pods = [Arc::new(leaving)];
    let slices = plan(&service(), &pods, Vec::new()).create;
    let conditions = slices[0].pointer("/endpoints/0/conditions");
    let want = json!({"ready": false, "serving": true, "terminating": true});
    assert_eq!(conditions, Some(&want));
    assert!(subsets(&service(), &pods).is_empty());
}
