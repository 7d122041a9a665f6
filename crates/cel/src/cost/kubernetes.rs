//! Estimates of calls of Kubernetes' libraries.

use super::calls::Call;
use super::range::{REGEX_FACTOR, STRING_FACTOR};
use super::{Argument, CallEstimate, Coster, Range};
use crate::types::Type;

/// Cost of a request for a permission.
pub(super) const CHECK_COST: u64 = 350_000;
/// Maximum length of the regular expression of a format, for estimates.
const FORMAT_REGEX_SIZE: f64 = 128.0;
/// Maximum length of the name of a format, for estimates.
const FORMAT_SIZE: u64 = 64;

/// Functions whose cost is 1.
pub(super) fn is_unit(function: &str) -> bool {
    matches!(
        function,
        "serviceAccount"
            | "path"
            | "group"
            | "resource"
            | "subresource"
            | "namespace"
            | "name"
            | "allowed"
            | "reason"
            | "error"
            | "errored"
            | "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery"
    )
}

/// Returns the cost of parsing a selector of a given length.
pub(super) fn selector_cost(length: Range) -> Range {
    let requirements = length.scale(0.5).scale(50.0);
    Range::fixed(10)
        .add(length.scale(STRING_FACTOR))
        .add(requirements)
}

impl Coster<'_> {
    pub(super) fn kubernetes_call(&self, call: &Call<'_, '_>) -> Option<CallEstimate> {
        let size = |argument: &Argument<'_>| self.argument_size(argument);
        let cost_only = |cost| Some(CallEstimate { cost, size: None });
        let same_size = |size: Range| {
            Some(CallEstimate {
                cost: size.scale(STRING_FACTOR),
                size: Some(size),
            })
        };
        if is_unit(call.function) {
            return cost_only(Range::fixed(1));
        }
        match (call.function, call.target, call.args) {
            ("check", ..) => cost_only(Range::fixed(CHECK_COST)),
            ("fieldSelector" | "labelSelector", _, [arg]) => cost_only(selector_cost(size(arg))),
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target), _) => {
                cost_only(self.traversal(target))
            }
            ("url" | "jsonpatch.escapeKey", _, [arg]) => same_size(size(arg)),
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target), _) => {
                same_size(size(target))
            }
            ("replace", Some(target), [old, new, ..]) => {
                Some(replace(size(target), size(old), size(new)))
            }
            ("split", Some(target), args) => {
                let text = size(target);
                let limit = args.get(1).and_then(|arg| arg.expr?.as_int());
                Some(CallEstimate {
                    cost: text.scale(2.0 * STRING_FACTOR),
                    size: Some(Range {
                        min: 0,
                        max: limit.map_or(text.max, i64::cast_unsigned),
                    }),
                })
            }
            ("join", Some(target), args) => Some(self.join(target, args.first())),
            ("find" | "findAll", Some(target), [pattern, ..]) => {
                let text = size(target);
                let read = text.add(Range::fixed(1)).scale(STRING_FACTOR);
                Some(CallEstimate {
                    cost: read.multiply(size(pattern).scale(REGEX_FACTOR)),
                    size: Some(Range {
                        min: 0,
                        max: text.max,
                    }),
                })
            }
            ("ip", ..) if call.overload == "cidr_ip" => cost_only(Range::fixed(1)),
            (
                "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver"
                | "isSemver",
                _,
                [arg, ..],
            ) => cost_only(size(arg).scale(STRING_FACTOR)),
            ("ip.isCanonical", _, [arg]) => cost_only(size(arg).scale(2.0 * STRING_FACTOR)),
            ("containsIP" | "containsCIDR", _, [arg]) => {
                cost_only(self.contains(call.function, call.overload, arg))
            }
            ("validate", _, [arg]) => cost_only(
                size(arg)
                    .scale(STRING_FACTOR)
                    .scale(FORMAT_REGEX_SIZE * REGEX_FACTOR),
            ),
            ("_==_", _, [first, second]) if first.found == second.found => equality(second),
            _ => None,
        }
    }

    /// Returns the cost of reading a list once, or a text.
    fn traversal(&self, target: &Argument<'_>) -> Range {
        let count = self.argument_size(target);
        let Some(items) = items(target) else {
            return count.scale(STRING_FACTOR);
        };
        let mut cost = Range::fixed(1);
        if matches!(items.found, Type::String | Type::Bytes) {
            cost = cost.add(self.argument_size(&items).scale(STRING_FACTOR));
        }
        count.multiply(cost)
    }

    fn join(&self, target: &Argument<'_>, separator: Option<&Argument<'_>>) -> CallEstimate {
        let count = self.argument_size(target);
        let mut size = match items(target) {
            Some(items) => count.multiply(self.argument_size(&items)),
            None => Range::fixed(0),
        };
        if let Some(separator) = separator {
            let separators = Range {
                min: count.min.saturating_sub(1),
                max: count.max.saturating_sub(1),
            };
            size = size.add(self.argument_size(separator).multiply(separators));
        }
        CallEstimate {
            cost: size.scale(STRING_FACTOR),
            size: Some(size),
        }
    }

    fn contains(&self, function: &str, overload: &str, arg: &Argument<'_>) -> Range {
        let address = Range { min: 4, max: 16 };
        let mut cost = address.add(address).scale(STRING_FACTOR);
        if function == "containsCIDR" {
            cost = cost.add(address.scale(STRING_FACTOR)).add(Range::fixed(1));
        }
        if overload.ends_with("_string") {
            cost = cost.add(self.argument_size(arg).scale(STRING_FACTOR));
        }
        cost
    }
}

/// Returns the items of a list as an argument.
fn items<'e>(list: &Argument<'e>) -> Option<Argument<'e>> {
    let found = (*list.found.parameters().first()?).clone();
    let mut path = list.path.clone();
    if !path.is_empty() {
        path.push("@items".to_owned());
    }
    Some(Argument {
        path,
        found,
        expr: None,
        size: None,
    })
}

fn equality(second: &Argument<'_>) -> Option<CallEstimate> {
    let cost = match &second.found {
        Type::Opaque(name) if matches!(&**name, "net.IP" | "net.CIDR") => Range::fixed(1),
        Type::Object(name) => match &**name {
            "kubernetes.NamedFormat" => Range {
                min: 1,
                max: FORMAT_SIZE,
            }
            .scale(STRING_FACTOR),
            "kubernetes.URL" => Range {
                min: 1,
                max: second.size.map_or(1, |size| size.max),
            }
            .scale(STRING_FACTOR),
            "kubernetes.Quantity" | "kubernetes.Semver" => Range::fixed(1),
            name if name.starts_with("kubernetes.authorization.") => Range::fixed(1),
            _ => return None,
        },
        _ => return None,
    };
    Some(CallEstimate { cost, size: None })
}

/// Returns the cost of `replace`, and the size of its result.
fn replace(text: Range, old: Range, new: Range) -> CallEstimate {
    let per = |length: u64, part: u64| (length as f64 / part as f64).ceil() as u64;
    let (mut count, mut kept) = (Range::fixed(0), Range::fixed(0));
    if old.min == 0 {
        count.max = text.max.saturating_add(1);
        kept.max = text.max;
    } else if new.max <= old.min {
        kept.max = text.max;
    } else {
        count.max = per(text.max, old.min);
    }
    if old.max == 0 {
        count.min = text.min.saturating_add(1);
        kept.min = text.min;
    } else if old.max <= new.min {
        kept.min = text.min;
    } else {
        count.min = per(text.min, old.max);
    }
    CallEstimate {
        cost: text.scale(2.0 * STRING_FACTOR),
        size: Some(count.multiply(new).add(kept)),
    }
}
