use super::{FieldInfo, Fields, Probe, Shape, UnknownFields as _, has_key, has_path};

struct Node;

impl Fields for Node {
    const FIELDS: &'static [FieldInfo] = &[
        field("name", true, Shape::Scalar),
        field("zone", false, Shape::Scalar),
        field("tags", true, Shape::List),
        field("labels", true, Shape::Unknown),
        field(
            "disk",
            true,
            Shape::Type(Some(&[field("size", true, Shape::Scalar)])),
        ),
        field("foreign", true, Shape::Type(None)),
    ];
}

const fn field(name: &'static str, is_present: bool, shape: Shape) -> FieldInfo {
    FieldInfo {
        name,
        is_present,
        shape,
    }
}

#[test]
fn the_fields_of_declared_types_are_known() {
    const { assert!(Probe::<Node>::FIELDS.is_some()) };
    const { assert!(Probe::<String>::FIELDS.is_none()) };
}

#[test]
fn keys_are_scalars_that_are_always_set() {
    for (name, expected) in [
        ("name", true),
        ("zone", false),
        ("tags", false),
        ("disk", false),
        ("foreign", true),
        ("nam", false),
    ] {
        assert_eq!(has_key(Probe::<Node>::FIELDS, name), expected, "{name}");
    }
    assert!(has_key(Probe::<String>::FIELDS, "anything"));
}

#[test]
fn paths_are_followed_through_declared_types() {
    for (path, expected) in [
        (&["name"][..], true),
        (&["name", "below"], false),
        (&["tags", "below"], false),
        (&["labels", "app"], true),
        (&["disk", "size"], true),
        (&["disk", "speed"], false),
        (&["foreign", "anything"], true),
        (&["nam"], false),
        (&["names"], false),
    ] {
        assert_eq!(has_path(Probe::<Node>::FIELDS, path), expected, "{path:?}");
    }
}
