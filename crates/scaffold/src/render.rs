//! Texts of new files, from the templates in `templates`.

use crate::{Error, Result, names, plural};

/// Width of a line, as rustfmt wraps it.
const COLUMNS_MAX: usize = 100;

/// Width of a method chain that rustfmt keeps on one line.
pub(crate) const CHAIN_MAX: usize = 60;

/// Port in the test of a kind whose image has none.
const DEFAULT_PORT: u16 = 8080;

/// Replaces `{{name}}` by the value of each name. The text ends with one line break.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = template.to_owned();
    for (name, value) in values {
        text = text.replace(&format!("{{{{{name}}}}}"), value);
    }
    let end = text.trim_end().len();
    text.truncate(end);
    text.push('\n');
    text
}

/// What the files of a kind depend on.
#[derive(Clone, Debug)]
pub(crate) struct KindText {
    pub(crate) kind: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) is_cluster: bool,
    pub(crate) has_controller: bool,
    /// Image that the objects of the kind run by default; its controller is written for it.
    pub(crate) image: Option<ImageText>,
    /// Name of the library in Rust code.
    pub(crate) library: String,
}

/// How the container of a kind's image runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageOptions {
    /// Port that the image listens on, for the sample.
    pub port: Option<u16>,
    /// Command of the container; that of the image if it is empty.
    pub command: Vec<String>,
    /// ID of the user that the container runs as; that of the image by default. A user other than
    /// 0 must not be root.
    pub run_as_user: Option<u32>,
}

/// Image of a kind, and how its container runs.
#[derive(Clone, Debug)]
pub(crate) struct ImageText {
    pub(crate) image: String,
    pub(crate) port: Option<u16>,
    command: Vec<String>,
    run_as_user: Option<u32>,
}

impl ImageText {
    /// Checks the reference of an image, which is written to Rust source and YAML.
    pub(crate) fn of(image: Option<&str>, options: &ImageOptions) -> Result<Option<Self>> {
        let ImageOptions {
            port,
            command,
            run_as_user,
        } = options;
        let Some(image) = image else {
            let reason = "this belongs to an image: add --image IMAGE";
            let fail = |name, value| Err(Error::argument(name, value, reason));
            return match (port, command.as_slice(), run_as_user) {
                (None, [], None) => Ok(None),
                (Some(port), ..) => fail("--port", port.to_string()),
                (_, [], Some(user)) => fail("--run-as-user", user.to_string()),
                (_, command, _) => fail("--container-command", command.join(",")),
            };
        };
        let is_allowed = |char: char| char.is_ascii_alphanumeric() || "._-/:@".contains(char);
        let is_valid = image.starts_with(|char: char| char.is_ascii_alphanumeric())
            && image.ends_with(|char: char| char.is_ascii_alphanumeric())
            && image.len() <= 255
            && image.chars().all(is_allowed);
        if !is_valid {
            let reason = "this is not the reference of an image, such as nginx:1.27";
            return Err(Error::argument("--image", image, reason));
        }
        let is_wrong = |word: &String| word.is_empty() || word.chars().any(char::is_control);
        if command.iter().any(is_wrong) {
            let reason = "a command is words that are separated by commas";
            let command = command.join(",");
            return Err(Error::argument("--container-command", command, reason));
        }
        if *port == Some(0) {
            let reason = "a port is a number from 1 to 65535";
            return Err(Error::argument("--port", "0", reason));
        }
        Ok(Some(Self {
            image: image.to_owned(),
            port: *port,
            command: command.clone(),
            run_as_user: *run_as_user,
        }))
    }

    /// Returns the line of the container's command, as rustfmt writes it.
    fn command(&self) -> String {
        let words = self.command.iter();
        let words: Vec<String> = words.map(|it| format!("{it:?}.to_owned()")).collect();
        let line = words.join(", ");
        match (words.is_empty(), line.len() <= CHAIN_MAX) {
            (true, _) => String::new(),
            (false, true) => format!("        command: Some(vec![{line}]),\n"),
            (false, false) => {
                let lines = words.iter().map(|word| format!("            {word},\n"));
                let lines: String = lines.collect();
                format!("        command: Some(vec![\n{lines}        ]),\n")
            }
        }
    }

    /// Returns the lines of the container's security context about its user.
    fn run_as_user(&self) -> String {
        let Some(user) = self.run_as_user else {
            return String::new();
        };
        let root = match user {
            0 => "",
            _ => "            run_as_non_root: Some(true),\n",
        };
        format!("{root}            run_as_user: Some({user}),\n")
    }
}

impl KindText {
    pub(crate) fn module(&self) -> String {
        names::module(&self.kind)
    }

    /// Returns the source of the kind and, if it has one, of its controller.
    pub(crate) fn source(&self) -> String {
        let template = match (self.has_controller, &self.image) {
            (true, None) => include_str!("templates/kind.rs.txt"),
            (true, Some(_)) => include_str!("templates/image-kind.rs.txt"),
            (false, _) => include_str!("templates/kind-only.rs.txt"),
        };
        self.fill(template)
    }

    /// Returns the test of the kind.
    pub(crate) fn test(&self) -> String {
        let template = match (self.has_controller, &self.image) {
            (true, None) => include_str!("templates/test.rs.txt"),
            (true, Some(_)) => include_str!("templates/image-test.rs.txt"),
            (false, _) => include_str!("templates/test-kind-only.rs.txt"),
        };
        self.fill(template)
    }

    /// Returns the sample object.
    pub(crate) fn sample(&self) -> String {
        self.fill(match &self.image {
            Some(_) => include_str!("templates/image-sample.yaml.txt"),
            None => include_str!("templates/sample.yaml.txt"),
        })
    }

    /// Replaces the names that follow from the kind.
    pub(crate) fn fill(&self, template: &str) -> String {
        let Self {
            kind,
            group,
            version,
            library,
            ..
        } = self;
        let (module, words) = (self.module(), names::words(kind));
        let mut imports = match self.has_controller {
            true => vec![
                format!("use {library}::operator;"),
                format!("use {library}::{module}::{{{kind}, {kind}Spec}};"),
            ],
            false => vec![
                format!("use {library}::operator;"),
                format!("use {library}::{module}::{kind};"),
            ],
        };
        imports.sort();
        let placed = |text: &'static str| if self.is_cluster { text } else { "" };
        let var = names::variable(kind);
        let indent = " ".repeat(if self.image.is_some() { 8 } else { 12 });
        let namespace = format!("{indent}namespace: Some({var}.spec.namespace.clone()),\n");
        let labels = [
            tuple(
                "\"app.kubernetes.io/name\".to_owned()",
                &format!("\"{}\".to_owned()", kind.to_lowercase()),
            ),
            tuple("\"app.kubernetes.io/instance\".to_owned()", "name.clone()"),
        ];
        let labels = labels.concat();
        let ready = format!(".eventually(\"one\", |{var}: &{kind}| {var}.is_ready())");
        let eventually = chain("plane", &[ready, ".await?".to_owned()], 4);
        let container: String = words.replace(' ', "-").chars().take(63).collect();
        let image = self.image.as_ref();
        let image_name = image.map_or("", |it| it.image.as_str());
        let port = image.and_then(|it| it.port);
        let sample_port = port.map(|port| format!("  containerPort: {port}"));
        fill(
            template,
            &[
                ("attribute", &self.attribute()),
                ("image_attribute", &image_attribute(image_name)),
                ("image", image_name),
                (
                    "command",
                    &image.map(ImageText::command).unwrap_or_default(),
                ),
                (
                    "run_as_user",
                    &image.map(ImageText::run_as_user).unwrap_or_default(),
                ),
                ("port", &port.unwrap_or(DEFAULT_PORT).to_string()),
                ("sample_port", &sample_port.unwrap_or_default()),
                ("eventually", &eventually),
                ("labels", &labels),
                (
                    "placement",
                    placed(
                        "    /// Namespace of its Deployment.\n    #[opkit(immutable)]\n    pub namespace: String,\n",
                    ),
                ),
                (
                    "test_placement",
                    placed("        namespace: plane.namespace().to_owned(),\n"),
                ),
                ("sample_placement", placed("  namespace: default\n")),
                ("namespace", if self.is_cluster { &namespace } else { "" }),
                ("imports", &imports.join("\n")),
                ("a", article(&words)),
                ("Kind", kind),
                ("words", &words),
                ("container", container.trim_end_matches('-')),
                ("lower", &kind.to_lowercase()),
                ("sample", &kind.to_lowercase()),
                ("snake", &names::snake(kind)),
                ("module", &module),
                ("var", &var),
                ("group", group),
                ("version", version),
                ("library", library),
            ],
        )
    }

    /// Returns the attribute of the kind. The plural is in writing unless it is regular.
    fn attribute(&self) -> String {
        let mut arguments = vec![
            format!("group = \"{}\"", self.group),
            format!("version = \"{}\"", self.version),
        ];
        if self.plural != plural::regular(&self.kind) {
            arguments.push(format!("plural = \"{}\"", self.plural));
        }
        let scope = if self.is_cluster {
            "cluster"
        } else {
            "namespaced"
        };
        arguments.push(scope.to_owned());
        arguments.push(format!("status = {}Status", self.kind));
        attribute("opkit::kind", &arguments)
    }
}

/// Returns the attribute of the field with the image.
fn image_attribute(image: &str) -> String {
    let arguments = [
        format!("default = \"{image}\""),
        "min_length = 1".to_owned(),
        "printcolumn = \"Image\"".to_owned(),
    ];
    let attribute = attribute("opkit", &arguments);
    // The lines of an attribute that is broken are indented like those of the struct.
    let lines = attribute.lines().map(|line| format!("    {line}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns a tuple in a list, as rustfmt writes it.
fn tuple(key: &str, value: &str) -> String {
    let line = format!("{key}, {value}");
    match line.len() <= CHAIN_MAX {
        true => format!("        ({line}),\n"),
        false => format!("        (\n            {key},\n            {value},\n        ),\n"),
    }
}

/// Returns `a` or `an`.
pub(crate) fn article(words: &str) -> &'static str {
    match words.starts_with(['a', 'e', 'i', 'o', 'u']) {
        true => "an",
        false => "a",
    }
}

/// Returns an attribute on one line if it fits.
pub(crate) fn attribute(path: &str, arguments: &[String]) -> String {
    let line = format!("#[{path}({})]", arguments.join(", "));
    match line.len() <= COLUMNS_MAX {
        true => line,
        false => format!("#[{path}(\n    {}\n)]", arguments.join(",\n    ")),
    }
}

/// Returns a method chain as rustfmt writes it. `indent` is that of its statement.
pub(crate) fn chain(root: &str, links: &[String], indent: usize) -> String {
    let line = format!("{root}{}", links.concat());
    match line.len() <= CHAIN_MAX || links.len() < 2 && line.len() + indent < COLUMNS_MAX {
        true => line,
        false => {
            let space = " ".repeat(indent + 4);
            let links = links.iter().map(|link| format!("\n{space}{link}"));
            format!("{root}{}", links.collect::<String>())
        }
    }
}
