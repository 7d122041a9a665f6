use super::*;

#[test]
fn fields_are_in_camel_case() {
    for (field, json) in [
        ("image", "image"),
        ("min_replicas", "minReplicas"),
        ("type_", "type"),
        ("r#type", "type"),
        ("quota_gib", "quotaGib"),
    ] {
        assert_eq!(camel_case(field), json);
    }
}

#[test]
fn variants_are_renamed_as_serde_does() {
    for (case, expected) in [
        ("", "EuWest"),
        ("lowercase", "euwest"),
        ("UPPERCASE", "EUWEST"),
        ("camelCase", "euWest"),
        ("kebab-case", "eu-west"),
        ("snake_case", "eu_west"),
    ] {
        assert_eq!(variant("EuWest", case), expected);
    }
}

#[test]
fn plurals_are_regular() {
    for (word, expected) in [
        ("robot", "robots"),
        ("bucket", "buckets"),
        ("box", "boxes"),
        ("branch", "branches"),
        ("secretcopy", "secretcopies"),
        ("key", "keys"),
    ] {
        assert_eq!(plural(word), expected);
    }
}

#[test]
fn groups_are_domains() {
    for (group, is_valid) in [
        ("example.com", true),
        ("robot.opkit.dev", true),
        ("Example.com", false),
        ("example..com", false),
        ("", false),
        ("-a.b", false),
    ] {
        assert_eq!(is_group(group), is_valid, "{group}");
    }
}

#[test]
fn names_in_cel_are_escaped() {
    for (field, expected) in [
        ("region", "region"),
        ("namespace", "__namespace__"),
        ("a-b", "a__dash__b"),
        ("a__b", "a__underscores__b"),
    ] {
        assert_eq!(cel(field), expected);
    }
}
