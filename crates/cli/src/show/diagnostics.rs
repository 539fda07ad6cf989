//! Findings as text: code, cause, position and help.

use super::Screen;
use super::excerpt::{Excerpt, LINE_MAX};
use super::words::{clean, count};
use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode, SourceSpan, ThemeCharacters, ThemeStyles,
};
use std::fmt;
use windlass_api::types::{Diagnostic, Severity};
use windlass_api::{Place, Refusal};
use windlass_ir::source::Position;
use windlass_ir::{Sources, Span};

/// The line below a list of findings.
pub const PAGES: &str = "more about a code: windlass explain CODE\n";

/// The most findings to print; JSON contains all of them.
const SHOWN_MAX: usize = 1_000;
/// The most places to show for one finding.
const LABELS_MAX: usize = 8;
const TAB_WIDTH: usize = 2;

/// Findings of a reader, each followed by an empty line. A finding without a place refers to `file`, if it is set.
pub fn render(
    findings: &[windlass_ir::Diagnostic],
    sources: &Sources,
    file: Option<&str>,
    screen: &Screen,
) -> String {
    list(&Diagnostic::list(findings, sources, file), sources, screen)
}

/// Findings, each followed by an empty line, with excerpts from the texts in `sources`.
pub fn list(findings: &[Diagnostic], sources: &Sources, screen: &Screen) -> String {
    let handler = handler(screen);
    let mut text = String::new();
    for finding in findings.iter().take(SHOWN_MAX) {
        let report = Report::new(finding, sources, line_max(screen));
        if handler.render_report(&mut text, &report).is_err() {
            // If the drawing fails, print only the message.
            text.push_str(&format!("\n{report}\n{}\n", finding.help));
        }
        text.push('\n');
    }
    match findings.len().checked_sub(SHOWN_MAX) {
        None | Some(0) => {}
        Some(more) => {
            text.push_str(&format!("... and {more} more; fix these first, or list all with --json\n\n"));
        }
    }
    text
}

/// The same with a line about their codes; empty without findings.
pub fn explained(findings: &[Diagnostic], sources: &Sources, screen: &Screen) -> String {
    match findings {
        [] => String::new(),
        _ => list(findings, sources, screen) + PAGES,
    }
}

/// A refusal: the problem, its position, and help.
pub fn refusal(refusal: &Refusal, sources: &Sources, screen: &Screen) -> String {
    if !refusal.diagnostics.is_empty() {
        return explained(&refusal.diagnostics, sources, screen);
    }
    let code = screen.bold(&format!("error[{}]", refusal.code));
    let help = refusal.help.as_ref().map(|help| format!("help: {}\n", clean(help)));
    format!("{code}: {}\n{}", clean(&refusal.message), help.unwrap_or_default())
}

/// `3 errors, 1 warning`; empty without findings.
pub fn tally(findings: &[Diagnostic]) -> String {
    let words = [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Hint, "hint")];
    let counted =
        words.map(|(severity, word)| (findings.iter().filter(|f| f.severity == severity).count(), word));
    let parts: Vec<String> =
        counted.into_iter().filter(|(n, _)| *n > 0).map(|(n, word)| count(n, word)).collect();
    parts.join(", ")
}

fn handler(screen: &Screen) -> GraphicalReportHandler {
    let characters = if screen.unicode { ThemeCharacters::unicode() } else { ThemeCharacters::ascii() };
    let styles = if screen.color { ThemeStyles::ansi() } else { ThemeStyles::none() };
    GraphicalReportHandler::new_themed(GraphicalTheme { characters, styles })
        .with_urls(false)
        .with_width(screen.width.map_or(usize::MAX, usize::from))
        .with_wrap_lines(screen.width.is_some())
        .with_break_words(false)
        .tab_width(TAB_WIDTH)
        .without_syntax_highlighting()
}

/// The room for source text beside the line number. A wrapped line would misplace the marks below it.
fn line_max(screen: &Screen) -> usize {
    const NUMBER_AND_DOTS: usize = 16;
    screen.width.map_or(LINE_MAX, |width| usize::from(width).saturating_sub(NUMBER_AND_DOTS))
}

/// Converts a finding to the form that the drawing library expects.
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
    fn new(finding: &Diagnostic, sources: &Sources, line_max: usize) -> Self {
        let word = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Hint => "hint",
        };
        let span = finding.place().and_then(|place| span(&place, sources));
        let message = match (span, &finding.file) {
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

/// A place in the available texts. An empty or undecodable file has no line to show.
fn span(place: &Place, sources: &Sources) -> Option<Span> {
    let id = sources.named(&place.file)?;
    let source = sources.get(id);
    let offset =
        |line: u32, column: u32| source.offset(Position { line: line as usize, column: column as usize });
    let (start, end) = (offset(place.line, place.column), offset(place.end_line, place.end_column));
    (!source.text.is_empty()).then(|| Span::new(id, start, end))
}

/// The main place first, then the labeled ones.
fn draw(finding: &Diagnostic, main: Span, sources: &Sources, line_max: usize) -> (Excerpt, Vec<LabeledSpan>) {
    let others = finding.labels.iter().filter_map(|label| {
        let place = Place {
            file: label.file.clone(),
            line: label.line,
            column: label.column,
            end_line: label.end_line,
            end_column: label.end_column,
        };
        Some((span(&place, sources)?, clean(&label.message).into_owned()))
    });
    let others: Vec<(Span, String)> = others.take(LABELS_MAX).collect();
    let spans: Vec<Span> = std::iter::once(main).chain(others.iter().map(|(span, _)| *span)).collect();
    let (excerpt, places) = Excerpt::new(sources, &spans, line_max);
    let texts = std::iter::once(None).chain(others.into_iter().map(|(_, text)| Some(text)));
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
