//! Cluster IPs and node ports of Services.

use super::*;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";

fn service(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    if spec["ports"].is_null() && spec["type"] != "ExternalName" {
        spec["ports"] = json!([{"port": 80}]);
    }
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

fn ip(service: &Value) -> &str {
    service["spec"]["clusterIP"].as_str().unwrap_or_default()
}

async fn create(api: &Api, name: &str, spec: Value) -> Value {
    let (code, created) = api.post(SERVICES, service(name, spec)).await;
    assert_eq!(code, 201, "{created}");
    created
}

#[tokio::test]
async fn a_service_gets_an_address_and_keeps_it() {
    let api = Api::start();
    let created = create(&api, "a", json!({})).await;
    assert!(ip(&created).starts_with("10."), "{created}");
    assert_eq!(created["spec"]["clusterIPs"], json!([ip(&created)]));
    assert_eq!(created["spec"]["ipFamilies"], json!(["IPv4"]));
    assert_eq!(created["spec"]["ipFamilyPolicy"], "SingleStack");
    let (_, address) = api.get(&format!("{ADDRESSES}/{}", ip(&created))).await;
    assert_eq!(address["spec"]["parentRef"]["name"], "a");
    let path = format!("{SERVICES}/a");
    let changed = service("a", json!({"ports": [{"port": 81}]}));
    let (code, put) = api.put(&path, changed).await;
    assert_eq!((code, ip(&put)), (200, ip(&created)), "{put}");
    let managers = put["metadata"]["managedFields"].to_string();
    assert!(!managers.contains("clusterIP"), "{managers}");
    api.delete(&path, Value::Null).await;
    let (code, _) = api.get(&format!("{ADDRESSES}/{}", ip(&created))).await;
    assert_eq!(code, 404);
}

#[tokio::test]
async fn an_address_is_given_once() {
    let api = Api::start();
    create(&api, "a", json!({"clusterIP": "10.96.5.5"})).await;
    let taken = api
        .post(SERVICES, service("b", json!({"clusterIP": "10.96.5.5"})))
        .await;
    let want = "spec.clusterIPs: Invalid value: [\"10.96.5.5\"]: failed to allocate IP 10.96.5.5: \
                provided IP is already allocated";
    assert_eq!(taken.0, 422);
    assert!(message(&taken).contains(want), "{}", message(&taken));
    let outside = api
        .post(SERVICES, service("b", json!({"clusterIP": "1.2.3.4"})))
        .await;
    let want = "the provided network does not match the current range";
    assert!(message(&outside).contains(want), "{}", message(&outside));
    // The address of a Service that is refused for another reason is free again.
    let wrong = service(
        "b",
        json!({"clusterIP": "10.96.5.6", "ports": [{"port": 0}]}),
    );
    assert_eq!(api.post(SERVICES, wrong).await.0, 422);
    create(&api, "b", json!({"clusterIP": "10.96.5.6"})).await;
    let change = json!({"spec": {"clusterIP": "10.96.5.7", "clusterIPs": ["10.96.5.7"]}});
    let changed = api.merge(&format!("{SERVICES}/b"), change).await;
    assert!(message(&changed).contains("may not change once set"));
}

#[tokio::test]
async fn a_range_can_be_full() {
    let api = Api::with(Options {
        service_cluster_ip_range: "10.0.0.0/29".to_owned(),
        ..Options::default()
    });
    let mut seen = vec!["10.0.0.1".to_owned()];
    for name in ["a", "b", "c", "d", "e"] {
        let created = create(&api, name, json!({})).await;
        assert!(!seen.contains(&ip(&created).to_owned()), "{created}");
        seen.push(ip(&created).to_owned());
    }
    let full = api.post(SERVICES, service("f", json!({}))).await;
    assert_eq!(full.0, 500);
    let want = "failed to allocate a serviceIP for Service \"f\": range is full";
    assert!(message(&full).ends_with(want), "{}", message(&full));
}

#[tokio::test]
async fn services_without_an_address() {
    let api = Api::start();
    let headless = create(&api, "h", json!({"clusterIP": "None"})).await;
    assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
    assert_eq!(headless["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    let name = json!({"type": "ExternalName", "externalName": "a.b"});
    let external = create(&api, "e", name).await;
    assert!(external["spec"]["clusterIP"].is_null());
    // A change of the type gives it an address, and takes the address away.
    let path = format!("{SERVICES}/e");
    let change = json!({"spec": {"type": "ClusterIP", "ports": [{"port": 80}]}});
    let (_, with) = api.merge(&path, change).await;
    assert!(ip(&with).starts_with("10."), "{with}");
    let (_, without) = api
        .merge(&path, json!({"spec": {"type": "ExternalName"}}))
        .await;
    assert!(without["spec"]["clusterIP"].is_null(), "{without}");
    let (code, _) = api.get(&format!("{ADDRESSES}/{}", ip(&with))).await;
    assert_eq!(code, 404);
}

#[tokio::test]
async fn node_ports_are_allocated_and_released() {
    let api = Api::start();
    let spec = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30_001}]});
    create(&api, "a", spec.clone()).await;
    let taken = api.post(SERVICES, service("b", spec.clone())).await;
    let want = "spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated";
    assert!(message(&taken).contains(want), "{}", message(&taken));
    let outside = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]});
    let outside = api.post(SERVICES, service("b", outside)).await;
    let want = "The range of valid ports is 30000-32767";
    assert!(message(&outside).contains(want), "{}", message(&outside));
    // A change of the type releases the port.
    let change = json!({"spec": {"type": "ClusterIP"}});
    let (_, changed) = api.merge(&format!("{SERVICES}/a"), change).await;
    assert!(changed["spec"]["ports"][0]["nodePort"].is_null());
    create(&api, "b", spec.clone()).await;
    api.delete(&format!("{SERVICES}/b"), Value::Null).await;
    create(&api, "c", spec).await;
    // An update that leaves the port out keeps it.
    let same = service("c", json!({"type": "NodePort"}));
    let (_, put) = api.put(&format!("{SERVICES}/c"), same).await;
    assert_eq!(put["spec"]["ports"][0]["nodePort"], 30_001);
}

#[tokio::test]
async fn a_load_balancer_has_ports_for_health_checks() {
    let api = Api::start();
    let local = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local"});
    let created = create(&api, "a", local).await;
    assert_eq!(created["spec"]["allocateLoadBalancerNodePorts"], true);
    assert!(created["spec"]["healthCheckNodePort"].as_i64() >= Some(30_000));
    assert!(created["spec"]["ports"][0]["nodePort"].as_i64() >= Some(30_000));
    let without = json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false});
    let created = create(&api, "b", without).await;
    assert!(created["spec"]["ports"][0]["nodePort"].is_null());
}

#[tokio::test]
async fn a_dry_run_allocates_nothing() {
    let api = Api::start();
    let spec = json!({"type": "NodePort", "clusterIP": "10.96.7.7", "ports": [
        {"port": 80, "nodePort": 30_007},
    ]});
    let path = format!("{SERVICES}?dryRun=All");
    assert_eq!(api.post(&path, service("a", spec.clone())).await.0, 201);
    let (code, _) = api.get(&format!("{ADDRESSES}/10.96.7.7")).await;
    assert_eq!(code, 404);
    create(&api, "b", spec).await;
}

#[tokio::test]
async fn a_dual_stack_cluster_gives_two_addresses() {
    let api = Api::with(Options {
        service_cluster_ip_range: "10.96.0.0/16,fd00::/112".to_owned(),
        ..Options::default()
    });
    let both = create(&api, "a", json!({"ipFamilyPolicy": "PreferDualStack"})).await;
    assert_eq!(both["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    let second = both["spec"]["clusterIPs"][1].as_str().unwrap();
    assert!(second.starts_with("fd00::"), "{both}");
    let single = json!({"spec": {"ipFamilyPolicy": "SingleStack"}});
    let (_, one) = api.merge(&format!("{SERVICES}/a"), single).await;
    assert_eq!(one["spec"]["clusterIPs"], json!([ip(&both)]));
    let (code, _) = api.get(&format!("{ADDRESSES}/{second}")).await;
    assert_eq!(code, 404);
    let two = json!({"spec": {"ipFamilyPolicy": "RequireDualStack"}});
    let (_, again) = api.merge(&format!("{SERVICES}/a"), two).await;
    assert_eq!(again["spec"]["clusterIPs"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn ranges_must_be_valid() {
    for (range, ports) in [
        ("10.0.0.0", 30_000..=32_767),
        ("10.0.0.0/16,10.1.0.0/16", 30_000..=32_767),
        ("10.0.0.0/16", 0..=10),
    ] {
        let options = Options {
            service_cluster_ip_range: range.to_owned(),
            service_node_port_range: ports,
            ..Options::default()
        };
        let error = Server::start(options).unwrap_err();
        assert!(error.to_string().contains(range), "{error}");
    }
}
