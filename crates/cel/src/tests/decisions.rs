//! Compares with recorded decisions of Kubernetes 1.36.3.
//!
//! `testdata/decisions.json` was recorded by a program that calls the packages of the API server:
//! the validation of a CRD with one schema, the estimated costs of the rules at its root, and the
//! validation of objects. The name of the type of `self` is `selfType` in the recording, because
//! its number is random in Kubernetes.

use opkit_apimachinery::schema::Schema;
use opkit_apimachinery::structural::FieldError;
use serde_json::{Value as Json, json};

use crate::{Budget, RUNTIME_COST_BUDGET, Rules, Type, check_rules};

fn texts(errors: &[FieldError]) -> Vec<String> {
    let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.sort();
    texts
}

fn recorded(value: &Json) -> Vec<String> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |item: &Json| item.as_str().unwrap().to_owned();
    let mut texts: Vec<String> = items.iter().map(text).collect();
    texts.sort();
    texts
}

/// Returns the estimated costs of a rule at the root, and of the expression of its message.
fn estimated(schema: &Schema, rule: &Json) -> (u64, u64) {
    let optional = rule["optionalOldSelf"] == json!(true);
    let environment = crate::crd::environment(schema, true, optional);
    let cost = |name: &str, expected: Type| {
        let source = rule[name].as_str().unwrap_or_default();
        let program = environment.compile(source).ok();
        program
            .filter(|program| *program.result_type() == expected)
            .map(|program| program.estimated_cost())
    };
    match cost("rule", Type::Bool) {
        Some(found) => (found, cost("messageExpression", Type::String).unwrap_or(0)),
        None => (0, 0),
    }
}

/// Compares one case. Returns the differences.
fn compare(case: &Json, document: &Json) -> Vec<String> {
    let mut differences = Vec::new();
    let mut differ = |what: &str, ours: String, theirs: String| {
        if ours != theirs {
            differences.push(format!("{what}\n   ours   {ours}\n   theirs {theirs}"));
        }
    };
    let mut schema = match case.get("base") {
        Some(base) => document["schemas"][base.as_str().unwrap()].clone(),
        None => case["schema"].clone(),
    };
    if let Some(rules) = case.get("rules") {
        schema["x-kubernetes-validations"] = rules.clone();
    }
    let parsed = Schema::parse(&schema).unwrap();
    let creation = texts(&check_rules(&parsed, "spec.validation.openAPIV3Schema"));
    let theirs = recorded(&case["creation"]);
    differ("creation", format!("{creation:#?}"), format!("{theirs:#?}"));
    let costs: Vec<(u64, u64)> = parsed
        .validations
        .iter()
        .map(|rule| estimated(&parsed, rule))
        .collect();
    let (rules, messages): (Vec<u64>, Vec<u64>) = costs.into_iter().unzip();
    for (name, ours) in [("costs", rules), ("messageCosts", messages)] {
        if let Some(theirs) = case.get(name) {
            differ(name, json!(ours).to_string(), theirs.to_string());
        }
    }
    let rules = Rules::new(&parsed);
    for (index, run) in case["runs"].as_array().unwrap().iter().enumerate() {
        let object = |name: &str| {
            let index = run.get(name)?.as_u64().unwrap();
            document["objects"].get(usize::try_from(index).unwrap())
        };
        let mut budget = Budget::new(RUNTIME_COST_BUDGET);
        let outcome = rules.validate(object("new").unwrap(), object("old"), &mut budget);
        let errors = texts(&outcome.errors);
        let theirs = recorded(&run["errors"]);
        differ(
            &format!("errors of run {index}"),
            format!("{errors:#?}"),
            format!("{theirs:#?}"),
        );
        let warnings = texts(&outcome.warnings);
        let theirs = recorded(&run["warnings"]);
        differ(
            &format!("warnings of run {index}"),
            format!("{warnings:#?}"),
            format!("{theirs:#?}"),
        );
        // Kubernetes reports a budget of -1 when it stops.
        let cost = RUNTIME_COST_BUDGET - budget.remaining();
        let theirs = run["cost"].as_u64().unwrap().min(RUNTIME_COST_BUDGET);
        differ(
            &format!("cost of run {index}"),
            cost.to_string(),
            theirs.to_string(),
        );
    }
    differences
}

#[test]
fn recorded_decisions_agree() {
    let document: Json =
        serde_json::from_str(include_str!("../../testdata/decisions.json")).unwrap();
    let cases = document["cases"].as_array().unwrap();
    let mut wrong = Vec::new();
    for case in cases {
        let differences = compare(case, &document);
        if !differences.is_empty() {
            let shown = case.get("rules").unwrap_or(&case["schema"]).to_string();
            wrong.push(format!("== {shown:.400}\n{}", differences.join("\n")));
        }
    }
    assert!(cases.len() >= 300);
    let agreed = cases.len() - wrong.len();
    assert!(
        wrong.is_empty(),
        "{}\n{agreed} of {} decisions agree",
        wrong.join("\n"),
        cases.len()
    );
}
