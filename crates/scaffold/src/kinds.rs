//! The kinds of a project: structs with `#[opkit::kind(...)]`.

use std::ops::Range;

use syn::{Item, ItemStruct};

use crate::manifest::Manifest;
use crate::source::Source;
use crate::source::attribute::{Argument, arguments, is_named};
use crate::tree::Tree;
use crate::{Error, Result, parse, sources};

/// Kind that a project defines.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    /// Name, such as `Robot`.
    pub(crate) name: String,
    /// Name of the struct, such as `RobotSpec`.
    pub(crate) spec: String,
    /// Path of its file.
    pub(crate) file: String,
    /// Path of its module from the crate's root, such as `robot`.
    pub(crate) module: Vec<String>,
    /// Number of the modules at the end of the path that are within the file.
    pub(crate) inline: usize,
    /// Arguments of the attribute.
    pub(crate) arguments: Vec<Argument>,
    /// The bytes of the attribute.
    pub(crate) attribute: Range<usize>,
}

impl Kind {
    pub(crate) fn argument(&self, name: &str) -> Option<&Argument> {
        self.arguments.iter().find(|it| it.name == name)
    }

    pub(crate) fn string(&self, name: &str) -> Option<String> {
        self.argument(name)?.string()
    }

    pub(crate) fn group(&self) -> String {
        self.string("group").unwrap_or_default()
    }

    pub(crate) fn version(&self) -> String {
        self.string("version").unwrap_or_default()
    }

    /// Returns the paths in `versions(...)`, such as `v1alpha1::Robot`.
    pub(crate) fn versions(&self) -> Vec<String> {
        let Some(versions) = self.argument("versions") else {
            return Vec::new();
        };
        let text = versions.text();
        let paths = text.split(',').filter(|path| !path.is_empty());
        paths.map(str::to_owned).collect()
    }

    /// Returns the names of all versions except the hub, by the modules that contain them.
    pub(crate) fn other_versions(&self) -> Vec<String> {
        let version = |path: String| {
            let mut segments = path.rsplit("::");
            segments.nth(1).map(str::to_owned)
        };
        self.versions().into_iter().filter_map(version).collect()
    }

    pub(crate) fn is_namespaced(&self) -> bool {
        self.argument("namespaced").is_some()
    }

    /// Returns the path of the module from the crate's root, such as `fleet::robot`.
    pub(crate) fn path(&self) -> String {
        self.module.join("::")
    }

    /// Returns the items of the module that contains the kind.
    pub(crate) fn items<'a>(&self, source: &'a Source) -> &'a [Item] {
        let start = self.module.len().saturating_sub(self.inline);
        let inline = self.module.get(start..).unwrap_or_default();
        crate::operator::items(source, inline)
    }
}

/// Returns the kinds in the sources that can be parsed.
pub(crate) fn all(tree: &Tree, manifest: &Manifest) -> Vec<Kind> {
    let mut found = Vec::new();
    for (path, text) in sources(tree) {
        if let (Ok(source), Some(module)) = (Source::parse(path, text), manifest.module(path)) {
            let mut module = module;
            search(&source, &source.file.items, &mut module, 0, &mut found);
        }
    }
    found
}

fn search(
    source: &Source,
    items: &[Item],
    module: &mut Vec<String>,
    inline: usize,
    found: &mut Vec<Kind>,
) {
    for item in items {
        match item {
            Item::Struct(item) => found.extend(kind(source, item, module, inline)),
            Item::Mod(inner) => {
                if let Some((_, items)) = &inner.content {
                    module.push(inner.ident.to_string());
                    search(source, items, module, inline + 1, found);
                    module.pop();
                }
            }
            _ => {}
        }
    }
}

fn kind(source: &Source, item: &ItemStruct, module: &[String], inline: usize) -> Option<Kind> {
    let attribute = item.attrs.iter().find(|it| is_named(it, "kind"))?;
    let arguments = arguments(attribute);
    let spec = item.ident.to_string();
    let named = arguments.iter().find(|it| it.name == "kind");
    let named = named.and_then(Argument::string);
    let name = named.or_else(|| spec.strip_suffix("Spec").map(str::to_owned));
    Some(Kind {
        name: name?,
        spec,
        file: source.path.clone(),
        module: module.to_vec(),
        inline,
        arguments,
        attribute: source.range(attribute),
    })
}

/// Returns the kind with this name.
pub(crate) fn find(tree: &Tree, manifest: &Manifest, name: &str) -> Result<Kind> {
    let kinds = all(tree, manifest);
    if let Some(kind) = kinds.iter().find(|kind| kind.name == name) {
        return Ok(kind.clone());
    }
    // A file that cannot be parsed may define the kind.
    for (path, _) in sources(tree) {
        parse(tree, path)?;
    }
    let known: Vec<_> = kinds.iter().map(|kind| kind.name.as_str()).collect();
    let known = match known.as_slice() {
        [] => "there is none here".to_owned(),
        known => format!("the kinds here are {}", known.join(", ")),
    };
    let reason = format!(
        "there is no struct {name}Spec with #[opkit::kind(...)] in this project; types inside of \
         macros are not found; {known}"
    );
    Err(Error::argument("--kind", name, reason))
}
