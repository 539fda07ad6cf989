//! `windlass plan`: what a run would do, in which order and within which limits.

use crate::answer::{Answer, Status};
use crate::args;
use crate::load::{self, Opened, Refusal};
use crate::show::fields::Fields;
use crate::show::words::{one_line, shorten};
use crate::show::{Screen, Screens, diagnostics};
use indexmap::IndexMap;
use serde_json::Value as Json;
use windlass_ir::expr::Namespace;
use windlass_ir::plan::{Batch, Given, InputOutline, Origin, Outline, Parameters, StepOutline};
use windlass_ir::workflow::RunInput;
use windlass_ir::{Code, Diagnostic, Duration, Plan, Value};

pub fn run(args: args::PlanCommand, screens: &Screens) -> Answer {
    let json = args.json;
    let given = |_: &Plan, params: Vec<(String, String)>| {
        params.into_iter().map(|(name, text)| (name, Given::Text(text))).collect()
    };
    match prepare(args.what, given) {
        Ok((opened, parameters)) if json => as_json(&opened, &parameters, &screens.stderr),
        Ok((opened, parameters)) => as_text(&opened, &parameters, screens),
        Err(refusal) if json => refusal.answer_with_json(&screens.stderr),
        Err(refusal) => refusal.answer(&screens.stderr),
    }
}

/// A workflow with the values it would start with.
pub fn prepare(
    args: args::Plan,
    given: impl FnOnce(&Plan, Vec<(String, String)>) -> Vec<(String, Given)>,
) -> Result<(Opened, Parameters), Refusal> {
    let opened = load::open(&args.file, &args.reading)?;
    let texts = given(&opened.plan, args.params);
    let whole = match (&args.input_file, &opened.plan.input) {
        (Some(file), RunInput::Open(_)) => Some(load::value(file)?),
        (Some(file), RunInput::Declared) => Some(load::object(file)?),
        (None, _) => None,
    };
    let parameters = match whole {
        Some(whole @ Value::Map(_)) => {
            let given: IndexMap<String, Given> = entries(&whole).chain(texts).collect();
            opened.plan.parameters(&given, opened.words)
        }
        Some(whole) if texts.is_empty() => opened.plan.whole_input(whole, opened.words),
        Some(_) => return Err(not_both()),
        None => opened.plan.parameters(&texts.into_iter().collect(), opened.words),
    };
    match parameters {
        Ok(parameters) => Ok((opened, parameters)),
        Err(findings) => Err(Refusal { findings, ..Refusal::default() }),
    }
}

fn not_both() -> Refusal {
    let message = "the input file holds no object, so a single value cannot be put into it with `-p`";
    let finding = Diagnostic::error(Code::BadParameter, message).help("leave one of the two out");
    Refusal { findings: vec![finding], ..Refusal::default() }
}

fn entries(object: &Value) -> impl Iterator<Item = (String, Given)> {
    let entries = match object {
        Value::Map(map) => Some(map.iter()),
        _ => None,
    };
    entries.into_iter().flatten().map(|(name, value)| (name.to_string(), Given::Value(value.clone())))
}

fn as_json(opened: &Opened, parameters: &Parameters, screen: &Screen) -> Answer {
    let outline = opened.plan.outline(opened.words, parameters);
    let mut json = match serde_json::to_value(&outline) {
        Ok(json) => json,
        Err(error) => return Answer::bug(&error),
    };
    json["diagnostics"] = diagnostics::to_json(&opened.findings, &opened.sources, None);
    Answer { stderr: opened.note(screen), ..Answer::json(Status::Done, &json) }
}

fn as_text(opened: &Opened, parameters: &Parameters, screens: &Screens) -> Answer {
    let outline = opened.plan.outline(opened.words, parameters);
    let steps = (opened.words.namespace)(Namespace::Steps);
    let page = Page { outline: &outline, steps, screen: &screens.stdout };
    let mut stderr = diagnostics::render(&opened.findings, &opened.sources, None, &screens.stderr);
    if !stderr.is_empty() {
        stderr = format!("\n{stderr}{}", diagnostics::PAGES);
    }
    Answer { stdout: page.render(opened, parameters), stderr, status: Status::Done }
}

/// The plan as a page of text.
struct Page<'a> {
    outline: &'a Outline,
    /// The word for the namespace of steps.
    steps: &'static str,
    screen: &'a Screen,
}

/// Spaces before a batch, and what each level below adds.
const INDENT: usize = 2;

impl Page<'_> {
    fn render(&self, opened: &Opened, parameters: &Parameters) -> String {
        let mut text = self.header(opened, parameters);
        text.push_str("\nExecution plan:\n");
        for (number, batch) in (1usize..).zip(self.outline.labelled_batches()) {
            text.push_str(&format!("\n{:INDENT$}{}\n", "", self.screen.bold(&heading(number, &batch))));
            let mut first = true;
            for id in &batch.steps {
                if !std::mem::take(&mut first) {
                    text.push('\n');
                }
                self.step(id, "", 2 * INDENT, &mut text);
            }
        }
        text.push('\n');
        text + &self.footer()
    }

    fn header(&self, opened: &Opened, parameters: &Parameters) -> String {
        let header = &opened.plan.header;
        let mut fields = Fields::default();
        fields.add("Workflow", one_line(&header.title()));
        fields.add("About", header.description.as_deref().map(one_line).unwrap_or_default());
        fields.add("Author", header.author.as_deref().map(one_line).unwrap_or_default());
        fields.add("Tags", one_line(&header.tags.join(", ")));
        fields.add("Digest", opened.plan.digest.short());
        let given = parameters.values.iter().map(|(name, (value, origin))| {
            let about = opened.plan.parameters.get(name).and_then(|declared| declared.description.as_deref());
            let about = about.map(|about| format!("  {}", one_line(about))).unwrap_or_default();
            parameter(name, value, *origin) + &about
        });
        let given: Vec<String> = given.collect();
        fields.add_lines("Parameters", if given.is_empty() { vec!["none".to_owned()] } else { given });
        fields.add("Overrides", opened.overrides.as_deref().unwrap_or_default());
        fields.add("Documentation", opened.companions.documentation.as_deref().unwrap_or_default());
        fields.add_lines("Override templates", opened.companions.override_templates.clone());
        fields.render(0, self.screen)
    }

    fn step(&self, id: &str, remark: &str, indent: usize, text: &mut String) {
        let Some(step) = self.outline.steps.get(id) else { return };
        let name = one_line(&step.name);
        text.push_str(&format!("{:indent$}[{}] {name}{remark}\n", "", self.screen.bold(&one_line(id))));
        text.push_str(&self.fields(step).render(indent + INDENT, self.screen));
        let is_branch = step.labels.iter().any(|label| label == "branch");
        for (word, batches) in &step.bodies {
            let heading = one_line(&body_heading(word, is_branch));
            text.push_str(&format!("{:width$}{heading}:\n", "", width = indent + INDENT));
            for batch in batches {
                let remark = if batch.len() > 1 { " (parallel)" } else { "" };
                batch.iter().for_each(|inner| self.step(inner, remark, indent + 2 * INDENT, text));
            }
        }
    }

    fn fields(&self, step: &StepOutline) -> Fields {
        const RUNS_MAX: usize = 200;
        let mut fields = Fields::default();
        let runs = shorten(&one_line(&step.runs), RUNS_MAX).into_owned();
        match (&step.model, &step.gate) {
            (Some(model), _) => fields.add("Agent", format!("{runs} ({model})")),
            (None, Some(gate)) => gate_fields(&runs, gate, &mut fields),
            (None, None) => fields.add("Runs", runs),
        }
        let only = |label: &str| step.labels.iter().any(|own| own == label);
        fields.add(
            "Only",
            match (only("undoes"), only("on_failure")) {
                (true, _) => "to undo what was done, when the run fails",
                (false, true) => "to take over when another one fails",
                (false, false) => "",
            },
        );
        fields.add("Condition", step.condition.as_deref().map(one_line).unwrap_or_default());
        fields.add("Tools", step.tools.join(", "));
        fields.add_lines("Inputs", step.inputs.iter().map(|(name, input)| self.input(name, input)));
        fields.add_lines("Outputs", outputs(&step.outputs));
        fields.add("Context", context(step));
        fields.add("Timeout", step.timeout_seconds.map(duration).unwrap_or_default());
        fields.add(
            "Attempts",
            if step.attempts_max > 1 { format!("up to {}", step.attempts_max) } else { String::new() },
        );
        fields.add("On failure", on_failure(&step.on_failure));
        fields.add_lines("To undo it", step.compensate.iter().map(|line| one_line(line)));
        fields.add_lines("Afterwards", step.finally.iter().map(|line| one_line(line)));
        fields
    }

    fn input(&self, name: &str, input: &InputOutline) -> String {
        const SOURCE_MAX: usize = 120;
        match &input.source {
            Some(source) => {
                let source = one_line(source);
                let source = output_of(&source, self.steps).unwrap_or(source);
                format!("{name} <- {}", shorten(&source, SOURCE_MAX))
            }
            None => format!("{name} (not bound)"),
        }
    }

    fn footer(&self) -> String {
        let estimate = &self.outline.estimate;
        let work = format!("{} of work ({})", duration(estimate.agents_seconds), estimate.basis);
        let time = match estimate.gates_seconds {
            0.0 => work,
            gates => format!("{work}, plus up to {} at gates", duration(gates)),
        };
        let mut fields = Fields::default();
        fields.add("Estimated time", time);
        fields
            .add("Estimated cost", "no estimate of tokens or money is made: there is no history of runs yet");
        fields.render(0, self.screen)
    }
}

fn heading(number: usize, batch: &Batch) -> String {
    let after = (number > 1).then(|| format!("after batch {}", number - 1));
    let (order, rest) = batch.labels.split_first().unwrap_or((&"sequential", &[]));
    let words: Vec<&str> =
        std::iter::once(*order).chain(after.as_deref()).chain(rest.iter().copied()).collect();
    format!("Batch {number} ({})", words.join(", "))
}

/// What leads the steps of a scope in.
fn body_heading(word: &str, is_branch: bool) -> String {
    match word {
        "compensate" => "To undo it".to_owned(),
        "finally" => "In any case afterwards".to_owned(),
        "then" | "else" if is_branch => word.to_owned(),
        "default" if is_branch => "otherwise".to_owned(),
        case if is_branch => format!("case {case}"),
        branch if branch.starts_with("branch ") => format!("B{}", &branch[1..]),
        "branches" => "Side by side".to_owned(),
        "item" => "For each item".to_owned(),
        "round" => "Each round".to_owned(),
        _ => "Inside".to_owned(),
    }
}

fn parameter(name: &str, value: &Value, origin: Origin) -> String {
    const VALUE_MAX: usize = 80;
    let shown = match value {
        Value::Text(text) if !text.is_empty() && one_line(text) == **text => text.to_string(),
        other => other.to_json_text().unwrap_or_default(),
    };
    let shown = shorten(&shown, VALUE_MAX);
    match origin {
        Origin::Given => format!("{name}={shown}"),
        Origin::Default => format!("{name}={shown} (default)"),
        Origin::Absent => format!("{name} (not given)"),
    }
}

fn gate_fields(runs: &str, gate: &Json, fields: &mut Fields) {
    let on_timeout = gate["on_timeout"].as_str().unwrap_or_default();
    let form: Vec<&str> = gate["form"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    fields.add("Gate", format!("{runs}, on timeout {on_timeout}"));
    fields.add("Message", gate["message"].as_str().map(one_line).unwrap_or_default());
    fields.add("Asks for", form.join(", "));
}

fn outputs(outputs: &Json) -> Vec<String> {
    let entries = outputs.as_object().into_iter().flatten();
    let line = |(name, output): (&String, &Json)| {
        let optional = if output["required"] == true { "" } else { ", optional" };
        let default = match &output["default"] {
            Json::Null => String::new(),
            default => format!(", default {default}"),
        };
        format!("{name}: {}{optional}{default}", output["type"].as_str().unwrap_or_default())
    };
    entries.map(line).collect()
}

fn context(step: &StepOutline) -> String {
    let modules = step.context.modules.join(", ");
    match (step.context.memory_tokens, modules.is_empty()) {
        (None, _) => modules,
        (Some(tokens), true) => format!("{tokens} tokens memory"),
        (Some(tokens), false) => format!("{modules} + {tokens} tokens memory"),
    }
}

/// Stopping the run is what anyone expects and needs no line.
fn on_failure(policy: &Json) -> String {
    match policy {
        Json::String(word) if word != "halt" => word.clone(),
        Json::Object(goto) => {
            goto["goto"].as_str().map(|target| format!("goto {target}")).unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// `research.summary` for `stages.research.outputs.summary`; nothing when the source is more than such a path.
fn output_of(source: &str, steps: &str) -> Option<String> {
    let path = source.strip_prefix(steps)?.strip_prefix('.')?;
    let (step, output) = path.split_once(".outputs.")?;
    let is_path =
        |text: &str| text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '[' | ']'));
    (is_path(output) && is_path(step) && !step.contains(['.', '['])).then(|| format!("{step}.{output}"))
}

fn duration(seconds: f64) -> String {
    // The cast saturates; a longer time than that is none of this world.
    Duration((seconds * 1e6).round() as u64).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_of_a_step_is_named_shortly() {
        let check = |source: &str, expected: Option<&str>| {
            assert_eq!(output_of(source, "stages").as_deref(), expected);
        };
        check("stages.research.outputs.summary", Some("research.summary"));
        check("stages.pick-files.outputs.files[0].name", Some("pick-files.files[0].name"));
        check("stages.a.outputs.x == stages.b.outputs.y", None);
        check("stages.a.outputs.x || stages.b.outputs.y", None);
        check("stages.a.outputs", None);
        check("length(stages.a.outputs.x)", None);
        check("parameters.x", None);
    }

    #[test]
    fn parameters_show_where_they_come_from() {
        let check =
            |value: Value, origin, expected: &str| assert_eq!(parameter("p", &value, origin), expected);
        check(Value::text("main"), Origin::Given, "p=main");
        check(Value::text("main"), Origin::Default, "p=main (default)");
        check(Value::text(""), Origin::Given, "p=\"\"");
        check(Value::text("a\nb"), Origin::Given, "p=\"a\\nb\"");
        check(Value::list([Value::Int(1)]), Origin::Given, "p=[1]");
        check(Value::Null, Origin::Absent, "p (not given)");
        check(Value::text("x".repeat(99)), Origin::Given, &format!("p={}...", "x".repeat(77)));
    }
}
