//! `windlass schema`: what a kind of file looks like, for editors.

use crate::answer::{Answer, Status};
use crate::args::{self, Language};
use windlass_dialects::keys;

pub fn run(args: &args::Schema) -> Answer {
    Answer::json(Status::Done, &keys::schema(table(args.language), args.strict))
}

fn table(language: Language) -> &'static keys::Language {
    match language {
        Language::Swdl => &keys::SWDL,
        Language::Speckit => &keys::SPECKIT,
        Language::Dagnats => &keys::DAGNATS,
        Language::Dcc => &keys::DCC,
        Language::Schedules => &keys::SCHEDULES,
        Language::Cases => &keys::CASES,
    }
}
