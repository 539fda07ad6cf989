//! Asks the user on the terminal for missing parameters.

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

/// The answers, in the form of `-p` options. Empty without a terminal. Loading the workflow later reports all other problems.
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
    // An input that is not an object has no parameters.
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

/// Asks until the answer is valid. None at the end of the input.
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
            // Move the cursor below the question.
            writeln!(output).ok()?;
            return None;
        }
        let answer = line.trim_end_matches(['\n', '\r']).to_owned();
        let problem = match answer.trim().is_empty() {
            true => "a value is required; Ctrl-D gives up".to_owned(),
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
    fn a_bad_answer_repeats_the_question() {
        check(
            Type::Integer,
            &[],
            "many\n\n3\n",
            Some("3"),
            "count (integer): How\u{fffd}[2J many\n>   `many` is not a whole number\n>   a value is required; Ctrl-D gives up\n> ",
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
    fn end_of_input_stops_the_questions() {
        check(Type::Number, &[], "", None, "count (number): How\u{fffd}[2J many\n> \n");
    }
}
