use super::*;

fn revision(number: u64) -> Revision {
    let mut release = Release::new("op", "1.0.0", "op-system");
    release.add(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "op"}}));
    release.add(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "robots.opkit.dev"}, "spec": {"group": "opkit.dev"},
    }));
    Revision::of(&release, number)
}

#[test]
fn a_revision_is_read_as_it_was_written() {
    let secret = revision(3).secret("op", "op-system").unwrap();
    assert_eq!(secret["metadata"]["name"], "op-revision-3");
    assert_eq!(number(&secret), Some(3));
    assert_eq!(Revision::read(&secret).unwrap(), revision(3));
}

/// CRDs are never rolled back, so a revision does not need them.
#[test]
fn a_revision_has_no_crds() {
    assert_eq!(revision(1).objects.len(), 1);
}

#[test]
fn a_secret_with_other_content_is_named() {
    let mut secret = revision(3).secret("op", "op-system").unwrap();
    secret["data"]["revision"] = json!("bm90IGd6aXA=");
    let error = Revision::read(&secret).unwrap_err().to_string();
    assert!(error.contains("op-revision-3"), "{error}");
}

#[test]
fn ten_revisions_are_kept() {
    assert_eq!(outdated((1..=10).collect()), [0; 0]);
    assert_eq!(outdated((1..=12).collect()), [2, 1]);
}

#[test]
fn the_target_is_the_newest_before_the_current_one() {
    assert_eq!(target(&[2, 5, 3], None), Some(3));
    assert_eq!(target(&[2, 5, 3], Some(2)), Some(2));
    assert_eq!(target(&[2, 5, 3], Some(4)), None);
    assert_eq!(target(&[5], None), None);
    assert_eq!(target(&[], None), None);
}

#[test]
fn the_number_is_not_part_of_the_content() {
    assert!(revision(1).has_content_of(&revision(2)));
    let mut other = revision(1);
    other.version = "1.0.1".to_owned();
    assert!(!revision(1).has_content_of(&other));
}
