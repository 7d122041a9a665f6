use super::*;

#[test]
fn distances_count_swapped_letters_once() {
    for (from, to, expected) in [
        ("", "", 0),
        ("a", "", 1),
        ("min", "max", 2),
        ("lenght", "length", 1),
        ("rename", "rename_all", 4),
    ] {
        assert_eq!(distance(from, to), expected, "{from} {to}");
    }
}
