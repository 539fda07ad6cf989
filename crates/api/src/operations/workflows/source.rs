//! From the texts in a request, or the name of a workflow, to a plan.

use crate::code::Code;
use crate::library::{Entry, Library, Lookup, ambiguous};
use crate::perform::{Context, off_thread};
use crate::refusal::Refusal;
use crate::types::{Diagnostic, Dialect, NamedText, Ref};
use std::path::PathBuf;
use windlass_dialects::{Loaded, Options, Text, harden_for_start};
use windlass_ir::workflow::Words;
use windlass_ir::{Plan, Sources};

/// The name of a text that has none. Its syntax is found by looking at it.
const NAMELESS: &str = "-";

/// A valid workflow.
#[derive(Debug)]
pub struct Opened {
    pub plan: Plan,
    pub words: &'static Words,
    pub loaded: Loaded,
}

impl Opened {
    /// Warnings and hints.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        diagnostics(&self.loaded)
    }
}

impl Ref {
    /// The same with a text. If the request has none, the library is searched for the name; the entry found there is returned
    /// too.
    pub async fn resolved(self, cx: &Context) -> Result<(Self, Option<Entry>), Refusal> {
        if self.source.is_some() || self.workflow == NAMELESS {
            return Ok((self, None));
        }
        let folders = cx.workflow_folders().to_vec();
        off_thread(move || {
            let entry = found(&folders, &self.workflow)?;
            let (text, overrides, overlays) = entry.texts()?;
            let of = Self {
                source: Some(text.text),
                file: Some(text.name),
                overrides: self.overrides.or(overrides),
                overlays: overlays.into_iter().chain(self.overlays).collect(),
                ..self
            };
            Ok((of, Some(entry)))
        })
        .await
    }

    /// The text of the workflow and what belongs to it.
    pub fn texts(self) -> Result<(Text, Options), Refusal> {
        let Some(source) = self.source else {
            let refusal = Refusal::new(Code::NoWorkflow, "the request has no text of a workflow");
            return Err(refusal.help("send it as `source`, or name a workflow").field("workflow"));
        };
        let name = self.file.unwrap_or_else(|| NAMELESS.to_owned());
        let options = Options {
            dialect: self.dialect.map(Into::into),
            overrides: self.overrides.map(Into::into),
            overlays: self.overlays.into_iter().map(Into::into).collect(),
            raises_late: false,
        };
        Ok((Text { name, bytes: source.into_bytes() }, options))
    }

    pub fn load(self) -> Result<Loaded, Refusal> {
        let (text, options) = self.texts()?;
        Ok(windlass_dialects::load(text, options))
    }

    /// Loads a workflow and refuses an invalid one.
    pub fn open(self) -> Result<Opened, Refusal> {
        let mut loaded = self.load()?;
        match loaded.plan.take() {
            Some(plan) => Ok(Opened { plan, words: loaded.words, loaded }),
            None => Err(invalid(&loaded)),
        }
    }

    /// The same for a run, which is refused if a step would run before a gate by mistake.
    pub fn open_to_start(self) -> Result<Opened, Refusal> {
        let mut opened = self.open()?;
        match harden_for_start(&opened.plan, opened.words, &mut opened.loaded.diagnostics) {
            true => Err(invalid(&opened.loaded)),
            false => Ok(opened),
        }
    }
}

/// The only workflow with a name.
fn found(folders: &[PathBuf], name: &str) -> Result<Entry, Refusal> {
    let mut library = Library::about(folders, name);
    let file = match library.find(name) {
        Lookup::Found(entry) => entry.file.clone(),
        Lookup::Ambiguous(entries) => return Err(ambiguous(name, &entries)),
        Lookup::Missing => return Err(Library::scan(folders).missing(name)),
    };
    let place = library.entries.iter().position(|entry| entry.file == file);
    place.map(|place| library.entries.swap_remove(place)).ok_or_else(|| library.missing(name))
}

impl From<NamedText> for Text {
    fn from(text: NamedText) -> Self {
        Self { name: text.name, bytes: text.text.into_bytes() }
    }
}

impl From<Dialect> for windlass_dialects::Dialect {
    fn from(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Swdl => Self::Swdl,
            Dialect::Speckit => Self::Speckit,
            Dialect::Dagnats => Self::Dagnats,
            Dialect::Dcc => Self::Dcc,
        }
    }
}

pub fn diagnostics(loaded: &Loaded) -> Vec<Diagnostic> {
    Diagnostic::list(&loaded.diagnostics, &loaded.sources, file(&loaded.sources).as_deref())
}

pub fn invalid(loaded: &Loaded) -> Refusal {
    Refusal::found(Code::InvalidWorkflow, diagnostics(loaded))
}

/// The first file, which findings without a place are about.
pub fn file(sources: &Sources) -> Option<String> {
    sources.iter().next().map(|source| source.name.to_string())
}
