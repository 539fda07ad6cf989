//! What a code means.

use crate::code::Code;
use crate::operation::{About, Operation, Route};
use crate::perform::{Context, Perform};
use crate::refusal::Refusal;
use rust_embed::RustEmbed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_ir::suggest::nearest;

/// The pages about codes, one for each.
#[derive(RustEmbed)]
#[folder = "../../docs/errors"]
struct Pages;

/// Explain a code: what happened, how to fix it, and the usual causes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetCode {
    pub code: String,
}

/// The page about a code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodePage {
    pub code: String,
    pub title: String,
    /// Markdown.
    pub text: String,
}

impl Operation for GetCode {
    type Reply = CodePage;
    const ABOUT: About = About {
        name: "codes.get",
        summary: "Explain a code",
        errors: &[Code::NoCode],
        http: &[Route::get("/codes/{code}")],
        cli: &["explain"],
        ..About::PURE
    };

    fn example() -> Self {
        Self { code: "no_run".into() }
    }
}

impl Perform for GetCode {
    async fn perform(self, _: &Context) -> Result<CodePage, Refusal> {
        // Some dialects write their codes with hyphens.
        let code = self.code.trim().to_lowercase().replace('-', "_");
        let renamed = RENAMED.iter().find(|(before, _)| *before == code);
        let code = renamed.map_or(code, |(_, now)| (*now).to_owned());
        let Some(page) = Pages::get(&format!("{code}.md")) else { return Err(unknown(&code)) };
        let text = String::from_utf8_lossy(&page.data).into_owned();
        let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(&code).to_owned();
        Ok(CodePage { code, title, text })
    }
}

/// Codes of earlier versions.
const RENAMED: [(&str, &str); 3] =
    [("bad_script", "bad_mock"), ("no_scripted_answer", "no_mock_response"), ("internal_error", "bug")];

fn unknown(code: &str) -> Refusal {
    let refusal = Refusal::new(Code::NoCode, format!("unknown code `{code}`"));
    let names = codes();
    match nearest(code, names.iter().map(String::as_str)) {
        Some(near) => refusal.help(format!("did you mean `{near}`?")),
        None => {
            refusal.help("a code appears in brackets after `error` or `warning`, such as `error[no_run]`")
        }
    }
}

/// Every code that has a page, in order.
pub fn codes() -> Vec<String> {
    let pages = Pages::iter().filter(|name| name != "README.md");
    let mut names: Vec<String> =
        pages.filter_map(|name| Some(name.strip_suffix(".md")?.to_owned())).collect();
    names.sort();
    names
}
