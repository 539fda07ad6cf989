//! What runs share, as people and programs see it.

use crate::types::{
    Amounts, Budget as PublicBudget, Holder, Key, Limits, Rate, Slot, Subscription, Waiter, Window,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_ir::policy::Budget;
use windlass_runtime::{Amount, Asker, BudgetState, Claim, CoordinatorState, KeyState, Timestamp, data};

/// Slots, rates, idempotency keys and subscriptions at this moment.
pub fn limits(state: &CoordinatorState, now: Timestamp) -> Limits {
    let slots: BTreeSet<&Arc<str>> = state.slots.keys().chain(state.queues.keys()).collect();
    let rates = state.rates.iter().filter(|(_, full_at)| **full_at > now);
    let subscriptions = state.subscriptions.values().flatten().map(|subscription| Subscription {
        name: subscription.name.to_string(),
        run_id: subscription.address.run.to_string(),
        step: Some(subscription.address.path.to_string()),
        matching: data(&windlass_ir::Value::Map(Arc::new(subscription.matching.clone()))),
        until: subscription.until.map(|until| until.to_string()),
    });
    Limits {
        slots: slots.into_iter().map(|key| slot(state, key)).collect(),
        rates: rates.map(|(key, at)| Rate { key: key.to_string(), full_at: at.to_string() }).collect(),
        keys: state.keys.iter().filter_map(|(key, kept)| key_state(key, kept, now)).collect(),
        subscriptions: subscriptions.collect(),
    }
}

pub fn budgets(state: &CoordinatorState) -> Vec<PublicBudget> {
    state.budgets.iter().map(|(key, budget)| spent(key, budget)).collect()
}

fn slot(state: &CoordinatorState, key: &Arc<str>) -> Slot {
    let held = || state.slots.get(key).into_iter().flatten();
    let holders = held().map(|asker| {
        let since = state.holds.get(asker).map(|hold| hold.since);
        Holder {
            run_id: asker.run.to_string(),
            step: step(asker),
            attempt: asker.attempt,
            since: since.map(|since| since.to_string()),
        }
    });
    let limit = held().find_map(|asker| {
        let claims = &state.holds.get(asker)?.ask.claims;
        claims.iter().find_map(|claim| match claim {
            Claim::Slot { key: own, limit, .. } if own == key => Some(*limit),
            Claim::Slot { .. } | Claim::Rate { .. } | Claim::Key { .. } | Claim::Spend { .. } => None,
        })
    });
    let queue = state.queues.get(key).into_iter().flat_map(|queue| queue.values());
    let waiting = (1..).zip(queue).map(|(position, ask)| Waiter {
        run_id: ask.asker.run.to_string(),
        step: step(&ask.asker),
        attempt: ask.asker.attempt,
        since: ask.since.to_string(),
        position,
    });
    Slot { key: key.to_string(), limit, holders: holders.collect(), waiting: waiting.collect() }
}

/// None for the run itself.
fn step(asker: &Asker) -> Option<String> {
    (!asker.path.is_run()).then(|| asker.path.to_string())
}

fn key_state(key: &str, state: &KeyState, now: Timestamp) -> Option<Key> {
    let key = key.to_owned();
    Some(match state {
        KeyState::Pending { run, path, .. } => {
            let (run_id, step) = (Some(run.to_string()), Some(path.to_string()));
            Key { key, pending: true, run_id, step, until: None }
        }
        KeyState::Kept { until: Some(until), .. } if *until <= now => return None,
        KeyState::Kept { until, .. } => {
            Key { key, pending: false, run_id: None, step: None, until: until.map(|until| until.to_string()) }
        }
    })
}

fn spent(key: &str, budget: &BudgetState) -> PublicBudget {
    let reserved = budget.reserved.values().fold(Amount::default(), |sum, amount| sum.plus(*amount));
    PublicBudget {
        key: key.to_owned(),
        cap: budget.cap.as_ref().map(cap),
        spent: amounts(budget.spent),
        reserved: amounts(reserved),
        window: budget
            .day
            .as_ref()
            .map(|day| Window { zone: day.zone.to_string(), ends_at: Some(day.ends.to_string()) }),
    }
}

fn cap(cap: &Budget) -> Amounts {
    Amounts {
        tokens: cap.tokens,
        usd: cap.micro_usd.map(|micros| micros as f64 / 1e6),
        calls: cap.calls,
        seconds: cap.time.map(windlass_ir::Duration::as_secs_f64),
    }
}

fn amounts(amount: Amount) -> Amounts {
    Amounts {
        tokens: Some(amount.tokens),
        usd: Some(amount.micro_usd as f64 / 1e6),
        calls: Some(amount.calls),
        seconds: Some(amount.time.as_secs_f64()),
    }
}
