//! Follows a run: its events from the journal and then as they happen, in their public form.

use super::context::off_thread;
use super::{Context, Row};
use crate::code::Code;
use crate::operation::Operation;
use crate::operations::{EventExtra, ListEvents};
use crate::refusal::Refusal;
use crate::report::Projector;
use crate::types::{CutReason, Json, Sign, Streamed};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use windlass_runtime::{Clock, Engine, Patience, RunId, Since, Stream as Printing, Update, Updates};

/// A stream that has nothing to send sends a sign of life this often.
pub const HEARTBEAT: Duration = Duration::from_secs(15);
/// A stream ends after this time. The client continues after the last event that it has.
pub const AGE_MAX: Duration = Duration::from_secs(60 * 60);

/// The events of a run, then its result.
#[derive(Debug)]
pub struct Stream {
    engine: Arc<Engine>,
    run: RunId,
    updates: Option<Updates>,
    projector: Option<Projector>,
    include: Vec<EventExtra>,
    seq: u64,
    quiet_until: Instant,
    ends_at: Instant,
    is_over: bool,
}

impl Stream {
    /// Opens the stream form of an operation, for a caller that has its role.
    pub async fn of(row: &Row, cx: &Context, request: Json) -> Result<Self, Refusal> {
        cx.permit(row.about.role)?;
        row.check(&request)?;
        if row.about.name != ListEvents::ABOUT.name {
            let message = format!("`{}` has no stream", row.about.name);
            return Err(Refusal::new(Code::BadRequest, message).field("stream"));
        }
        let request = serde_json::from_value(request)
            .map_err(|error| Refusal::new(Code::BadRequest, error.to_string()))?;
        Self::open(cx, request).await
    }

    /// Follows a run from the event after `after`. Only the owner of a data folder can.
    pub async fn open(cx: &Context, request: ListEvents) -> Result<Self, Refusal> {
        let run = cx.run_id(&request.run_id)?;
        let engine = cx.owner()?.clone();
        let after = request.after.unwrap_or(0);
        let handle = engine.follow(&run, Since::Event(after), Patience::Everything).await?;
        let (updates, _) = handle.split();
        let now = Instant::now();
        Ok(Self {
            projector: Some(Projector::new(engine.clone(), run.clone())),
            engine,
            run,
            updates: Some(updates),
            include: request.include,
            seq: after,
            // The first bytes tell the client that it is connected.
            quiet_until: now,
            ends_at: now + AGE_MAX,
            is_over: false,
        })
    }

    /// The next object; none after the last.
    pub async fn next(&mut self) -> Option<Result<Streamed, Refusal>> {
        if self.is_over {
            return None;
        }
        loop {
            let Some(updates) = &mut self.updates else { return Some(self.result().await) };
            tokio::select! {
                biased;
                update = updates.recv() => match update {
                    None => self.updates = None,
                    Some(update) => match self.public(update).await {
                        Ok(None) => {}
                        Ok(Some(object)) => {
                            self.quiet_until = Instant::now() + HEARTBEAT;
                            return Some(Ok(object));
                        }
                        Err(refusal) => {
                            self.is_over = true;
                            return Some(Err(refusal));
                        }
                    },
                },
                () = tokio::time::sleep_until(self.ends_at) => {
                    self.is_over = true;
                    let cut = Sign::Cut { after: self.seq, reason: CutReason::MaxAge };
                    return Some(Ok(Streamed::Sign(cut)));
                }
                () = tokio::time::sleep_until(self.quiet_until) => {
                    self.quiet_until = Instant::now() + HEARTBEAT;
                    let at = Clock::Real.now().to_string();
                    return Some(Ok(Streamed::Sign(Sign::Heartbeat { at, seq: self.seq })));
                }
            }
        }
    }

    async fn public(&mut self, update: Update) -> Result<Option<Streamed>, Refusal> {
        match update {
            Update::Notice(message) => Ok(Some(Streamed::Sign(Sign::notice(message)))),
            Update::Line(line) => {
                let wanted = match line.stream {
                    Printing::Stdout | Printing::Stderr => EventExtra::Lines,
                    Printing::Answer => EventExtra::Deltas,
                };
                let projector = self.projector.as_ref().filter(|_| self.include.contains(&wanted));
                Ok(projector.map(|projector| projector.line(&line, Clock::Real.now())))
            }
            Update::Event { seq, event } => {
                // Reading the journal blocks, which happens only for the first event and after a gap.
                let Some(mut projector) = self.projector.take() else { return Ok(None) };
                let (projector, public) = match projector.is_next(seq) {
                    true => {
                        let public = projector.next(seq, &event)?;
                        (projector, public)
                    }
                    false => {
                        off_thread(move || {
                            let public = projector.next(seq, &event)?;
                            Ok((projector, public))
                        })
                        .await?
                    }
                };
                self.projector = Some(projector);
                self.seq = self.seq.max(seq);
                Ok(public.map(|event| Streamed::Event(Box::new(event))))
            }
        }
    }

    async fn result(&mut self) -> Result<Streamed, Refusal> {
        self.is_over = true;
        let cx = Context::owning(self.engine.clone(), super::Caller::user(""));
        Ok(Streamed::Result(Box::new(cx.run(&self.run).await?)))
    }
}

impl Sign {
    fn notice(message: String) -> Self {
        Self::Notice { code: "notice".to_owned(), message }
    }
}
