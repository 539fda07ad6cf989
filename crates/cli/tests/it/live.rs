//! The program on a terminal: the live view, decisions at gates, questions about inputs, Ctrl-C, and a closed window.

use crate::pty::Pty;
use crate::scratch::Scratch;
use crate::support::windlass_in;
use std::path::Path;

fn open(scratch: &Scratch, workflow: &str, args: &str, size: (u16, u16)) -> Pty {
    std::fs::write(scratch.path().join("w.yaml"), workflow).expect("a writable folder");
    let env = [("TERM", "xterm-256color"), ("LANG", "C.UTF-8"), ("USER", "dana"), ("PATH", "/usr/bin:/bin")];
    let args: Vec<&str> = args.split(' ').chain(["--data", "data"]).collect();
    Pty::open(Path::new(env!("CARGO_BIN_EXE_windlass")), &args, scratch.path(), &env, size)
}

fn resumed(scratch: &Scratch) -> String {
    let seen =
        windlass_in(scratch.path(), &["resume", "r", "--data", "data"]).env("PATH", "/usr/bin:/bin").see();
    assert_eq!(seen.status, 0, "{seen}");
    seen.stderr
}

const GATE: &str = r#"
workflow: { id: gate, name: "Gate 門" }
config: { parameters: { count: { type: integer, required: true, description: How many } }, timeout: 2d }
stages:
  - { id: hostile, type: shell, run: 'printf "\033[2J\033]0;owned\007 %s\n" ${{ parameters.count }}' }
  - id: sign-off
    type: gate
    depends_on: [hostile]
    gate: { approvers: [dana], message: "Ship 漢字?", form: { ticket: { type: string, required: true } } }
  - { id: ship, type: shell, run: "echo ${{ stages.sign-off.outputs.ticket }} > shipped", depends_on: [sign-off] }
"#;

#[test]
fn the_view_asks_for_inputs_and_decisions() {
    let scratch = Scratch::new("live-gate");
    let mut terminal = open(&scratch, GATE, "run w.yaml --run-id r", (80, 24));
    terminal.until("count (integer): How many");
    terminal.press("several\r");
    terminal.until("`several` is not a whole number");
    terminal.press("7\r");
    terminal.until("a approve   r reject   as dana");
    assert!(terminal.seen().contains("Gate 門 · r"), "{}", terminal.seen());
    terminal.resize(44, 14);
    terminal.until("Ship 漢字?");
    terminal.press("a");
    terminal.until("ticket");
    terminal.press("\r");
    terminal.until("a value is required");
    terminal.press("CR-7\r");
    terminal.until("why?");
    terminal.press("looks good\r");
    let (status, seen) = terminal.ends();
    assert_eq!(status, Some(0), "{seen}");
    for line in [" ✓ hostile", " ✓ sign-off", " ✓ ship", " 3 done", "run r succeeded"] {
        assert!(seen.contains(line), "{line:?} is missing:\n{seen}");
    }
    assert_eq!(seen.matches("Gate 門").count(), 1, "no frame was left behind:\n{seen}");
    assert_eq!(std::fs::read_to_string(scratch.path().join("shipped")).expect("it ran"), "CR-7\n");
}

/// `work` hangs when it first runs, and succeeds the second time.
const HELD: &str = "
workflow: { id: held, name: Held }
stages:
  - { id: before, type: shell, run: echo before >> trace }
  - id: work
    type: shell
    run: 'if [ -e again ]; then echo work >> trace; else touch again; echo working; read never < never; fi'
    depends_on: [before]
";

fn held(test: &str) -> (Scratch, Pty) {
    let scratch = Scratch::new(test);
    let made = std::process::Command::new("mkfifo").arg(scratch.path().join("never")).status();
    assert!(made.expect("mkfifo is installed").success());
    let mut terminal = open(&scratch, HELD, "run w.yaml --run-id r", (80, 24));
    terminal.until("working");
    (scratch, terminal)
}

fn trace(scratch: &Scratch) -> String {
    std::fs::read_to_string(scratch.path().join("trace")).expect("steps ran")
}

#[test]
fn ctrl_c_stops_the_run_and_shows_how_to_resume() {
    let (scratch, mut terminal) = held("live-stop");
    terminal.press("\u{3}");
    let (status, seen) = terminal.ends();
    assert_eq!(status, Some(5), "{seen}");
    assert!(seen.contains("✓ before") && seen.contains("windlass resume r"), "{seen}");
    resumed(&scratch);
    assert_eq!(trace(&scratch), "before\nwork\n");
}

#[test]
fn closing_the_window_stops_the_run_without_loss() {
    let (scratch, terminal) = held("live-close");
    assert_eq!(terminal.close(), Some(5));
    resumed(&scratch);
    assert_eq!(trace(&scratch), "before\nwork\n");
}

#[test]
fn a_dumb_terminal_gets_lines() {
    let scratch = Scratch::new("live-dumb");
    std::fs::write(scratch.path().join("w.yaml"), HELD).expect("a writable folder");
    std::fs::write(scratch.path().join("again"), "").expect("a writable folder");
    let args = ["run", "w.yaml", "--run-id", "r", "--data", "data"];
    let env = [("TERM", "dumb"), ("PATH", "/usr/bin:/bin")];
    let terminal =
        Pty::open(Path::new(env!("CARGO_BIN_EXE_windlass")), &args, scratch.path(), &env, (80, 24));
    let (status, seen) = terminal.ends();
    assert_eq!(status, Some(0), "{seen}");
    assert!(seen.contains("  > before\n  + before ") && seen.contains("run r succeeded"), "{seen}");
}
