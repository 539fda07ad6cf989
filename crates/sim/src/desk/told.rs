//! Inputs, events and effects as one line each.

use windlass_engine::{
    Ask, Came, Claim, DeskAnswer, DeskEffect, DeskEvent, DeskInput, DeskWhat, End, Full, LinePlace,
};

use super::tally::{event_word, input_word};

pub fn input(input: &DeskInput) -> String {
    let word = input_word(input).trim_start_matches("input ");
    let rest = match input {
        DeskInput::Ask(asked) => ask(asked),
        DeskInput::Release { asker, used, end: how } => {
            format!("{asker} {} tokens {} calls {}", end(how), used.tokens, used.calls)
        }
        DeskInput::Gone { run } | DeskInput::Arrived { run } => run.to_string(),
        DeskInput::Listen(ear) => {
            let until = ear.until.map(|until| format!(" until {until}")).unwrap_or_default();
            format!("{}:{} {} {}{until}", ear.address.run, ear.address.path, ear.name, ear.number)
        }
        DeskInput::Deaf(address) => format!("{}:{}", address.run, address.path),
        DeskInput::Published { id, name, value, .. } => {
            format!("{id} {name} {}", value.to_json_text().unwrap_or_default())
        }
        DeskInput::Heard { id, to } => format!("{id} {}:{}", to.run, to.path),
        DeskInput::Cap { account, cap, zone } => format!("{account} {cap:?} {zone:?}"),
        DeskInput::Reset { account } => account.to_string(),
        DeskInput::Fire(fire) => {
            format!("{} {} {} {:?} {:?}", fire.trigger, fire.due, fire.run, fire.runs_max, fire.overlap)
        }
        DeskInput::Tick => String::new(),
    };
    format!("{word:<9} {rest}")
}

pub fn event(event: &DeskEvent) -> String {
    let word = event_word(&event.what).trim_start_matches("event ");
    let rest = match &event.what {
        DeskWhat::Begun => String::new(),
        DeskWhat::Queued { ask, on, place: at } => format!("{} on {on} {}", ask.asker, place(at)),
        DeskWhat::Moved { asker, on } => format!("{asker} on {on}"),
        DeskWhat::Insisted { asker }
        | DeskWhat::Granted { asker, .. }
        | DeskWhat::Withdrawn { asker }
        | DeskWhat::Evicted { asker } => asker.to_string(),
        DeskWhat::Released { asker, end: how, .. } => format!("{asker} {}", end(how)),
        DeskWhat::Broken { run, path } | DeskWhat::Deaf { run, path } => format!("{run}:{path}"),
        DeskWhat::Kept { key, .. }
        | DeskWhat::Promised { key, .. }
        | DeskWhat::RateIs { key, .. }
        | DeskWhat::TurnsAre { key, .. } => key.to_string(),
        DeskWhat::AccountIs { account, spent, .. } => format!("{account} {spent:?}"),
        DeskWhat::Listening(ear) => format!("{}:{} {}", ear.address.run, ear.address.path, ear.name),
        DeskWhat::Published { id, to, .. } => format!("{id} to {}", to.len()),
        DeskWhat::Heard { id, to } => format!("{id} {}:{}", to.run, to.path),
        DeskWhat::Fired(fired) => match &fired.came {
            Came::Started(order) => format!("{} {}", fired.trigger, order.run),
            Came::Skipped { because } => format!("{} skipped: {because}", fired.trigger),
        },
        DeskWhat::Arrived { run } => run.to_string(),
    };
    format!("{word:<9} {rest}")
}

pub fn effect(effect: &DeskEffect) -> String {
    match effect {
        DeskEffect::Answer { asker, answer } => {
            let answer = match answer {
                DeskAnswer::Granted => "granted".to_owned(),
                DeskAnswer::Found(value) => format!("found {}", value.to_json_text().unwrap_or_default()),
                DeskAnswer::Denied(denial) => format!("denied: {denial}"),
            };
            format!("{:<9} {asker} {answer}", "answer")
        }
        DeskEffect::Deliver { to, letter } => {
            format!("{:<9} {} {}:{}", "deliver", letter.id, to.run, to.path)
        }
        DeskEffect::Cancel { run, .. } => format!("{:<9} {run}", "cancel"),
        DeskEffect::Start(order) => format!("{:<9} {}", "start", order.run),
    }
}

fn ask(ask: &Ask) -> String {
    let claims: Vec<String> = ask.claims.iter().map(claim).collect();
    let ahead = if ask.ahead == 0 { String::new() } else { format!(" ahead {}", ask.ahead) };
    format!("{} [{}]{ahead}", ask.asker, claims.join(", "))
}

fn claim(claim: &Claim) -> String {
    match claim {
        Claim::Slot { key, limit, full, turns } => {
            let full = match full {
                Full::Wait => "",
                Full::Deny => " or deny",
                Full::Replace => " or replace",
            };
            format!("{key} of {limit}{full}{}", if *turns { " in turns" } else { "" })
        }
        Claim::Rate { key, limit, period, units } => format!("{key} {units} of {limit} in {period}"),
        Claim::Promise { key, ttl } => match ttl {
            Some(ttl) => format!("{key} for {ttl}"),
            None => key.to_string(),
        },
        Claim::Spend { account, cap, .. } => format!("{account} {:?} {:?}", cap.calls, cap.tokens),
    }
}

fn end(end: &End) -> &'static str {
    match end {
        End::Attempt => "attempt",
        End::Lost => "lost",
        End::Done(_) => "done",
        End::Over => "over",
    }
}

fn place(place: &LinePlace) -> String {
    format!("turn {} since {} number {}", place.turn, place.since.0 / 1_000_000 % 1_000_000, place.number)
}
