//! The list of commands in `windlass --help`, in groups.

use clap::Command;

/// Every command belongs to one group.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Write", &["init", "list", "validate", "fmt", "plan", "graph", "convert", "eval", "schema", "test"]),
    ("Run", &["run", "resume", "retry", "wait", "serve"]),
    ("Inspect", &["runs", "show", "logs", "events", "diff"]),
    ("Act", &["approve", "reject", "signal", "publish", "pause", "cancel"]),
    ("Operate", &["limits", "budgets", "triggers", "tokens", "audit", "doctor", "gc", "backup"]),
    ("Other", &["explain", "completions", "specify"]),
];

const TEMPLATE: &str = "{about}\n\nUsage: {usage}\n\n{before-help}Options:\n{options}{after-help}";

/// The command line with its commands listed in groups.
pub fn grouped(command: Command) -> Command {
    let width = GROUPS.iter().flat_map(|(_, names)| names.iter()).map(|name| name.len()).max().unwrap_or(0);
    let line = |name: &str| {
        let about = command.find_subcommand(name).and_then(Command::get_about);
        about.map(|about| format!("  {name:width$}  {about}\n"))
    };
    let groups = GROUPS.iter().map(|(title, names)| {
        let lines: String = names.iter().filter_map(|name| line(name)).collect();
        format!("{title}:\n{lines}\n")
    });
    let list: String = groups.collect();
    command.before_help(list).help_template(TEMPLATE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;

    #[test]
    fn every_command_is_in_one_group() {
        let command = <Args as clap::CommandFactory>::command();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let mut known: Vec<&str> =
            command.get_subcommands().filter(|known| !known.is_hide_set()).map(Command::get_name).collect();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known);
    }
}
