//! Metrics of the operators under test.

use super::ControlPlane;

impl ControlPlane {
    /// Returns the metrics of the operators that were started on this control plane, in Prometheus'
    /// text format, as `/metrics` would serve them.
    #[must_use]
    pub fn metrics(&self) -> String {
        let registries = self.inner.metrics.lock();
        registries.iter().map(|it| it.encode_prometheus()).collect()
    }

    /// Returns the value of a metric of the operators that were started on this control plane: the
    /// sum of the samples called `name` that have all of `labels`, or `None` if there is no such
    /// sample. The name of a counter's sample ends with `_total`; the names of a histogram's
    /// samples end with `_count`, `_sum` and `_bucket`.
    ///
    /// # Examples
    /// ```
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use opkit_envtest::ControlPlane;
    /// # use opkit_controller::{Action, Context, Controller, Error, Result};
    /// # use opkit_operator::Operator;
    /// # fn operator() -> Operator {
    /// #     let idle = |_: Arc<ConfigMap>, _: Context| async { Ok::<_, Error>(Action::await_change()) };
    /// #     Operator::new("map-operator").controller(Controller::new(idle))
    /// # }
    /// # async fn example(plane: ControlPlane) -> Result {
    /// plane.start(operator()).await?;
    /// let errors = plane.metric("controller_runtime_reconcile_errors_total", &[("controller", "configmap")]);
    /// assert_eq!(errors, Some(0.0));
    /// # Ok(())
    /// # }
    /// # opkit_envtest::run("doc", "example", example);
    /// ```
    #[must_use]
    pub fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let text = self.metrics();
        let samples = text.lines().filter_map(Sample::parse);
        let expected = samples.filter(|sample| {
            let mut labels = labels.iter();
            sample.name == name
                && labels.all(|(name, value)| {
                    let mut own = sample.labels.iter();
                    own.any(|(own, found)| own == name && found == value)
                })
        });
        expected
            .map(|sample| sample.value)
            .reduce(|sum, value| sum + value)
    }
}

/// One line of the metrics text.
#[derive(Debug, PartialEq)]
struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, String)>,
    value: f64,
}

impl<'a> Sample<'a> {
    /// Parses `name{label="value",..} 7`; returns `None` for a comment.
    fn parse(line: &'a str) -> Option<Self> {
        let end = line.find(['{', ' ']).filter(|_| !line.starts_with('#'))?;
        let (name, mut rest) = line.split_at_checked(end)?;
        let mut labels = Vec::new();
        if let Some(inner) = rest.strip_prefix('{') {
            rest = inner;
            while !rest.starts_with('}') {
                let (label, value) = rest.split_once("=\"")?;
                let (value, after) = unquoted(value)?;
                labels.push((label, value));
                rest = after.strip_prefix(',').unwrap_or(after);
            }
            rest = rest.strip_prefix('}')?;
        }
        let value = rest.split_whitespace().next()?.parse().ok()?;
        Some(Sample {
            name,
            labels,
            value,
        })
    }
}

/// Returns the value of a label, and the text after its closing quote.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.chars();
    loop {
        match chars.next()? {
            '"' => return Some((value, chars.as_str())),
            '\\' => match chars.next()? {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
}

#[cfg(test)]
mod tests;
