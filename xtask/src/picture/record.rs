//! A run of `opkit dev` in a pseudo-terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Time limit of the run, with the build of the operator.
const RUN_MAX: Duration = Duration::from_secs(600);
/// Time between the first screen and the recorded one: the pods become ready.
const SETTLE: Duration = Duration::from_secs(2);

/// Runs `opkit dev robot-operator`, shows its events, and returns the escape sequences that draw
/// what the terminal shows.
pub(super) fn record(root: &Path, columns: u16, lines: u16) -> Result<Vec<u8>> {
    let build = Command::new("cargo")
        .args(["build", "--package", "opkit-cli"])
        .current_dir(root)
        .status();
    ensure!(
        build.context("cannot run cargo")?.success(),
        "cargo build failed"
    );
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec()?;
    let opkit = metadata.target_directory.join("debug/opkit");
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let size = Winsize {
        ws_col: columns,
        ws_row: lines,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&master, size)?;
    let name = ptsname(&master, Vec::new())?;
    let slave = File::options()
        .read(true)
        .write(true)
        .open(name.to_str()?)?;
    let mut child = Command::new(opkit)
        .args(["dev", "robot-operator"])
        .current_dir(root)
        .stdin(slave.try_clone()?)
        .stdout(slave.try_clone()?)
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start opkit")?;
    drop(slave);
    let shown = show(File::from(master), columns, lines);
    if shown.is_err() {
        let _ = child.kill();
    }
    let status = child.wait()?;
    let shown = shown?;
    ensure!(status.success(), "opkit dev ended with {status}");
    Ok(shown)
}

/// Waits for the view, selects the events, quits, and returns the last screen of the view.
fn show(mut terminal: File, columns: u16, lines: u16) -> Result<Vec<u8>> {
    let (sender, output) = mpsc::channel();
    let mut screen = terminal.try_clone()?;
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = screen.read(&mut buffer) {
            let piece = buffer.get(..length).unwrap_or_default().to_vec();
            if sender.send(piece).is_err() {
                return;
            }
        }
    });
    let mut parser = vt100::Parser::new(lines, columns, 0);
    let began = SystemTime::now();
    let since = |time: SystemTime| time.elapsed().unwrap_or_default();
    let mut opened = None;
    loop {
        ensure!(since(began) < RUN_MAX, "the view was not shown");
        if let Ok(piece) = output.recv_timeout(Duration::from_millis(100)) {
            parser.process(&piece);
        }
        match opened {
            None if parser.screen().contents().contains("q quit") => {
                terminal.write_all(b"\t\t")?;
                opened = Some(SystemTime::now());
            }
            Some(at) if since(at) > SETTLE => break,
            _ => {}
        }
    }
    let shown = parser.screen().contents_formatted();
    terminal.write_all(b"q")?;
    // Until the terminal is closed, so that the command is not kept from writing.
    while output.recv_timeout(SETTLE).is_ok() {}
    Ok(shown)
}
