//! Named formats of strings: `format.dns1123Label()` and others.

use std::sync::LazyLock;

use opkit_apimachinery::names::check_dns_subdomain;
use opkit_apimachinery::names::{DNS_LABEL_MAX, DNS_SUBDOMAIN_MAX, check_dns_label, is_dns_label};
use opkit_apimachinery::selector::{label_key_errors, label_value_errors};
use regex::Regex;

use super::{Function, no_overload, time, urls};
use crate::value::{Object, Outcome, Value};

/// A named format.
#[derive(Debug)]
pub struct Format {
    /// Name in expressions.
    pub(crate) name: &'static str,
    /// Length of the regular expression of the format, on which the cost of a check depends.
    pub(crate) regex_size: u64,
    check: fn(&str) -> Vec<String>,
}

const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or \
    '-', start with an alphabetic character, and end with an alphanumeric character (e.g. \
    'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

static UUID: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$").ok()
});
static BASE64: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$")
        .ok()
});

static FORMATS: [Format; 13] = [
    Format {
        name: "dns1123Label",
        regex_size: 30,
        check: dns_label,
    },
    Format {
        name: "dns1123Subdomain",
        regex_size: 60,
        check: dns_subdomain,
    },
    Format {
        name: "dns1035Label",
        regex_size: 30,
        check: dns_1035_label,
    },
    Format {
        name: "qualifiedName",
        regex_size: 60,
        check: label_key_errors,
    },
    Format {
        name: "dns1123LabelPrefix",
        regex_size: 30,
        check: |text| dns_label(&without_dash(text)),
    },
    Format {
        name: "dns1123SubdomainPrefix",
        regex_size: 60,
        check: |text| dns_subdomain(&without_dash(text)),
    },
    Format {
        name: "dns1035LabelPrefix",
        regex_size: 30,
        check: |text| dns_1035_label(&without_dash(text)),
    },
    Format {
        name: "labelValue",
        regex_size: 40,
        check: label_value_errors,
    },
    Format {
        name: "uri",
        regex_size: 1103,
        check: |text| urls::parse(text, true).err().into_iter().collect(),
    },
    Format {
        name: "uuid",
        regex_size: 70,
        check: |text| unless(&UUID, text, "does not match the UUID format"),
    },
    Format {
        name: "byte",
        regex_size: 84,
        check: |text| unless(&BASE64, text, "invalid base64"),
    },
    Format {
        name: "date",
        regex_size: 71,
        check: |text| match time::parse_date(text) {
            Some(_) => Vec::new(),
            None => vec!["invalid date".to_owned()],
        },
    },
    Format {
        name: "datetime",
        regex_size: 71,
        check: |text| match time::is_date_time(text) {
            true => Vec::new(),
            false => vec!["invalid datetime".to_owned()],
        },
    },
];

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "validate" => validate,
        "format.named" => |args| match args {
            [Value::String(name)] => Ok(Value::optional(named(name))),
            _ => Err(no_overload("format.named", args)),
        },
        _ => return None,
    })
}

/// Returns the format that a function without arguments returns, such as `format.uuid`.
pub(crate) fn constant<'a>(function: &str) -> Option<Value<'a>> {
    named(function.strip_prefix("format.")?)
}

fn named<'a>(name: &str) -> Option<Value<'a>> {
    let format = FORMATS.iter().find(|format| format.name == name)?;
    Some(Value::Object(Object::Format(format)))
}

fn validate<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::Object(Object::Format(format)), Value::String(text)] = args else {
        return Err(no_overload("validate", args));
    };
    let errors = (format.check)(text);
    Ok(Value::optional(match errors.is_empty() {
        true => None,
        false => Some(Value::texts(errors)),
    }))
}

fn unless(regex: &Option<Regex>, text: &str, message: &str) -> Vec<String> {
    match regex.as_ref().is_some_and(|regex| regex.is_match(text)) {
        true => Vec::new(),
        false => vec![message.to_owned()],
    }
}

/// Replaces the last two characters of a prefix that ends with a dash, as Kubernetes does.
fn without_dash(text: &str) -> String {
    match text.len() > 1 && text.ends_with('-') {
        true => format!("{}a", text.get(..text.len() - 2).unwrap_or_default()),
        false => text.to_owned(),
    }
}

fn too_long(text: &str, max: usize) -> Option<String> {
    (text.len() > max).then(|| format!("must be no more than {max} bytes"))
}

fn dns_label(text: &str) -> Vec<String> {
    let rule = match is_dns_label(text) {
        true => None,
        false => check_dns_label("-").err(),
    };
    too_long(text, DNS_LABEL_MAX)
        .into_iter()
        .chain(rule)
        .collect()
}

fn dns_subdomain(text: &str) -> Vec<String> {
    let rule = match text.split('.').all(is_dns_label) {
        true => None,
        false => check_dns_subdomain("-").err(),
    };
    too_long(text, DNS_SUBDOMAIN_MAX)
        .into_iter()
        .chain(rule)
        .collect()
}

fn dns_1035_label(text: &str) -> Vec<String> {
    let holds = is_dns_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase());
    let rule = (!holds).then(|| LABEL_1035.to_owned());
    too_long(text, DNS_LABEL_MAX)
        .into_iter()
        .chain(rule)
        .collect()
}
