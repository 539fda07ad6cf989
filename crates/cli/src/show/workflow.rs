//! Shows a workflow: its description, its parameters and its steps.

use super::Screen;
use super::fields::Fields;
use super::words::{clean, one_line};
use serde_json::{Value as Json, json};
use std::path::Path;
use windlass_ir::Plan;
use windlass_ir::expr::StepId;
use windlass_ir::workflow::{Parameter, RunInput};

pub fn render(plan: &Plan, file: Option<&Path>, screen: &Screen) -> String {
    let mut fields = Fields::default();
    fields.add("Workflow", one_line(&plan.header.title()));
    fields.add("Id", one_line(&plan.header.id));
    fields.add("About", plan.header.description.as_deref().map(one_line).unwrap_or_default());
    fields.add("Author", plan.header.author.as_deref().map(one_line).unwrap_or_default());
    fields.add("Tags", one_line(&plan.header.tags.join(", ")));
    fields.add("Dialect", &*plan.dialect);
    fields.add("File", file.map(|file| file.display().to_string()).unwrap_or_default());
    fields.add("Digest", plan.digest.short());
    fields.add_lines("Inputs", inputs(plan));
    let outputs: Vec<String> =
        plan.outputs.iter().map(|(name, output)| format!("{} ({})", one_line(name), output.ty)).collect();
    fields.add_lines("Outputs", outputs);
    let mut page = fields.render(0, screen) + "\n";
    steps(plan, &plan.roots, 1, screen, &mut page);
    page
}

fn inputs(plan: &Plan) -> Vec<String> {
    let declared = plan.parameters.iter().map(|(name, parameter)| input(name, parameter));
    let open = match &plan.input {
        RunInput::Declared => None,
        RunInput::Open(ty) => Some(format!("any value of type {ty}")),
    };
    let all: Vec<String> = open.into_iter().chain(declared).collect();
    if all.is_empty() { vec!["none".to_owned()] } else { all }
}

fn input(name: &str, parameter: &Parameter) -> String {
    let mut text = format!("{} ({}", one_line(name), parameter.ty);
    match (&parameter.default, parameter.required) {
        (Some(default), _) => text += &format!(", default {}", shown(default)),
        (None, true) => text += ", required",
        (None, false) => {}
    }
    if !parameter.choices.is_empty() {
        let choices: Vec<String> = parameter.choices.iter().map(shown).collect();
        text += &format!(", one of {}", choices.join(", "));
    }
    text.push(')');
    let about = parameter.description.as_deref().map(|about| format!("  {}", one_line(about)));
    text + &about.unwrap_or_default()
}

fn shown(value: &windlass_ir::Value) -> String {
    one_line(&value.to_json().unwrap_or_default().to_string())
}

fn steps(plan: &Plan, list: &[StepId], depth: usize, screen: &Screen, page: &mut String) {
    for id in list {
        let step = plan.step(*id);
        let inner: Vec<StepId> = step.kind.bodies().into_iter().flat_map(|(_, body)| body.clone()).collect();
        if step.implicit {
            steps(plan, &inner, depth, screen, page);
            continue;
        }
        let name = if step.name == step.id { String::new() } else { format!("  {}", one_line(&step.name)) };
        let needs: Vec<String> = step.needs.iter().map(|need| one_line(&plan.step(*need).id)).collect();
        let after = if needs.is_empty() { String::new() } else { format!("  after {}", needs.join(", ")) };
        let indent = depth * 2;
        let word = clean(&plan.step(plan.unguarded(*id)).word).into_owned();
        *page += &format!("{:indent$}{}  {word}{name}{after}\n", "", screen.bold(&clean(&step.id)));
        steps(plan, &inner, depth + 1, screen, page);
    }
}

pub fn as_json(plan: &Plan, file: Option<&Path>) -> Json {
    let names = plan.names();
    let inputs: serde_json::Map<String, Json> = plan
        .parameters
        .iter()
        .map(|(name, parameter)| {
            let about = json!({
                "type": parameter.ty.to_string(),
                "required": parameter.required,
                "default": parameter.default,
                "choices": parameter.choices,
                "description": parameter.description,
            });
            (name.to_string(), about)
        })
        .collect();
    let listed = (0u32..).map(StepId).zip(&plan.steps).filter(|(_, step)| !step.implicit);
    let steps: Vec<Json> = listed
        .map(|(id, step)| {
            let needs: Vec<&String> = step.needs.iter().map(|need| &names[need.index()]).collect();
            let inside = step.parent.map(|parent| &names[parent.index()]);
            let word = &plan.step(plan.unguarded(id)).word;
            json!({"id": names[id.index()], "name": step.name, "type": word, "description": step.description, "needs": needs, "inside": inside})
        })
        .collect();
    json!({
        "type": "workflow",
        "workflow": plan.header.id,
        "name": plan.header.name,
        "version": plan.header.version,
        "description": plan.header.description,
        "dialect": plan.dialect,
        "digest": plan.digest,
        "file": file.map(|file| file.display().to_string()),
        "inputs": inputs,
        "steps": steps,
    })
}
