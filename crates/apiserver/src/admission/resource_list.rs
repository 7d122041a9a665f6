//! Lists of resources with quantities, such as the requests of a container, and the resources that
//! a Pod needs as a whole.

use std::collections::BTreeMap;

use opkit_apimachinery::quantity::Quantity;
use serde_json::{Map, Value};

use crate::object;

/// Quantities by the name of the resource.
pub(crate) type ResourceList = BTreeMap<String, Quantity>;

/// Reads a list of resources. Ignores values that are not quantities.
pub(crate) fn parse(list: &Value) -> ResourceList {
    let fields = list.as_object().into_iter().flatten();
    fields
        .filter_map(|(name, value)| Some((name.clone(), parse_quantity(value)?)))
        .collect()
}

fn parse_quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => Quantity::parse(text),
        Value::Number(number) => Quantity::parse(&number.to_string()),
        _ => None,
    }
}

/// Returns the list as JSON.
pub(crate) fn to_value(list: &ResourceList) -> Value {
    let fields = list.iter();
    let fields = fields.map(|(name, quantity)| (name.clone(), Value::from(quantity.to_string())));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// Adds the quantities of `other` to `list`.
pub(crate) fn add(list: &mut ResourceList, other: &ResourceList) {
    for (name, quantity) in other {
        list.entry(name.clone())
            .and_modify(|sum| *sum += *quantity)
            .or_insert(*quantity);
    }
}

/// Raises the quantities of `list` to those of `other`.
fn raise(list: &mut ResourceList, other: &ResourceList) {
    for (name, quantity) in other {
        list.entry(name.clone())
            .and_modify(|own| *own = (*own).max(*quantity))
            .or_insert(*quantity);
    }
}

/// The requests or the limits of a container.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Field {
    Requests,
    Limits,
}

impl Field {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Limits => "limits",
        }
    }
}

/// Returns the requests or limits of a Pod as the plugin `LimitRanger` counts them: from the spec
/// alone, without the overhead of a runtime class.
pub(crate) fn of_pod_spec(pod: &Value, field: Field) -> ResourceList {
    let mut total = of_containers(pod, |container, _| {
        parse(object::at(container, &["resources", field.as_str()]))
    });
    let whole = parse(object::at(pod, &["spec", "resources", field.as_str()]));
    let supported = whole.into_iter();
    total.extend(supported.filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory")));
    total
}

/// Returns the requests or limits of a Pod as quotas count them: including the overhead, and, while
/// a resize is pending, the larger of the old and the new resources.
pub(crate) fn of_pod(pod: &Value, field: Field) -> ResourceList {
    let mut total = of_containers(pod, |container, can_resize| {
        let own = parse(object::at(container, &["resources", field.as_str()]));
        match can_resize {
            true => effective(pod, container, field, own),
            false => own,
        }
    });
    let whole = parse(object::at(pod, &["spec", "resources", field.as_str()]));
    total.extend(whole.into_iter().filter(|(name, _)| is_pod_level(name)));
    let overhead = parse(object::at(pod, &["spec", "overhead"]));
    match field {
        Field::Requests => add(&mut total, &overhead),
        // The overhead counts only where there is a limit.
        Field::Limits => {
            for (name, quantity) in overhead {
                if let Some(limit) = total.get_mut(&name).filter(|limit| !limit.is_zero()) {
                    *limit += quantity;
                }
            }
        }
    }
    total
}

/// Reports whether a resource can be requested for the Pod as a whole.
pub(crate) fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// Sums up the resources of containers. Init containers run one after the other before the
/// containers, except those that restart always, which run beside the containers. `of_container`
/// returns the resources of a container; its second argument is whether the container runs for the
/// whole life of the Pod.
fn of_containers(pod: &Value, of_container: impl Fn(&Value, bool) -> ResourceList) -> ResourceList {
    let mut total = ResourceList::new();
    for container in object::items(pod, &["spec", "containers"]) {
        add(&mut total, &of_container(container, true));
    }
    let mut sidecars = ResourceList::new();
    let mut initial = ResourceList::new();
    for container in object::items(pod, &["spec", "initContainers"]) {
        let is_sidecar = object::text(container, &["restartPolicy"]) == "Always";
        let own = of_container(container, is_sidecar);
        if is_sidecar {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            raise(&mut initial, &sidecars);
        } else {
            let mut together = own;
            add(&mut together, &sidecars);
            raise(&mut initial, &together);
        }
    }
    raise(&mut total, &initial);
    total
}

/// Returns the resources of a container, of which the kubelet may have allocated or actuated more
/// than the spec has.
fn effective(pod: &Value, container: &Value, field: Field, spec: ResourceList) -> ResourceList {
    let name = object::text(container, &["name"]);
    let lists = ["containerStatuses", "initContainerStatuses"];
    let mut statuses = lists
        .iter()
        .flat_map(|list| object::items(pod, &["status", list]));
    let Some(status) = statuses
        .find(|status| object::text(status, &["name"]) == name)
        .filter(|status| !object::at(status, &["resources"]).is_null())
    else {
        return spec;
    };
    let mut largest = parse(object::at(status, &["resources", field.as_str()]));
    if field == Field::Requests {
        raise(
            &mut largest,
            &parse(object::at(status, &["allocatedResources"])),
        );
    }
    let conditions = object::items(pod, &["status", "conditions"]).iter();
    let is_infeasible = conditions
        .filter(|condition| object::text(condition, &["type"]) == "PodResizePending")
        .any(|condition| object::text(condition, &["reason"]) == "Infeasible");
    if !is_infeasible {
        raise(&mut largest, &spec);
    }
    largest
}

#[cfg(test)]
mod tests;
