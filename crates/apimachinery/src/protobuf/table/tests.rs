use super::*;

#[test]
fn the_table_reads() {
    let table = Table::shared().unwrap();
    assert!(table.messages.len() > 500);
    let pod = table.kind("v1", "Pod").unwrap();
    assert_eq!(pod.name, "core.v1.Pod");
    let spec = pod.field(2).unwrap();
    assert_eq!(
        (spec.name, spec.cardinality, spec.omit_empty),
        ("spec", Cardinality::One, true)
    );
    assert!(table.kind("apps/v1", "Pod").is_none());
}

#[test]
fn fields_are_sorted_by_number() {
    for message in &Table::shared().unwrap().messages {
        assert!(
            message.fields.is_sorted_by_key(|(number, _)| *number),
            "{}",
            message.name
        );
        let is_simple = message.form != Form::List || message.fields.len() == 1;
        assert!(is_simple, "{} wraps more than one field", message.name);
    }
}

#[test]
fn inline_fields_are_messages() {
    for message in &Table::shared().unwrap().messages {
        for (_, field) in &message.fields {
            let is_inline = field.cardinality == Cardinality::Inline;
            assert!(
                !is_inline || matches!(field.type_, Type::Message(_)),
                "{}",
                message.name
            );
        }
    }
}

#[test]
fn lines_that_make_no_sense() {
    fn check(text: &'static str, line: &str) {
        assert_eq!(Table::parse(text).unwrap_err(), line);
    }
    check("1 a string", "1 a string");
    check("message a.B\n1 a", "1 a");
    check("message a.B\n1 a a.C", "1 a a.C");
    check("message a.B\nx a string", "x a string");
    check("enum a.B", "enum a.B");
}
