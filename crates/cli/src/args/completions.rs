//! Shell completion.

use clap::ValueEnum;

/// Print a completion script for commands, run ids and workflows
#[derive(Debug, clap::Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
    /// Print JSON: the shell and the code
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    Powershell,
}

impl Shell {
    pub fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
            Self::Elvish => "elvish",
            Self::Powershell => "powershell",
        }
    }
}

const COMPLETIONS_EXAMPLES: &str = "\
EXAMPLES:
  echo 'source <(windlass completions bash)' >> ~/.bashrc
  echo 'source <(windlass completions zsh)' >> ~/.zshrc
  windlass completions fish > ~/.config/fish/completions/windlass.fish";
