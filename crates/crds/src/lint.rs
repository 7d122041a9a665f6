//! Checks of CRDs by the conventions of Kubernetes' API.
//!
//! An API server accepts what is reported here, except for CRDs that are too large. The rules
//! follow the [API conventions] and those of kube-api-linter that a CRD shows.
//!
//! [API conventions]: https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md

use serde::Serialize;
use serde_json::Value;

use crate::CrdError;
use crate::fields::{Version, fields};

mod bounds;
mod field_rules;
mod kind_rules;
mod status_rules;

#[cfg(test)]
mod tests;

/// Weight of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Clients or clusters have a problem with the CRD.
    Error,
    /// The CRD works, but differs from a convention.
    Warning,
}

/// A rule, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// Name, such as `field-name`.
    pub name: &'static str,
    /// Weight of its findings.
    pub severity: Severity,
    /// Reason for the rule.
    pub why: &'static str,
}

/// A place in a CRD that differs from a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Finding {
    /// Name of the rule.
    pub rule: &'static str,
    /// Weight.
    pub severity: Severity,
    /// Name of the CRD.
    pub crd: String,
    /// Version of the CRD; `None` if the finding is about all of it.
    pub version: Option<String>,
    /// Path of the field in an object, or in the CRD if there is no version.
    pub path: String,
    /// Description of the problem, and what to write instead.
    pub message: String,
    /// Reason for the rule.
    pub why: &'static str,
}

const fn error(name: &'static str, why: &'static str) -> Rule {
    Rule {
        name,
        severity: Severity::Error,
        why,
    }
}

const fn warning(name: &'static str, why: &'static str) -> Rule {
    Rule {
        name,
        severity: Severity::Warning,
        why,
    }
}

/// All rules, sorted by name.
pub const RULES: &[Rule] = &[
    warning(
        "apply-size",
        "kubectl apply without --server-side stores the object in an annotation, and all annotations together have at most 256 KiB",
    ),
    warning(
        "array-of-struct",
        "an item without a required field can be written as an empty line, which is hard to read",
    ),
    error(
        "conditions",
        "clients such as kubectl wait find a condition by its type, and several controllers write to the list",
    ),
    warning(
        "default-or-required",
        "a field with a default need not be written, so clients must not treat it as required",
    ),
    warning("description", "kubectl explain and editors show it"),
    warning(
        "enum-value",
        "values of enums are in CamelCase with an upper-case letter first, in all of Kubernetes",
    ),
    error("etcd-size", "etcd refuses requests above 1.5 MiB"),
    error(
        "field-name",
        "names of fields are in camelCase; generated clients derive their own names from it",
    ),
    error(
        "group-name",
        "groups without a domain are reserved for Kubernetes",
    ),
    warning(
        "integer-format",
        "clients in other languages choose the size of a number by its format: int32 or int64",
    ),
    error("kind-name", "kinds are singular nouns in CamelCase"),
    warning(
        "list-type",
        "without x-kubernetes-list-type a list is atomic: two appliers overwrite each other's items",
    ),
    error(
        "no-floats",
        "floats change when they are converted between languages and formats: use a Quantity, or an integer of a smaller unit",
    ),
    warning(
        "no-maps",
        "lists of objects with a name are preferred over maps of objects: their items can be merged and documented",
    ),
    warning(
        "no-nullable",
        "clients treat null as an absent field, and an API server drops it where there is a default",
    ),
    warning(
        "no-phase",
        "phases are deprecated: a new phase breaks clients that know the old ones; use conditions",
    ),
    warning(
        "preserve-unknown-fields",
        "fields without a schema are neither validated nor pruned nor documented",
    ),
    warning(
        "printer-columns",
        "kubectl get shows only the name and the age otherwise; declared columns replace the age",
    ),
    warning(
        "reference-name",
        "fields that name another object end with Ref or Refs",
    ),
    warning(
        "rule-message",
        "without a message a user reads the expression of the rule",
    ),
    warning(
        "status-conditions",
        "conditions are how clients wait for an object, whatever its kind",
    ),
    warning(
        "status-optional",
        "a controller writes the status in steps, so a status lacks fields at first",
    ),
    error(
        "status-subresource",
        "without it users can write the status, and each write of the status changes the generation",
    ),
    warning(
        "timestamp-name",
        "fields of times end with Time, such as creationTime",
    ),
    warning(
        "unbounded",
        "an API server estimates the cost of a rule with the largest possible lists, maps and texts, and refuses the CRD if it is too high",
    ),
    warning(
        "version-name",
        "clients sort versions such as v1, v1beta1 and v1alpha1 by stability, and others by name",
    ),
];

/// Returns the findings of all rules, except those that are switched off, for each CRD in the order
/// of the documents.
///
/// # Errors
/// If a document is not a CRD.
///
/// # Examples
/// ```
/// use serde_json::json;
///
/// let crd = json!({
///     "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
///     "metadata": {"name": "robots.example.com"},
///     "spec": {
///         "group": "example.com",
///         "names": {"kind": "Robot", "plural": "robots", "listKind": "RobotList"},
///         "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"properties": {
///             "spec": {"description": "Desired state.", "properties": {
///                 "max_speed": {"type": "number", "description": "Maximum speed."},
///             }},
///         }}}}],
///     },
/// });
/// let findings = opkit_crds::lint(&[crd], &["printer-columns"])?;
/// let rules: Vec<_> = findings.iter().map(|it| it.rule).collect();
/// assert_eq!(rules, ["field-name", "no-floats"]);
/// assert_eq!(findings[0].path, ".spec.max_speed");
/// # Ok::<(), opkit_crds::CrdError>(())
/// ```
pub fn lint(crds: &[Value], disabled: &[&str]) -> Result<Vec<Finding>, CrdError> {
    let mut all = Vec::new();
    for crd in crds {
        let mut findings = Findings::of(crd)?;
        kind_rules::check(crd, &mut findings);
        for version in Version::all(crd) {
            findings.version = Some(version.name.to_owned());
            kind_rules::check_version(&version, &mut findings);
            let Some(schema) = version.schema() else {
                continue;
            };
            let fields = fields(schema);
            for field in &fields {
                field_rules::check(field, &mut findings);
            }
            status_rules::check(&version, &fields, &mut findings);
            bounds::check(&fields, &mut findings);
        }
        let found = findings.found.into_iter();
        all.extend(found.filter(|it| !disabled.contains(&it.rule)));
    }
    Ok(all)
}

/// Returns the findings as text: a line for each, and its message below it.
pub fn render_findings(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let version = finding.version.as_deref();
        let version = version.map_or_else(String::new, |it| format!(" {it}"));
        text += &format!(
            "{severity:<8} {:<24} {}{version} {}\n         {} ({})\n",
            finding.rule, finding.crd, finding.path, finding.message, finding.why
        );
    }
    let count = |severity| findings.iter().filter(|it| it.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let number = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    text + &format!(
        "{}, {}\n",
        number(errors, "error"),
        number(warnings, "warning")
    )
}

/// Findings of one CRD.
#[derive(Debug)]
struct Findings {
    crd: String,
    version: Option<String>,
    found: Vec<Finding>,
}

impl Findings {
    fn of(crd: &Value) -> Result<Self, CrdError> {
        Ok(Self {
            crd: crate::name_of(crd)?.to_owned(),
            version: None,
            found: Vec::new(),
        })
    }

    /// Reports a finding of a rule in [`RULES`].
    fn report(&mut self, rule: &'static str, path: &str, message: impl Into<String>) {
        let Some(rule) = RULES.iter().find(|it| it.name == rule) else {
            debug_assert!(false, "there is no rule {rule}");
            return;
        };
        self.found.push(Finding {
            rule: rule.name,
            severity: rule.severity,
            crd: self.crd.clone(),
            version: self.version.clone(),
            path: path.to_owned(),
            message: message.into(),
            why: rule.why,
        });
    }
}
