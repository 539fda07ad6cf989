//! `windlass tokens`: who may use the HTTP API.

use super::call;
use crate::answer::{Answer, Exit, Refused};
use crate::args::TokenCommand;
use crate::show::Screen;
use crate::show::words::one_line;
use crate::{args, data};
use windlass_api::operations::{CreateToken, ListTokens, RevokeToken};
use windlass_api::types::Token;
use windlass_api::{Code, Refusal};
use windlass_ir::Duration;

pub fn run(args: args::Tokens, screen: &Screen) -> Result<Answer, Refused> {
    match args.command {
        TokenCommand::Create { name, roles, expires } => {
            let expires_in_seconds = expires.as_deref().map(seconds).transpose()?;
            let folder = data::folder(&args.data, None);
            let created = call(&folder, CreateToken { name, roles, expires_in_seconds })?;
            if args.json {
                return Ok(Answer::json(Exit::Done, &created));
            }
            let stderr = "keep this token: Windlass does not show it again\n".to_owned();
            let stdout = format!("{}\n", created.token.unwrap_or_default());
            Ok(Answer { stdout, stderr, ..Answer::new(Exit::Done) })
        }
        TokenCommand::List => {
            let page = call(&data::listed(&args.data), ListTokens { limit: Some(500), cursor: None })?;
            Ok(match args.json {
                true => Answer::json(Exit::Done, &page),
                false if page.items.is_empty() => {
                    Answer { stderr: "no tokens\n".into(), ..Answer::new(Exit::Done) }
                }
                false => {
                    let stdout = page.items.iter().map(|token| line(token, screen)).collect();
                    Answer { stdout, ..Answer::new(Exit::Done) }
                }
            })
        }
        TokenCommand::Revoke { token_id } => {
            let token = call(&data::existing(&args.data)?, RevokeToken { token_id })?;
            Ok(match args.json {
                true => Answer::json(Exit::Done, &token),
                false => {
                    let stderr = format!("revoked: {} ({})\n", token.token_id, one_line(&token.name));
                    Answer { stderr, ..Answer::new(Exit::Done) }
                }
            })
        }
    }
}

fn seconds(text: &str) -> Result<f64, Refusal> {
    let length = Duration::parse(text).ok_or_else(|| {
        let refusal = Refusal::new(Code::BadRequest, format!("invalid duration `{text}`")).field("expires");
        refusal.help("write a duration such as 30d")
    });
    Ok(length?.as_secs_f64())
}

fn line(token: &Token, screen: &Screen) -> String {
    let roles: Vec<String> = token.roles.iter().map(ToString::to_string).collect();
    let until = match (&token.revoked_at, &token.expires_at) {
        (Some(at), _) => format!("  revoked {}", day(at)),
        (None, Some(at)) => format!("  expires {}", day(at)),
        (None, None) => String::new(),
    };
    format!("{}  {}  {}{until}\n", token.token_id, screen.bold(&one_line(&token.name)), roles.join(", "))
}

fn day(at: &str) -> &str {
    at.get(..10).unwrap_or(at)
}
