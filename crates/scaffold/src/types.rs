//! Rust types from a CustomResourceDefinition.
//!
//! The schema is read into a small model: structs, enums, unions and types with limits, which is
//! then printed with the arguments of `#[opkit::kind]` and `#[opkit::schema]`. The CRD of the
//! generated kind is that of the source, except for the differences in [`GeneratedTypes::notes`].

mod arguments;
mod build;
mod census;
mod default;
mod kind;
mod model;
mod names;
mod object;
mod print;
mod schema;
mod spoke;
mod union;

#[cfg(test)]
mod tests;

use serde_json::Value;

use self::build::Builder;
use self::kind::Definition;
pub(crate) use self::model::{Model, Root};
pub(crate) use self::print::imports as print_imports;
use self::schema::Schema;
pub(crate) use self::spoke::Spoke;
use crate::{Error, Result};

/// Start of each generated file.
const MARK: &str = "//! The kind ";

/// Types to generate from a CRD.
///
/// # Examples
/// ```
/// use opkit_scaffold::CrdTypes;
///
/// let crd = serde_json::json!({
///     "kind": "CustomResourceDefinition",
///     "metadata": {"name": "robots.example.com"},
///     "spec": {
///         "group": "example.com", "scope": "Namespaced",
///         "names": {"kind": "Robot", "plural": "robots"},
///         "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
///             "type": "object", "required": ["spec"],
///             "properties": {"spec": {"type": "object", "properties": {
///                 "size": {"type": "integer", "format": "int32", "minimum": 1},
///             }}},
///         }}}],
///     },
/// });
/// let types = CrdTypes::new(&crd).generate()?;
/// assert!(types.source.contains("#[opkit(min = 1)]\n    pub size: Option<i32>,"));
/// # Ok::<(), opkit_scaffold::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CrdTypes<'a> {
    crd: &'a Value,
    version: Option<&'a str>,
}

/// Rust types of one version of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GeneratedTypes {
    /// Name of the CRD.
    pub crd: String,
    /// Kind.
    pub kind: String,
    /// Version.
    pub version: String,
    /// Name of a module for the types.
    pub module: String,
    /// Rust source: a file, or the content of a module.
    pub source: String,
    /// Parts of the CRD that the types do not have, each with its path.
    pub notes: Vec<String>,
}

impl GeneratedTypes {
    /// Reports whether a text is a generated file, which may be replaced.
    pub fn is_generated(text: &str) -> bool {
        let first = text.lines().next().unwrap_or_default();
        first.starts_with(MARK) && first.ends_with("generated from its CRD.")
    }
}

impl<'a> CrdTypes<'a> {
    /// Types of the storage version of a CRD.
    pub fn new(crd: &'a Value) -> Self {
        Self { crd, version: None }
    }

    /// Chooses another version.
    #[must_use]
    pub fn version(mut self, version: &'a str) -> Self {
        self.version = Some(version);
        self
    }

    /// Generates the types.
    ///
    /// # Errors
    /// If the value is not a CRD of apiextensions.k8s.io/v1 with a schema, or does not have the
    /// version, or if the kind has the name of a type that the code needs.
    pub fn generate(&self) -> Result<GeneratedTypes> {
        let model = self.model()?;
        let definition = model.definition;
        let mut source = format!(
            "{MARK}`{}` of {}/{}, generated from its CRD.\n",
            definition.kind(),
            definition.group(),
            definition.name()
        );
        source += &model.differences();
        source.push('\n');
        let imports = print::imports(&model.imports());
        if !imports.is_empty() {
            source += &imports;
            source.push('\n');
        }
        source += &model.code();
        Ok(GeneratedTypes {
            crd: self.name().to_owned(),
            kind: definition.kind().to_owned(),
            version: definition.name().to_owned(),
            module: crate::names::module(definition.kind()),
            source,
            notes: model.notes,
        })
    }

    /// Builds the types, before they are printed.
    pub(crate) fn model(&self) -> Result<Model<'a>> {
        let definition = self.definition()?;
        let kind = definition.kind();
        let mut builder = Builder::new(kind);
        if !builder.names.take(kind) {
            let reason = format!("the kind {kind} has the name of a type that the code needs");
            return Err(self.error(reason));
        }
        for reserved in ["Spec", "Status"] {
            builder.names.take(&format!("{kind}{reserved}"));
        }
        builder.census.add(definition.root, false);
        let root = match definition.has_spec() {
            true => {
                let (spec, status) = kind::build(definition, &mut builder);
                Root::Kind {
                    spec: Box::new(spec),
                    status: status.map(Box::new),
                }
            }
            false => {
                let (items, code) = object::build(definition, &mut builder);
                Root::Object { items, code }
            }
        };
        Ok(Model {
            definition,
            root,
            items: builder.items,
            notes: builder.notes,
        })
    }

    fn name(&self) -> &'a str {
        let name = self.crd.pointer("/metadata/name").and_then(Value::as_str);
        name.unwrap_or("the CRD")
    }

    fn error(&self, reason: String) -> Error {
        Error::Crd {
            crd: self.name().to_owned(),
            reason,
        }
    }

    /// Returns the definition of the chosen version, after checking the parts that the code needs.
    fn definition(&self) -> Result<Definition<'a>> {
        let crd = Schema(self.crd);
        if crd.text("kind") != Some("CustomResourceDefinition") {
            let reason = ".kind is not CustomResourceDefinition".to_owned();
            return Err(self.error(reason));
        }
        let Some(versions) = self.crd.pointer("/spec/versions").and_then(Value::as_array) else {
            let reason = ".spec.versions is missing: a CRD of apiextensions.k8s.io/v1 has it";
            return Err(self.error(reason.to_owned()));
        };
        let versions: Vec<Schema<'a>> = versions.iter().map(Schema).collect();
        let found = match self.version {
            Some(name) => versions.iter().find(|it| it.text("name") == Some(name)),
            None => versions.iter().find(|it| it.is("storage")),
        };
        let Some(version) = found.copied() else {
            let names: Vec<&str> = versions.iter().filter_map(|it| it.text("name")).collect();
            let reason = match self.version {
                Some(name) => format!("there is no version {name}: it has {}", names.join(", ")),
                None => ".spec.versions has no storage version".to_owned(),
            };
            return Err(self.error(reason));
        };
        let Some(root) = version.0.pointer("/schema/openAPIV3Schema") else {
            let name = version.text("name").unwrap_or_default();
            return Err(self.error(format!("version {name} has no schema")));
        };
        let definition = Definition {
            crd,
            version,
            root: Schema(root),
        };
        let is_kind = syn::parse_str::<syn::Ident>(definition.kind()).is_ok();
        if !is_kind || definition.group().is_empty() || definition.plural().is_empty() {
            let reason = ".spec needs a group, and names with a kind and a plural".to_owned();
            return Err(self.error(reason));
        }
        Ok(definition)
    }
}
