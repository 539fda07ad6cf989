//! Access tokens: who may call operations over HTTP, and as whom. Only a digest of each token is kept.

use crate::code::Code;
use crate::operation::{About, Operation, Role, Route};
use crate::operations::runs::instant;
use crate::perform::{Caller, Context, Cursor, Perform, limit};
use crate::refusal::Refusal;
use crate::types::{Face, NewToken, Page, Token};
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windlass_runtime::{Clock, Engine, Entry, Timestamp};

/// The documents of the ledger that keep tokens.
const TOKENS: &str = "token";
/// What every token begins with, so that people and scanners recognize one.
const PREFIX: &str = "wl_";
const NAME_CHARACTERS_MAX: usize = 64;
const EXPIRES_SECONDS_MAX: f64 = 10.0 * 365.0 * 86_400.0;

/// A token as the ledger keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    about: Token,
    /// Of the whole text.
    digest: String,
}

/// List the access tokens, without their texts.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ListTokens {
    /// The most items of a page: 1 to 500, 50 by default.
    pub limit: Option<usize>,
    /// Where the page begins: `next` of the page before.
    pub cursor: Option<String>,
}

impl Operation for ListTokens {
    type Reply = Page<Token>;
    const ABOUT: About = About {
        name: "tokens.list",
        summary: "List access tokens, without their texts",
        role: Role::Admin,
        errors: &[Code::BadCursor],
        http: &[Route::get("/tokens")],
        cli: &["tokens list"],
        ..About::READS
    };

    fn example() -> Self {
        Self { limit: Some(10), cursor: None }
    }
}

impl Perform for ListTokens {
    async fn perform(self, cx: &Context) -> Result<Page<Token>, Refusal> {
        let limit = limit(self.limit)?;
        let after = self.cursor.map(|text| Cursor::read(&text, &TOKENS)).transpose()?.map(|cursor| cursor.id);
        let empty = Page { items: Vec::new(), next: None };
        cx.read_or(empty, move |engine| {
            let mut items = read(engine, after.as_deref(), limit + 1)?;
            let more = items.len() > limit;
            items.truncate(limit);
            let next = items.last().filter(|_| more).map(|last| last.about.token_id.clone());
            let next = next.map(|id| Cursor { at: 0, id }.write(&TOKENS));
            Ok(Page { items: items.into_iter().map(|kept| kept.about).collect(), next })
        })
        .await
    }
}

/// Create an access token. Its text is in this reply and nowhere else.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CreateToken {
    /// The name that decisions and audit entries show.
    pub name: String,
    pub roles: Vec<Role>,
    /// The token is not valid after this time; without it, until it is revoked.
    #[serde(default)]
    pub expires_in_seconds: Option<f64>,
}

impl Operation for CreateToken {
    type Reply = NewToken;
    const ABOUT: About = About {
        name: "tokens.create",
        summary: "Create an access token and print it once",
        role: Role::Admin,
        errors: &[Code::NameTaken],
        http: &[Route::post("/tokens")],
        cli: &["tokens create"],
        ..About::CHANGES
    };

    fn example() -> Self {
        Self { name: "dashboard".into(), roles: vec![Role::Viewer], expires_in_seconds: Some(86_400.0) }
    }
}

impl CreateToken {
    fn check(&self) -> Result<(), Refusal> {
        let wrong = |message: &str, field: &str, help: &str| {
            Err(Refusal::new(Code::BadRequest, message).field(field).help(help))
        };
        let characters = self.name.chars().count();
        if !(1..=NAME_CHARACTERS_MAX).contains(&characters) || self.name.chars().any(char::is_control) {
            return wrong("invalid name of a token", "name", "a name has 1 to 64 printable characters");
        }
        if self.roles.is_empty() {
            return wrong("the token has no role", "roles", "give it at least one role, such as `viewer`");
        }
        match self.expires_in_seconds {
            Some(seconds) if !(seconds > 0.0 && seconds <= EXPIRES_SECONDS_MAX) => {
                wrong("invalid time to expire", "expires_in_seconds", "a token lives for up to ten years")
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl Perform for CreateToken {
    async fn perform(self, cx: &Context) -> Result<NewToken, Refusal> {
        // Two calls must not create the same name. Only the owner of the folder creates tokens.
        static CREATING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
        self.check()?;
        let _creating = CREATING.lock().await;
        let (name, now) = (self.name.clone(), Clock::Real.now());
        let taken =
            cx.read(move |engine| Ok(all(engine)?.iter().any(|kept| kept.has_name(&name, now)))).await?;
        if taken {
            let message = format!("another token is called `{}`", self.name);
            return Err(Refusal::new(Code::NameTaken, message)
                .field("name")
                .help("choose another name, or revoke the other token first"));
        }
        let token_id = HEXLOWER.encode(&rand::random::<[u8; 8]>());
        let text = format!("{PREFIX}{token_id}_{}", BASE64URL_NOPAD.encode(&rand::random::<[u8; 32]>()));
        let expires = |seconds: f64| Timestamp(now.0.saturating_add((seconds * 1e6) as i64));
        let about = Token {
            token_id: token_id.clone(),
            name: self.name,
            roles: self.roles,
            created_at: now.to_string(),
            created_by: cx.caller().name.to_string(),
            expires_at: self.expires_in_seconds.map(|seconds| expires(seconds).to_string()),
            revoked_at: None,
        };
        let mut entries = cx.entries();
        entries.push(put(&Kept { about: about.clone(), digest: digest(&text) }));
        cx.owner()?.note(entries).await?;
        Ok(NewToken { about, token: Some(text) })
    }

    async fn done(self, cx: &Context) -> Result<NewToken, Refusal> {
        let name = self.name;
        let kept =
            cx.read(move |engine| Ok(all(engine)?.into_iter().rfind(|kept| kept.about.name == name))).await?;
        kept.map(|kept| NewToken { about: kept.about, token: None }).ok_or_else(|| missing(""))
    }

    fn kept(reply: &NewToken) -> Option<serde_json::Value> {
        serde_json::to_value(NewToken { token: None, ..reply.clone() }).ok()
    }
}

/// Revoke an access token: from now on it is refused.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RevokeToken {
    pub token_id: String,
}

impl Operation for RevokeToken {
    type Reply = Token;
    const ABOUT: About = About {
        name: "tokens.revoke",
        summary: "Revoke an access token",
        role: Role::Admin,
        errors: &[Code::NoToken],
        http: &[Route::delete("/tokens/{token_id}")],
        cli: &["tokens revoke"],
        ..About::CHANGES
    };

    fn example() -> Self {
        Self { token_id: super::sample::TOKEN.into() }
    }
}

impl Perform for RevokeToken {
    async fn perform(self, cx: &Context) -> Result<Token, Refusal> {
        let engine = cx.owner()?;
        let Some(mut kept) = get(engine, &self.token_id).await? else { return Err(missing(&self.token_id)) };
        if kept.about.revoked_at.is_none() {
            kept.about.revoked_at = Some(Clock::Real.now().to_string());
            let mut entries = cx.entries();
            entries.push(put(&kept));
            engine.note(entries).await?;
        }
        Ok(kept.about)
    }
}

impl Kept {
    fn is_valid(&self, now: Timestamp) -> bool {
        let expired =
            self.about.expires_at.as_deref().is_some_and(|at| instant(at, "").is_ok_and(|at| at <= now));
        self.about.revoked_at.is_none() && !expired
    }

    fn has_name(&self, name: &str, now: Timestamp) -> bool {
        self.about.name == name && self.is_valid(now)
    }
}

/// The caller that a token stands for. None if it is unknown, revoked or expired.
pub async fn caller_of(engine: &Engine, text: &str) -> Result<Option<Caller>, Refusal> {
    let Some((id, _)) = text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_')) else {
        return Ok(None);
    };
    let Some(kept) = get(engine, id).await? else { return Ok(None) };
    let is_same = matches(&digest(text), &kept.digest);
    Ok((is_same && kept.is_valid(Clock::Real.now())).then(|| Caller {
        name: kept.about.name.as_str().into(),
        roles: kept.about.roles.as_slice().into(),
        face: Face::Http,
        ..Caller::user("")
    }))
}

/// Whether two digests are equal, in a time that does not depend on where they differ.
fn matches(one: &str, other: &str) -> bool {
    match (blake3::Hash::from_hex(one), blake3::Hash::from_hex(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

fn put(kept: &Kept) -> Entry {
    let body = serde_json::to_vec(kept).unwrap_or_default();
    Entry::Put { kind: TOKENS, key: kept.about.token_id.clone(), body, until: None }
}

async fn get(engine: &Engine, id: &str) -> Result<Option<Kept>, Refusal> {
    let body = engine.document(TOKENS, id).await?;
    Ok(body.and_then(|body| serde_json::from_slice(&body).ok()))
}

fn read(engine: &Arc<Engine>, after: Option<&str>, limit: usize) -> Result<Vec<Kept>, Refusal> {
    let documents = engine.documents(TOKENS, after, limit)?;
    Ok(documents.iter().filter_map(|(_, body)| serde_json::from_slice(body).ok()).collect())
}

fn all(engine: &Arc<Engine>) -> Result<Vec<Kept>, Refusal> {
    read(engine, None, usize::MAX)
}

fn missing(id: &str) -> Refusal {
    let refusal = Refusal::new(Code::NoToken, format!("unknown token `{id}`")).field("token_id");
    refusal.help("`windlass tokens list` shows the ids")
}
