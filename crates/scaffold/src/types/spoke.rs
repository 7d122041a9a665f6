//! Types of a version that is not the hub: `#[opkit::version]` on the types that the hub has too.
//!
//! A field that has the same type in the hub is converted by its name. All others are declared as
//! `removed` and `added`, so that the version compiles; a person decides what becomes of them.

use std::collections::{BTreeMap, BTreeSet};

use super::kind;
use super::model::{Body, Field, Item, Model, Root, Ty, Variant};
use super::print;

/// Arguments of a kind that its versions take from the hub, or that versions do not have.
const OF_HUB: [&str; 14] = [
    "group",
    "version",
    "plural",
    "singular",
    "namespaced",
    "cluster",
    "shortname",
    "category",
    "status",
    "label(",
    "annotation(",
    "unserved",
    "versions(",
    "storage",
];

/// Types of a version.
#[derive(Clone, Debug)]
pub(crate) struct Spoke {
    /// Source of the types.
    pub(crate) code: String,
    /// Paths that the types import.
    pub(crate) imports: Vec<&'static str>,
    /// Names of the types of the hub that the version uses unchanged.
    pub(crate) shared: Vec<String>,
    /// Fields that are not converted, each with its type.
    pub(crate) unported: Vec<String>,
    /// Lines of documentation about parts of the CRD that the types do not have.
    pub(crate) differences: String,
}

impl Model<'_> {
    /// Returns the types of a version of the hub's kind. `None` if the objects have no spec, or if
    /// only one of the versions has a status.
    pub(crate) fn spoke(mut self, hub: &Model<'_>) -> Option<Spoke> {
        let differences = self.differences();
        let (
            Root::Kind { spec, status },
            Root::Kind {
                spec: hub_spec,
                status: hub_status,
            },
        ) = (self.root, &hub.root)
        else {
            return None;
        };
        if status.is_some() != hub_status.is_some() {
            return None;
        }
        let pair = Pair::new(&self.items, &hub.items);
        let kind = hub.definition.kind();
        let mut unported = Vec::new();
        let mut printed: Vec<Item> = Vec::new();
        let mut code = String::new();

        let own_status = status.zip(hub_status.as_ref()).filter(|(own, hub)| {
            let is_same = print::item(own, "x") == print::item(hub, "x");
            !(is_same && pair.references(own).iter().all(|it| pair.is_shared(it)))
        });
        let mut attribute = vec![
            format!("of = super::{kind}"),
            format!("version = {:?}", self.definition.name()),
        ];
        if own_status.is_some() {
            attribute.push(format!("status = {kind}Status"));
        }
        if spec.attribute.iter().any(|it| it == "unserved") {
            attribute.push("served = false".to_owned());
        }
        let is_own = |text: &&String| !OF_HUB.iter().any(|name| text.starts_with(name));
        attribute.extend(spec.attribute.iter().filter(is_own).cloned());
        let mut spec = pair.version(*spec, hub_spec, &mut unported);
        spec.attribute = attribute;
        spec.arguments.retain(|text| is_own(&text));
        code += &print::item(&spec, "opkit::version");
        printed.push(spec);
        if let Some((status, hub_status)) = own_status {
            let is_status = kind::is_status(&status);
            let mut status = pair.version(*status, hub_status, &mut unported);
            status.attribute = vec![format!("of = super::{kind}Status")];
            if is_status {
                status.attribute.push("status".to_owned());
            }
            code.push('\n');
            code += &print::item(&status, "opkit::version");
            printed.push(status);
        }
        let shared: Vec<String> = pair.shared.iter().map(|it| (*it).to_owned()).collect();
        let paired: Vec<(Item, Option<Item>)> = (self.items.iter())
            .filter(|item| !pair.is_shared(&item.name))
            .map(|item| (item.clone(), pair.hub_type(&item.name).cloned()))
            .collect();
        for (item, hub) in paired {
            code.push('\n');
            let (item, name) = match hub {
                Some(hub) => {
                    let mut item = pair.version(item, &hub, &mut unported);
                    item.attribute = vec![format!("of = super::{}", item.name)];
                    (item, "opkit::version")
                }
                None => (item, "opkit::schema"),
            };
            code += &print::item(&item, name);
            printed.push(item);
        }
        let mut used = BTreeSet::new();
        for item in &printed {
            used.extend(pair.references(item));
        }
        self.items.clear();
        Some(Spoke {
            code,
            imports: print::used(printed.iter()),
            shared: shared.into_iter().filter(|it| used.contains(it)).collect(),
            unported,
            differences,
        })
    }
}

/// The nested types of a version and of its hub.
struct Pair<'a> {
    own: BTreeMap<&'a str, &'a Item>,
    hub: BTreeMap<&'a str, &'a Item>,
    hub_items: &'a [Item],
    /// Names of types that are equal in both.
    shared: BTreeSet<&'a str>,
}

impl<'a> Pair<'a> {
    fn new(own: &'a [Item], hub: &'a [Item]) -> Self {
        let by_name = |items: &'a [Item]| items.iter().map(|it| (it.name.as_str(), it)).collect();
        let mut pair = Self {
            own: by_name(own),
            hub: by_name(hub),
            hub_items: hub,
            shared: BTreeSet::new(),
        };
        let is_same = |name: &&str| match (pair.own.get(name), pair.hub.get(name)) {
            (Some(own), Some(hub)) => print::item(own, "x") == print::item(hub, "x"),
            _ => false,
        };
        pair.shared = pair.own.keys().copied().filter(is_same).collect();
        // A type that contains a changed type is changed too.
        loop {
            let is_kept = |name: &&str| {
                let item = pair.own.get(name);
                let inside = item.map(|item| pair.references(item)).unwrap_or_default();
                inside.iter().all(|it| pair.shared.contains(it.as_str()))
            };
            let kept: BTreeSet<&str> = pair.shared.iter().copied().filter(is_kept).collect();
            if kept.len() == pair.shared.len() {
                return pair;
            }
            pair.shared = kept;
        }
    }

    fn is_shared(&self, name: &str) -> bool {
        self.shared.contains(name)
    }

    /// Returns the type of the hub that a struct or an enum of the version corresponds to.
    fn hub_type(&self, name: &str) -> Option<&'a Item> {
        let (own, hub) = (self.own.get(name)?, self.hub.get(name)?);
        let is_pair = match (&own.body, &hub.body) {
            (Body::Struct(_), Body::Struct(_)) => true,
            (Body::Enum(own), Body::Enum(hub)) => own.iter().chain(hub).all(|it| it.data.is_none()),
            _ => false,
        };
        is_pair.then_some(*hub)
    }

    /// Returns the names of the module's types in an item.
    fn references(&self, item: &Item) -> Vec<String> {
        let mut found = Vec::new();
        let mut see = |ty: &Ty| {
            ty.visit(&mut |ty| {
                if let Ty::Named(name) = ty {
                    found.push(name.clone());
                }
            });
        };
        match &item.body {
            Body::Struct(fields) => fields.iter().for_each(|field| see(&field.ty)),
            Body::Enum(variants) => {
                let data = variants.iter().filter_map(|it| it.data.as_ref());
                data.for_each(&mut see);
            }
            Body::Newtype(ty) => see(ty),
        }
        found
    }

    /// Reports whether a value of this type is converted between the version and the hub.
    fn is_converted(&self, ty: &Ty) -> bool {
        let mut is_converted = true;
        ty.visit(&mut |ty| {
            if let Ty::Named(name) = ty {
                is_converted &= self.is_shared(name) || self.hub_type(name).is_some();
            }
        });
        is_converted
    }

    /// Returns a type of the version with declarations about the type of the hub.
    fn version(&self, mut item: Item, hub: &Item, unported: &mut Vec<String>) -> Item {
        let (own, hub) = match (&mut item.body, &hub.body) {
            (Body::Struct(own), Body::Struct(hub)) => (own, hub),
            (Body::Enum(own), Body::Enum(hub)) => {
                let added = variants(&item.name, own, hub, unported);
                item.arguments.extend(added);
                return item;
            }
            _ => return item,
        };
        let own_items: Vec<Item> = self.own.values().map(|it| (*it).clone()).collect();
        let mut matched = BTreeSet::new();
        for field in own.iter_mut() {
            let same = hub.iter().find(|it| it.name == field.name);
            let same = same.filter(|it| it.ty == field.ty && self.is_converted(&field.ty));
            let declared = match same {
                Some(hub) if hub.is_option == field.is_option => {
                    matched.insert(hub.name.clone());
                    continue;
                }
                Some(hub) if is_default(&hub.ty) => {
                    matched.insert(hub.name.clone());
                    match field.is_option {
                        true => "changed_with(Option::unwrap_or_default, Some), lossy".to_owned(),
                        false => "changed_with(Some, Option::unwrap_or_default), lossy".to_owned(),
                    }
                }
                _ => match value(field, &own_items, "") {
                    Some(value) => format!("removed = {value}"),
                    None => "removed".to_owned(),
                },
            };
            field.arguments.insert(0, declared);
            unported.push(format!("{}.{}", item.name, field.name));
        }
        let mut added = Vec::new();
        for field in hub.iter().filter(|it| !matched.contains(&it.name)) {
            unported.push(format!("super::{}.{}", item.name, field.name));
            added.push(match value(field, self.hub_items, "super::") {
                Some(value) => format!("{} = {value}", field.name),
                None => field.name.clone(),
            });
        }
        if !added.is_empty() {
            let added = format!("added({})", added.join(", "));
            item.arguments.insert(0, added);
        }
        item
    }
}

/// Declares the variants that only the version has. Returns the argument for those that only the
/// hub has.
fn variants(
    name: &str,
    own: &mut [Variant],
    hub: &[Variant],
    unported: &mut Vec<String>,
) -> Option<String> {
    let is_in = |all: &[Variant], name: &str| all.iter().any(|it| it.name == name);
    let first = own.first()?.name.clone();
    let added = hub.iter().filter(|it| !is_in(own, &it.name));
    let added: Vec<&str> = added.map(|it| it.name.as_str()).collect();
    unported.extend(added.iter().map(|it| format!("super::{name}::{it}")));
    let first_of_hub = hub.first()?.name.clone();
    for variant in own.iter_mut().filter(|it| !is_in(hub, &it.name)) {
        variant.arguments.push(format!("removed = {first_of_hub}"));
        unported.push(format!("{name}::{}", variant.name));
    }
    let added: Vec<String> = added.iter().map(|it| format!("{it} = {first}")).collect();
    (!added.is_empty()).then(|| format!("added({})", added.join(", ")))
}

/// Reports whether a type of this name implements `Default`.
fn is_default(ty: &Ty) -> bool {
    !matches!(ty, Ty::Named(_) | Ty::Time)
}

/// Returns a value for a field, unless that is the default of its type.
fn value(field: &Field, items: &[Item], prefix: &str) -> Option<String> {
    if field.is_option {
        return None;
    }
    let is_literal = !matches!(field.ty, Ty::Named(_) | Ty::List(_) | Ty::Map(_));
    match &field.default {
        Some(default) if is_literal => Some(default.clone()),
        _ if is_default(&field.ty) => None,
        _ => zero(&field.ty, items, prefix),
    }
}

/// Returns an expression for the smallest value of a type.
fn zero(ty: &Ty, items: &[Item], prefix: &str) -> Option<String> {
    let name = match ty {
        Ty::Named(name) => name,
        Ty::Time => {
            return Some("Time(opkit::k8s_openapi::jiff::Timestamp::UNIX_EPOCH)".to_owned());
        }
        _ => return Some("Default::default()".to_owned()),
    };
    let item = items.iter().find(|item| item.name == *name)?;
    match &item.body {
        Body::Newtype(ty) => Some(format!("{prefix}{name}({})", zero(ty, items, prefix)?)),
        Body::Enum(variants) => {
            let first = variants.first()?;
            let data = match &first.data {
                Some(ty) => format!("({})", zero(ty, items, prefix)?),
                None => String::new(),
            };
            Some(format!("{prefix}{name}::{}{data}", first.name))
        }
        Body::Struct(fields) => {
            let fields = fields.iter().map(|field| {
                let value = match field.is_option {
                    true => "None".to_owned(),
                    false => zero(&field.ty, items, prefix)?,
                };
                Some(format!("{}: {value}", field.name))
            });
            let fields: Option<Vec<String>> = fields.collect();
            Some(match fields?.as_slice() {
                [] => format!("{prefix}{name} {{}}"),
                fields => format!("{prefix}{name} {{ {} }}", fields.join(", ")),
            })
        }
    }
}
