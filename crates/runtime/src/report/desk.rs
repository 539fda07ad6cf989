//! The desk as people and programs see it.

use serde_json::{Value as Json, json};
use windlass_engine::{Account, Amount, Asker, Claim, DeskPromise, DeskState, Timestamp};
use windlass_ir::policy::Budget;

/// What runs share, at this moment.
pub fn desk(state: &DeskState, now: Timestamp) -> Json {
    let mut keys: Vec<&std::sync::Arc<str>> = state.slots.keys().chain(state.lines.keys()).collect();
    keys.sort();
    keys.dedup();
    let slots: Vec<Json> = keys.into_iter().map(|key| slot(state, key)).collect();
    let rates = state.rates.iter().filter(|(_, whole_at)| **whole_at > now);
    let rates: Vec<Json> =
        rates.map(|(key, whole_at)| json!({"key": key, "whole_at": whole_at.to_string()})).collect();
    let promises: Vec<Json> =
        state.promises.iter().filter_map(|(key, promise)| promised(key, promise, now)).collect();
    let accounts: Vec<Json> = state.accounts.iter().map(|(key, account)| spent(key, account)).collect();
    let listeners = state.listeners.values().flatten().map(|listener| {
        json!({
            "name": listener.name,
            "run": listener.address.run,
            "step": listener.address.path.to_string(),
            "match": super::data(&windlass_ir::Value::Map(std::sync::Arc::new(listener.matching.clone()))),
            "until": listener.until.map(|until| until.to_string()),
        })
    });
    let listeners: Vec<Json> = listeners.collect();
    let fires = state.fires.iter().map(|(trigger, last)| {
        let next = state.next_fires.get(trigger).map(Timestamp::to_string);
        json!({"trigger": trigger, "last": last.to_string(), "next": next})
    });
    let fires: Vec<Json> = fires.collect();
    json!({
        "slots": slots,
        "rates": rates,
        "promises": promises,
        "accounts": accounts,
        "listeners": listeners,
        "fires": fires,
    })
}

fn slot(state: &DeskState, key: &std::sync::Arc<str>) -> Json {
    let holders = state.slots.get(key).into_iter().flatten();
    let holders: Vec<Json> = holders
        .map(|asker| {
            let since = state.holds.get(asker).map(|hold| hold.since);
            who(asker, since)
        })
        .collect();
    let limit = state.slots.get(key).into_iter().flatten().find_map(|asker| {
        let claims = &state.holds.get(asker)?.ask.claims;
        claims.iter().find_map(|claim| match claim {
            Claim::Slot { key: own, limit, .. } if own == key => Some(*limit),
            Claim::Slot { .. } | Claim::Rate { .. } | Claim::Promise { .. } | Claim::Spend { .. } => None,
        })
    });
    let line = state.lines.get(key).into_iter().flat_map(|line| line.values());
    let waiting: Vec<Json> = line.map(|ask| who(&ask.asker, Some(ask.since))).collect();
    json!({"key": key, "limit": limit, "holders": holders, "waiting": waiting})
}

fn who(asker: &Asker, since: Option<Timestamp>) -> Json {
    let step = (!asker.path.is_run()).then(|| asker.path.to_string());
    json!({"run": asker.run, "step": step, "attempt": asker.attempt, "since": since.map(|since| since.to_string())})
}

fn promised(key: &str, promise: &DeskPromise, now: Timestamp) -> Option<Json> {
    Some(match promise {
        DeskPromise::Pending { run, path, .. } => {
            json!({"key": key, "state": "pending", "run": run, "step": path.to_string(), "until": null})
        }
        DeskPromise::Kept { until: Some(until), .. } if *until <= now => return None,
        DeskPromise::Kept { until, .. } => {
            json!({"key": key, "state": "kept", "run": null, "step": null, "until": until.map(|until| until.to_string())})
        }
    })
}

fn spent(key: &str, account: &Account) -> Json {
    let reserved = account.reserved.values().fold(Amount::default(), |sum, amount| sum.plus(*amount));
    json!({
        "account": key,
        "cap": account.cap.as_ref().map(cap),
        "spent": amount(account.spent),
        "reserved": amount(reserved),
        "day_ends": account.day.as_ref().map(|day| day.ends.to_string()),
        "zone": account.day.as_ref().map(|day| &day.zone),
    })
}

fn cap(cap: &Budget) -> Json {
    json!({
        "tokens": cap.tokens,
        "usd": cap.micro_usd.map(|micros| micros as f64 / 1e6),
        "calls": cap.calls,
        "seconds": cap.time.map(windlass_ir::Duration::as_secs_f64),
    })
}

fn amount(amount: Amount) -> Json {
    json!({
        "tokens": amount.tokens,
        "usd": amount.micro_usd as f64 / 1e6,
        "calls": amount.calls,
        "seconds": amount.time.as_secs_f64(),
    })
}
