//! Choice of the control plane that a test runs on.

use crate::TestError;

#[cfg(test)]
mod tests;

/// Environment variable that selects the control plane.
const VARIABLE: &str = "OPKIT_CONTROL_PLANE";
/// Environment variable of controller-runtime's envtest that selects an existing cluster.
const EXISTING: &str = "USE_EXISTING_CLUSTER";

/// Environment variable that lets operators act as administrator.
const AS_ADMIN: &str = "OPKIT_OPERATORS_AS_ADMIN";

/// Reports whether the environment lets operators act as administrator.
pub(crate) fn operators_as_admin(variable: impl Fn(&str) -> Option<String>) -> bool {
    variable(AS_ADMIN).is_some_and(|value| is_true(&value))
}

/// Reports whether a value is true for Go's `strconv.ParseBool`, which envtest uses.
fn is_true(value: &str) -> bool {
    matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

/// Implementation of the control plane that the environment selects.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Choice {
    Embedded,
    Binaries,
    Cluster,
}

impl Choice {
    /// Returns the control plane that the environment selects, embedded by default; `variable`
    /// reads the environment.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, TestError> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        match set(VARIABLE).as_deref() {
            Some("embedded") => Ok(Self::Embedded),
            Some("binaries") => Ok(Self::Binaries),
            Some("cluster") => Ok(Self::Cluster),
            Some(value) => Err(TestError::Choice {
                variable: VARIABLE,
                value: value.to_owned(),
            }),
            None => match set(EXISTING).is_some_and(|value| is_true(&value)) {
                true => Ok(Self::Cluster),
                false => Ok(Self::Embedded),
            },
        }
    }
}
