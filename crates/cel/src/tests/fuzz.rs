//! Mutated expressions, schemas and objects: nothing panics, and no evaluation exceeds its budget.
//!
//! `OPKIT_FUZZ_SECONDS` sets the time, `OPKIT_FUZZ_SEED` the seed. Without them, few inputs run.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use opkit_apimachinery::schema::Schema;
use opkit_random::Random;
use serde_json::{Value as Json, json};

use crate::eval::Variables;
use crate::value::{Fault, from_json};
use crate::{Budget, Environment, Rules, check_rules};

/// Number of inputs without `OPKIT_FUZZ_SECONDS`.
const INPUTS: u32 = 400;

/// Parts of expressions that are likely to reach a special case.
const PARTS: &[&str] = &[
    "",
    "self",
    "oldSelf",
    "self.spec",
    ".?",
    "[?",
    "{?",
    "[",
    "]",
    "(",
    ")",
    "{}",
    "[]",
    "null",
    "-9223372036854775808",
    "9223372036854775807",
    "18446744073709551615u",
    "1e308",
    "double('NaN')",
    "''",
    "'\\u00e9'",
    "b'\\xff'",
    "@",
    "&&",
    "||",
    "?",
    ":",
    "in",
    "dyn(",
    ".all(x, ",
    ".map(x, ",
    ".exists(x, y, ",
    ".transformMapEntry(i, v, {v: i})",
    ".sortBy(x, x)",
    ".optMap(x, x)",
    ".orValue(1)",
    ".format([1, 'a', 2.5])",
    "lists.range(1000000)",
    "lists.range(-1)",
    ".replace('', 'aaaaaaaaaaaaaaaaaaaa')",
    ".join('xxxxxxxxxxxxxxxxxxx')",
    ".substring(1, 3)",
    ".matches('(a*)*b')",
    "quantity('1e1000')",
    "quantity('99999999999999999999999999999999999999')",
    "duration('9223372036s')",
    "timestamp('9999-12-31T23:59:59.999999999Z')",
    "ip('::1%x')",
    "cidr('::/0')",
    "semver('99999999999999999999.0.0')",
    "url('https://[')",
    "self + self",
    "((((((((((",
    "!!!!!!!!!!",
    "----------",
];

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn below(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).unwrap()
}

/// Changes some parts of an expression, or combines two expressions.
fn mutate(random: &mut Random, sources: &[String]) -> String {
    if random.percent(40) {
        let [a, b, c] = [(); 3].map(|()| sources[below(random, sources.len())].as_str());
        return match random.below(4) {
            0 => format!("({a}) && ({b}) || ({c})"),
            1 => format!("[{a}, {b}].exists(x, x == ({c}))"),
            2 => format!("({a}) ? ({b}) : ({c})"),
            _ => format!("lists.range(self.spec.count).map(n, {a}).all(x, n, {b})"),
        };
    }
    let mut chars: Vec<char> = sources[below(random, sources.len())].chars().collect();
    for _ in 0..=random.below(4) {
        let at = below(random, chars.len() + 1);
        match random.below(6) {
            0 if at < chars.len() => drop(chars.remove(at)),
            1 => chars.truncate(at),
            2 => {
                let other = &sources[below(random, sources.len())];
                let joined = [" && ", " == ", " + ", ", ", "[", "."][below(random, 6)];
                chars.extend(joined.chars().chain(other.chars()));
            }
            3 if at < chars.len() => chars[at] = char::from(b' ' + below(random, 95) as u8),
            4 => {
                let other: Vec<char> = sources[below(random, sources.len())].chars().collect();
                let end = below(random, other.len() + 1);
                drop(chars.splice(at..at, other[..end].iter().copied()));
            }
            _ => drop(chars.splice(at..at, PARTS[below(random, PARTS.len())].chars())),
        }
    }
    chars.into_iter().take(4_000).collect()
}

/// Changes a JSON value somewhere.
fn mutate_json(random: &mut Random, value: &mut Json) {
    match value {
        Json::Object(fields) if !fields.is_empty() && random.percent(85) => {
            let index = below(random, fields.len());
            let key = fields.keys().nth(index).unwrap().clone();
            match random.percent(10) {
                true => drop(fields.remove(&key)),
                false => mutate_json(random, &mut fields[&key]),
            }
        }
        Json::Array(items) if !items.is_empty() && random.percent(85) => {
            let index = below(random, items.len());
            mutate_json(random, &mut items[index]);
        }
        value => {
            *value = match random.below(7) {
                0 => Json::Null,
                1 => json!([null, 1, "a"]),
                2 => json!({"": {}}),
                3 => json!(random.unit() * 1e300),
                4 => json!(i64::MIN),
                5 => json!("x".repeat(below(random, 2_000))),
                _ => json!(random.percent(50)),
            };
        }
    }
}

/// Compiles and evaluates one expression. Returns whether it compiled.
fn run(source: &str, schema: &Schema, object: &Json, limit: u64) -> bool {
    let Ok(program) = Environment::crd(schema).compile(source) else {
        return false;
    };
    let values = crate::crd::value_schema(schema, true);
    let value = from_json(object, Some(&values));
    let variables: Variables<'_> = HashMap::from([
        ("self".to_owned(), value.clone()),
        ("oldSelf".to_owned(), value),
    ]);
    let evaluated = program.run(&variables, limit);
    match evaluated.outcome {
        Err(Fault::Budget) => {}
        _ => assert!(
            evaluated.cost <= limit,
            "{source:?} costs {}, more than {limit}",
            evaluated.cost
        ),
    }
    true
}

#[test]
fn expressions_neither_panic_nor_exceed_their_budget() {
    let seed = variable("OPKIT_FUZZ_SEED").unwrap_or(1);
    let duration = variable("OPKIT_FUZZ_SECONDS").map(Duration::from_secs);
    let began = SystemTime::now();
    let document: Json =
        serde_json::from_str(include_str!("../../testdata/decisions.json")).unwrap();
    let cases = document["cases"].as_array().unwrap();
    let rules = cases
        .iter()
        .filter_map(|case| case["rules"][0]["rule"].as_str());
    let sources: Vec<String> = rules.map(str::to_owned).collect();
    let base = &document["schemas"]["base"];
    let schema = Schema::parse(base).unwrap();
    let object = &document["objects"][0];
    let mut random = Random::new(seed);
    let (mut inputs, mut compiled) = (0, 0);
    loop {
        inputs += 1;
        let source = mutate(&mut random, &sources);
        let mut object = object.clone();
        for _ in 0..random.below(3) {
            mutate_json(&mut random, &mut object);
        }
        let limit = 10_u64.pow(u32::try_from(random.below(6)).unwrap());
        compiled += u32::from(run(&source, &schema, &object, limit));
        if inputs % 10 == 0 {
            let mut document = cases[below(&mut random, cases.len())]["schema"].clone();
            mutate_json(&mut random, &mut document);
            if let Ok(schema) = Schema::parse(&document) {
                check_rules(&schema, "spec");
                let mut budget = Budget::new(limit);
                Rules::new(&schema).validate(&object, Some(&object), &mut budget);
            }
        }
        let is_over = match duration {
            Some(duration) => began.elapsed().unwrap_or_default() >= duration,
            None => inputs >= INPUTS,
        };
        if is_over {
            break;
        }
    }
    assert!(
        compiled > inputs / 20,
        "only {compiled} of {inputs} compile"
    );
}
