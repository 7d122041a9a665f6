use opkit_deploy::ObjectReference;
use serde_json::json;

use super::*;

fn object(kind: &str) -> ObjectReference {
    ObjectReference::of(&json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "op"}}))
}

#[test]
fn only_changes_are_shown() {
    let line = |kind: &str, change| {
        let object = object(kind);
        describe(&Progress::Applied { object, change })
    };
    assert_eq!(line("Role", Change::Unchanged), None);
    let (what, text, is_last) = line("Role", Change::Changed).unwrap();
    assert_eq!(
        (what.as_str(), text.as_str(), is_last),
        ("rbac", "op   changed", true)
    );
    let (what, ..) = line("PodDisruptionBudget", Change::Created).unwrap();
    assert!(what.len() <= 14, "{what} is wider than the column");
}

#[test]
fn a_kept_crd_is_shown_with_its_objects() {
    let name = "robots.opkit.dev".to_owned();
    let shown = |instances| {
        let name = name.clone();
        let (what, text, _) = describe(&Progress::Kept { name, instances }).unwrap();
        labelled(&what, &text)
    };
    let start = "   kept           crd robots.opkit.dev, because";
    assert_eq!(shown(Some(1)), format!("{start} 1 object exists"));
    assert_eq!(shown(Some(7)), format!("{start} 7 objects exist"));
    assert_eq!(shown(None), format!("{start} its objects cannot be listed"));
}
