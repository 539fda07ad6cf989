//! A text after edits. Nothing is stored: the caller decides what to do with the new text.

use super::source::{diagnostics, file};
use crate::code::Code;
use crate::operation::{About, Operation, Route, Stability, Subject};
use crate::perform::{Context, Perform};
use crate::refusal::Refusal;
use crate::types::{Change, Diagnostic, Edit, Edited, Ref, Target};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_dialects::convert::{Converted, to_swdl, to_syntax};
use windlass_dialects::fmt::{Formatted, format_file};
use windlass_dialects::text::Format;
use windlass_dialects::{Loaded, Options, Text};

/// Edit the text of a workflow. The edits apply in order, all or none.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EditWorkflow {
    #[serde(flatten)]
    pub of: Ref,
    pub edits: Vec<Edit>,
}

impl Operation for EditWorkflow {
    type Reply = Edited;
    const ABOUT: About = About {
        name: "workflows.edit",
        summary: "Edit the text of a workflow",
        subject: Subject::Workflow,
        errors: &[Code::BadEdit, Code::NotConvertible, Code::InvalidWorkflow],
        http: &[Route::post("/workflows/{id}/edit")],
        cli: &["fmt", "convert"],
        stability: Stability::Preview,
        ..About::PURE
    };

    fn example() -> Self {
        Self { of: super::sample(), edits: vec![Edit::Format] }
    }
}

impl Perform for EditWorkflow {
    async fn perform(self, cx: &Context) -> Result<Edited, Refusal> {
        let (of, _) = self.of.resolved(cx).await?;
        let before = of.source.clone().unwrap_or_default();
        let (mut text, mut options) = of.texts()?;
        let (mut warnings, mut comments_lost) = (Vec::new(), false);
        for edit in self.edits {
            match edit {
                Edit::Format => text.bytes = format(text.clone())?.into_bytes(),
                Edit::Convert { to } => {
                    let converted = convert(text.clone(), options, to)?;
                    warnings.extend(diagnostics(&converted.loaded));
                    comments_lost |= converted.comments_lost;
                    text = Text { name: renamed(&text.name, to), bytes: converted.text.into_bytes() };
                    // They are part of the new text, or do not apply to it.
                    options = Options::default();
                }
            }
        }
        let source = String::from_utf8(text.bytes).unwrap_or_default();
        Ok(Edited {
            changes: change(&before, &source).into_iter().collect(),
            etag: crate::library::etag(source.as_bytes()),
            source,
            diagnostics: warnings,
            comments_lost,
        })
    }
}

fn format(text: Text) -> Result<String, Refusal> {
    let Formatted { sources, text } = format_file(text);
    text.map_err(|findings| {
        let unfit = findings.iter().any(|finding| finding.code == windlass_ir::Code::NotFormatted);
        let code = if unfit { Code::BadEdit } else { Code::InvalidWorkflow };
        Refusal::found(code, Diagnostic::list(&findings, &sources, file(&sources).as_deref()))
    })
}

fn convert(text: Text, options: Options, to: Target) -> Result<Converted, Refusal> {
    let syntax = match to {
        Target::Swdl => None,
        Target::Json => Some(Format::Json),
        Target::Yaml => Some(Format::Yaml),
    };
    if syntax.is_some() && (options.overrides.is_some() || !options.overlays.is_empty()) {
        let message = "overrides and overlays cannot be converted together with a workflow";
        let help = "convert each file separately, or merge them by converting to swdl";
        return Err(Refusal::new(Code::BadEdit, message).help(help));
    }
    let converted = match syntax {
        None => to_swdl(text, options),
        Some(syntax) => to_syntax(text, options.dialect, syntax),
    };
    converted.map_err(|loaded| not_converted(&loaded))
}

fn not_converted(loaded: &Loaded) -> Refusal {
    let lossy = windlass_ir::Code::NotConvertible;
    let code = match loaded.diagnostics.iter().any(|finding| finding.code == lossy) {
        true => Code::NotConvertible,
        false => Code::InvalidWorkflow,
    };
    let refusal = Refusal::found(code, diagnostics(loaded));
    match refusal.diagnostics.iter().find(|finding| finding.code == lossy.as_str()) {
        Some(finding) => Refusal { message: finding.message.clone(), ..refusal },
        None => refusal,
    }
}

/// The name of the converted file, whose ending says how it is written.
fn renamed(name: &str, to: Target) -> String {
    let ending = match to {
        Target::Swdl | Target::Yaml => "yaml",
        Target::Json => "json",
    };
    match name.rsplit_once('.') {
        Some((stem, "yaml" | "yml" | "json")) => format!("{stem}.{ending}"),
        _ => name.to_owned(),
    }
}

/// The part of the text that differs, if any does.
fn change(before: &str, after: &str) -> Option<Change> {
    if before == after {
        return None;
    }
    let same = |(one, other): &(char, char)| one == other;
    let start: usize =
        before.chars().zip(after.chars()).take_while(same).map(|(letter, _)| letter.len_utf8()).sum();
    let (old, new) = (&before[start..], &after[start..]);
    let ends = old.chars().rev().zip(new.chars().rev());
    let end: usize = ends.take_while(same).map(|(letter, _)| letter.len_utf8()).sum();
    let units = |text: &str| text.encode_utf16().count();
    let from = units(&before[..start]);
    Some(Change {
        from,
        to: from + units(&old[..old.len() - end]),
        insert: new[..new.len() - end].to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_as_small_as_possible() {
        let check = |before: &str, after: &str, expected: Option<(usize, usize, &str)>| {
            let change = change(before, after);
            let seen = change.as_ref().map(|change| (change.from, change.to, change.insert.as_str()));
            assert_eq!(seen, expected, "{before:?} -> {after:?}");
        };
        check("a", "a", None);
        check("", "a", Some((0, 0, "a")));
        check("abc", "", Some((0, 3, "")));
        check("aXc", "aYYc", Some((1, 2, "YY")));
        check("aa", "aaa", Some((2, 2, "a")));
        check("𝄞é1", "𝄞é2", Some((3, 4, "2")));
    }
}
