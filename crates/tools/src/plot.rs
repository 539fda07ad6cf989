//! Draws the measured throughput of several engines as an SVG that is readable on light and dark pages.

use serde_json::Value as Json;
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 90.0;
const TOP: f64 = 74.0;
const ROW: f64 = 34.0;
const BAR: f64 = 20.0;

/// How an engine runs, as `bench/peers.json` says it, and the class of its bars.
const KINDS: [(&str, &str); 3] =
    [("in the caller's process", "k0"), ("behind a server", "k1"), ("as processes of its own", "k2")];

const STYLE: &str = "\
.bg{fill:#fff;stroke:#d0d7de}text{font:14px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1f2328}.h{font-weight:600}\
.s{font-size:12px;fill:#59636e}.k0{fill:#0969da}.k1{fill:#bf8700}.k2{fill:#8250df}\
@media (prefers-color-scheme:dark){.bg{fill:#0d1117;stroke:#30363d}text{fill:#f0f6fc}.s{fill:#9198a1}.k0{fill:#4493f8}\
.k1{fill:#d29922}.k2{fill:#ab7df8}}";

/// The picture, or what is wrong with the figures.
pub fn steps_per_second(figures: &str) -> Result<String, String> {
    let figures: Json = serde_json::from_str(figures).map_err(|error| error.to_string())?;
    let engines = figures["engines"].as_array().ok_or("`engines` is not a list")?;
    let rows: Vec<(&str, &str, f64)> = engines.iter().map(row).collect::<Result<_, _>>()?;
    let most = rows.iter().map(|row| row.2).fold(0.0, f64::max);
    let height = TOP + ROW * rows.len() as f64 + 44.0;
    let mut bars = String::new();
    for (number, (name, class, steps)) in rows.iter().enumerate() {
        let y = TOP + ROW * number as f64;
        let (width, text) = (steps / most * (WIDTH - LEFT - RIGHT), y + BAR - 5.0);
        // Writing to a string does not fail.
        let _ = write!(
            bars,
            "<text x=\"{:.0}\" y=\"{text:.0}\" text-anchor=\"end\">{name}</text>\n\
             <rect class=\"{class}\" x=\"{LEFT:.0}\" y=\"{y:.0}\" width=\"{width:.1}\" height=\"{BAR:.0}\" rx=\"3\"/>\n\
             <text x=\"{:.1}\" y=\"{text:.0}\">{}</text>\n",
            LEFT - 12.0,
            LEFT + width + 8.0,
            thousands(*steps),
        );
    }
    let mut x = LEFT;
    for (kind, class) in KINDS {
        let y = height - 20.0;
        let _ = write!(
            bars,
            "<rect class=\"{class}\" x=\"{x:.0}\" y=\"{:.0}\" width=\"11\" height=\"11\" rx=\"2\"/>\n\
             <text class=\"s\" x=\"{:.0}\" y=\"{y:.0}\">{kind}</text>\n",
            y - 10.0,
            x + 17.0,
        );
        x += 165.0;
    }
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" role=\"img\">\n\
         <title>Durable steps per second of five engines</title>\n<style>{STYLE}</style>\n\
         <rect class=\"bg\" x=\"0.5\" y=\"0.5\" width=\"{:.0}\" height=\"{:.0}\" rx=\"8\"/>\n\
         <text class=\"h\" x=\"20\" y=\"32\">Durable steps per second</text>\n\
         <text class=\"s\" x=\"20\" y=\"52\">one run of sequential steps, each flushed to disk</text>\n{bars}</svg>\n",
        WIDTH - 1.0,
        height - 1.0,
    ))
}

fn row(engine: &Json) -> Result<(&str, &'static str, f64), String> {
    let text = |key: &str| engine[key].as_str().ok_or(format!("`{key}` is missing: {engine}"));
    let (name, runs) = (text("name")?, text("runs")?);
    let class =
        KINDS.iter().find(|kind| kind.0 == runs).ok_or(format!("`{runs}` is not a known way to run"))?.1;
    let steps = engine["seq_steps_per_s"].as_f64().filter(|steps| *steps > 0.0);
    Ok((name, class, steps.ok_or(format!("`seq_steps_per_s` of {name} is not a number above 0"))?))
}

/// `4,169`.
fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let (head, tail) = digits.split_at(digits.len().saturating_sub(3));
    if head.is_empty() { tail.to_owned() } else { format!("{head},{tail}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_become_bars_and_mistakes_are_named() {
        let engine = |runs: &str| {
            format!(r#"{{"engines": [{{"name": "A", "runs": "{runs}", "seq_steps_per_s": 4168.9}}]}}"#)
        };
        let svg = steps_per_second(&engine("behind a server")).expect("good figures");
        assert!(svg.contains(">A</text>") && svg.contains(">4,169</text>"), "{svg}");
        assert!(steps_per_second(&engine("anywhere")).is_err_and(|why| why.contains("anywhere")));
        assert!(steps_per_second("{}").is_err_and(|why| why.contains("engines")));
    }
}
