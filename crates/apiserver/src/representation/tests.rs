use super::*;

#[test]
fn only_a_table_includes_objects() {
    assert_eq!(IncludeObject::parse("Object"), Some(IncludeObject::Object));
    assert_eq!(IncludeObject::parse("Everything"), None);
    let include = IncludeObject::None;
    let table = Representation::Table {
        include: IncludeObject::Metadata,
    };
    assert_eq!(table.including(include), Representation::Table { include });
    assert_eq!(
        Representation::Object.including(include),
        Representation::Object
    );
}
