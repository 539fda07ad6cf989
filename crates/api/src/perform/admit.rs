//! Admits calls: the role, the idempotency key and the audit entry of a call are handled here, for every face and operation.
//!
//! Key, audit entry and effect share one commit. The reply is kept right after it; if the process ends in between, the reply is
//! made again from what the commit has left, and the effect is not repeated. A dry run changes nothing and leaves no trace.

use super::{Caller, Context, Perform};
use crate::code::Code;
use crate::operation::{About, Effect};
use crate::refusal::Refusal;
use crate::types::{AuditEntry, AuditObject, AuditOutcome, Json};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use windlass_runtime::{Clock, Engine, Entry, Error, Timestamp, new_id};

/// The documents of the ledger that keep replies.
const KEYS: &str = "key";
/// How long a reply is kept.
const KEY_SECONDS: i64 = 24 * 60 * 60;
const KEY_BYTES_MAX: usize = 255;

/// The members of a request that an audit entry does not repeat.
const MASKED: &[&str] =
    &["source", "overrides", "overlays", "inputs", "parameters", "input", "value", "fields", "mock"];
const MASK: &str = "***";
/// How many listed runs an audit entry names.
const OBJECTS_MAX: usize = 100;
/// A longer value in an audit entry is masked too.
const SHOWN_BYTES_MAX: usize = 256;

/// A call that changes something, while it is performed.
#[derive(Debug)]
pub struct Call {
    /// The id of whatever the call creates without a name. The same if the call is made again with the same key.
    pub id: String,
    /// Entries of the ledger to write in the commit of the effect.
    entries: Mutex<Vec<Entry>>,
    /// The document of the key, until the first effect has taken it along.
    key: Option<(String, Kept)>,
    /// What the first call with this key has chosen to act on.
    chosen: Option<Json>,
}

impl Call {
    /// The entries for the first effect of the call; none for later ones.
    pub fn take_entries(&self) -> Vec<Entry> {
        std::mem::take(&mut *self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes down what the call acts on, together with its first effect: a repeated call must not choose again.
    pub fn choose(&self, chosen: Json) {
        if let Some((name, kept)) = &self.key {
            let document = put(name.clone(), &Kept { chosen: Some(chosen), ..kept.clone() });
            let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            entries.retain(|entry| !matches!(entry, Entry::Put { kind: KEYS, .. }));
            entries.push(document);
        }
    }

    /// What an earlier call with the same key has chosen.
    pub fn chosen(&self) -> Option<&Json> {
        self.chosen.as_ref()
    }

    /// The effect was refused and has written nothing.
    pub fn give_back(&self, entries: Vec<Entry>) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).extend(entries);
    }
}

/// A kept reply.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    /// Of the request.
    digest: String,
    id: String,
    /// None if the process ended before the reply was kept.
    pub(super) reply: Option<Json>,
    /// What the call acts on, if that depends on the time of the call. Not kept with the reply, which says it.
    #[serde(default)]
    chosen: Option<Json>,
    /// When the key may be used for another request, in microseconds.
    pub(super) until: i64,
}

/// Performs an operation if the caller may. Every face goes through this. A code that the operation does not declare is a bug.
pub async fn admit<T: Perform>(request: T, cx: &Context) -> Result<T::Reply, Refusal> {
    if let Err(refusal) = cx.permit(T::ABOUT.role) {
        let json = serde_json::to_value(&request).unwrap_or_default();
        return Err(forbidden(refusal, cx, &T::ABOUT, &json).await);
    }
    let reply = match T::ABOUT.effect {
        Effect::Pure | Effect::Reads | Effect::Repairs => request.perform(cx).await,
        Effect::Changes => change(request, cx).await,
    };
    if let Err(refusal) = &reply {
        debug_assert!(T::ABOUT.declares(refusal.code), "{} does not declare {refusal:?}", T::ABOUT.name);
    }
    reply
}

/// Logs a call that would change something and whose caller lacks the role.
pub(super) async fn forbidden(refusal: Refusal, cx: &Context, about: &About, request: &Json) -> Refusal {
    if matches!(about.effect, Effect::Changes | Effect::Repairs) {
        log_refused(cx, about.name, request, &refusal).await;
    }
    refusal
}

async fn change<T: Perform>(request: T, cx: &Context) -> Result<T::Reply, Refusal> {
    let json = serde_json::to_value(&request).unwrap_or_default();
    let name = cx.key().map(|key| key_of(cx, T::ABOUT.name, key)).transpose()?;
    if json.get("dry_run") == Some(&Json::Bool(true)) {
        return request.perform(cx).await;
    }
    let Some(name) = name else {
        let call = begun(cx, T::ABOUT.name, &json, None)?;
        return finish(request.perform(&cx.calling(call.clone())).await, cx, T::ABOUT.name, &json, &call)
            .await;
    };
    let digest = digest(&json);
    let _using = InUse::take(&name)?;
    match kept(cx, &name).await? {
        Some(kept) if kept.digest != digest => {
            let refusal = Refusal::new(Code::KeyReused, "this idempotency key was used for another request");
            Err(refusal.help("use a new key for a new request"))
        }
        Some(Kept { reply: Some(reply), .. }) => {
            serde_json::from_value(reply).map_err(|error| Refusal::new(Code::Bug, error.to_string()))
        }
        Some(Kept { reply: None, id, chosen, until, .. }) => {
            let call = Arc::new(Call { id: id.clone(), entries: Mutex::default(), key: None, chosen });
            let reply = request.done(&cx.calling(call)).await?;
            let kept = Kept { digest, id, reply: T::kept(&reply), chosen: None, until };
            keep_reply(cx, name, kept).await;
            Ok(reply)
        }
        None => {
            let call = begun(cx, T::ABOUT.name, &json, Some((name.clone(), digest.clone())))?;
            let done = request.perform(&cx.calling(call.clone())).await;
            let reply = finish(done, cx, T::ABOUT.name, &json, &call).await?;
            let kept =
                Kept { digest, id: call.id.clone(), reply: T::kept(&reply), chosen: None, until: until() };
            keep_reply(cx, name, kept).await;
            Ok(reply)
        }
    }
}

pub(super) fn digest(request: &Json) -> String {
    blake3::hash(request.to_string().as_bytes()).to_hex().to_string()
}

pub(super) fn begun(
    cx: &Context,
    operation: &str,
    request: &Json,
    key: Option<(String, String)>,
) -> Result<Arc<Call>, Refusal> {
    let id = new_id(&Clock::Real).map_err(Error::from)?.to_string();
    let mut entries = vec![logged(cx, operation, request, &id, None)];
    let key = key.map(|(name, digest)| {
        (name, Kept { digest, id: id.clone(), reply: None, chosen: None, until: until() })
    });
    entries.extend(key.as_ref().map(|(name, kept)| put(name.clone(), kept)));
    Ok(Arc::new(Call { id, entries: Mutex::new(entries), key, chosen: None }))
}

/// Writes what no commit of an effect has taken along. Refused calls are logged too.
async fn finish<R>(
    done: Result<R, Refusal>,
    cx: &Context,
    operation: &str,
    request: &Json,
    call: &Call,
) -> Result<R, Refusal> {
    let Ok(engine) = cx.owner() else { return done };
    match &done {
        Ok(_) => {
            let left = call.take_entries();
            if !left.is_empty() {
                engine.note(left).await?;
            }
        }
        Err(refusal) => log_refused(cx, operation, request, refusal).await,
    }
    done
}

/// Waits until the entry is durable, because a command that is refused ends its process right away.
async fn log_refused(cx: &Context, operation: &str, request: &Json, refusal: &Refusal) {
    if let Ok(engine) = cx.owner() {
        let entry = logged(cx, operation, request, "", Some(refusal.code));
        // If this fails, the log of a call that changed nothing is incomplete.
        let _ = engine.note(vec![entry]).await;
    }
}

/// The audit entry of a change that is not an operation.
pub fn audited(engine: &Arc<Engine>, operation: &str, request: &Json, by: &str) -> Vec<Entry> {
    let cx = Context::owning(engine.clone(), Caller::user(by));
    vec![logged(&cx, operation, request, "", None)]
}

fn logged(cx: &Context, operation: &str, request: &Json, id: &str, refused: Option<Code>) -> Entry {
    let members = || request.as_object().into_iter().flatten();
    let object = |member: &str| match member {
        "run_id" => Some("run"),
        "workflow" => Some("workflow"),
        "key" => Some("budget"),
        "name" if operation == "messages.publish" => Some("message"),
        "token_id" => Some("token"),
        _ => None,
    };
    let mut objects: Vec<AuditObject> = members()
        .filter_map(|(member, value)| Some((object(member)?, value.as_str().filter(|text| *text != "-")?)))
        .filter(|(_, id)| id.len() <= SHOWN_BYTES_MAX)
        .map(|(kind, id)| AuditObject { kind: kind.to_owned(), id: id.to_owned() })
        .collect();
    let listed = request.get("run_ids").and_then(Json::as_array).into_iter().flatten();
    let listed = listed.filter_map(Json::as_str).take(OBJECTS_MAX);
    objects.extend(listed.map(|id| AuditObject { kind: "run".to_owned(), id: id.to_owned() }));
    if operation == "runs.start" && !objects.iter().any(|object| object.kind == "run") && !id.is_empty() {
        objects.push(AuditObject { kind: "run".to_owned(), id: id.to_owned() });
    }
    let shown = |(member, value): (&String, &Json)| {
        let masked = MASKED.contains(&member.as_str()) || value.to_string().len() > SHOWN_BYTES_MAX;
        (member.clone(), if masked { MASK.into() } else { value.clone() })
    };
    let given = |(_, value): &(&String, &Json)| !value.is_null() && **value != Json::Bool(false);
    let caller = cx.caller();
    let by = request.get("by").and_then(Json::as_str).unwrap_or(&caller.name);
    let entry = AuditEntry {
        id: 0,
        at: Clock::Real.now().to_string(),
        by: by.to_owned(),
        principal: caller.name.to_string(),
        face: caller.face,
        operation: operation.to_owned(),
        objects,
        request_id: caller.request_id.as_deref().map(str::to_owned),
        outcome: if refused.is_some() { AuditOutcome::Refused } else { AuditOutcome::Done },
        code: refused,
        changed: members().filter(given).map(shown).collect(),
    };
    Entry::Log(serde_json::to_vec(&entry).unwrap_or_default())
}

pub(super) fn key_of(cx: &Context, operation: &str, key: &str) -> Result<String, Refusal> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX || !key.bytes().all(|byte| (0x21..=0x7e).contains(&byte)) {
        let refusal = Refusal::new(Code::BadRequest, "invalid idempotency key").field("key");
        return Err(refusal.help(format!("a key has 1 to {KEY_BYTES_MAX} visible ASCII characters")));
    }
    let caller = cx.caller();
    let folder = cx.folder().display();
    let whole = format!("{folder}\n{}\n{operation}\n{key}", caller.name);
    Ok(blake3::hash(whole.as_bytes()).to_hex().to_string())
}

pub(super) fn put(name: String, kept: &Kept) -> Entry {
    let body = serde_json::to_vec(kept).unwrap_or_default();
    Entry::Put { kind: KEYS, key: name, body, until: Some(Timestamp(kept.until)) }
}

fn until() -> i64 {
    Clock::Real.now().0.saturating_add(KEY_SECONDS * 1_000_000)
}

async fn kept(cx: &Context, name: &str) -> Result<Option<Kept>, Refusal> {
    let Some(body) = cx.owner()?.document(KEYS, name).await? else { return Ok(None) };
    let kept: Kept = serde_json::from_slice(&body).map_err(|error| {
        let message = format!("the reply that belongs to this idempotency key cannot be read: {error}");
        Refusal::new(Code::Storage, message).help("look whether the call had its effect, then use a new key")
    })?;
    Ok(Some(kept).filter(|kept| kept.until > Clock::Real.now().0))
}

/// If this fails, the reply is made again when the call is repeated.
async fn keep_reply(cx: &Context, name: String, kept: Kept) {
    if let Ok(engine) = cx.owner().cloned() {
        let _ = engine.note(vec![put(name, &kept)]).await;
    }
}

/// A key whose first call is still performed.
struct InUse(String);

impl InUse {
    fn all() -> MutexGuard<'static, HashSet<String>> {
        static KEYS: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);
        KEYS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(name: &str) -> Result<Self, Refusal> {
        match Self::all().insert(name.to_owned()) {
            true => Ok(Self(name.to_owned())),
            false => {
                let refusal = Refusal::new(Code::KeyInUse, "a call with this idempotency key is in progress");
                Err(refusal.help("wait for its reply, or repeat the call with the same key a moment later"))
            }
        }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        Self::all().remove(&self.0);
    }
}
