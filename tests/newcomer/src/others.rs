//! Projects of commands that no guide shows. They are compiled and tested with those of the guides.

use std::fs;
use std::path::{Path, PathBuf};

use crate::project::{command_in, opkit, text};

/// The manifest of the tutorial about a controller that is written by hand, unchanged.
const ROBOT_ONE: &str = r#"apiVersion: robot.llleon.io/v1
kind: Robot
metadata:
  name: robot-one
spec:
  image: nginx
  replicas: 2
  command: ["sleep", "3600"]
"#;

/// Runs commands, which must succeed, one on each line.
fn run(directory: &Path, lines: &str) {
    for line in lines.lines() {
        let mut command = command_in(directory, opkit());
        let output = command.args(line.split_whitespace()).output().unwrap();
        let (out, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{line}: {out}{errors}");
    }
}

fn edit(path: &Path, from: &str, to: &str) {
    let before = fs::read_to_string(path).unwrap();
    assert!(before.contains(from), "{from:?} is not in {before}");
    fs::write(path, before.replace(from, to)).unwrap();
}

/// Creates the projects, and returns their directories. The last one is that of the Robot.
pub(crate) fn create(parent: &Path) -> Vec<PathBuf> {
    let one = parent.join("one-namespace");
    fs::create_dir(&one).unwrap();
    run(
        &one,
        "init --namespaced --domain example.com
add webhook --kind Pod --group core --defaulting --validation
add controller --kind Node --group core",
    );
    let wide = parent.join("wide-operator");
    run(parent, "new wide-operator --domain wide.example.com");
    run(
        &wide,
        "add api --kind Arm --cluster-scoped
add api --kind Leg --no-controller",
    );
    vec![one, wide, robot(parent)]
}

/// Creates the kind of the tutorial: the scaffold, and one field.
fn robot(parent: &Path) -> PathBuf {
    let line = "new llleon --domain llleon.io --group robot --version v1 --kind Robot";
    run(parent, line);
    let project = parent.join("llleon");
    let field = "pub struct RobotSpec {\n    /// Command of the container.\n    pub command: Vec<String>,\n";
    let source = project.join("src/robot.rs");
    edit(&source, "pub struct RobotSpec {\n", field);
    let command = "        command: vec![\"sleep\".to_owned(), \"3600\".to_owned()],\n";
    let end = "        replicas: 2,\n";
    edit(
        &project.join("tests/robot.rs"),
        end,
        &format!("{end}{command}"),
    );
    fs::write(project.join("config/samples/robot.yaml"), ROBOT_ONE).unwrap();
    project
}
