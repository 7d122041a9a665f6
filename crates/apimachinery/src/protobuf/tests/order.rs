//! Fields in any order, and values of a field that are not adjacent.

use super::*;

fn check(kind: &str, raw: &[u8], expected: Value) {
    let mut object = decode(&enveloped("v1", kind, raw)).unwrap();
    let fields = object.as_object_mut().unwrap();
    fields.remove("apiVersion");
    fields.remove("kind");
    assert_eq!(object, expected);
}

#[test]
fn lists_and_maps_are_put_together() {
    let entry = |key: &[u8], value: &[u8]| field(2, &[field(1, key), field(2, value)].concat());
    let raw = [
        entry(b"a", b"1"),
        field(1, &field(1, b"name")),
        entry(b"b", b"2"),
        entry(b"a", b"3"),
    ]
    .concat();
    check(
        "ConfigMap",
        &raw,
        json!({"metadata": {"name": "name"}, "data": {"a": "3", "b": "2"}}),
    );

    let container = |name: &[u8]| field(2, &field(1, name));
    let spec = [container(b"a"), field(3, b"Always"), container(b"b")].concat();
    check(
        "Pod",
        &field(2, &spec),
        json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}], "restartPolicy": "Always"}}),
    );
}

#[test]
fn the_last_of_several_values_counts() {
    let metadata = [field(1, b"a"), field(1, b"b")].concat();
    check(
        "Namespace",
        &field(1, &metadata),
        json!({"metadata": {"name": "b"}}),
    );
    let metadata = [field(1, b"a"), field(3, b"c"), field(1, b"")].concat();
    check(
        "Namespace",
        &field(1, &metadata),
        json!({"metadata": {"namespace": "c"}}),
    );
}

#[test]
fn inline_messages_are_put_together() {
    // A Volume is its name and, in field 2, its source: a hostPath (1) and an emptyDir (2).
    let source = |source: &[u8]| field(2, source);
    let volume = [
        source(&field(2, b"")),
        field(1, b"v"),
        source(&field(1, &field(1, b"/"))),
    ]
    .concat();
    check(
        "Pod",
        &field(2, &field(1, &volume)),
        json!({"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}, "emptyDir": {}}]}}),
    );
}

#[test]
fn numbers_may_be_packed() {
    // supplementalGroups (4) of the securityContext (14): two packed, one not, two packed.
    let context = [field(4, &[1, 2]), vec![4 << 3, 3], field(4, &[4, 5])].concat();
    check(
        "Pod",
        &field(2, &field(14, &context)),
        json!({"spec": {"securityContext": {"supplementalGroups": [1, 2, 3, 4, 5]}}}),
    );
}

#[test]
fn part_of_a_list_may_be_read() {
    #[derive(Deserialize)]
    struct Namespace {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        finalizers: First,
        #[serde(rename = "ownerReferences", default)]
        owner_references: Vec<serde::de::IgnoredAny>,
    }
    /// Takes one element and leaves the rest.
    struct First(String);
    impl<'de> Deserialize<'de> for First {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl<'de> serde::de::Visitor<'de> for Visitor {
                type Value = First;
                fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    out.write_str("a list")
                }
                fn visit_seq<A: serde::de::SeqAccess<'de>>(
                    self,
                    mut items: A,
                ) -> Result<First, A::Error> {
                    Ok(First(items.next_element()?.unwrap_or_default()))
                }
            }
            deserializer.deserialize_seq(Visitor)
        }
    }
    let metadata = [
        field(13, b""),
        field(13, b""),
        field(14, b"a"),
        field(14, b"b"),
    ]
    .concat();
    let raw = field(1, &metadata);
    let message = MessageType::of("v1", "Namespace").unwrap();
    let object = Namespace::deserialize(Deserializer::new(message, &raw)).unwrap();
    assert_eq!(object.metadata.finalizers.0, "a");
    assert_eq!(object.metadata.owner_references.len(), 2);
}

#[test]
fn errors_name_the_field_that_does_not_fit() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is only read into")]
    struct Namespace {
        metadata: Metadata,
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is only read into")]
    struct Metadata {
        name: u8,
    }
    let raw = field(1, &field(1, b"a"));
    let error = from_slice::<Namespace>(&enveloped("v1", "Namespace", &raw)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "meta.v1.ObjectMeta.name: invalid type: string \"a\", expected u8"
    );
}
