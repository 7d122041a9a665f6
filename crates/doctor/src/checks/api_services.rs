//! Aggregated API servers that do not respond. They block the discovery of kinds, and with it the
//! deletion of every namespace.

use serde_json::Value;

use crate::value::{condition, has_condition, name, short, text};
use crate::{Facts, Finding};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let services = facts.all("APIService");
    let unavailable = services.filter(|it| has_condition(it, "Available", "False"));
    let terminating = facts.all("Namespace").filter(|it| is_terminating(it));
    let terminating = terminating.count();
    let finding = |service: &Value| {
        let reason = condition(service, "Available").unwrap_or(&Value::Null);
        let effect = match terminating {
            0 => "no namespace can be deleted".to_owned(),
            1 => "1 namespace waits for it to be deleted".to_owned(),
            number => format!("{number} namespaces wait for it to be deleted"),
        };
        let problem = format!(
            "apiservice/{} is not available, and {effect}: {}",
            name(service),
            short(text(reason, "/message"))
        );
        let finding = match terminating {
            0 => Finding::warning("apiservice", problem),
            _ => Finding::fail("apiservice", problem),
        };
        finding
            .about(service)
            .command(format!("kubectl describe apiservice {}", name(service)))
    };
    unavailable.map(finding).collect()
}

fn is_terminating(namespace: &Value) -> bool {
    !text(namespace, "/metadata/deletionTimestamp").is_empty()
}
