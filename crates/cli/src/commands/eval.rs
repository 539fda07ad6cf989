//! `windlass eval`: one expression against values from a file.

use super::pure;
use crate::answer::{Answer, Exit, Refused};
use crate::args;
use crate::load;
use crate::show::{Screens, diagnostics};
use windlass_api::Code;
use windlass_api::operations::EvaluateExpression;
use windlass_ir::{Source, Sources};

pub fn run(args: args::Eval, screens: &Screens) -> Result<Answer, Refused> {
    let context = args.context.as_deref().map(load::object).transpose();
    let context = context.map_err(|refusal| Refused::from(refusal).instead_of_workflow(Code::BadRequest))?;
    let mut sources = Sources::default();
    sources.add(Source::new("expression", args.expression.as_str()));
    let request = EvaluateExpression {
        dialect: args.dialect.into(),
        expression: args.expression,
        context: context.and_then(|context| context.to_json()),
        condition: args.condition,
        strict: args.strict,
    };
    let evaluated = match pure(request) {
        Ok(evaluated) => evaluated,
        Err(refusal) => return Err(Refused { refusal: Box::new(refusal), sources }),
    };
    if args.json {
        return Ok(Answer::json(Exit::Done, &evaluated));
    }
    let stderr = diagnostics::explained(&evaluated.diagnostics, &sources, &screens.stderr);
    Ok(Answer { stdout: format!("{}\n", evaluated.value), stderr, status: Exit::Done })
}
