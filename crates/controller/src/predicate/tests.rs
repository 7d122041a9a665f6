use super::*;

fn meta(generation: i64, label: &str) -> ObjectMeta {
    ObjectMeta {
        generation: Some(generation),
        labels: Some([("a".to_owned(), label.to_owned())].into()),
        ..Default::default()
    }
}

#[test]
fn updates_are_judged_and_the_rest_passes() {
    let check = |predicate: Predicate, old: &ObjectMeta, new: &ObjectMeta, expected: bool| {
        assert_eq!(
            predicate.passes(Some(old.into()), Some(new.into())),
            expected
        );
        assert!(
            predicate.passes(None, Some(new.into())) && predicate.passes(Some(old.into()), None)
        );
    };
    check(generation_changed(), &meta(1, "x"), &meta(1, "y"), false);
    check(generation_changed(), &meta(1, "x"), &meta(2, "x"), true);
    check(labels_changed(), &meta(1, "x"), &meta(2, "x"), false);
    check(
        generation_changed().or(labels_changed()),
        &meta(1, "x"),
        &meta(1, "y"),
        true,
    );
    check(
        generation_changed().and(labels_changed()),
        &meta(1, "x"),
        &meta(2, "x"),
        false,
    );
    let without = ObjectMeta::default();
    check(generation_changed(), &without, &without, true);
}

#[test]
fn the_begin_of_a_deletion_passes() {
    let mut deleted = meta(1, "x");
    let now = jiff::Timestamp::UNIX_EPOCH;
    deleted.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now));
    assert!(generation_changed().passes(Some((&meta(1, "x")).into()), Some((&deleted).into())));
}
