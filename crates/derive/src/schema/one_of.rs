//! `at_most_one_of(...)`, `exactly_one_of(...)` and `at_least_one_of(...)` on a struct: CEL rules
//! about which fields are set.

use syn::Error;

use super::Struct;
use crate::arguments::Argument;
use crate::keywords::Rule;
use crate::names;
use crate::nearest::nearest;

/// Arguments with the comparison of the number of fields that are set, and the message.
const ARGUMENTS: [(&str, &str, &str); 3] = [
    (
        "at_most_one_of",
        "<= 1",
        "at most one of the fields in [{}] may be set",
    ),
    (
        "exactly_one_of",
        "== 1",
        "exactly one of the fields in [{}] must be set",
    ),
    (
        "at_least_one_of",
        ">= 1",
        "at least one of the fields in [{}] must be set",
    ),
];

/// Returns the rule of an argument, or `None` if the argument is not one of [`ARGUMENTS`].
pub(super) fn rule(argument: &Argument, of: &Struct) -> syn::Result<Option<Rule>> {
    let Some((_, comparison, message)) = ARGUMENTS.iter().find(|(name, ..)| argument.is(name))
    else {
        return Ok(None);
    };
    let mut fields: Vec<String> = Vec::new();
    for ident in argument.idents()? {
        let Some(field) = of.fields().iter().find(|field| *field.ident() == ident) else {
            let known: Vec<String> = of
                .fields()
                .iter()
                .map(|field| field.ident().to_string())
                .collect();
            let name = ident.to_string();
            let message = match nearest(&name, known.iter().map(String::as_str)) {
                Some(known) => format!("there is no field `{name}`: did you mean `{known}`?"),
                None => format!(
                    "there is no field `{name}`: expected one of {}",
                    known.join(", ")
                ),
            };
            return Err(Error::new(ident.span(), message));
        };
        let scoped = field.in_scope();
        if !scoped.is_optional {
            let message = format!("`{ident}` is always set: write its type as an `Option`");
            return Err(Error::new(ident.span(), message));
        }
        if fields.contains(&scoped.json) {
            return Err(Error::new(
                ident.span(),
                format!("`{ident}` is listed twice"),
            ));
        }
        fields.push(scoped.json);
    }
    Ok(Some(rule_of(&fields, comparison, message)))
}

/// Returns the rule about the number of fields that are set. `message` has `{}` for their names.
pub(super) fn rule_of(fields: &[String], comparison: &str, message: &str) -> Rule {
    let tests = fields
        .iter()
        .map(|field| format!("has(self.{})", names::cel(field)));
    let tests = tests.collect::<Vec<_>>().join(",");
    // The form of controller-gen: it costs less than a sum of conditional expressions.
    let rule = format!("[{tests}].filter(x,x==true).size() {comparison}");
    Rule::new(rule, message.replace("{}", &fields.join(" ")))
}
