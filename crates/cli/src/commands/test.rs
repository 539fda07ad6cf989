//! `windlass test`: executes the test cases of workflows and compares the results with their expectations.

use crate::answer::{Answer, Exit, Refused};
use crate::args;
use crate::cases::{self, Difference, Done, Tested};
use crate::replace::replace;
use crate::show::words::{clean, count, one_line};
use crate::show::{Screen, Screens, diagnostics};
use serde_json::{Value as Json, json};
use windlass_api::{Code, Refusal};
use windlass_ir::{Sources, Span};

pub fn run(args: &args::Test, screens: &Screens) -> Result<Answer, Refused> {
    let mut results = Vec::new();
    for path in &args.files {
        match cases::find(path) {
            Ok(files) => results.extend(files.into_iter().map(|file| {
                let mut tested = cases::run(&file)?;
                let updated = if args.update { update(&mut tested)? } else { false };
                Ok((tested, updated))
            })),
            Err(refusal) => results.push(Err(refusal.into())),
        }
    }
    // The JSON is a list if the arguments can name several files.
    let is_list = args.files.len() > 1 || args.files.iter().any(|file| file.is_dir());
    if !is_list && results.len() == 1 {
        let only =
            results.pop().unwrap_or_else(|| Err(Refusal::new(Code::Bug, "a result is missing").into()));
        results = vec![Ok(only?)];
    }
    let status = Exit::worst(results.iter().map(status_of));
    if args.json {
        let entries: Vec<Json> = results.iter().map(as_json).collect();
        return Ok(match entries.as_slice() {
            [only] if !is_list => Answer::json(status, only),
            several => Answer::json(status, &several),
        });
    }
    let tested: Vec<&Tested> = results.iter().flatten().map(|(tested, _)| tested).collect();
    let refused = results.iter().filter_map(|result| result.as_ref().err());
    let mut stderr: String = refused
        .map(|Refused { refusal, sources }| diagnostics::refusal(refusal, sources, &screens.stderr))
        .collect();
    for (file, _) in results.iter().flatten().filter(|(_, updated)| *updated) {
        stderr += &format!("updated: {}\n", clean(&file.file.display().to_string()));
    }
    Ok(Answer { stdout: page(&tested, &screens.stdout), stderr, status })
}

/// A file of test cases, and whether its expectations were replaced.
type Outcome = Result<(Tested, bool), Refused>;

fn status_of(result: &Outcome) -> Exit {
    match result {
        Err(refused) => refused.refusal.code.exit(),
        Ok((tested, _)) if counts(&[tested]).1 > 0 => Exit::Failed,
        Ok(_) => Exit::Done,
    }
}

/// Replaces expectations by the actual results, which then pass.
fn update(file: &mut Tested) -> Result<bool, Refusal> {
    let name = file.file.display().to_string();
    let failed = |why: &str| Refusal::new(Code::Unwritable, format!("cannot update {name}: {why}"));
    let Some(text) = cases::updated(file).map_err(|why| failed(&why))? else { return Ok(false) };
    replace(&file.file, text.as_bytes()).map_err(|error| failed(&error.to_string()))?;
    file.cases.iter_mut().for_each(|case| case.differences.clear());
    Ok(true)
}

fn page(tested: &[&Tested], screen: &Screen) -> String {
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
                text.extend(why(&case.seen).map(|why| format!("        {why}\n")));
                case.notices
                    .iter()
                    .for_each(|notice| text += &format!("        notice: {}\n", one_line(notice)));
            }
        }
    }
    let (passed, failed) = counts(tested);
    if passed + failed > 0 {
        text += &format!("{} passed, {failed} failed\n", count(passed, "case"));
    }
    text
}

/// Why the run of a case failed: the usual reason why its results differ.
fn why(seen: &Json) -> Option<String> {
    let error = seen["error"].as_object()?;
    let text = |name: &str| error.get(name).and_then(Json::as_str).filter(|text| !text.is_empty());
    let step = text("step").map(|step| format!(" in `{}`", one_line(step))).unwrap_or_default();
    let message = text("message").map(|message| format!(": {}", one_line(message))).unwrap_or_default();
    Some(format!("the run failed{step}: {}{message}", one_line(text("code").unwrap_or_default())))
}

fn shown(difference: &Difference, file: &Tested) -> String {
    let place = place(&file.sources, difference.place);
    let mut text = format!("        {place}: {}\n", one_line(&difference.at));
    if difference.span.is_some() {
        let value = |value: &Json| clean(&value.to_string()).into_owned();
        text += &format!("          expected: {}\n", value(&difference.expected));
        text += &format!("          actual:   {}\n", value(&difference.seen));
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

fn counts(tested: &[&Tested]) -> (usize, usize) {
    let cases: Vec<&Done> = tested.iter().flat_map(|file| &file.cases).collect();
    let passed = cases.iter().filter(|case| case.differences.is_empty()).count();
    (passed, cases.len() - passed)
}

fn as_json(result: &Outcome) -> Json {
    let (file, _) = match result {
        Ok(tested) => tested,
        Err(refused) => {
            let file = refused.refusal.diagnostics.first().and_then(|finding| finding.file.as_deref());
            return json!({"type": "refused", "file": file, "error": refused.refusal});
        }
    };
    let difference = |difference: &Difference| {
        let start = file.sources.start_of(difference.place);
        json!({
            "at": difference.at,
            "line": start.line,
            "column": start.column,
            "expected": difference.expected,
            "seen": difference.seen,
            "hint": difference.hint,
        })
    };
    let cases = file.cases.iter().map(|case| {
        json!({
            "name": case.name,
            "passed": case.differences.is_empty(),
            "differences": case.differences.iter().map(difference).collect::<Vec<_>>(),
            "result": case.seen,
        })
    });
    let (passed, failed) = counts(&[file]);
    json!({
        "file": file.file.display().to_string(),
        "passed": passed,
        "failed": failed,
        "cases": cases.collect::<Vec<_>>(),
    })
}
