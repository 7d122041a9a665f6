//! Estimates of calls of the standard library, and of the list and set libraries.

use opkit_syntax::cel::{Expr, ExprKind};

use super::range::{REGEX_FACTOR, STRING_FACTOR};
use super::{Argument, CallEstimate, Coster, EntrySize, Range, SELECT};

/// A call whose cost is estimated.
pub(super) struct Call<'c, 'e> {
    pub(super) function: &'c str,
    pub(super) overload: &'c str,
    pub(super) target: Option<&'c Argument<'e>>,
    pub(super) args: &'c [Argument<'e>],
    costs: &'c [Range],
}

impl Coster<'_> {
    pub(super) fn call(&mut self, expr: &Expr) -> Range {
        let ExprKind::Call {
            target,
            function,
            args,
        } = &expr.kind
        else {
            return Range::fixed(0);
        };
        if let ("dyn", [arg]) = (function.as_str(), args.as_slice()) {
            let cost = self.cost(arg);
            self.copy_sizes(expr.id, arg);
            return cost.add(SELECT);
        }
        let mut costs = Vec::with_capacity(args.len());
        let mut arguments = Vec::with_capacity(args.len());
        for arg in args {
            costs.push(self.cost(arg));
            arguments.push(self.argument(arg));
        }
        let overloads = self.checked.overloads(expr.id).to_vec();
        if overloads.is_empty() {
            return Range::fixed(0);
        }
        let mut sum = Range::fixed(0);
        let target = target.as_deref().map(|target| {
            sum = sum.add(self.cost(target));
            self.argument(target)
        });
        let mut total = Range::none(false);
        let mut size: Option<Range> = None;
        for overload in overloads {
            let call = Call {
                function,
                overload,
                target: target.as_ref(),
                args: &arguments,
                costs: &costs,
            };
            let estimate = self.overload(expr, &call);
            total = total.union(estimate.cost);
            if let Some(found) = estimate.size {
                size = Some(size.map_or(found, |size| size.union(found)));
            }
            let part = match overload {
                "index_list" => Some("@items"),
                "index_map" => Some("@values"),
                _ => None,
            };
            if let (Some(part), Some(operand)) = (part, args.first()) {
                size = self.entry_size(operand).map(|entry| entry.value);
                let mut path = self.path(operand);
                path.push(part.to_owned());
                self.paths.insert(expr.id, path);
            }
            if size.is_none() {
                size = self.size(expr);
            }
        }
        self.set_size(expr.id, size);
        sum.add(total)
    }

    fn overload(&mut self, expr: &Expr, call: &Call<'_, '_>) -> CallEstimate {
        let sum = call
            .costs
            .iter()
            .fold(Range::fixed(0), |sum, cost| sum.add(*cost));
        let known = self.list_call(call).or_else(|| self.kubernetes_call(call));
        if let Some(estimate) = known {
            return CallEstimate {
                cost: estimate.cost.add(sum),
                size: estimate.size,
            };
        }
        if let Some(estimate) = self.control_call(expr, call, sum) {
            return estimate;
        }
        let estimate = self.standard_call(call).unwrap_or(CallEstimate {
            cost: Range::fixed(1),
            size: None,
        });
        CallEstimate {
            cost: estimate.cost.add(sum),
            size: estimate.size,
        }
    }

    /// Operators that do not evaluate all of their operands, and those that combine entries.
    fn control_call(
        &mut self,
        expr: &Expr,
        call: &Call<'_, '_>,
        sum: Range,
    ) -> Option<CallEstimate> {
        match (call.overload, call.args, call.costs) {
            ("logical_or" | "logical_and", _, [first, second]) => Some(CallEstimate {
                cost: Range {
                    min: first.min,
                    max: first.add(*second).max,
                },
                size: None,
            }),
            ("conditional", [_, truthy, falsy], [condition, first, second]) => {
                let size = known(truthy).union(known(falsy));
                let entry = EntrySize::union(self.entry_of(truthy), self.entry_of(falsy));
                if let Some(entry) = entry {
                    self.entries.insert(expr.id, entry);
                }
                Some(CallEstimate {
                    cost: condition.add(first.union(*second)),
                    size: Some(size),
                })
            }
            ("add_string" | "add_bytes" | "add_list", [first, second], _) => {
                let size = known(first).add(known(second));
                let entry = EntrySize::union(self.entry_of(first), self.entry_of(second));
                if let Some(entry) = entry {
                    self.entries.insert(expr.id, entry);
                }
                let cost = match call.overload {
                    "add_list" => Range::fixed(1),
                    _ => size.scale(STRING_FACTOR),
                };
                Some(CallEstimate {
                    cost: cost.add(sum),
                    size: Some(size),
                })
            }
            _ => None,
        }
    }

    fn entry_of(&self, argument: &Argument<'_>) -> Option<EntrySize> {
        self.entry_size(argument.expr?)
    }

    fn standard_call(&self, call: &Call<'_, '_>) -> Option<CallEstimate> {
        let cost_only = |cost| Some(CallEstimate { cost, size: None });
        match (call.overload, call.target, call.args) {
            ("string_format", Some(target), _) => cost_only(known(target).scale(STRING_FACTOR)),
            ("string_to_bytes", _, [arg]) => {
                let size = known(arg);
                Some(CallEstimate {
                    cost: size.scale(STRING_FACTOR),
                    size: Some(Range {
                        min: size.min,
                        max: size.max.wrapping_mul(4),
                    }),
                })
            }
            ("bytes_to_string", _, [arg]) => {
                let size = known(arg);
                Some(CallEstimate {
                    cost: size.scale(STRING_FACTOR),
                    size: Some(Range {
                        min: size.min / 4,
                        max: size.max,
                    }),
                })
            }
            ("strings_quote", _, [arg]) => {
                let size = known(arg);
                Some(CallEstimate {
                    cost: size.scale(STRING_FACTOR),
                    size: Some(Range {
                        min: size.min.wrapping_add(2),
                        max: size.max.wrapping_mul(2).wrapping_add(2),
                    }),
                })
            }
            ("starts_with_string" | "ends_with_string", _, [arg]) => {
                cost_only(known(arg).scale(STRING_FACTOR))
            }
            ("in_list", _, [_, list]) => cost_only(known(list).scale(1.0)),
            ("matches_string", Some(target), [pattern]) => {
                let text = known(target).add(Range::fixed(1)).scale(STRING_FACTOR);
                cost_only(text.multiply(known(pattern).scale(REGEX_FACTOR)))
            }
            ("contains_string", Some(target), [part]) => {
                let text = known(target).scale(STRING_FACTOR);
                cost_only(text.multiply(known(part).scale(STRING_FACTOR)))
            }
            (overload, _, [first, second]) if is_comparison(overload) => {
                let max = known(first).max.min(known(second).max);
                let range = Range {
                    min: u64::from(max > 0),
                    max,
                };
                cost_only(range.scale(STRING_FACTOR))
            }
            _ => None,
        }
    }

    /// Estimates of cel-go's list and set libraries.
    fn list_call(&self, call: &Call<'_, '_>) -> Option<CallEstimate> {
        let size = |argument: &Argument<'_>| self.argument_size(argument);
        let allocates = |factor: f64, size: Range| CallEstimate {
            cost: size
                .scale(factor)
                .add(Range::fixed(1))
                .add(Range::fixed(10)),
            size: Some(size),
        };
        let sorted = |argument: &Argument<'_>| {
            let is_text = call.overload.starts_with("list_string_")
                || call.overload.starts_with("list_bytes_");
            let factor = if is_text { 2.0 + STRING_FACTOR } else { 2.0 };
            allocates(factor, size(argument).multiply(size(argument)))
        };
        Some(match (call.overload, call.target, call.args) {
            ("list_slice", Some(target), [start, end]) => {
                let start = constant(start).unwrap_or(0);
                let end = constant(end).unwrap_or(size(target).max);
                allocates(1.0, Range::fixed(end.wrapping_sub(start)))
            }
            ("list_flatten", Some(target), _) => allocates(1.0, size(target)),
            ("list_flatten_int", Some(target), [depth]) => {
                let depth = constant(depth).unwrap_or(u64::MAX);
                allocates(depth as f64, size(target))
            }
            ("lists_range", _, [count]) => {
                allocates(1.0, Range::fixed(constant(count).unwrap_or(u64::MAX)))
            }
            ("list_reverse", Some(target), _) => allocates(1.0, size(target)),
            ("list_distinct", Some(target), _) => {
                allocates(2.0, size(target).multiply(size(target)))
            }
            (overload, Some(target), []) if overload.ends_with("_sort") => sorted(target),
            (overload, Some(_), [keys]) if overload.ends_with("_sortByAssociatedKeys") => {
                sorted(keys)
            }
            (
                "list_sets_contains_list"
                | "list_sets_intersects_list"
                | "list_sets_equivalent_list",
                _,
                [first, second],
            ) => {
                let factor = match call.overload {
                    "list_sets_equivalent_list" => 2.0,
                    _ => 1.0,
                };
                let cost = size(first).multiply(size(second)).scale(factor);
                CallEstimate {
                    cost: cost.add(Range::fixed(1)),
                    size: None,
                }
            }
            _ => return None,
        })
    }

    /// Returns the size of an argument, or the range of all sizes.
    pub(super) fn argument_size(&self, argument: &Argument<'_>) -> Range {
        let size = argument.size.or_else(|| self.estimated(&argument.path));
        size.unwrap_or(Range::UNKNOWN)
    }
}

fn known(argument: &Argument<'_>) -> Range {
    argument.size.unwrap_or(Range::UNKNOWN)
}

/// Returns the value of an argument that is a literal number.
fn constant(argument: &Argument<'_>) -> Option<u64> {
    let number = argument.expr?.as_int()?;
    Some(u64::try_from(number).unwrap_or(0))
}

/// Reports whether the cost of an overload depends on the sizes of both operands.
pub(super) fn is_comparison(overload: &str) -> bool {
    let is_ordered = |kind: &str| {
        let name = overload.strip_suffix(kind);
        matches!(
            name,
            Some("less_" | "less_equals_" | "greater_" | "greater_equals_")
        )
    };
    matches!(overload, "equals" | "not_equals") || is_ordered("string") || is_ordered("bytes")
}
