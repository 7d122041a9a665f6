use super::*;

#[tokio::test]
async fn a_crd_is_established_and_served_immediately() {
    let api = with_robots().await;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/robots.robot.opkit.dev";
    let (_, crd) = api.get(path).await;
    let conditions = crd["status"]["conditions"].as_array().unwrap();
    assert!(
        conditions
            .iter()
            .any(|c| c["type"] == "Established" && c["status"] == "True")
    );
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(crd["spec"]["names"]["listKind"], "RobotList");
    let (code, created) = api.post(ROBOTS, robot("one")).await;
    assert_eq!(code, 201);
    assert_eq!(created["spec"]["replicas"], 1, "the default is filled in");
    assert_eq!(created["metadata"]["generation"], 1);
}

#[tokio::test]
async fn an_invalid_schema_is_refused_by_field() {
    let api = with_robots().await;
    let mut bad = robot("bad");
    bad["spec"] = json!({"image": 5, "replicas": 101});
    let response = api.post(ROBOTS, bad).await;
    assert_eq!(response.0, 422);
    let text = message(&response);
    assert!(
        text.starts_with("Robot.robot.opkit.dev \"bad\" is invalid: ["),
        "{text}"
    );
    assert!(
        text.contains("spec.replicas in body should be less than or equal to 100"),
        "{text}"
    );
    assert!(
        text.contains("spec.image in body must be of type string: \"integer\""),
        "{text}"
    );
}

#[tokio::test]
async fn status_and_spec_are_written_apart() {
    let api = with_robots().await;
    api.post(ROBOTS, robot("one")).await;
    let path = format!("{ROBOTS}/one");
    let both = json!({"spec": {"replicas": 2}, "status": {"readyReplicas": 2}});
    let (_, main) = api.merge(&path, both.clone()).await;
    assert_eq!(
        (&main["spec"]["replicas"], &main["status"]),
        (&json!(2), &Value::Null)
    );
    assert_eq!(main["metadata"]["generation"], 2);
    let mut both = both;
    both["spec"]["replicas"] = json!(3);
    let (_, status) = api.merge(&format!("{path}/status"), both).await;
    assert_eq!(status["spec"]["replicas"], 2);
    assert_eq!(status["status"]["readyReplicas"], 2);
    assert_eq!(status["metadata"]["generation"], 2);
}

#[tokio::test]
async fn scale_is_a_view_of_the_replicas() {
    let api = with_robots().await;
    api.post(ROBOTS, robot("one")).await;
    let path = format!("{ROBOTS}/one/scale");
    let (_, scale) = api.merge(&path, json!({"spec": {"replicas": 4}})).await;
    assert_eq!(
        (&scale["kind"], &scale["spec"]["replicas"]),
        (&json!("Scale"), &json!(4))
    );
    let (_, robot) = api.get(&format!("{ROBOTS}/one")).await;
    assert_eq!(
        (&robot["spec"]["replicas"], &robot["metadata"]["generation"]),
        (&json!(4), &json!(2))
    );
    for wrong in [json!(101), json!("5"), json!(-1)] {
        let response = api.merge(&path, json!({"spec": {"replicas": wrong}})).await;
        assert_eq!(
            response.0, 422,
            "{wrong}: the schema holds for the scale too"
        );
    }
}

#[tokio::test]
async fn custom_objects_are_updated_at_a_version_only() {
    let api = with_robots().await;
    api.post(ROBOTS, robot("one")).await;
    let response = api.put(&format!("{ROBOTS}/one"), robot("one")).await;
    assert_eq!(response.0, 422);
    assert!(
        message(&response).contains("metadata.resourceVersion"),
        "{}",
        message(&response)
    );
}

#[tokio::test]
async fn objects_are_deleted_with_their_crd() {
    let api = with_robots().await;
    api.post(ROBOTS, robot("one")).await;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/robots.robot.opkit.dev";
    api.delete(path, Value::Null).await;
    api.until(path, Value::is_null).await;
    assert_eq!(api.get(ROBOTS).await.0, 404);
}

#[tokio::test]
async fn an_invalid_crd_is_refused() {
    let api = Api::start();
    let mut crd = robot_crd();
    crd["metadata"]["name"] = json!("robots.example.com");
    crd["spec"]["versions"][0]["storage"] = json!(false);
    let response = api
        .post(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            crd,
        )
        .await;
    assert_eq!(response.0, 422);
    let text = message(&response);
    assert!(
        text.contains(
            "metadata.name: Invalid value: \"robots.example.com\": must be spec.names.plural"
        ),
        "{text}"
    );
    assert!(
        text.contains("must have exactly one version marked as storage version"),
        "{text}"
    );
}

#[tokio::test]
async fn a_crd_without_served_versions_can_be_deleted() {
    let api = with_robots().await;
    api.post(ROBOTS, robot("one")).await;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/robots.robot.opkit.dev";
    let (_, mut crd) = api.get(path).await;
    crd["spec"]["versions"][0]["served"] = json!(false);
    assert_eq!(api.put(path, crd).await.0, 200);
    assert_eq!(api.get(ROBOTS).await.0, 404);
    api.delete(path, Value::Null).await;
    api.until(path, Value::is_null).await;
}

#[tokio::test]
async fn definitions_that_a_real_server_refuses_are_refused() {
    let api = Api::start();
    let check = async |change: fn(&mut Value), want: &str| {
        let mut crd = robot_crd();
        change(&mut crd);
        let response = api
            .post(
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                crd,
            )
            .await;
        assert_eq!(response.0, 422, "{want}");
        assert!(
            message(&response).contains(want),
            "{want:?}: {}",
            message(&response)
        );
    };
    check(
        |crd| crd["spec"]["scope"] = json!("Bogus"),
        "spec.scope: Unsupported value: \"Bogus\"",
    )
    .await;
    check(
        |crd| {
            let version = crd["spec"]["versions"][0].clone();
            crd["spec"]["versions"]
                .as_array_mut()
                .unwrap()
                .push(version);
        },
        "must contain unique version names",
    )
    .await;
    check(
        |crd| {
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
                ["image"] = json!({"description": "no type"});
        },
        "properties[image].type: Required value: must not be empty for specified object fields",
    )
    .await;
    check(
        |crd| {
            crd["metadata"]["name"] = json!("ingresses.networking.k8s.io");
            crd["spec"]["group"] = json!("networking.k8s.io");
            crd["spec"]["names"]["plural"] = json!("ingresses");
        },
        "protected groups must have approval annotation",
    )
    .await;
}

/// Returns the CRD of robots with these rules on `spec.replicas`.
fn ruled_crd(rules: &Value) -> Value {
    let mut crd = robot_crd();
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["replicas"]["x-kubernetes-validations"] =
        rules.clone();
    crd
}

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[tokio::test]
async fn a_crd_with_a_wrong_rule_is_refused() {
    let api = Api::start();
    let refused = api
        .post(CRDS, ruled_crd(&json!([{"rule": "self.size() > 1"}])))
        .await;
    assert_eq!(refused.0, 422);
    let text = message(&refused);
    let expected = "compilation failed: ERROR: <input>:1:10: found no matching overload for \
                    'size' applied to 'int.()'";
    assert!(text.contains(expected), "{text}");
}

#[tokio::test]
async fn rules_hold_for_every_write_that_changes_their_value() {
    let api = Api::start();
    let at_most = |count: u32| json!([{"rule": format!("self <= {count}"), "message": "too many"}]);
    assert_eq!(api.post(CRDS, ruled_crd(&at_most(5))).await.0, 201);
    let mut robot = robot("one");
    robot["spec"]["replicas"] = json!(6);
    let refused = api.post(ROBOTS, robot.clone()).await;
    assert_eq!(refused.0, 422);
    let expected = "Robot.robot.opkit.dev \"one\" is invalid: spec.replicas: Invalid value: 6: \
                    too many";
    assert_eq!(message(&refused), expected);
    robot["spec"]["replicas"] = json!(5);
    assert_eq!(api.post(ROBOTS, robot).await.0, 201);
    let scale = json!({"spec": {"replicas": 6}});
    let path = format!("{ROBOTS}/one/scale");
    assert_eq!(api.merge(&path, scale).await.0, 422);

    // The object violates a tighter rule, and can still be changed in other places.
    let versions = json!({"spec": {"versions": ruled_crd(&at_most(2))["spec"]["versions"]}});
    let crd = format!("{CRDS}/robots.robot.opkit.dev");
    assert_eq!(api.merge(&crd, versions).await.0, 200);
    let path = format!("{ROBOTS}/one");
    let other = json!({"spec": {"image": "other"}});
    assert_eq!(api.merge(&path, other).await.0, 200);
    let refused = api.merge(&path, json!({"spec": {"replicas": 4}})).await;
    assert_eq!(refused.0, 422);
    let fixed = api.merge(&path, json!({"spec": {"replicas": 2}})).await;
    assert_eq!(fixed.0, 200);
}
