//! Limits of values: ranges of numbers, and lengths of strings, lists and maps.

use syn::{Error, Expr, ExprLit, Lit};

use super::{Keyword, Keywords};
use crate::arguments::Argument;
use crate::literal::Number;
use crate::types::Class;

/// Argument that limits the values of a field.
pub(super) struct Limit {
    pub(super) name: &'static str,
    /// Classes of types on which the argument is allowed.
    pub(super) classes: &'static [Class],
    /// Noun for the classes.
    pub(super) noun: &'static str,
    /// Schema keyword.
    keyword: &'static str,
}

const NUMBERS: &[Class] = &[Class::Integer, Class::Float];

const fn limit(
    name: &'static str,
    classes: &'static [Class],
    noun: &'static str,
    keyword: &'static str,
) -> Limit {
    Limit {
        name,
        classes,
        noun,
        keyword,
    }
}

pub(super) const LIMITS: [Limit; 11] = [
    limit("min", NUMBERS, "a number", "minimum"),
    limit("max", NUMBERS, "a number", "maximum"),
    limit("exclusive_min", NUMBERS, "a number", "minimum"),
    limit("exclusive_max", NUMBERS, "a number", "maximum"),
    limit("multiple_of", NUMBERS, "a number", "multipleOf"),
    limit("min_length", &[Class::String], "a string", "minLength"),
    limit("max_length", &[Class::String], "a string", "maxLength"),
    limit("min_items", &[Class::List], "a list", "minItems"),
    limit("max_items", &[Class::List], "a list", "maxItems"),
    limit("min_properties", &[Class::Map], "a map", "minProperties"),
    limit("max_properties", &[Class::Map], "a map", "maxProperties"),
];

/// Limits of one value, for the check of its default.
#[derive(Default)]
pub(crate) struct Limits {
    /// The limits in the order in which they were written.
    written: Vec<(&'static str, Number)>,
}

impl Limits {
    fn get(&self, name: &str) -> Option<Number> {
        let mut limits = self.written.iter();
        limits
            .find(|(limit, _)| *limit == name)
            .map(|(_, limit)| *limit)
    }

    /// Checks a literal default against the limits.
    pub(crate) fn check_default(&self, expr: &Expr) -> syn::Result<()> {
        if let Some((value, span)) = Number::of(expr)? {
            return match self.problem_of_number(value) {
                Some(problem) => Err(Error::new(span, format!("default {value} {problem}"))),
                None => Ok(()),
            };
        }
        let (length, unit) = match expr {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) => (text.value().chars().count(), "length"),
            Expr::Array(array) => (array.elems.len(), "items"),
            _ => return Ok(()),
        };
        let length = Number::Integer(i64::try_from(length).unwrap_or(i64::MAX));
        let (min, max) = (format!("min_{unit}"), format!("max_{unit}"));
        let problem = match (self.get(&min), self.get(&max)) {
            (Some(limit), _) if length < limit => format!("shorter than {min} = {limit}"),
            (_, Some(limit)) if length > limit => format!("longer than {max} = {limit}"),
            _ => return Ok(()),
        };
        let shown = match expr {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) => format!("default {:?}", text.value()),
            _ => "the default".to_owned(),
        };
        Err(Error::new_spanned(expr, format!("{shown} is {problem}")))
    }

    fn problem_of_number(&self, value: Number) -> Option<String> {
        for (name, limit) in &self.written {
            let problem = match *name {
                "min" if value < *limit => "is below",
                "max" if value > *limit => "is above",
                "exclusive_min" if value <= *limit => "is not above",
                "exclusive_max" if value >= *limit => "is not below",
                "multiple_of" if !value.is_multiple_of(*limit) => "is not a multiple of",
                _ => continue,
            };
            return Some(match *name {
                "multiple_of" => format!("{problem} {limit}"),
                name => format!("{problem} {name} = {limit}"),
            });
        }
        None
    }

    /// Checks that no lower limit is above the corresponding upper limit.
    fn check_order(&self, argument: &Argument) -> syn::Result<()> {
        for (low, high) in [
            ("min", "max"),
            ("exclusive_min", "max"),
            ("min", "exclusive_max"),
            ("exclusive_min", "exclusive_max"),
            ("min_length", "max_length"),
            ("min_items", "max_items"),
            ("min_properties", "max_properties"),
        ] {
            if let (Some(min), Some(max)) = (self.get(low), self.get(high))
                && min > max
            {
                let message = format!("{low} = {min} is above {high} = {max}");
                return Err(Error::new(argument.name.span(), message));
            }
        }
        for (first, second) in [("min", "exclusive_min"), ("max", "exclusive_max")] {
            if self.get(first).is_some() && self.get(second).is_some() {
                let message = format!("write `{first}` or `{second}`, not both");
                return Err(Error::new(argument.name.span(), message));
            }
        }
        Ok(())
    }
}

impl Keywords {
    /// Adds the schema keywords of a limit. Returns false if the argument is not a limit.
    pub(super) fn take_limit(&mut self, argument: &Argument, class: Class) -> syn::Result<bool> {
        let Some(limit) = LIMITS.iter().find(|limit| argument.is(limit.name)) else {
            return Ok(false);
        };
        let number = match limit.classes == NUMBERS {
            true => argument.number()?,
            false => Number::Integer(argument.count()?),
        };
        if class == Class::Integer && !number.is_integer() {
            let message = format!("`{}` of an integer must be an integer", argument.name);
            return Err(Error::new_spanned(argument.expr()?, message));
        }
        if limit.name == "multiple_of" && !number.is_positive() {
            let message = "`multiple_of` must be above 0";
            return Err(Error::new_spanned(argument.expr()?, message));
        }
        let value = match number {
            Number::Integer(value) => Keyword::Integer(value),
            Number::Float(value) => Keyword::Json(value.to_string()),
        };
        self.keywords.push((limit.keyword, value));
        match limit.name {
            "exclusive_min" => self.flag("exclusiveMinimum"),
            "exclusive_max" => self.flag("exclusiveMaximum"),
            _ => {}
        }
        self.limits.written.push((limit.name, number));
        self.limits.check_order(argument).map(|()| true)
    }
}
