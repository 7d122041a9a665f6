use std::collections::BTreeMap;

use opkit_random::Random;

use super::*;

/// Object with a name and the values that it has in the index.
#[derive(Debug, Clone, PartialEq)]
struct Item {
    name: String,
    values: Vec<String>,
}

fn item(name: &str, values: &[&str]) -> Item {
    Item {
        name: name.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    }
}

fn indexer() -> Indexer<Item, String> {
    let indexer = Indexer::new(|item: &Item| item.name.clone());
    indexer
        .add_index("values", |item| item.values.clone())
        .unwrap();
    indexer
}

fn keys(indexer: &Indexer<Item, String>, value: &str) -> Vec<String> {
    let mut keys = indexer.index_keys("values", value).unwrap();
    keys.sort();
    let mut names: Vec<_> = indexer.by_index("values", value).unwrap();
    names.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(
        keys,
        names.iter().map(|it| it.name.clone()).collect::<Vec<_>>()
    );
    keys
}

#[test]
fn objects_with_several_values_are_found_by_each() {
    let indexer = indexer();
    indexer.add(item("tri", &["ernie", "bert"]));
    indexer.add(item("two", &["bert", "bert"]));
    indexer.add(item("none", &[]));
    assert_eq!(keys(&indexer, "bert"), ["tri", "two"]);
    assert_eq!(keys(&indexer, "ernie"), ["tri"]);
    assert_eq!(keys(&indexer, "oscar"), [""; 0]);
    let like = indexer.with_values_of("values", &item("new", &["bert", "ernie"]));
    assert_eq!(like.unwrap().len(), 2, "each once");

    let before = indexer.update(item("tri", &["oscar"])).unwrap();
    assert_eq!(before.values, ["ernie", "bert"]);
    assert_eq!(keys(&indexer, "ernie"), [""; 0]);
    assert_eq!(indexer.delete(&"tri".to_owned()).unwrap().values, ["oscar"]);
    assert!(indexer.delete(&"tri".to_owned()).is_none());
    // Values without objects are gone.
    assert_eq!(indexer.index_values("values").unwrap(), ["bert"]);
}

#[test]
fn an_index_that_is_added_later_has_the_stored_objects() {
    let indexer = indexer();
    indexer.replace([item("a", &["1"]), item("b", &["22"])]);
    let length = |item: &Item| item.values.iter().map(|it| it.len().to_string()).collect();
    indexer.add_index("length", length).unwrap();
    assert_eq!(indexer.index_keys("length", "2").unwrap(), ["b"]);
    assert_eq!(indexer.indexes(), ["length", "values"]);
    let again = indexer.add_index("length", |_| Vec::new()).unwrap_err();
    assert_eq!(
        again.to_string(),
        "the store already has an index \"length\""
    );
    let none = indexer.by_index("lenght", "2").unwrap_err();
    assert_eq!(
        none.to_string(),
        "the store has no index \"lenght\": it has length, values"
    );
}

/// Random operations, compared with a plain map.
#[test]
fn a_thousand_operations_agree_with_a_plain_map() {
    for seed in 0..20 {
        let (mut random, indexer) = (Random::new(seed), indexer());
        let mut plain: BTreeMap<String, Item> = BTreeMap::new();
        for _ in 0..1_000 {
            let pick = |random: &mut Random, n: usize| (random.unit() * n as f64) as usize;
            let name = format!("n{}", pick(&mut random, 8));
            let values: Vec<_> = (0..pick(&mut random, 3))
                .map(|_| format!("v{}", pick(&mut random, 3)))
                .collect();
            let item = Item { name, values };
            match pick(&mut random, 20) {
                0 => {
                    plain = [(item.name.clone(), item.clone())].into();
                    indexer.replace([item]);
                }
                1..=7 => {
                    let removed = indexer.delete(&item.name);
                    assert_eq!(removed.as_deref(), plain.remove(&item.name).as_ref());
                }
                _ => {
                    let before = indexer.add(item.clone());
                    assert_eq!(
                        before.as_deref(),
                        plain.insert(item.name.clone(), item).as_ref()
                    );
                }
            }
            assert_eq!(indexer.len(), plain.len());
            for value in ["v0", "v1", "v2"] {
                let having = plain
                    .values()
                    .filter(|it| it.values.iter().any(|v| v == value));
                let expected: Vec<_> = having.map(|it| it.name.clone()).collect();
                assert_eq!(keys(&indexer, value), expected, "seed {seed}");
            }
        }
    }
}
