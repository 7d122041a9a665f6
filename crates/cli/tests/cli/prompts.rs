//! The questions of `opkit add api` and of `opkit remove`, in a pseudo-terminal.

use super::project::project;
use super::terminal::InTerminal;
use super::*;

/// End of input on a terminal: Ctrl-D.
const END: &str = "\x04";

/// A project in which questions are answered.
struct Place {
    parent: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { parent: project() }
    }

    fn has(&self, path: &str) -> bool {
        let project = self.parent.path().join("robot-operator");
        project.join(path).exists()
    }

    /// Runs a command and types a reply after each question. Returns the exit code and
    /// what the terminal shows at the end.
    fn answer(&self, arguments: &[&str], answers: &[(&str, &str)]) -> (i32, String) {
        let directory = self.parent.path().join("robot-operator");
        let mut terminal = InTerminal::of(&directory, arguments, 120, 40);
        for (question, answer) in answers {
            terminal.until(question);
            terminal.press(answer);
        }
        terminal.end()
    }
}

const RESOURCE: &str = "Create Resource [y/n]";
const CONTROLLER: &str = "Create Controller [y/n]";
const API: [&str; 4] = ["add", "api", "--kind", "Arm"];

#[test]
fn both_are_created_on_request() {
    let place = Place::new();
    // A wrong answer is asked again.
    let answers = [
        (RESOURCE, "maybe\n"),
        ("[y/n] maybe", "Y\n"),
        (CONTROLLER, "yes\n"),
    ];
    let (code, shown) = place.answer(&API, &answers);
    assert_eq!(code, 0, "{shown}");
    assert_eq!(shown.matches(RESOURCE).count(), 2, "{shown}");
    assert!(
        place.has("src/arm.rs") && place.has("tests/arm.rs"),
        "{shown}"
    );
    assert!(shown.contains(".controller(arm::controller())"), "{shown}");
}

#[test]
fn a_kind_is_created_without_a_controller() {
    let place = Place::new();
    let (code, shown) = place.answer(&API, &[(RESOURCE, "y\n"), (CONTROLLER, "n\n")]);
    assert_eq!(code, 0, "{shown}");
    assert!(place.has("src/arm.rs"), "{shown}");
    assert!(!shown.contains("arm::controller()"), "{shown}");
}

/// A controller needs a kind: that of this project, which does not exist.
#[test]
fn a_controller_without_its_kind_is_refused() {
    let place = Place::new();
    let (code, shown) = place.answer(&API, &[(RESOURCE, "n\n"), (CONTROLLER, "y\n")]);
    assert_ne!(code, 0, "{shown}");
    assert!(shown.contains("opkit: "), "{shown}");
    assert!(!place.has("src/arm.rs"), "{shown}");
}

#[test]
fn the_end_of_the_input_changes_nothing() {
    let place = Place::new();
    let (code, shown) = place.answer(&API, &[(RESOURCE, "y\n"), (CONTROLLER, END)]);
    assert_eq!(code, 1, "{shown}");
    assert!(
        shown.contains("opkit: no answer (nothing was changed)"),
        "{shown}"
    );
    assert!(!place.has("src/arm.rs"));
}

#[test]
fn files_are_deleted_after_a_question() {
    let place = Place::new();
    let both = [(RESOURCE, "y\n"), (CONTROLLER, "y\n")];
    assert_eq!(place.answer(&API, &both).0, 0);
    let remove = ["remove", "api", "--kind", "Arm"];
    let question = "tests/arm.rs [y/n]";
    let (code, shown) = place.answer(&remove, &[(question, "n\n")]);
    assert_eq!(code, 1, "{shown}");
    assert!(shown.contains("opkit: nothing was changed"), "{shown}");
    assert!(place.has("src/arm.rs"));
    let (code, shown) = place.answer(&remove, &[(question, "y\n")]);
    assert_eq!(code, 0, "{shown}");
    assert!(!place.has("src/arm.rs") && !place.has("tests/arm.rs"));
}
