//! The shared resources of a simulation, and random claims on them.
//!
//! As in real workflows, runs use other keys than their steps, and called runs other keys than their callers.
//! Otherwise two runs could wait for each other, which no coordinator can prevent.

use crate::Random;
use windlass_engine::{Amount, Claim, Full, Key};
use windlass_ir::Duration;
use windlass_ir::policy::Budget;

#[derive(Clone, Debug)]
pub struct Goods {
    slots: Vec<Slot>,
    /// The slots that runs need to begin, by call depth.
    doors: Vec<Slot>,
    rates: Vec<(Key, u32, Duration)>,
    keys: Vec<Key>,
    pub budgets: Vec<Key>,
    /// Whether requests for the same key have different limits.
    limits_differ: bool,
    /// Whether some requests have a priority.
    ahead: bool,
}

type Slot = (Key, u32);

pub const DEPTHS: u32 = 2;

impl Goods {
    pub fn draw(random: &mut Random, keys: usize) -> Self {
        let slot = |random: &mut Random, key: String| (key.into(), 1 + random.below(3) as u32);
        let named = |prefix: &str| -> Vec<Key> { (0..keys).map(|n| format!("{prefix}{n}").into()).collect() };
        let slots = (0..keys + 1).map(|n| slot(random, format!("slot{n}"))).collect();
        let doors = (0..=DEPTHS).map(|n| slot(random, format!("door{n}"))).collect();
        let rates = (0..keys).map(|n| {
            let period = Duration::from_secs(1 + random.below(20) as u64);
            (format!("rate{n}").into(), 1 + random.below(5) as u32, period)
        });
        let rates = rates.collect();
        let (keys, budgets) = (named("key"), named("budget"));
        let (limits_differ, ahead) = (random.chance(40), random.chance(50));
        Self { slots, doors, rates, keys, budgets, limits_differ, ahead }
    }

    /// How many seconds older a request counts.
    pub fn ahead(&self, random: &mut Random) -> i32 {
        match self.ahead && random.chance(40) {
            true => random.below(120) as i32 - 40,
            false => 0,
        }
    }

    /// The claims of a step. `own` are the claims of its run; with `calm`, no run replaces another.
    pub fn of_step(&self, random: &mut Random, own: &[Claim], calm: bool) -> Vec<Claim> {
        let mut claims = Vec::new();
        let count = [1, 1, 1, 2, 2, 3, 4][random.below(7)];
        while claims.len() < count {
            let claim = match random.below(20) {
                0..=8 => {
                    let slot = random.pick(&self.slots).clone();
                    self.slot(random, &slot, if calm { 0 } else { 5 })
                }
                9..=12 => self.rate(random),
                13..=15 => self.key(random, "step"),
                16..=18 => self.spend(random),
                // A step that waits for a slot of its own run.
                _ => match own.first() {
                    Some(claim) if !calm && random.chance(20) => claim.clone(),
                    Some(_) | None => continue,
                },
            };
            claims.push(claim);
        }
        without_repeats(claims)
    }

    /// The claims of a run before it begins. `called_by` are the claims of its caller.
    pub fn of_run(&self, random: &mut Random, depth: u32, called_by: &[Claim], calm: bool) -> Vec<Claim> {
        let mut claims = Vec::new();
        if random.chance(40) {
            return claims;
        }
        let door = self.doors[depth as usize].clone();
        claims.push(self.slot(random, &door, if calm { 0 } else { 15 }));
        if random.chance(20) {
            claims.push(self.key(random, &format!("run{depth}")));
        }
        let theirs = called_by.iter().find(|claim| matches!(claim, Claim::Slot { .. }));
        if let Some(theirs) = theirs.filter(|_| random.chance(25)) {
            claims.push(theirs.clone());
        }
        without_repeats(claims)
    }

    fn slot(&self, random: &mut Random, slot: &Slot, replaces: u64) -> Claim {
        let (key, mut limit) = slot.clone();
        if self.limits_differ && random.chance(30) {
            limit = 1 + random.below(4) as u32;
        }
        if random.chance(1) {
            limit = 0;
        }
        let full = match random.below(100) as u64 {
            dice if dice < replaces => Full::Replace,
            dice if dice < replaces + 10 => Full::Deny,
            _ => Full::Wait,
        };
        Claim::Slot { key, limit, full }
    }

    fn rate(&self, random: &mut Random) -> Claim {
        let (key, limit, period) = random.pick(&self.rates).clone();
        let units = match random.below(40) {
            0 => limit + 1,
            1 => 0,
            _ => 1 + random.below(limit as usize) as u32,
        };
        Claim::Rate { key, limit, period, units }
    }

    fn key(&self, random: &mut Random, of: &str) -> Claim {
        let key = format!("{of}-{}", random.pick(&self.keys)).into();
        let ttl = random.chance(70).then(|| Duration::from_secs(random.below(60) as u64));
        Claim::Key { key, ttl }
    }

    fn spend(&self, random: &mut Random) -> Claim {
        let budget = random.pick(&self.budgets).clone();
        Claim::Spend { budget, cap: cap(random), most: MOST }
    }
}

/// Every request reserves the same amount, so that one with two budgets reserves the same from both.
pub const MOST: Amount = Amount { tokens: 100, micro_usd: 0, calls: 1, time: Duration::ZERO };

pub fn cap(random: &mut Random) -> Budget {
    match random.below(4) {
        0 => Budget::default(),
        1 => Budget { tokens: Some(random.below(1500) as u64), ..Budget::default() },
        _ => Budget { calls: Some(random.below(12) as u64), ..Budget::default() },
    }
}

/// The real cost of a job, sometimes more than was reserved.
pub fn used(random: &mut Random) -> Amount {
    let most = if random.chance(2) { 200 } else { 101 };
    Amount { tokens: random.below(most) as u64, calls: 1, ..Amount::default() }
}

/// A request names each key once.
fn without_repeats(mut claims: Vec<Claim>) -> Vec<Claim> {
    let mut seen: Vec<Key> = Vec::new();
    claims.retain(|claim| {
        let new = !seen.contains(claim.key());
        seen.push(claim.key().clone());
        new
    });
    claims
}
