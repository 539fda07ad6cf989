//! Stages whose work is done by a command, a tool, a worker, a web server or another workflow.

use super::gate;
use super::shell_text::{Around, ShellText};
use super::table::{StepOf, Table, wrong_shape};
use crate::text::Kind;
use std::sync::Arc;
use windlass_ir::expr::{Expr, Function, Node, Piece, Template};
use windlass_ir::workflow::{
    Bound, Builtin, BuiltinKind, Call, CallMode, Http, HttpAuth, HttpBody, Interpreter, Planner, Rounds,
    Shell, ShellOutput, Task, Tool,
};
use windlass_ir::{Code, Diagnostic, Span, Value};

/// A placeholder for a missing required key, which has already been reported.
fn nothing(table: &Table<'_>, key: &str) -> Bound {
    let template = Template::Constant(Value::text(""));
    Bound { template, field: table.place.field(key).into(), span: table.span }
}

pub fn shell(stage: &Table<'_>) -> Shell {
    let run = stage.bound_text("run").unwrap_or_else(|| {
        stage.demand("run", "write the command: `run: \"make test\"`");
        nothing(stage, "run")
    });
    let shell = interpreter(stage).unwrap_or_else(|| usual_shell(&run, stage.context.foreign));
    Shell {
        run: command(stage, "run", run, shell.0.first().filter(|program| !is_posix(program))),
        shell,
        cwd: stage.bound_text("cwd"),
        stdin: stage.bound("stdin"),
        output: stage
            .word("output_format", &[("text", ShellOutput::Text), ("json", ShellOutput::Json)])
            .unwrap_or(ShellOutput::Text),
    }
}

/// The programs with a name of their own. Each stops at the first error, as far as it can.
pub const SHELLS: [(&str, &[&str]); 4] = [
    ("sh", &["sh", "-e", "-c"]),
    ("bash", &["bash", "-eo", "pipefail", "-c"]),
    ("python", &["python3", "-c"]),
    ("pwsh", &["pwsh", "-NoProfile", "-NonInteractive", "-Command"]),
];

/// Without a `shell`, a command of several lines stops at the first line that fails.
pub fn usual_shell(run: &Bound, foreign: bool) -> Interpreter {
    let strict = !foreign && run.template.has_lines();
    if strict { Interpreter::strict() } else { Interpreter::plain() }
}

/// A word, or a program with its arguments.
fn interpreter(stage: &Table<'_>) -> Option<Interpreter> {
    let node = stage.node("shell")?;
    match &node.kind {
        Kind::Scalar(_) => {
            let words = stage.word_or("shell", &SHELLS, &["[PROGRAM, ARGUMENT]"])?;
            Some(Interpreter::of(words))
        }
        Kind::List(items) if !items.is_empty() => Some(Interpreter(stage.plain_texts("shell"))),
        Kind::List(_) | Kind::Map(_) => {
            let finding =
                wrong_shape(node, "the name of a shell, or a list with a program and its arguments");
            stage.report(finding.step_of(&stage.place).field(stage.place.field("shell")));
            None
        }
    }
}

/// Whether a program reads its command as a POSIX shell does.
fn is_posix(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or_default();
    ["sh", "bash", "dash", "ash", "ksh", "zsh"].contains(&name)
}

/// A command: values are quoted for the shell, unless the author writes `raw(…)` around them. For another program, which
/// reads its own language, nothing can be quoted.
pub fn command(table: &Table<'_>, key: &str, run: Bound, program: Option<&Arc<str>>) -> Bound {
    let pieces = match run.template {
        Template::Text(pieces) => pieces,
        Template::Expression(expr) => vec![Piece::Expression(expr)],
        Template::Constant(_) | Template::List(_) | Template::Map(_) => return run,
    };
    let mut text = ShellText::default();
    let quoted = pieces.into_iter().map(|piece| match piece {
        Piece::Text(part) => {
            text.read(&part);
            Piece::Text(part)
        }
        Piece::Expression(expr) => {
            let around = if program.is_some() { Around::OtherLanguage } else { text.around() };
            text.expression();
            Piece::Expression(shell_quoted(expr, around).unwrap_or_else(|(expr, cause, help)| {
                table.report(table.error(Code::UnsafeQuoting, key, expr.span, cause).help(help));
                expr
            }))
        }
    });
    let template = Template::Text(quoted.collect());
    Bound { template, ..run }
}

/// The expression as one word for the shell, or why that is impossible.
fn shell_quoted(expr: Expr, around: Around) -> Result<Expr, (Expr, &'static str, &'static str)> {
    let span = expr.span;
    let literal = |quote: &str| Expr::new(Node::Literal(Value::text(quote)), span);
    let open = match around {
        _ if is_raw(&expr) => return Ok(expr),
        Around::Words => None,
        Around::SingleQuotes => Some(literal("'")),
        Around::DoubleQuotes => Some(literal("\"")),
        Around::Backslash => {
            let cause = "the backslash before this expression would remove its quoting";
            return Err((
                expr,
                cause,
                "remove the backslash, or write `raw(…)` to insert the value without quoting",
            ));
        }
        Around::Comment => {
            let cause = "this expression is in a comment, where a line break in its value would run the rest";
            return Err((expr, cause, "move it out of the comment"));
        }
        Around::Substitution => {
            let cause = "this expression is inside a shell substitution, where its value could run as code";
            return Err((
                expr,
                cause,
                "assign it to a variable first: `x=${{ … }}; y=$(cat \"$x\")`, or pass it through `env`",
            ));
        }
        Around::Tangled => {
            let cause = "the text before this expression is too complex to determine how the shell would read its value";
            return Err((
                expr,
                cause,
                "assign it to a variable at the start of the command, or pass it through `env`",
            ));
        }
        Around::OtherLanguage => {
            let cause = "this expression is in a script whose language has other quotes than a shell";
            return Err((
                expr,
                cause,
                "pass the value through `env` and read it there, or write `raw(…)` to insert it without quoting",
            ));
        }
        Around::HereDocument => {
            let cause = "this expression is in a here-document, where its value could run as code";
            return Err((
                expr,
                cause,
                "pass the value through `env` or `stdin`, or write `raw(…)` to insert it without quoting",
            ));
        }
    };
    let args = std::iter::once(expr).chain(open).collect();
    Ok(Expr::new(Node::Call { function: Function::ShellQuote, args }, span))
}

fn is_raw(expr: &Expr) -> bool {
    matches!(&expr.node, Node::Call { function: Function::Raw, args } if args.len() == 1)
}

pub fn tool(stage: &Table<'_>) -> Tool {
    let tool = stage.plain_text("tool").unwrap_or_else(|| {
        stage.demand("tool", "name the tool: `tool: search`");
        "".into()
    });
    Tool { tool, server: stage.plain_text("server"), args: stage.bound("args") }
}

pub fn task(stage: &Table<'_>) -> Task {
    let task = stage.plain_text("task").unwrap_or_else(|| {
        stage.demand("task", "name the task that workers subscribe to: `task: resize-image`");
        "".into()
    });
    Task {
        task,
        group: stage.plain_text("group"),
        input: stage.bound("input"),
        metadata: gate::texts(stage, "metadata"),
        capabilities: stage.plain_texts("capabilities"),
        rounds: stage.table("rounds").and_then(|table| rounds(&table)),
        planner: stage.table("planner").and_then(|table| planner(&table)),
    }
}

fn rounds(table: &Table<'_>) -> Option<Rounds> {
    let rounds_max = table.count("max");
    table.demand("max", "limit the rounds: `max: 10`");
    let (time_max, delay) = (table.duration("time"), table.duration("delay"));
    let (warn_at, force_at) = (table.count("warn_at"), table.count("force_at"));
    table.finish_all();
    Some(Rounds { rounds_max: rounds_max?, time_max, delay, warn_at, force_at })
}

fn planner(table: &Table<'_>) -> Option<Planner> {
    let steps_max = table.count("max_stages");
    table.demand("max_stages", "limit what a worker may add: `max_stages: 20`");
    let (depth_max, tasks_allowed) = (table.count("max_depth"), table.plain_texts("tasks"));
    table.finish_all();
    Some(Planner { steps_max: steps_max?, depth_max, tasks_allowed })
}

pub const CALL_MODES: [(&str, CallMode); 3] =
    [("child", CallMode::Child), ("detached", CallMode::Detached), ("inline", CallMode::Inline)];

/// `with` passes parameters by name, `input` the whole input.
pub fn call(stage: &Table<'_>) -> Call {
    let workflow = stage.bound_text("workflow").unwrap_or_else(|| {
        stage.demand("workflow", "name the workflow or its file: `workflow: release`");
        nothing(stage, "workflow")
    });
    let with = stage.table("with").and_then(|_| stage.bound("with"));
    let input = stage.bound("input");
    if with.is_some() && input.is_some() {
        let message = "`with` and `input` both set the input of the other workflow";
        let finding = stage.error(Code::ConflictingKeys, "input", stage.key_span("input"), message);
        stage.report(finding.help("keep one of the two"));
    }
    let mode = stage.word("mode", &CALL_MODES).unwrap_or(CallMode::Child);
    Call { workflow, input: with.or(input), mode }
}

/// A built-in function of Windlass.
pub fn builtin(stage: &Table<'_>) -> Builtin {
    let words = BuiltinKind::ALL.map(|kind| (kind.word(), kind));
    let what = stage.word("builtin", &words);
    stage.demand("builtin", "name the function: `builtin: respond`");
    Builtin { what: what.unwrap_or(BuiltinKind::Respond), args: stage.bindings("args") }
}

const METHODS: [(&str, &str); 7] = [
    ("GET", "GET"),
    ("POST", "POST"),
    ("PUT", "PUT"),
    ("PATCH", "PATCH"),
    ("DELETE", "DELETE"),
    ("HEAD", "HEAD"),
    ("OPTIONS", "OPTIONS"),
];

pub fn http(stage: &Table<'_>) -> Http {
    let Some(table) = stage.table("http") else {
        stage.demand("http", "write the URL: `http: {url: \"https://example.org\"}`");
        return request(nothing(stage, "http"), HttpBody::Empty);
    };
    let url = table.bound_text("url").unwrap_or_else(|| {
        table.demand("url", "write the URL: `url: \"https://example.org\"`");
        nothing(&table, "url")
    });
    let body = http_body(&table);
    let method = table.word("method", &METHODS);
    let default = if body == HttpBody::Empty { "GET" } else { "POST" };
    let request = Http {
        method: method.unwrap_or(default).into(),
        headers: table.bindings("headers"),
        query: table.bindings("query"),
        auth: http_auth(&table),
        expect: http_expect(&table),
        ..request(url, body)
    };
    table.finish_all();
    request
}

fn request(url: Bound, body: HttpBody) -> Http {
    let empty = indexmap::IndexMap::new;
    Http { method: "GET".into(), url, headers: empty(), query: empty(), body, auth: None, expect: Vec::new() }
}

/// At most one of `json`, `form` and `body`.
fn http_body(table: &Table<'_>) -> HttpBody {
    let json = table.bound("json").map(HttpBody::Json);
    let form = table.has("form").then(|| HttpBody::Form(table.bindings("form")));
    let text = table.bound_text("body").map(HttpBody::Text);
    table.known(&["form"]);
    let mut written = [("json", json), ("form", form), ("body", text)]
        .into_iter()
        .filter_map(|(key, body)| Some((key, body?)));
    let Some((first, body)) = written.next() else { return HttpBody::Empty };
    for (key, _) in written {
        let span = table.map.get(key).map_or(table.span, |entry| entry.key.span);
        let finding = table.error(
            Code::ConflictingKeys,
            key,
            span,
            format!("a request can only have one body, but `{first}` and `{key}` are both given"),
        );
        table.report(finding.help("keep one of `json`, `form` and `body`"));
    }
    body
}

/// `{bearer: TOKEN}` or `{basic: {user, password}}`.
fn http_auth(table: &Table<'_>) -> Option<HttpAuth> {
    let auth = table.table("auth")?;
    let bearer = auth.bound_text("bearer").map(HttpAuth::Bearer);
    let basic = auth.table("basic").and_then(|basic| {
        let (user, password) = (basic.bound_text("user"), basic.bound_text("password"));
        basic.finish_all();
        if user.is_none() || password.is_none() {
            basic.missing(if user.is_none() { "user" } else { "password" }, "set both `user` and `password`");
        }
        Some(HttpAuth::Basic { user: user?, password: password? })
    });
    auth.finish_all();
    if bearer.is_some() && basic.is_some() {
        let finding = auth.error(
            Code::ConflictingKeys,
            "basic",
            auth.key_span("basic"),
            "`bearer` and `basic` cannot both be sent",
        );
        auth.report(finding.help("keep one of the two"));
    }
    bearer.or(basic)
}

/// A status code or a list of them.
fn http_expect(table: &Table<'_>) -> Vec<u16> {
    let Some(node) = table.node("expect") else { return Vec::new() };
    let items = match &node.kind {
        Kind::List(items) => items.iter().collect(),
        Kind::Scalar(_) | Kind::Map(_) => vec![node],
    };
    items.into_iter().filter_map(|item| status(table, item)).collect()
}

fn status(table: &Table<'_>, node: &crate::text::Node) -> Option<u16> {
    let code = match node.to_value() {
        Value::Int(code @ 100..=599) => u16::try_from(code).ok(),
        _ => None,
    };
    if code.is_none() {
        table.report(bad_status(table, node, node.span));
    }
    code
}

fn bad_status(table: &Table<'_>, node: &crate::text::Node, span: Span) -> Diagnostic {
    match &node.kind {
        Kind::Scalar(scalar) => table
            .error(Code::BadNumber, "expect", span, format!("invalid status code `{}`", scalar.text))
            .help("use codes from 100 to 599, such as `expect: [200, 404]`"),
        Kind::List(_) | Kind::Map(_) => {
            wrong_shape(node, "a status code").step_of(&table.place).field(table.place.field("expect"))
        }
    }
}
