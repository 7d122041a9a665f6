//! Properties that hold for any objects, tested with a generator that repeats its objects.

use opkit_random::Random;
use serde_json::{Map, Value, json};

use super::super::*;
use super::{TIME, by, owned};
use crate::schema::{NoDefinitions, Schema, Typed};

/// Generator of names and configurations.
struct Objects(Random);

impl Objects {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit)
    }

    /// Returns at least one name: with an emptied list, a real server needs two applies as well.
    fn names(&mut self) -> Vec<&'static str> {
        let all = ["a", "b", "c", "d"].into_iter();
        let mut names: Vec<&str> = all.filter(|_| self.below(2) == 0).collect();
        if names.is_empty() {
            names.push("e");
        }
        if self.below(2) == 0 {
            names.reverse();
        }
        names
    }

    fn config(&mut self) -> Value {
        let mut spec = Map::new();
        spec.insert("size".to_owned(), json!(self.below(2)));
        if self.below(2) == 0 {
            let names = self.names().into_iter();
            let items = names.map(|name| json!({"name": name, "v": self.below(2)}));
            spec.insert("list".to_owned(), items.collect());
        }
        if self.below(2) == 0 {
            spec.insert("set".to_owned(), json!(self.names()));
        }
        if self.below(2) == 0 {
            let names = self.names().into_iter();
            let entries = names.map(|name| (name.to_owned(), json!(self.below(2))));
            spec.insert("map".to_owned(), Value::Object(entries.collect()));
        }
        if self.below(2) == 0 {
            spec.insert("whole".to_owned(), json!(self.names()));
        }
        json!({"spec": spec})
    }
}

fn schema() -> Schema {
    let integer = json!({"type": "integer"});
    let spec = json!({"type": "object", "properties": {
        "list": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}, "v": integer}},
        },
        "map": {"type": "object", "additionalProperties": integer},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "size": integer,
        "whole": {"type": "array", "items": {"type": "string"}},
    }});
    Schema::parse(&json!({"type": "object", "properties": {"spec": spec}})).unwrap()
}

/// Calls `check` on many objects that three managers have applied.
fn for_many(check: impl Fn(&Typed<'_>, &Value, &Value)) {
    let schema = schema();
    let typed = Typed::new(&schema, &NoDefinitions);
    for seed in 0..100 {
        let mut random = Objects(Random::new(seed));
        let mut live = None;
        for _ in 0..4 {
            let manager = by(["x", "y", "z"][random.below(3) as usize]);
            let applied = apply(
                live.as_ref(),
                &random.config(),
                &typed,
                &manager,
                true,
                TIME,
            )
            .unwrap();
            live = Some(applied);
        }
        check(&typed, &live.unwrap(), &random.config());
    }
}

#[test]
fn applying_twice_is_applying_once() {
    for_many(|typed, live, config| {
        let once = apply(Some(live), config, typed, &by("x"), true, TIME).unwrap();
        let twice = apply(
            Some(&once),
            config,
            typed,
            &by("x"),
            false,
            "2027-01-01T00:00:00Z",
        )
        .unwrap();
        assert_eq!(twice, once, "{config} over {live}");
    });
}

#[test]
fn what_is_applied_is_there_and_owned() {
    for_many(|typed, live, config| {
        let new = apply(Some(live), config, typed, &by("x"), true, TIME).unwrap();
        let wanted = FieldSet::of(config, typed);
        assert!(
            wanted.difference(&FieldSet::of(&new, typed)).is_empty(),
            "{config} in {new}"
        );
        let owned = owned(&new).remove("x/Apply").unwrap_or_default();
        assert_eq!(owned, wanted.paths(), "{config} over {live}");
    });
}

#[test]
fn force_moves_ownership_and_nothing_else() {
    for_many(|typed, live, config| {
        let forced = apply(Some(live), config, typed, &by("w"), true, TIME).unwrap();
        match apply(Some(live), config, typed, &by("w"), false, TIME) {
            Ok(unforced) => assert_eq!(unforced, forced, "without conflicts force does nothing"),
            Err(ApplyError::Conflicts(conflicts)) => {
                let (before, after) = (owned(live), owned(&forced));
                for (manager, fields) in &before {
                    let now = after.get(manager).cloned().unwrap_or_default();
                    let lost: Vec<&String> = fields.iter().filter(|f| !now.contains(f)).collect();
                    let taken: Vec<&String> = conflicts
                        .iter()
                        .filter(|conflict| format!("{}/Apply", conflict.manager) == *manager)
                        .map(|conflict| &conflict.field)
                        .collect();
                    assert_eq!(lost, taken, "{manager}: {config} over {live}");
                }
            }
            Err(other) => panic!("{other}"),
        }
    });
}

#[test]
fn letting_go_leaves_others_alone() {
    for_many(|typed, live, config| {
        let applied = apply(Some(live), config, typed, &by("w"), true, TIME).unwrap();
        let released = apply(Some(&applied), &json!({}), typed, &by("w"), false, TIME).unwrap();
        let mut expected = owned(&applied);
        expected.remove("w/Apply");
        assert_eq!(owned(&released), expected, "{config} over {live}");
    });
}
