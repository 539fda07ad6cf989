//! `windlass list`: the workflows of a project.

use super::block_on;
use crate::answer::{Answer, Exit, Refused};
use crate::args;
use crate::named;
use crate::show::words::{one_line, shorten};
use crate::show::{Screen, Screens};
use std::path::{Path, PathBuf};
use windlass_api::operations::{ListWorkflows, WorkflowFilter};
use windlass_api::types::{Page, Workflow};
use windlass_api::{Caller, Code, Context, Refusal, admit};

pub fn run(args: args::List, screens: &Screens) -> Result<Answer, Refused> {
    let folders = match args.folders.is_empty() {
        true => named::folders(),
        false => existing(args.folders)?,
    };
    let filter = WorkflowFilter {
        query: args.query,
        tag: args.tags,
        dialect: args.dialect.map(Into::into),
        skill: args.skill,
    };
    let is_filtered = filter != WorkflowFilter::default();
    let items = all(&folders, &filter)?;
    if args.json {
        return Ok(Answer::json(Exit::Done, &Page { items, next: None }));
    }
    if items.is_empty() {
        let stderr = match is_filtered {
            true => "no matching workflows\n",
            false => "no workflows here; `windlass init` writes one\n",
        };
        return Ok(Answer { stderr: stderr.to_owned(), ..Answer::new(Exit::Done) });
    }
    Ok(Answer { stdout: table(&items, &screens.stdout), ..Answer::new(Exit::Done) })
}

fn existing(folders: Vec<PathBuf>) -> Result<Vec<PathBuf>, Refusal> {
    match folders.iter().find(|folder| !folder.is_dir()) {
        None => Ok(folders),
        Some(other) => {
            let refusal = Refusal::new(Code::Unreadable, format!("there is no folder {}", other.display()));
            Err(refusal.help("name a folder that contains workflows").field("workflows"))
        }
    }
}

/// All pages of the list.
fn all(folders: &[PathBuf], filter: &WorkflowFilter) -> Result<Vec<Workflow>, Refusal> {
    const PAGE: usize = 500;
    let context = Context::reading(Path::new(""), Caller::user("")).with_workflows(folders.to_vec());
    let (mut items, mut cursor) = (Vec::new(), None);
    loop {
        let request = ListWorkflows { filter: filter.clone(), limit: Some(PAGE), cursor };
        let page = block_on(admit(request, &context))?;
        items.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(items);
        }
    }
}

/// One line for each workflow: name, dialect, file, and what it is about or what is wrong with it.
fn table(items: &[Workflow], screen: &Screen) -> String {
    const ABOUT_MAX: usize = 100;
    let rows = items.iter().map(|item| {
        let file = item.file.as_deref().map(one_line).unwrap_or_default();
        let about = match (item.valid, item.diagnostics.first()) {
            (false, Some(finding)) => {
                let place = finding.line.map(|line| format!("line {line}: ")).unwrap_or_default();
                format!("invalid: {place}{}", finding.message)
            }
            (false, None) => "invalid".to_owned(),
            (true, _) => item.description.clone().unwrap_or_else(|| item.name.clone()),
        };
        let about = shorten(&one_line(&about), ABOUT_MAX).into_owned();
        [one_line(&item.full_name()), item.dialect.clone().unwrap_or_default(), file, about]
    });
    let rows: Vec<[String; 4]> = rows.collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let (name_width, dialect_width, file_width) = (width(0), width(1), width(2));
    let line = |[name, dialect, file, about]: &[String; 4]| {
        let gap = " ".repeat(name_width - name.chars().count());
        let text =
            format!("{}{gap}  {dialect:dialect_width$}  {file:file_width$}  {about}", screen.bold(name));
        text.trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}
