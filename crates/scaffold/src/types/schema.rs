//! Reads the parts of a CRD's schema.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Pattern that controller-gen writes for the Go type `resource.Quantity`.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// Schema of one value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schema<'a>(pub(super) &'a Value);

impl<'a> Schema<'a> {
    pub(super) fn get(self, keyword: &str) -> Option<&'a Value> {
        self.0.get(keyword).filter(|value| !value.is_null())
    }

    pub(super) fn text(self, keyword: &str) -> Option<&'a str> {
        self.get(keyword)?.as_str()
    }

    pub(super) fn is(self, keyword: &str) -> bool {
        self.get(keyword).and_then(Value::as_bool) == Some(true)
    }

    pub(super) fn list(self, keyword: &str) -> &'a [Value] {
        let list = self.get(keyword).and_then(Value::as_array);
        list.map_or(&[], Vec::as_slice)
    }

    pub(super) fn texts(self, keyword: &str) -> Vec<&'a str> {
        self.list(keyword)
            .iter()
            .filter_map(Value::as_str)
            .collect()
    }

    pub(super) fn type_(self) -> Option<&'a str> {
        self.text("type")
    }

    pub(super) fn description(self) -> Option<String> {
        let text = self.text("description")?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    pub(super) fn properties(self) -> Option<&'a Map<String, Value>> {
        self.get("properties")?.as_object()
    }

    pub(super) fn property(self, name: &str) -> Option<Self> {
        self.properties()?.get(name).map(Self)
    }

    pub(super) fn required(self) -> BTreeSet<&'a str> {
        self.texts("required").into_iter().collect()
    }

    /// Returns the schema of the items of a list.
    pub(super) fn items(self) -> Option<Self> {
        self.get("items").filter(|it| it.is_object()).map(Self)
    }

    /// Returns the schema of the values of a map.
    pub(super) fn values(self) -> Option<Self> {
        self.get("additionalProperties")
            .filter(|it| it.is_object())
            .map(Self)
    }

    /// Reports whether the values of a map are not described.
    pub(super) fn has_any_values(self) -> bool {
        self.is("additionalProperties")
    }

    pub(super) fn is_int_or_string(self) -> bool {
        self.is("x-kubernetes-int-or-string")
    }

    pub(super) fn is_quantity(self) -> bool {
        self.is_int_or_string() && self.text("pattern") == Some(QUANTITY)
    }

    /// Reports whether fields that the schema does not list are kept.
    pub(super) fn preserves_unknown(self) -> bool {
        self.is("x-kubernetes-preserve-unknown-fields")
    }

    /// Returns the values of a string enum.
    pub(super) fn enum_values(self) -> Option<Vec<&'a str>> {
        let values = self.texts("enum");
        (self.type_() == Some("string") && !values.is_empty()).then_some(values)
    }

    /// Reports whether this is the schema of a list of `metav1.Condition`.
    pub(super) fn is_conditions(self) -> bool {
        const FIELDS: [&str; 6] = [
            "lastTransitionTime",
            "message",
            "observedGeneration",
            "reason",
            "status",
            "type",
        ];
        let Some(item) = self.items() else {
            return false;
        };
        let is_map = self.text("x-kubernetes-list-type") == Some("map")
            && self.texts("x-kubernetes-list-map-keys") == ["type"];
        let fields = item.properties().map(|fields| fields.keys().collect());
        let fields: Vec<&String> = fields.unwrap_or_default();
        let limit = |field: &str, keyword: &str| {
            let field = item.property(field);
            field.and_then(|it| it.get(keyword)).and_then(Value::as_u64)
        };
        let required = item.required();
        is_map
            && fields == FIELDS
            && FIELDS
                .iter()
                .all(|it| required.contains(it) == (*it != "observedGeneration"))
            && limit("message", "maxLength") == Some(32768)
            && limit("reason", "maxLength") == Some(1024)
            && limit("type", "maxLength") == Some(316)
    }
}
