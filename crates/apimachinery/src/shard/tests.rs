use super::*;

fn check_error(text: &str, expected: &str) {
    assert_eq!(
        text.parse::<ShardSelector>().unwrap_err().to_string(),
        expected
    );
}

#[test]
fn the_hash_is_that_of_a_real_server() {
    assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
    // Namespaces that kube-apiserver 1.36.3 assigns to the lower half.
    let lower = ShardSelector::part(ShardKey::Uid, 0, 2);
    for uid in [
        "d610e45f-7f2f-4c78-8f95-a6d2e9772012",
        "e109d098-2cc7-4393-8dd2-763ac114ad66",
    ] {
        assert!(lower.matches(uid, ""), "{uid}");
    }
}

#[test]
fn parts_contain_every_object_once() {
    for of in 1..9 {
        let parts: Vec<_> = (0..of)
            .map(|index| ShardSelector::part(ShardKey::Namespace, index, of))
            .collect();
        for namespace in ["", "a", "b", "kube-system", "default", "x y z"] {
            let count = parts.iter().filter(|part| part.matches("", namespace));
            assert_eq!(count.count(), 1);
        }
        let printed = parts.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(printed[0].contains("'0x0000000000000000'"));
        assert!(printed[of as usize - 1].contains("'0x10000000000000000'"));
        let all: ShardSelector = printed.join(" || ").parse().unwrap();
        assert_eq!(all.ranges().len(), of as usize);
    }
}

#[test]
fn slots_are_parts() {
    for of in [1, 2, 3, 5, 7, 8, 64, 1000, u32::MAX] {
        let edges = [0, 1, of / 3, of / 2, of - 1].into_iter();
        for index in edges.filter(|index| *index < of) {
            let part = ShardSelector::part(ShardKey::Uid, index, of);
            let range = part.ranges()[0];
            let (first, last) = (range.start as u64, (range.end - 1) as u64);
            for hash in [first, first + (last - first) / 2, last] {
                assert_eq!(slot(hash, of), index, "{hash} of {of} slots");
            }
            let previous = index.checked_sub(1).unwrap_or(of - 1);
            assert_eq!(slot(first.wrapping_sub(1), of), previous);
        }
    }
    assert_eq!(slot(5, 0), 0);
}

#[test]
fn adjacent_slots_are_one_range() {
    let check = |slots: &[u32], of: u32, ranges: usize| {
        let selector = ShardSelector::slots(ShardKey::Uid, slots.iter().copied(), of);
        assert_eq!(selector.ranges().len(), ranges, "{slots:?} of {of}");
        for number in 0..1000 {
            let uid = format!("uid-{number}");
            let expected = slots.contains(&slot(hash(&uid), of));
            assert_eq!(selector.matches(&uid, ""), expected, "{slots:?} of {of}");
        }
        assert_eq!(selector.is_empty(), ranges == 0);
        if ranges > 0 {
            assert_eq!(selector.to_string().parse(), Ok(selector));
        }
    };
    check(&[], 8, 0);
    check(&[8, 9], 8, 0);
    check(&[3], 8, 1);
    check(&[7, 6, 5, 6], 8, 1);
    check(&[0, 1, 2, 3, 4, 5, 6], 7, 1);
    check(&[0, 2, 3, 5], 7, 3);
    check(&[0, 7], 8, 2);
}

#[test]
fn a_cover_selects_at_least_the_same() {
    let check = |slots: &[u32], ranges_max: usize, cover: &[u32]| {
        let of = |slots: &[u32]| ShardSelector::slots(ShardKey::Uid, slots.iter().copied(), 16);
        assert_eq!(of(slots).cover(ranges_max), of(cover));
    };
    check(&[], 4, &[]);
    check(&[1, 3, 5], 3, &[1, 3, 5]);
    check(&[1, 4, 6, 11], 3, &[1, 4, 5, 6, 11]);
    check(&[1, 4, 6, 11], 2, &[1, 2, 3, 4, 5, 6, 11]);
    check(&[1, 4], 0, &[1, 2, 3, 4]);
    let range = |start, end| ShardRange::new(start, end);
    let nested = ShardSelector::new(ShardKey::Uid, vec![range(5, 6), range(0, 9), range(20, 30)]);
    let cover = nested.cover(2);
    assert_eq!(cover.ranges(), [range(0, 9), range(20, 30)]);
}

#[test]
fn a_union_selects_what_either_selects() {
    let of = |slots: &[u32]| ShardSelector::slots(ShardKey::Uid, slots.iter().copied(), 16);
    let check = |one: &[u32], other: &[u32]| {
        let both: Vec<u32> = one.iter().chain(other).copied().collect();
        assert_eq!(of(one).union(&of(other)), of(&both));
    };
    check(&[], &[]);
    check(&[], &[3, 9]);
    check(&[1, 2, 3, 7], &[2]);
    check(&[1, 5], &[2, 3, 4, 9]);
    check(&[0, 1, 2, 3], &[2, 3, 4, 15]);
}

#[test]
fn spaces_quotes_and_parentheses() {
    let selector: ShardSelector = "( shardRange( object.metadata.uid ,\"0x0000000000000000\",\
                                   '0x0000000000000001'))||shardRange(object.metadata.uid, \
                                   '0x0000000000000005', '0x10000000000000000')"
        .parse()
        .unwrap();
    assert_eq!(
        selector.to_string(),
        "shardRange(object.metadata.uid, '0x0000000000000000', '0x0000000000000001') || \
         shardRange(object.metadata.uid, '0x0000000000000005', '0x10000000000000000')"
    );
}

#[test]
fn errors_are_those_of_kubernetes() {
    check_error(
        "shardRange(object.metadata.uid,'0x0','0x8000000000000000')",
        "hexStart must be a 0x-prefixed 16-digit hex value, got \"0x0\" (did you mean \"0x0000000000000000\"?)",
    );
    check_error(
        "foo",
        "unexpected expression kind 3; expected shardRange() call or || operator",
    );
    check_error(
        "foo('a')",
        "unsupported function \"foo\"; only shardRange() and || are allowed",
    );
    check_error(
        "shardRange(object.metadata.name,'0x0','0x1')",
        "unsupported field path \"object.metadata.name\"; supported: object.metadata.uid, object.metadata.namespace",
    );
    check_error(
        "shardRange(object.metadata.uid, '0x0000000000000005', '0x0000000000000005')",
        "shard range start 0x0000000000000005 must be less than end 0x0000000000000005",
    );
    check_error(
        "shardRange(object.metadata.uid)",
        "shardRange() requires exactly 3 arguments, got 1",
    );
    check_error(
        "shardRange(object.metadata.uid, '0x0000000000000000', '0x0000000000000005') || \
         shardRange(object.metadata.namespace, '0x0000000000000000', '0x0000000000000005')",
        "all shard ranges must use the same field, got \"object.metadata.uid\" and \"object.metadata.namespace\"",
    );
    check_error(
        " ",
        "empty shard selector is not allowed; omit the parameter for unfiltered lists",
    );
    for broken in [
        "(",
        "shardRange(",
        "shardRange(a, 'b",
        "|| ||",
        "shardRange) ",
        "🦀",
    ] {
        assert!(broken.parse::<ShardSelector>().is_err(), "{broken}");
    }
    let deep = "(".repeat(100_000);
    assert!(deep.parse::<ShardSelector>().is_err());
}
