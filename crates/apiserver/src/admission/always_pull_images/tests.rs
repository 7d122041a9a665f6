use serde_json::json;

use super::{admit, errors, is_ignored};

#[test]
fn all_images_are_pulled() {
    let mut pod = json!({"spec": {
        "containers": [{"name": "c", "image": "i", "imagePullPolicy": "Never"}],
        "initContainers": [{"name": "i", "image": "i"}],
        "volumes": [{"name": "v", "image": {"reference": "r"}}, {"name": "e", "emptyDir": {}}],
    }});
    let texts: Vec<String> = errors(&pod).iter().map(ToString::to_string).collect();
    let expected = [
        "spec.initContainers[0].imagePullPolicy: Unsupported value: \"\": supported values: \"Always\"",
        "spec.containers[0].imagePullPolicy: Unsupported value: \"Never\": supported values: \
         \"Always\"",
        "spec.volumes[0].image.pullPolicy: Unsupported value: \"\": supported values: \"Always\"",
    ];
    assert_eq!(texts, expected);
    admit(&mut pod);
    assert_eq!(errors(&pod), []);
    assert_eq!(
        pod["spec"]["volumes"][1],
        json!({"name": "e", "emptyDir": {}})
    );
}

#[test]
fn an_update_without_a_new_image_is_ignored() {
    let pod = |image: &str| json!({"spec": {"containers": [{"name": "c", "image": image}]}});
    assert!(is_ignored(&pod("a"), Some(&pod("a"))));
    assert!(!is_ignored(&pod("b"), Some(&pod("a"))));
    assert!(!is_ignored(&pod("a"), None));
}
