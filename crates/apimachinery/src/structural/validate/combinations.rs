//! `anyOf`, `oneOf`, `allOf` and `not`.

use serde_json::Value;

use super::{Outcome, check};
use crate::golang;
use crate::schema::{Schema, SchemaRef, Typed};
use crate::structural::FieldError;

/// `anyOf`, `oneOf`, `allOf` and `not`. Kubernetes gives these errors no field of their own.
pub(super) fn check_combinations(value: &Value, typed: &Typed<'_>, path: &str) -> Outcome {
    let schema = typed.schema();
    let mut outcome = Outcome::default();
    let tell = |outcome: &mut Outcome, detail: String| {
        let detail = format!("{} {detail}", golang::quote(path));
        outcome.add(FieldError::invalid("<nil>", &Value::from(""), detail));
    };
    let run = |schema: &Schema| check(value, &typed.at(schema), path);
    if !schema.any_of.is_empty() {
        let Alternatives { valid, told, .. } = Alternatives::try_all(&schema.any_of, true, run);
        if valid == 0 {
            tell(
                &mut outcome,
                "must validate at least one schema (anyOf)".to_owned(),
            );
        }
        outcome.merge(told);
    }
    if !schema.one_of.is_empty() {
        let Alternatives { valid, told } = Alternatives::try_all(&schema.one_of, false, run);
        match valid {
            0 => tell(
                &mut outcome,
                "must validate one and only one schema (oneOf). Found none valid".to_owned(),
            ),
            1 => {}
            several => tell(
                &mut outcome,
                format!(
                    "must validate one and only one schema (oneOf). \
                     Found {several} valid alternatives"
                ),
            ),
        }
        if valid <= 1 {
            outcome.merge(told);
        }
    }
    let mut all_valid = 0;
    for part in &schema.all_of {
        let result = run(part);
        all_valid += usize::from(result.is_valid());
        outcome.merge(result);
    }
    if all_valid < schema.all_of.len() {
        let none = if all_valid == 0 {
            ". None validated"
        } else {
            ""
        };
        tell(
            &mut outcome,
            format!("must validate all the schemas (allOf){none}"),
        );
    }
    if schema.not.as_ref().is_some_and(|not| run(not).is_valid()) {
        tell(
            &mut outcome,
            "must not validate the schema (not)".to_owned(),
        );
    }
    outcome.matched += 1;
    outcome
}

/// How many alternatives hold, and the outcome to tell: the first valid one's, or else that of
/// the one which came closest.
struct Alternatives {
    valid: usize,
    told: Outcome,
}

impl Alternatives {
    fn try_all(
        schemas: &[SchemaRef],
        stop_at_first: bool,
        run: impl Fn(&Schema) -> Outcome,
    ) -> Self {
        let mut valid = 0;
        let mut told: Option<Outcome> = None;
        for schema in schemas {
            let result = run(schema);
            if result.is_valid() {
                if valid == 0 {
                    told = Some(result);
                }
                valid += 1;
                if stop_at_first {
                    break;
                }
            } else if valid == 0
                && told
                    .as_ref()
                    .is_none_or(|best| result.matched > best.matched)
            {
                told = Some(result);
            }
        }
        Self {
            valid,
            told: told.unwrap_or_default(),
        }
    }
}
