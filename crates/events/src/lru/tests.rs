use super::Lru;

#[test]
fn the_least_recently_used_entry_is_removed() {
    let mut lru = Lru::new(2);
    *lru.get_or_insert_with(&"a", || 0) = 1;
    *lru.get_or_insert_with(&"b", || 0) = 2;
    assert_eq!(*lru.get_or_insert_with(&"a", || 9), 1);
    *lru.get_or_insert_with(&"c", || 0) = 3;
    assert_eq!(lru.peek(&"b"), None);
    assert_eq!((lru.peek(&"a"), lru.peek(&"c")), (Some(&1), Some(&3)));
    assert_eq!(lru.len(), 2);
    let mut seen = Vec::new();
    lru.retain(|value| {
        seen.push(*value);
        *value != 1
    });
    assert_eq!(seen, [1, 3]);
    assert_eq!((lru.peek(&"a"), lru.len()), (None, 1));
}
