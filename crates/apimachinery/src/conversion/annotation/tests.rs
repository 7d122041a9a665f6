use super::*;

fn difference(name: &str, length: usize) -> Difference {
    Difference {
        path: vec![Step::Field(name.to_owned())],
        value: Some(Value::String("x".repeat(length))),
        seen: None,
    }
}

fn stored(kept: Kept, object: &mut Value) -> usize {
    kept.store(object.as_object_mut().unwrap())
}

#[test]
fn the_largest_values_are_lost_if_the_annotations_are_full() {
    let mut object = json!({"metadata": {"annotations": {"own": "y".repeat(200 * 1024)}}});
    let mut kept = Kept::default();
    kept.set(
        "v1",
        vec![difference("large", 60 * 1024), difference("small", 10)],
    );
    kept.set("v2", vec![difference("other", 20)]);
    assert_eq!(stored(kept, &mut object), 1);
    let annotations = object["metadata"]["annotations"].as_object().unwrap();
    assert!(size(annotations) <= ANNOTATIONS_MAX);
    let mut read = Kept::take(object.as_object_mut().unwrap());
    assert_eq!(read.take_version("v1"), [difference("small", 10)]);
    assert_eq!(read.take_version("v2"), [difference("other", 20)]);
}

#[test]
fn the_limit_is_exact() {
    for room in [0_usize, 60, 100, 140] {
        let own = ANNOTATIONS_MAX - "own".len() - ANNOTATION.len() - room;
        let mut object = json!({"metadata": {"annotations": {"own": "y".repeat(own)}}});
        let mut kept = Kept::default();
        kept.set(
            "v1",
            (0..9).map(|at| difference(&at.to_string(), 3)).collect(),
        );
        let lost = stored(kept, &mut object);
        let annotations = object["metadata"]["annotations"].as_object().unwrap();
        assert!(size(annotations) <= ANNOTATIONS_MAX, "{room}");
        let mut read = Kept::take(object.as_object_mut().unwrap());
        assert_eq!(read.take_version("v1").len() + lost, 9);
    }
}

#[test]
fn an_invalid_annotation_has_no_values() {
    for text in [
        "",
        "garbage",
        "[]",
        "{\"v1\": 3}",
        "{\"v1\": [3, {\"path\": [1]}]}",
    ] {
        let mut object = json!({"metadata": {"annotations": {ANNOTATION: text}}});
        let mut kept = Kept::take(object.as_object_mut().unwrap());
        assert_eq!(kept.take_version("v1"), [], "{text}");
        assert_eq!(object, json!({"metadata": {}}));
    }
    for metadata in [json!(null), json!(3), json!({"annotations": 3})] {
        let mut object = json!({"metadata": metadata});
        let mut kept = Kept::take(object.as_object_mut().unwrap());
        kept.set("v1", vec![difference("a", 1)]);
        let before = object.clone();
        assert_eq!(stored(kept, &mut object), 1);
        assert_eq!(object, before);
    }
}
