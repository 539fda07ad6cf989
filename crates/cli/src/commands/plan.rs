//! `windlass plan`: what a run would do, in which order and within which limits.

use super::pure;
use crate::answer::{Answer, Exit, Refused};
use crate::args;
use crate::files::{self, Companions};
use crate::load::{self, Opened, Refusal};
use crate::show::fields::Fields;
use crate::show::words::{count, one_line, shorten};
use crate::show::{Screen, Screens, diagnostics};
use indexmap::IndexMap;
use serde_json::Value as Json;
use windlass_api::Code;
use windlass_api::operations::PlanWorkflow;
use windlass_api::types::{Origin, Plan as Reply};
use windlass_dialects::Dialect;
use windlass_ir::expr::Namespace;
use windlass_ir::plan::{Batch, Given, InputOutline, ItemsOutline, Outline, Parameters, StepOutline};
use windlass_ir::workflow::RunInput;
use windlass_ir::{Diagnostic, Duration, Plan, Value};

pub fn run(args: args::PlanCommand, screens: &Screens) -> Result<Answer, Refused> {
    let asked = load::ask(&args.what.file, &args.what.reading, true)?;
    let inputs = args.what.input_file.as_deref().map(load::value).transpose();
    let inputs = inputs.map_err(|refusal| Refused::from(refusal).instead_of_workflow(Code::BadParameter))?;
    let request = PlanWorkflow {
        of: asked.of.clone(),
        inputs: inputs.and_then(|inputs| inputs.to_json()),
        input_texts: args.what.params.into_iter().collect(),
    };
    let mut plan = match pure(request) {
        Ok(plan) => plan,
        Err(refusal) => return Err(asked.refused(refusal)),
    };
    let findings = std::mem::take(&mut plan.diagnostics);
    let (findings, overrides) = asked.sorted(&plan.outline.dialect, findings);
    plan.diagnostics = findings;
    if args.json {
        return Ok(Answer::json(Exit::Done, &plan));
    }
    let mut stderr = diagnostics::explained(&plan.diagnostics, &asked.sources, &screens.stderr);
    if !stderr.is_empty() {
        stderr.insert(0, '\n');
    }
    let page = Page {
        plan: &plan,
        steps: steps_word(&plan.outline.dialect),
        screen: &screens.stdout,
        overrides,
        companions: files::companions(asked.file()),
    };
    Ok(Answer { stdout: page.render(), stderr, status: Exit::Done })
}

/// The word for the namespace of steps in a dialect.
fn steps_word(dialect: &str) -> &'static str {
    let dialect = Dialect::by_name(dialect).unwrap_or(Dialect::Swdl);
    (dialect.words().namespace)(Namespace::Steps)
}

/// A workflow with its initial values.
pub fn prepare(
    args: args::Plan,
    given: impl FnOnce(&Plan, Vec<(String, String)>) -> Vec<(String, Given)>,
) -> Result<(Opened, Parameters), Refusal> {
    let opened = load::open_to_start(&args.file, &args.reading)?;
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
    let message = "the input file contains no object, so `-p` cannot set a single value in it";
    let finding =
        Diagnostic::error(windlass_ir::Code::BadParameter, message).help("leave one of the two out");
    Refusal { findings: vec![finding], ..Refusal::default() }
}

fn entries(object: &Value) -> impl Iterator<Item = (String, Given)> {
    let entries = match object {
        Value::Map(map) => Some(map.iter()),
        _ => None,
    };
    entries.into_iter().flatten().map(|(name, value)| (name.to_string(), Given::Value(value.clone())))
}

/// The plan as text.
struct Page<'a> {
    plan: &'a Reply,
    /// The word for the namespace of steps.
    steps: &'static str,
    screen: &'a Screen,
    overrides: Option<String>,
    companions: Companions,
}

/// Spaces before a batch, and the indent of each level below it.
const INDENT: usize = 2;

impl Page<'_> {
    fn outline(&self) -> &Outline {
        &self.plan.outline
    }

    fn render(&self) -> String {
        let mut text = self.header();
        text.push_str("\nExecution plan:\n");
        for (number, batch) in (1usize..).zip(self.outline().labelled_batches()) {
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

    fn header(&self) -> String {
        let outline = self.outline();
        let about = |key: &str| outline.workflow[key].as_str().map(one_line).unwrap_or_default();
        let title = match about("version").as_str() {
            "" => about("name"),
            version => format!("{} v{version}", about("name")),
        };
        let tags = outline.workflow["tags"].as_array().into_iter().flatten().filter_map(Json::as_str);
        let mut fields = Fields::default();
        fields.add("Workflow", title);
        fields.add("About", about("description"));
        fields.add("Author", about("author"));
        fields.add("Tags", one_line(&tags.collect::<Vec<_>>().join(", ")));
        fields.add("Digest", short(&outline.digest));
        let given: Vec<String> =
            self.plan.parameters_from.iter().map(|(name, from)| self.given(name, *from)).collect();
        fields.add_lines("Parameters", if given.is_empty() { vec!["none".to_owned()] } else { given });
        fields.add("Overrides", self.overrides.as_deref().unwrap_or_default());
        fields.add("Documentation", self.companions.documentation.as_deref().unwrap_or_default());
        fields.add_lines("Override templates", self.companions.override_templates.clone());
        fields.render(0, self.screen)
    }

    fn given(&self, name: &str, origin: Origin) -> String {
        let outline = self.outline();
        let about = outline.parameters_schema["properties"][name]["description"].as_str();
        let about = about.map(|about| format!("  {}", one_line(about))).unwrap_or_default();
        parameter(name, &outline.parameters[name], origin) + &about
    }

    fn step(&self, id: &str, remark: &str, indent: usize, text: &mut String) {
        let Some(step) = self.outline().steps.get(id) else { return };
        let name = match one_line(&step.name) {
            name if name == *id => String::new(),
            name => format!("  {name}"),
        };
        text.push_str(&format!("{:indent$}{}{name}{remark}\n", "", self.screen.bold(&one_line(id))));
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
        match (&step.model, &step.gate, &step.command) {
            (Some(model), _, _) => fields.add("Agent", format!("{runs} ({model})")),
            (None, Some(gate), _) => gate_fields(&runs, gate, &mut fields),
            (None, None, Some(command)) => fields.add_lines("Runs", block(command)),
            // The items and rounds below tell what runs.
            (None, None, None) if step.items.is_some() => {}
            (None, None, None) => fields.add("Runs", runs),
        }
        fields.add("Items", step.items.as_ref().map(items).unwrap_or_default());
        fields.add(
            "Delay",
            step.delay_seconds.map(|delay| format!("{} between rounds", duration(delay))).unwrap_or_default(),
        );
        let only = |label: &str| step.labels.iter().any(|own| own == label);
        fields.add(
            "Only",
            match (only("undoes"), only("on_failure")) {
                (true, _) => "to undo completed steps if the run fails",
                (false, true) => "to take over if another step fails",
                (false, false) => "",
            },
        );
        fields.add("Condition", step.condition.as_deref().map(one_line).unwrap_or_default());
        fields.add("Tools", step.tools.join(", "));
        fields.add_lines("Inputs", step.inputs.iter().map(|(name, input)| self.input(name, input)));
        fields.add_lines("Outputs", outputs(&step.outputs));
        fields.add("Context", context(step));
        fields.add("Timeout", step.timeout_seconds.map(duration).unwrap_or_default());
        fields.add("Attempts", if step.attempts_max > 1 { attempts(step) } else { String::new() });
        fields.add("On failure", on_failure(&step.on_failure));
        fields.add_lines("Compensation", step.compensate.iter().map(|line| one_line(line)));
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
        let outline = self.outline();
        let estimate = &outline.estimate;
        let mut fields = Fields::default();
        // A run that may take less than the sum of its steps makes the sum meaningless.
        let is_shorter = outline.timeout_seconds.is_some_and(|limit| limit < estimate.agents_seconds);
        if estimate.agents_seconds > 0.0 && !is_shorter {
            fields.add(
                "Time limits",
                format!("{} in sum ({})", duration(estimate.agents_seconds), estimate.basis),
            );
        }
        if estimate.gates_seconds > 0.0 {
            fields.add("At gates", format!("at most {}", duration(estimate.gates_seconds)));
        }
        fields.add(
            "Timeout",
            outline
                .timeout_seconds
                .map(|limit| format!("{} for the run", duration(limit)))
                .unwrap_or_default(),
        );
        fields.add_lines("At once", self.at_once());
        fields.render(0, self.screen)
    }

    /// The limits on what runs at a time, and where to change them.
    fn at_once(&self) -> Vec<String> {
        let limits = &self.outline().at_once;
        let agents = self.outline().steps.values().filter(|step| step.model.is_some()).count();
        let steps = steps_word(&self.outline().dialect);
        let lines = [
            limits.steps.map(|limit| format!("{limit} {steps} of a run")),
            limits
                .agents
                .filter(|_| agents > 0)
                .map(|limit| format!("{limit} agent {steps} of a run (config.concurrency.agents)")),
            limits.runs.map(|limit| format!("{limit} runs of this workflow")),
        ];
        lines.into_iter().flatten().collect()
    }
}

/// The lines of a command, as they are written.
fn block(command: &str) -> Vec<String> {
    const LINES_MAX: usize = 20;
    const LINE_MAX: usize = 200;
    let lines: Vec<&str> = command.lines().collect();
    let shown =
        lines.iter().take(LINES_MAX).map(|line| shorten(&line.replace('\t', "    "), LINE_MAX).into_owned());
    let left = lines.len().saturating_sub(LINES_MAX);
    let more = (left > 0).then(|| format!("... and {} more", count(left, "line")));
    shown.chain(more).collect()
}

/// `4, one for each of os × channel, 2 at once`.
fn items(items: &ItemsOutline) -> String {
    const OF_MAX: usize = 100;
    let of = shorten(&one_line(&items.of), OF_MAX).into_owned();
    let each = match items.count {
        Some(count) => format!("{count}, one for each of {of}"),
        None => format!("one for each of {of}"),
    };
    match items.at_once {
        Some(1) => format!("{each}, one after the other"),
        Some(at_once) => format!("{each}, {at_once} at once"),
        None => each,
    }
}

fn attempts(step: &StepOutline) -> String {
    let first = step.retry["initial_interval"].as_str().filter(|delay| *delay != "0ms" && *delay != "0s");
    let delay = first.map(|delay| format!(", the first retry after {delay}")).unwrap_or_default();
    format!("up to {}{delay}", step.attempts_max)
}

fn heading(number: usize, batch: &Batch) -> String {
    let after = (number > 1).then(|| format!("after batch {}", number - 1));
    let (order, rest) = batch.labels.split_first().unwrap_or((&"sequential", &[]));
    let words: Vec<&str> =
        std::iter::once(*order).chain(after.as_deref()).chain(rest.iter().copied()).collect();
    format!("Batch {number} ({})", words.join(", "))
}

/// The heading of the steps in a scope.
fn body_heading(word: &str, is_branch: bool) -> String {
    match word {
        "compensate" => "Compensation".to_owned(),
        "finally" => "Finally".to_owned(),
        "then" | "else" if is_branch => word.to_owned(),
        "default" if is_branch => "otherwise".to_owned(),
        case if is_branch => format!("case {case}"),
        branch if branch.starts_with("branch ") => format!("B{}", &branch[1..]),
        "branches" => "In parallel".to_owned(),
        "item" => "For each item".to_owned(),
        "round" => "Each round".to_owned(),
        _ => "Inside".to_owned(),
    }
}

fn parameter(name: &str, value: &Json, origin: Origin) -> String {
    const VALUE_MAX: usize = 80;
    let shown = match value {
        Json::String(text) if !text.is_empty() && one_line(text) == *text => text.clone(),
        other => other.to_string(),
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

/// Stopping the run is the default and needs no line.
fn on_failure(policy: &Json) -> String {
    match policy {
        Json::String(word) if word != "halt" => word.clone(),
        Json::Object(goto) => {
            goto["goto"].as_str().map(|target| format!("goto {target}")).unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// `research.summary` for `stages.research.outputs.summary`; none if the source is more than such a path.
fn output_of(source: &str, steps: &str) -> Option<String> {
    let path = source.strip_prefix(steps)?.strip_prefix('.')?;
    let (step, output) = path.split_once(".outputs.")?;
    let is_path =
        |text: &str| text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '[' | ']'));
    (is_path(output) && is_path(step) && !step.contains(['.', '['])).then(|| format!("{step}.{output}"))
}

/// The beginning of a digest, which is enough to distinguish plans.
fn short(digest: &str) -> &str {
    const LENGTH: usize = 12;
    let hex = digest.rsplit(':').next().unwrap_or(digest);
    hex.get(..LENGTH).unwrap_or(hex)
}

fn duration(seconds: f64) -> String {
    // The cast saturates, far beyond any realistic duration.
    Duration((seconds * 1e6).round() as u64).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_of_steps_have_short_names() {
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
            |value: Json, origin, expected: &str| assert_eq!(parameter("p", &value, origin), expected);
        check(Json::from("main"), Origin::Given, "p=main");
        check(Json::from("main"), Origin::Default, "p=main (default)");
        check(Json::from(""), Origin::Given, "p=\"\"");
        check(Json::from("a\nb"), Origin::Given, "p=\"a\\nb\"");
        check(Json::from([Json::from(1)]), Origin::Given, "p=[1]");
        check(Json::Null, Origin::Absent, "p (not given)");
        check(Json::from("x".repeat(99)), Origin::Given, &format!("p={}...", "x".repeat(77)));
    }
}
