//! What runs share, as people and programs see it.

use serde_json::{Value as Json, json};
use windlass_engine::{Amount, Asker, BudgetState, Claim, CoordinatorState, KeyState, Timestamp};
use windlass_ir::policy::Budget;

/// What runs share, at this moment.
pub fn limits(state: &CoordinatorState, now: Timestamp) -> Json {
    let mut keys: Vec<&std::sync::Arc<str>> = state.slots.keys().chain(state.queues.keys()).collect();
    keys.sort();
    keys.dedup();
    let slots: Vec<Json> = keys.into_iter().map(|key| slot(state, key)).collect();
    let rates = state.rates.iter().filter(|(_, whole_at)| **whole_at > now);
    let rates: Vec<Json> =
        rates.map(|(key, whole_at)| json!({"key": key, "whole_at": whole_at.to_string()})).collect();
    let keys: Vec<Json> = state.keys.iter().filter_map(|(key, state)| key_state(key, state, now)).collect();
    let budgets: Vec<Json> = state.budgets.iter().map(|(key, budget)| spent(key, budget)).collect();
    let subscriptions = state.subscriptions.values().flatten().map(|subscription| {
        json!({
            "name": subscription.name,
            "run": subscription.address.run,
            "step": subscription.address.path.to_string(),
            "match": super::data(&windlass_ir::Value::Map(std::sync::Arc::new(subscription.matching.clone()))),
            "until": subscription.until.map(|until| until.to_string()),
        })
    });
    let subscriptions: Vec<Json> = subscriptions.collect();
    let firings = state.firings.iter().map(|(trigger, last)| {
        let next = state.next_firings.get(trigger).map(Timestamp::to_string);
        json!({"trigger": trigger, "last": last.to_string(), "next": next})
    });
    let firings: Vec<Json> = firings.collect();
    json!({
        "slots": slots,
        "rates": rates,
        "keys": keys,
        "budgets": budgets,
        "subscriptions": subscriptions,
        "firings": firings,
    })
}

fn slot(state: &CoordinatorState, key: &std::sync::Arc<str>) -> Json {
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
            Claim::Slot { .. } | Claim::Rate { .. } | Claim::Key { .. } | Claim::Spend { .. } => None,
        })
    });
    let queue = state.queues.get(key).into_iter().flat_map(|queue| queue.values());
    let waiting: Vec<Json> = queue.map(|ask| who(&ask.asker, Some(ask.since))).collect();
    json!({"key": key, "limit": limit, "holders": holders, "waiting": waiting})
}

fn who(asker: &Asker, since: Option<Timestamp>) -> Json {
    let step = (!asker.path.is_run()).then(|| asker.path.to_string());
    json!({"run": asker.run, "step": step, "attempt": asker.attempt, "since": since.map(|since| since.to_string())})
}

fn key_state(key: &str, state: &KeyState, now: Timestamp) -> Option<Json> {
    Some(match state {
        KeyState::Pending { run, path, .. } => {
            json!({"key": key, "state": "pending", "run": run, "step": path.to_string(), "until": null})
        }
        KeyState::Kept { until: Some(until), .. } if *until <= now => return None,
        KeyState::Kept { until, .. } => {
            json!({"key": key, "state": "kept", "run": null, "step": null, "until": until.map(|until| until.to_string())})
        }
    })
}

fn spent(key: &str, budget: &BudgetState) -> Json {
    let reserved = budget.reserved.values().fold(Amount::default(), |sum, amount| sum.plus(*amount));
    json!({
        "key": key,
        "cap": budget.cap.as_ref().map(cap),
        "spent": amount(budget.spent),
        "reserved": amount(reserved),
        "day_ends": budget.day.as_ref().map(|day| day.ends.to_string()),
        "zone": budget.day.as_ref().map(|day| &day.zone),
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
