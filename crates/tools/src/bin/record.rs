//! Records a command as a moving picture: it runs in a terminal of its own, and what that shows becomes an SVG without scripts.
//! `record OUT.svg [--when TEXT KEYS]… -- COMMAND ARG…` presses the keys as soon as the text is on the screen.

#![expect(clippy::print_stderr, reason = "a tool for people says what it did")]

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use windlass_tools::pty::Pty;

const WIDTH: u16 = 80;
const HEIGHT: u16 = 30;
/// No two pictures follow each other sooner.
const BETWEEN: Duration = Duration::from_millis(240);
/// How long the last one is seen.
const LAST: Duration = Duration::from_secs(5);
/// How long a person takes to press a key.
const THINKS: Duration = Duration::from_millis(1_200);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((before, command)) = args.iter().position(|arg| arg == "--").map(|at| args.split_at(at)) else {
        eprintln!("usage: record OUT.svg [--when TEXT KEYS]... -- COMMAND ARG...");
        return ExitCode::FAILURE;
    };
    let (Some(out), Some(program)) = (before.first(), command.get(1)) else {
        eprintln!("say where to and what is to be recorded");
        return ExitCode::FAILURE;
    };
    let whens = before[1..].chunks(3).filter(|when| when.len() == 3 && when[0] == "--when");
    let mut whens: Vec<(&str, &str)> = whens.map(|when| (when[1].as_str(), when[2].as_str())).collect();
    let rest: Vec<&str> = command[2..].iter().map(String::as_str).collect();
    let pictures = record(Path::new(program), &rest, &mut whens);
    if !whens.is_empty() {
        eprintln!("never seen: {whens:?}");
        return ExitCode::FAILURE;
    }
    match std::fs::write(out, svg(&pictures)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{out}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A screen, line by line as SVG, and when it was seen.
struct Picture {
    at: Duration,
    lines: Vec<String>,
}

fn record(program: &Path, args: &[&str], whens: &mut Vec<(&str, &str)>) -> Vec<Picture> {
    let variables: Vec<(String, String)> = std::env::vars().collect();
    let mut env: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (&**name, &**value)).collect();
    env.extend([("TERM", "xterm-256color"), ("LC_ALL", "C.UTF-8")]);
    let mut terminal = Pty::open(program, args, Path::new("."), &env, (WIDTH, HEIGHT));
    let (start, mut pictures) = (Instant::now(), Vec::<Picture>::new());
    let mut goes_on = true;
    while goes_on {
        goes_on = terminal.read();
        let at = start.elapsed();
        let soon = pictures.last().is_some_and(|last| at < last.at + BETWEEN);
        let asked = whens.first().filter(|(text, _)| terminal.seen().contains(text)).copied();
        if !soon || !goes_on || asked.is_some() {
            let lines = lines(terminal.screen.screen());
            if pictures.last().is_none_or(|last| last.lines != lines) {
                pictures.push(Picture { at, lines });
            }
        }
        if let Some((_, keys)) = asked {
            std::thread::sleep(THINKS);
            terminal.press(&keys.replace("\\r", "\r"));
            whens.remove(0);
        }
    }
    pictures
}

const CELL: (f64, f64) = (8.4, 18.0);

fn lines(screen: &vt100::Screen) -> Vec<String> {
    (0..HEIGHT).map(|row| line(screen, row)).collect()
}

/// One line as SVG: a piece for each look, at the column where it begins.
fn line(screen: &vt100::Screen, row: u16) -> String {
    let mut pieces: Vec<(u16, String, String)> = Vec::new();
    let mut is_joined = false;
    for column in 0..WIDTH {
        let Some(cell) = screen.cell(row, column).filter(|cell| cell.has_contents()) else {
            is_joined = false;
            continue;
        };
        let class = class(cell);
        match pieces.last_mut() {
            Some((_, last, text)) if is_joined && *last == class => text.push_str(cell.contents()),
            _ => pieces.push((column, class, cell.contents().to_owned())),
        }
        // A wide character may be drawn narrower than two cells: what follows gets a place of its own.
        is_joined = !cell.is_wide() && cell.contents().is_ascii();
    }
    pieces.retain(|(_, _, text)| !text.trim().is_empty());
    let mut svg = String::new();
    for (column, class, text) in pieces {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        // Writing to a string does not fail.
        let _ = write!(svg, "<tspan x=\"{:.1}\"{class}>{text}</tspan>", f64::from(column) * CELL.0);
    }
    svg
}

fn class(cell: &vt100::Cell) -> String {
    let colour = match cell.fgcolor() {
        vt100::Color::Idx(number @ 1..=6) => format!("c{number}"),
        _ => String::new(),
    };
    let weight = [(cell.bold(), "b"), (cell.dim(), "d")];
    let words = weight.into_iter().filter_map(|(is_so, word)| is_so.then_some(word.to_owned()));
    words.chain([colour]).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

const STYLE: &str = "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d8dee9;\
white-space:pre}.b{font-weight:bold}.d{opacity:.6}.c1{fill:#f07178}.c2{fill:#a3be8c}.c3{fill:#ebcb8b}.c4{fill:#81a1c1}\
.c5{fill:#b48ead}.c6{fill:#88c0d0}.p{visibility:hidden}.p:last-of-type{visibility:visible}";

fn svg(pictures: &[Picture]) -> String {
    let used = pictures.iter().flat_map(|picture| picture.lines.iter().rposition(|line| !line.is_empty()));
    let rows = used.max().map_or(1, |row| row + 1);
    let (width, height) = (f64::from(WIDTH) * CELL.0 + 32.0, rows as f64 * CELL.1 + 32.0);
    let total = pictures.last().map_or(LAST, |last| last.at + LAST).as_secs_f64();
    let percent = |at: Duration| at.as_secs_f64() / total * 100.0;
    // Lines that are seen more than once stand in the file once.
    let mut known: HashMap<&str, usize> = HashMap::new();
    let (mut styles, mut lines, mut frames) = (STYLE.to_owned(), String::new(), String::new());
    for (number, picture) in pictures.iter().enumerate() {
        let (from, until) =
            (percent(picture.at), pictures.get(number + 1).map_or(100.0, |next| percent(next.at)));
        let from = if number == 0 { 0.0 } else { from };
        // Writing to a string does not fail.
        let _ = write!(
            styles,
            "@keyframes k{number}{{0%{{visibility:hidden}}{from:.2}%{{visibility:visible}}{until:.2}%{{visibility:hidden}}}}\
             #p{number}{{animation:k{number} {total:.1}s step-end infinite}}"
        );
        let _ = write!(frames, "<g class=\"p\" id=\"p{number}\">");
        for (row, line) in picture.lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
            let fresh = known.len();
            let id = *known.entry(line).or_insert_with(|| {
                let _ = writeln!(lines, "<text id=\"l{fresh}\">{line}</text>");
                fresh
            });
            let y = (row as f64 + 0.8) * CELL.1;
            let _ = write!(frames, "<use href=\"#l{id}\" y=\"{y:.1}\"/>");
        }
        frames.push_str("</g>\n");
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\">\n\
         <style>{styles}</style>\n<defs>\n{lines}</defs>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#20242c\"/>\n\
         <g transform=\"translate(16 16)\">\n{frames}</g>\n</svg>\n"
    )
}
