use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::project::{Project, opkit, text};

/// Child process that is killed when the test ends, also if the test fails.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One test, because the parts build the same project.
#[test]
fn the_operator_of_the_readme_compiles_passes_its_test_and_runs() {
    let project = Project::of_readme();
    let tested = project.cargo(&["test"]);
    let (out, errors) = (text(&tested.stdout), text(&tested.stderr));
    assert!(tested.status.success(), "{out}\n{errors}");
    assert!(!errors.contains("warning:"), "{errors}");
    assert!(
        out.contains("a_greeting_gets_its_config_map ... ok"),
        "{out}"
    );

    let opkit = opkit();
    let mut dev = project.command(&opkit);
    dev.arg("dev").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut dev = KillOnDrop(dev.spawn().unwrap());
    let lines = BufReader::new(dev.0.stdout.take().unwrap()).lines();
    let mut shown = String::new();
    let mut is_reconciled = false;
    for line in lines {
        shown += &line.unwrap();
        shown.push('\n');
        let last = shown.lines().last().unwrap_or_default();
        is_reconciled = last.contains("Greeting hello") && last.contains("reconciled");
        if is_reconciled {
            break;
        }
    }
    assert!(is_reconciled, "{shown}");

    let explained = project
        .command(&opkit)
        .args(["explain", "greeting/hello"])
        .output()
        .unwrap();
    let explained = (text(&explained.stdout), text(&explained.stderr));
    assert!(explained.0.contains("ConfigMap"), "{explained:?}");

    let process = Pid::from_child(&dev.0);
    kill_process(process, Signal::INT).unwrap();
    assert!(dev.0.wait().unwrap().success());
}
