//! The operator of `opkit dev --no-run`, which the user starts, such as in a debugger.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use opkit_debug::Activity;

use super::operator::OperatorCommand;
use super::view::View;

/// An operator that the user starts.
#[derive(Debug, Default)]
pub(crate) struct Debugged {
    /// Command line to start it with; `None` until it is built.
    pub(crate) line: Option<OperatorCommand>,
    /// Whether it has run.
    has_run: bool,
}

impl Debugged {
    /// Prints the command line, each part as a debugger asks for it.
    pub(crate) fn print(&self, view: &mut View) {
        let Some(line) = &self.line else {
            return;
        };
        let arguments: Vec<_> = line.arguments.iter().map(|it| quoted(it)).collect();
        view.line("program", &quoted(line.executable.as_os_str()));
        view.line("arguments", &arguments.join(" "));
        if let Some(kubeconfig) = &line.kubeconfig {
            let variable = format!("KUBECONFIG={}", quoted(kubeconfig));
            view.line("environment", &variable);
        }
        view.line(
            "operator",
            "not started: start it with this program and these arguments; Ctrl-C ends the control plane",
        );
    }

    /// Returns the file that the operator writes the address of its debug endpoint to; `None` until
    /// the operator is built.
    pub(crate) fn debug_address_file(&self) -> Option<&Path> {
        let line = self.line.as_ref()?;
        Some(&line.debug_address_file)
    }

    /// Reports whether the activity is the first that shows that the operator runs.
    pub(crate) fn has_started(&mut self, activity: &Activity) -> bool {
        let is_first = activity.running && !self.has_run;
        self.has_run |= activity.running;
        is_first
    }

    /// Removes the file with the address of the operator.
    pub(crate) fn remove(&self) {
        if let Some(line) = &self.line {
            let _ = fs::remove_file(&line.debug_address_file);
        }
    }
}

/// Returns an argument as a shell reads it.
fn quoted(argument: &OsStr) -> String {
    let text = argument.to_string_lossy();
    let is_plain = |char: char| char.is_alphanumeric() || "_-./:=,@%+".contains(char);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.into_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        for (argument, expected) in [
            ("--debug-bind-address", "--debug-bind-address"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("a b", "'a b'"),
            ("", "''"),
            ("it's $HOME", "'it'\\''s $HOME'"),
        ] {
            assert_eq!(quoted(OsStr::new(argument)), expected);
        }
    }

    #[test]
    fn only_the_first_start_is_reported() {
        let mut debugged = Debugged::default();
        let running = Activity {
            running: true,
            ..Activity::default()
        };
        assert!(!debugged.has_started(&Activity::default()));
        assert!(debugged.has_started(&running));
        assert!(!debugged.has_started(&running));
        assert!(!debugged.has_started(&Activity::default()));
        assert!(!debugged.has_started(&running));
    }
}
