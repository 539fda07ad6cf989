//! Findings as people read them: code, cause, the place in the file, the next action.

use super::Screen;
use super::excerpt::{Excerpt, LINE_MAX};
use super::words::{clean, count};
use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode, SourceSpan, ThemeCharacters, ThemeStyles,
};
use std::fmt;
use windlass_ir::{Diagnostic, Severity, Sources, Span};

/// What stands once below a list of findings.
pub const PAGES: &str = "more about a code: docs/errors/<code>.md\n";

/// Nobody reads more than this; programs get them all.
const SHOWN_MAX: usize = 1_000;
/// Places shown with one finding.
const LABELS_MAX: usize = 8;
const TAB_WIDTH: usize = 2;

/// All findings, each followed by an empty line. A finding without a place is about `file`, if that is given.
pub fn render(findings: &[Diagnostic], sources: &Sources, file: Option<&str>, screen: &Screen) -> String {
    let handler = handler(screen);
    let mut text = String::new();
    for finding in findings.iter().take(SHOWN_MAX) {
        let report = Report::new(finding, sources, file, line_max(screen));
        if handler.render_report(&mut text, &report).is_err() {
            // The drawing failed half-way; the words are what matters.
            text.push_str(&format!("\n{report}\n{}\n", finding.help));
        }
        text.push('\n');
    }
    match findings.len().checked_sub(SHOWN_MAX) {
        None | Some(0) => {}
        Some(more) => {
            text.push_str(&format!("... and {more} more; mend these first, or see all with --json\n\n"));
        }
    }
    text
}

/// `3 errors, 1 warning`; empty when there is nothing to count.
pub fn tally(findings: &[Diagnostic]) -> String {
    let words = [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Hint, "hint")];
    let counted =
        words.map(|(severity, word)| (findings.iter().filter(|f| f.severity == severity).count(), word));
    let parts: Vec<String> =
        counted.into_iter().filter(|(n, _)| *n > 0).map(|(n, word)| count(n, word)).collect();
    parts.join(", ")
}

/// Findings as programs read them. Those without a place say at least which file they are about.
pub fn to_json(findings: &[Diagnostic], sources: &Sources, file: Option<&str>) -> serde_json::Value {
    let to_json = |finding: &Diagnostic| {
        let mut json = finding.to_json(sources);
        if finding.span.is_none() {
            json["file"] = file.into();
        }
        json
    };
    findings.iter().map(to_json).collect()
}

fn handler(screen: &Screen) -> GraphicalReportHandler {
    let characters = if screen.unicode { ThemeCharacters::unicode() } else { ThemeCharacters::ascii() };
    let styles = if screen.colour { ThemeStyles::ansi() } else { ThemeStyles::none() };
    GraphicalReportHandler::new_themed(GraphicalTheme { characters, styles })
        .with_urls(false)
        .with_width(screen.width.map_or(usize::MAX, usize::from))
        .with_wrap_lines(screen.width.is_some())
        .with_break_words(false)
        .tab_width(TAB_WIDTH)
        .without_syntax_highlighting()
}

/// A line of source must fit beside its number, or the marks below it would point elsewhere.
fn line_max(screen: &Screen) -> usize {
    const NUMBER_AND_DOTS: usize = 16;
    screen.width.map_or(LINE_MAX, |width| usize::from(width).saturating_sub(NUMBER_AND_DOTS))
}

/// One finding in the form that the drawing library wants.
#[derive(Debug)]
struct Report {
    severity: Severity,
    code: String,
    message: String,
    help: String,
    excerpt: Option<Excerpt>,
    labels: Vec<LabeledSpan>,
}

impl Report {
    fn new(finding: &Diagnostic, sources: &Sources, file: Option<&str>, line_max: usize) -> Self {
        let word = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Hint => "hint",
        };
        // A file that is empty or could not be decoded has no line to show.
        let span = finding.span.filter(|span| !sources.get(span.source).text.is_empty());
        let file = finding.span.map(|span| &*sources.get(span.source).name).or(file);
        let message = match (span, file) {
            (None, Some(file)) => format!("{file}: {}", finding.message),
            (Some(_), _) | (None, None) => finding.message.clone(),
        };
        let (excerpt, labels) = span.map(|span| draw(finding, span, sources, line_max)).unzip();
        Self {
            severity: finding.severity,
            code: format!("{word}[{}]", finding.code),
            message: clean(&message).into_owned(),
            help: clean(&finding.help).into_owned(),
            excerpt,
            labels: labels.unwrap_or_default(),
        }
    }
}

/// The main place first, then those that have a few words of their own.
fn draw(finding: &Diagnostic, span: Span, sources: &Sources, line_max: usize) -> (Excerpt, Vec<LabeledSpan>) {
    let others = finding.labels.iter().filter(|label| !sources.get(label.span.source).text.is_empty());
    let others: Vec<_> = others.take(LABELS_MAX).collect();
    let spans: Vec<Span> = std::iter::once(span).chain(others.iter().map(|label| label.span)).collect();
    let (excerpt, places) = Excerpt::new(sources, &spans, line_max);
    let texts = std::iter::once(None).chain(others.iter().map(|label| Some(clean(&label.text).into_owned())));
    let label = |(place, text): (SourceSpan, Option<String>)| match text {
        None => LabeledSpan::new_primary_with_span(None, place),
        some => LabeledSpan::new_with_span(some, place),
    };
    (excerpt, places.into_iter().zip(texts).map(label).collect())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Report {}

impl miette::Diagnostic for Report {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
            Severity::Hint => miette::Severity::Advice,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        (!self.help.is_empty()).then(|| Box::new(&self.help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_ref().map(|excerpt| excerpt as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}
