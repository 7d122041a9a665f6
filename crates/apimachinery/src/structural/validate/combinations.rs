//! Checks of `anyOf`, `oneOf`, `allOf` and `not`.

use serde_json::Value;

use super::{Outcome, check_value};
use crate::golang;
use crate::schema::{Schema, SchemaRef, Typed};
use crate::structural::FieldError;

/// Checks `anyOf`, `oneOf`, `allOf` and `not`. Kubernetes reports the errors of these keywords
/// without a field.
pub(super) fn check_combinations(
    value: &Value,
    old: Option<&Value>,
    typed: &Typed<'_>,
    path: &str,
) -> Outcome {
    let schema = typed.schema();
    let mut outcome = Outcome::default();
    let report = |outcome: &mut Outcome, detail: String| {
        let detail = format!("{} {detail}", golang::quote(path));
        outcome.add(FieldError::invalid("<nil>", &Value::from(""), detail));
    };
    let check_schema = |schema: &Schema| check_value(value, old, &typed.at(schema), path);
    if !schema.any_of.is_empty() {
        let Alternatives {
            valid, reported, ..
        } = Alternatives::try_all(&schema.any_of, true, check_schema);
        if valid == 0 {
            report(
                &mut outcome,
                "must validate at least one schema (anyOf)".to_owned(),
            );
        }
        outcome.merge(reported);
    }
    if !schema.one_of.is_empty() {
        let Alternatives { valid, reported } =
            Alternatives::try_all(&schema.one_of, false, check_schema);
        match valid {
            0 => report(
                &mut outcome,
                "must validate one and only one schema (oneOf). Found none valid".to_owned(),
            ),
            1 => {}
            several => report(
                &mut outcome,
                format!(
                    "must validate one and only one schema (oneOf). \
                     Found {several} valid alternatives"
                ),
            ),
        }
        if valid <= 1 {
            outcome.merge(reported);
        }
    }
    let mut all_valid = 0;
    for part in &schema.all_of {
        let result = check_schema(part);
        all_valid += usize::from(result.is_valid());
        outcome.merge(result);
    }
    if all_valid < schema.all_of.len() {
        let none = if all_valid == 0 {
            ". None validated"
        } else {
            ""
        };
        report(
            &mut outcome,
            format!("must validate all the schemas (allOf){none}"),
        );
    }
    if schema
        .not
        .as_ref()
        .is_some_and(|not| check_schema(not).is_valid())
    {
        report(
            &mut outcome,
            "must not validate the schema (not)".to_owned(),
        );
    }
    outcome.matched += 1;
    outcome
}

/// Result of checking a value against the alternatives of `anyOf` or `oneOf`. The reported outcome
/// is that of the first valid alternative; if none is valid, that of the alternative in which the
/// most checks passed.
struct Alternatives {
    valid: usize,
    reported: Outcome,
}

impl Alternatives {
    fn try_all(
        schemas: &[SchemaRef],
        stop_at_first: bool,
        check_schema: impl Fn(&Schema) -> Outcome,
    ) -> Self {
        let mut valid = 0;
        let mut reported: Option<Outcome> = None;
        for schema in schemas {
            let result = check_schema(schema);
            if result.is_valid() {
                if valid == 0 {
                    reported = Some(result);
                }
                valid += 1;
                if stop_at_first {
                    break;
                }
            } else if valid == 0
                && reported
                    .as_ref()
                    .is_none_or(|best| result.matched > best.matched)
            {
                reported = Some(result);
            }
        }
        Self {
            valid,
            reported: reported.unwrap_or_default(),
        }
    }
}
