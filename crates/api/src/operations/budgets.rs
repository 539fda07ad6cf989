//! What may be spent, and what was.

use crate::code::Code;
use crate::operation::{About, Operation, Role, Route};
use crate::perform::{Context, Perform};
use crate::refusal::Refusal;
use crate::report;
use crate::types::{Amounts, Budget, Page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_ir::Duration;
use windlass_ir::policy::Budget as Cap;

/// List budgets.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ListBudgets {
    /// Only this budget.
    pub key: Option<String>,
}

impl Operation for ListBudgets {
    type Reply = Page<Budget>;
    const ABOUT: About = About {
        name: "budgets.list",
        summary: "List budgets",
        http: &[Route::get("/budgets")],
        cli: &["budgets", "budgets show"],
        ..About::READS
    };

    fn example() -> Self {
        Self::default()
    }
}

impl Perform for ListBudgets {
    async fn perform(self, cx: &Context) -> Result<Page<Budget>, Refusal> {
        let empty = Page { items: Vec::new(), next: None };
        cx.read_or(empty, move |engine| {
            let mut items = report::budgets(&engine.shared()?);
            items.retain(|budget| self.key.as_ref().is_none_or(|key| budget.key == *key));
            Ok(Page { items, next: None })
        })
        .await
    }
}

/// Set the caps of a budget, or set what was spent from it to zero.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SetBudget {
    /// `all`, `day`, `workflow:ID` or `run:ID`.
    pub key: String,
    /// The new caps; what is left out has none.
    #[serde(default)]
    pub cap: Option<Amounts>,
    /// The time zone in which the days of `day` begin.
    #[serde(default)]
    pub zone: Option<String>,
    /// Set what was spent to zero.
    #[serde(default)]
    pub reset: bool,
}

impl Operation for SetBudget {
    type Reply = Budget;
    const ABOUT: About = About {
        name: "budgets.set",
        summary: "Set the caps of a budget, or what was spent from it to zero",
        role: Role::Admin,
        errors: &[Code::BadBudget],
        http: &[Route::put("/budgets/{key}")],
        cli: &["budgets set", "budgets reset"],
        ..About::CHANGES
    };

    fn example() -> Self {
        let cap = Amounts { usd: Some(20.0), ..Amounts::default() };
        Self { key: "day".into(), cap: Some(cap), zone: Some("Europe/Berlin".into()), reset: false }
    }
}

impl Perform for SetBudget {
    async fn perform(self, cx: &Context) -> Result<Budget, Refusal> {
        let named = |kind: &str| self.key.strip_prefix(kind).is_some_and(|name| !name.is_empty());
        if !matches!(&*self.key, "all" | "day") && !named("workflow:") && !named("run:") {
            let refusal = Refusal::new(Code::BadBudget, format!("unknown budget `{}`", self.key));
            return Err(refusal
                .field("key")
                .help("the budgets are `all`, `day`, `workflow:ID` and `run:ID`"));
        }
        if self.zone.is_some() && self.key != "day" {
            return Err(Refusal::new(Code::BadBudget, "only the budget `day` has a zone").field("zone"));
        }
        let engine = cx.owner()?;
        if let Some(cap) = &self.cap {
            let zone = match &*self.key {
                "day" => Some(self.zone.as_deref().unwrap_or("UTC").into()),
                _ => None,
            };
            engine.set_budget(self.key.as_str().into(), caps(cap)?, zone, cx.entries()).await?;
        }
        if self.reset {
            engine.reset_budget(self.key.as_str().into(), cx.entries()).await?;
        }
        let found = cx.read(|engine| Ok(report::budgets(&engine.shared()?))).await?;
        let none = || Budget {
            key: self.key.clone(),
            cap: None,
            spent: Amounts::default(),
            reserved: Amounts::default(),
            window: None,
        };
        Ok(found.into_iter().find(|budget| budget.key == self.key).unwrap_or_else(none))
    }
}

fn caps(cap: &Amounts) -> Result<Cap, Refusal> {
    let amount = |number: Option<f64>, field: &str| match number {
        Some(number) if !(0.0..=AMOUNT_MAX).contains(&number) => {
            let refusal = Refusal::new(Code::BadBudget, format!("invalid amount {number}"));
            Err(refusal.field(format!("cap.{field}")).help("an amount is 0 or more"))
        }
        // Both are counted in millionths.
        number => Ok(number.map(|number| (number * 1e6).round() as u64)),
    };
    let time = amount(cap.seconds, "seconds")?;
    Ok(Cap {
        tokens: cap.tokens,
        micro_usd: amount(cap.usd, "usd")?,
        calls: cap.calls,
        time: time.map(Duration),
    })
}

/// More than anyone spends, and still exact.
const AMOUNT_MAX: f64 = 9e9;
