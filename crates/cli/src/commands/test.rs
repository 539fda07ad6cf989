//! `windlass test`: runs the cases beside workflows and says what was not as expected.

use crate::answer::{Answer, Status};
use crate::args;
use crate::cases::{self, Difference, Done, Tested};
use crate::load::Refusal;
use crate::replace::replace;
use crate::show::words::{clean, count, one_line};
use crate::show::{Screen, Screens, diagnostics};
use serde_json::{Value as Json, json};
use windlass_ir::{Sources, Span};

pub fn run(args: &args::Test, screens: &Screens) -> Answer {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return Answer {
                stderr: format!("error: cannot start: {error}\n"),
                ..Answer::new(Status::Refused)
            };
        }
    };
    let mut tested = Vec::new();
    let mut refusals = Vec::new();
    for path in &args.files {
        match cases::find(path) {
            Ok(files) => {
                for file in files {
                    match runtime.block_on(cases::run(&file)) {
                        Ok(done) => tested.push(done),
                        Err(refusal) => refusals.push(refusal),
                    }
                }
            }
            Err(refusal) => refusals.push(refusal),
        }
    }
    let updated = if args.update { write(&mut tested) } else { Ok(String::new()) };
    let (written, failed) = match updated {
        Ok(written) => (written, false),
        Err(why) => (why, true),
    };
    let status = match () {
        () if failed || !refusals.is_empty() => Status::Refused,
        () if tested.iter().any(|file| file.cases.iter().any(|case| !case.differences.is_empty())) => {
            Status::Failed
        }
        () => Status::Done,
    };
    let mut answer = match args.json {
        true => Answer::json(status, &as_json(&tested, &refusals)),
        false => Answer { stdout: page(&tested, &screens.stdout), ..Answer::new(status) },
    };
    answer.stderr =
        refusals.iter().map(|refusal| refusal.answer(&screens.stderr).stderr).collect::<String>() + &written;
    answer
}

/// Writes what was seen; what was written is met from now on.
fn write(tested: &mut [Tested]) -> Result<String, String> {
    let mut words = String::new();
    for file in tested {
        let name = file.file.display().to_string();
        let failed = |why: String| format!("error[refused]: {}: {why}\n", clean(&name));
        if let Some(text) = cases::updated(file).map_err(failed)? {
            replace(&file.file, text.as_bytes()).map_err(|error| failed(error.to_string()))?;
            file.cases.iter_mut().for_each(|case| case.differences.clear());
            words += &format!("updated: {}\n", clean(&name));
        }
    }
    Ok(words)
}

fn page(tested: &[Tested], screen: &Screen) -> String {
    let mut text = String::new();
    for file in tested {
        text += &format!("{}\n", screen.bold(&clean(&file.file.display().to_string())));
        for case in &file.cases {
            let word = if case.differences.is_empty() { "ok  " } else { "FAIL" };
            text += &format!("  {word}  {}\n", one_line(&case.name));
            for difference in &case.differences {
                text += &shown(difference, file);
            }
            if !case.differences.is_empty() {
                case.notices
                    .iter()
                    .for_each(|notice| text += &format!("        said: {}\n", one_line(notice)));
            }
        }
    }
    let (passed, failed) = counts(tested);
    if passed + failed > 0 {
        text += &format!("{} passed, {failed} failed\n", count(passed, "case"));
    }
    text
}

fn shown(difference: &Difference, file: &Tested) -> String {
    let place = place(&file.sources, difference.place);
    let mut text = format!("        {place}: {}\n", one_line(&difference.at));
    if difference.span.is_some() {
        let value = |value: &Json| clean(&value.to_string()).into_owned();
        text += &format!("          expected: {}\n", value(&difference.expected));
        text += &format!("          seen:     {}\n", value(&difference.seen));
    }
    if let Some(hint) = &difference.hint {
        text += &format!("          {}\n", one_line(hint));
    }
    text
}

fn place(sources: &Sources, span: Span) -> String {
    let start = sources.start_of(span);
    format!("{}:{}:{}", clean(&sources.get(span.source).name), start.line, start.column)
}

fn counts(tested: &[Tested]) -> (usize, usize) {
    let cases: Vec<&Done> = tested.iter().flat_map(|file| &file.cases).collect();
    let passed = cases.iter().filter(|case| case.differences.is_empty()).count();
    (passed, cases.len() - passed)
}

fn as_json(tested: &[Tested], refusals: &[Refusal]) -> Json {
    let difference = |sources: &Sources, difference: &Difference| {
        let start = sources.start_of(difference.place);
        json!({
            "at": difference.at,
            "line": start.line,
            "column": start.column,
            "expected": difference.expected,
            "seen": difference.seen,
            "hint": difference.hint,
        })
    };
    let files = tested.iter().map(|file| {
        let cases = file.cases.iter().map(|case| {
            let differences = case.differences.iter().map(|found| difference(&file.sources, found));
            json!({
                "name": case.name,
                "passed": case.differences.is_empty(),
                "differences": differences.collect::<Vec<_>>(),
                "result": case.seen,
            })
        });
        json!({"file": file.file.display().to_string(), "cases": cases.collect::<Vec<_>>()})
    });
    let findings = refusals
        .iter()
        .map(|refusal| diagnostics::to_json(&refusal.findings, &refusal.sources, refusal.file.as_deref()));
    let findings: Vec<Json> =
        findings.flat_map(|list| list.as_array().cloned().unwrap_or_default()).collect();
    let (passed, failed) = counts(tested);
    json!({"passed": passed, "failed": failed, "files": files.collect::<Vec<_>>(), "diagnostics": findings})
}
