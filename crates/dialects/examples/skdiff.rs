use std::io::BufRead;
use windlass_dialects::speckit::expr::*;
use windlass_ir::expr::*;
use windlass_ir::*;
fn show(v: &Value) -> String {
    match v {
        Value::Float(f) if !f.is_finite() => format!("{f}"),
        Value::List(i) => format!("[{}]", i.iter().map(show).collect::<Vec<_>>().join(",")),
        Value::Map(m) => format!(
            "{{{}}}",
            m.iter()
                .map(|(k, v)| format!("{}:{}", serde_json::to_string(&**k).unwrap(), show(v)))
                .collect::<Vec<_>>()
                .join(",")
        ),
        Value::Float(f) => format!("f{:016x}", f.to_bits()),
        v => serde_json::to_string(v).unwrap(),
    }
}
fn main() {
    let ctx: Value =
        serde_json::from_str(&std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap()).unwrap();
    let sc = scope(&ctx);
    let here = |r: std::ops::Range<usize>| Span::new(SourceId(0), r.start, r.end);
    for line in std::io::stdin().lock().lines() {
        let text: String = serde_json::from_str(&line.unwrap()).unwrap();
        let (t, d) = parse_template(&text, &here);
        let errs = d.iter().any(|d| d.is_error());
        let r = render(&t, &sc, &Semantics::SPECKIT, &Limits::default());
        if errs && r.is_ok() {
            println!("PARSE-ERROR-BUT-OK {text:?}");
            continue;
        }
        let s = match &r {
            Ok(v) => show(v),
            Err(_) => "ERR".into(),
        };
        let c = match &r {
            Ok(v) => holds(v, &Semantics::SPECKIT).unwrap().to_string(),
            Err(_) => "ERR".into(),
        };
        let (_, cd) = parse_condition(&text, &here);
        let k = cd
            .iter()
            .find(|d| d.code.as_str().starts_with("condition_"))
            .map(|d| format!("{}|{}", d.code, d.suggest.clone().unwrap_or_default()))
            .unwrap_or_default();
        println!("{}", serde_json::to_string(&(s, c, k)).unwrap());
    }
}
