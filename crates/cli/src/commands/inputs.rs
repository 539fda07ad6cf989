//! Asking whoever sits at the terminal for what a workflow needs and was not given.

use crate::args;
use crate::load;
use crate::show::Screen;
use crate::show::live::question::about;
use crate::show::words::one_line;
use std::io::{BufRead, IsTerminal, Write};
use windlass_ir::Value;
use windlass_ir::expr::Semantics;
use windlass_ir::plan::Given;
use windlass_ir::workflow::Parameter;

/// The answers, to be taken as if they had been given with `-p`. None where nobody can be asked; whatever else is wrong is said
/// by whoever reads the workflow for good.
pub fn asked(what: &args::Plan, screen: &Screen) -> Vec<(String, String)> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Vec::new();
    }
    let (Ok(opened), Ok(file)) = (load::open(&what.file, &what.reading), file(what)) else {
        return Vec::new();
    };
    let given = |name: &str| {
        let in_file = matches!(&file, Some(Value::Map(map)) if map.contains_key(name));
        in_file || what.params.iter().any(|(given, _)| given == name)
    };
    // An input that is no object has no parts to be asked for.
    if file.as_ref().is_some_and(|file| !matches!(file, Value::Map(_))) {
        return Vec::new();
    }
    let (mut input, mut output) = (std::io::stdin().lock(), anstream::stderr().lock());
    let mut answers = Vec::new();
    for (name, parameter) in opened.plan.wanted(given) {
        match ask(&name, &parameter, &opened.plan.semantics, &mut input, &mut output, screen) {
            Some(answer) => answers.push((name.to_string(), answer)),
            None => break,
        }
    }
    answers
}

fn file(what: &args::Plan) -> Result<Option<Value>, load::Refusal> {
    what.input_file.as_deref().map(load::value).transpose()
}

/// Asks until the answer can be taken. None when there is no answer.
fn ask(
    name: &str,
    parameter: &Parameter,
    semantics: &Semantics,
    input: &mut impl BufRead,
    output: &mut impl Write,
    screen: &Screen,
) -> Option<String> {
    let description = parameter.description.as_deref().map(|text| format!(": {}", one_line(text)));
    let title = format!("{} ({})", screen.bold(&one_line(name)), about(parameter));
    writeln!(output, "{title}{}", description.unwrap_or_default()).ok()?;
    loop {
        write!(output, "> ").and_then(|()| output.flush()).ok()?;
        let mut line = String::new();
        if input.read_line(&mut line).ok()? == 0 {
            // The next line of the terminal is not to begin behind the question.
            writeln!(output).ok()?;
            return None;
        }
        let answer = line.trim_end_matches(['\n', '\r']).to_owned();
        let problem = match answer.trim().is_empty() {
            true => "it has to be given; Ctrl-D gives up".to_owned(),
            false => match parameter.accept(&Given::Text(answer.clone()), semantics) {
                Ok(_) => return Some(answer),
                Err(problem) => one_line(&problem),
            },
        };
        writeln!(output, "  {problem}").ok()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_ir::contract::Type;

    fn check(ty: Type, choices: &[&str], typed: &str, expected: Option<&str>, shown: &str) {
        let parameter = Parameter {
            ty,
            required: true,
            default: None,
            choices: choices.iter().map(|choice| Value::text(*choice)).collect(),
            description: Some("How\u{1b}[2J many".into()),
            span: Default::default(),
        };
        let mut output = Vec::new();
        let screen = Screen::default();
        let semantics = Semantics::HOUSE;
        let answer = ask("count", &parameter, &semantics, &mut typed.as_bytes(), &mut output, &screen);
        assert_eq!(answer.as_deref(), expected);
        assert_eq!(String::from_utf8_lossy(&output), shown);
    }

    #[test]
    fn a_bad_answer_is_asked_for_again() {
        check(
            Type::Integer,
            &[],
            "many\n\n3\n",
            Some("3"),
            "count (integer): How\u{fffd}[2J many\n>   `many` is not a whole number\n>   it has to be given; Ctrl-D gives up\n> ",
        );
        check(
            Type::String,
            &["small", "large"],
            "huge\nlarge",
            Some("large"),
            "count (small | large): How\u{fffd}[2J many\n>   `huge` is not one of `small`, `large`\n> ",
        );
    }

    #[test]
    fn whoever_has_no_answer_is_left_alone() {
        check(Type::Number, &[], "", None, "count (number): How\u{fffd}[2J many\n> \n");
    }
}
