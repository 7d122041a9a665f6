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
        ("spec", Cardinality::One, false)
    );
    let node_name = table.named("core.v1.PodSpec").unwrap().field(10).unwrap();
    assert_eq!((node_name.name, node_name.omit_empty), ("nodeName", true));
    assert!(table.kind("apps/v1", "Pod").is_none());
}

#[test]
fn fields_are_sorted_by_number() {
    for message in &Table::shared().unwrap().messages {
        let numbers = message.fields().map(|field| field.number);
        assert!(numbers.is_sorted(), "{}", message.name);
        let is_simple = message.form != Form::List || message.fields().count() == 1;
        assert!(is_simple, "{} wraps more than one field", message.name);
    }
}

#[test]
fn inline_fields_are_messages() {
    for message in &Table::shared().unwrap().messages {
        for field in message.fields() {
            let is_inline = field.cardinality == Cardinality::Inline;
            assert!(
                !is_inline || matches!(field.type_, Type::Message(_)),
                "{}",
                message.name
            );
        }
    }
}

/// Returns the number of nested levels of inline messages in a message.
fn inline_depth(table: &Table, message: &Message) -> usize {
    let inner = message.fields().filter_map(|field| match field.type_ {
        Type::Message(index) if field.cardinality == Cardinality::Inline => table
            .message(index)
            .map(|inner| 1 + inline_depth(table, inner)),
        _ => None,
    });
    inner.max().unwrap_or_default()
}

#[test]
fn inline_messages_are_shallow_and_share_no_name() {
    fn names<'t>(table: &'t Table, message: &'t Message, out: &mut Vec<&'t str>) {
        for field in message.fields() {
            match field.type_ {
                Type::Message(index) if field.cardinality == Cardinality::Inline => {
                    names(table, table.message(index).unwrap(), out);
                }
                _ => out.push(field.name),
            }
        }
    }
    let table = Table::shared().unwrap();
    for message in &table.messages {
        assert!(
            inline_depth(table, message) < INLINE_MAX,
            "{}",
            message.name
        );
        let mut all = Vec::new();
        names(table, message, &mut all);
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "{}", message.name);
    }
}

#[test]
fn invalid_lines_are_rejected() {
    fn check(text: &'static str, line: &str) {
        assert_eq!(Table::parse(text).unwrap_err(), line);
    }
    check("1 a string", "1 a string");
    check("message a.B\n1 a", "1 a");
    check("message a.B\n1 a a.C", "1 a a.C");
    check("message a.B\nx a string", "x a string");
    check("enum a.B", "enum a.B");
    check("message a.B\n2 a string\n1 b string", "1 b string");
    check("message a.B\n9999 a string", "9999 a string");
}

#[test]
fn a_marked_struct_is_omitted_if_all_of_it_is_zero() {
    use serde::Deserialize;

    let text = "message a.B\n1 c? a.C\nmessage a.C\n1 d string\n2 e *string\n3 f a.D\nmessage a.D\n1 g? int32";
    let table: &'static Table = Box::leak(Box::new(Table::parse(text).unwrap()));
    let message = table.named("a.B").unwrap();
    let check = |bytes: &[u8], expected: serde_json::Value| {
        let deserializer =
            crate::protobuf::Deserializer::new(MessageType { table, message }, bytes);
        let read = serde_json::Value::deserialize(deserializer).unwrap();
        assert_eq!(read, expected);
    };
    // Go writes zero values to the wire; they still count as zero.
    check(b"\x0a\x06\x0a\x00\x1a\x02\x08\x00", serde_json::json!({}));
    // A pointer that is set is not zero.
    check(b"\x0a\x02\x12\x00", serde_json::json!({"c": {"e": ""}}));
    check(
        b"\x0a\x04\x1a\x02\x08\x01",
        serde_json::json!({"c": {"f": {"g": 1}}}),
    );
}
