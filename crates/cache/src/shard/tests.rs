use super::*;

/// Every object belongs to exactly one part, however the kind is split.
fn check(shards: &[Shards]) {
    let namespaces = [Some("a".to_owned()), Some("b".to_owned())];
    for number in 0..1000 {
        let uid = format!("uid-{number}");
        for namespace in ["a", "b"] {
            let parts = shards.iter().flat_map(|shards| shards.parts(&namespaces));
            let covers = parts.filter(|part| part.covers(Some(namespace), Some(&uid)));
            assert_eq!(covers.count(), 1, "{namespace}/{uid} of {shards:?}");
        }
    }
}

#[test]
fn parts_are_everything_and_do_not_overlap() {
    check(&[Shards::default()]);
    check(&[Shards::default().watches(5)]);
    for key in [ShardKey::Uid, ShardKey::Namespace] {
        let processes = [0, 1, 2].map(|index| Shards::part(key, index, 3));
        check(&processes);
        check(&processes.map(|shards| shards.watches(4)));
    }
}
