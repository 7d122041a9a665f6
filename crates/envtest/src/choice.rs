//! Which control plane a test runs on.

use crate::TestError;

#[cfg(test)]
mod tests;

/// The variable that chooses.
const VARIABLE: &str = "OPKIT_CONTROL_PLANE";
/// What controller-runtime's envtest reads.
const EXISTING: &str = "USE_EXISTING_CLUSTER";

/// A control plane, by its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Choice {
    Embedded,
    Binaries,
    Cluster,
}

impl Choice {
    /// What the environment, behind `variable`, says; the embedded one if it says nothing.
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
            // As Go's strconv.ParseBool and envtest read it.
            None => match set(EXISTING).as_deref() {
                Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(Self::Cluster),
                _ => Ok(Self::Embedded),
            },
        }
    }
}
