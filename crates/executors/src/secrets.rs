//! Secrets: references in a job become text at the last moment, and every value used is remembered for redaction.

use crate::context::Environment;
use crate::redact::Redactor;
use indexmap::IndexMap;
use secrecy::{ExposeSecret, SecretString};
use std::ffi::OsStr;
use std::sync::Arc;
use windlass_engine::{Failure, class};
use windlass_ir::Value;
use windlass_ir::expr::{Semantics, text_form};
use windlass_ir::value::SealedPart;

/// Where the values of secrets come from.
pub trait Secrets: Send + Sync {
    /// The value, or why there is none and what to do about it.
    fn resolve(&self, name: &str) -> Result<SecretString, String>;
}

/// A secret is the environment variable with that name in the caller's environment.
impl Secrets for Environment {
    fn resolve(&self, name: &str) -> Result<SecretString, String> {
        let value = self.variables.get(OsStr::new(name)).ok_or_else(|| {
            format!(
                "the secret `{name}` is not set: set the environment variable `{name}` where you start the \
                run"
            )
        })?;
        let text = value.to_str().ok_or_else(|| {
            format!("the secret `{name}` cannot be used: the environment variable `{name}` is not UTF-8")
        })?;
        Ok(text.into())
    }
}

/// The secrets that one job has used so far. Each is resolved once.
pub struct Unsealer<'a> {
    secrets: &'a dyn Secrets,
    used: IndexMap<Arc<str>, SecretString>,
}

impl<'a> Unsealer<'a> {
    pub fn new(secrets: &'a dyn Secrets) -> Self {
        Self { secrets, used: IndexMap::new() }
    }

    /// A value as text for other programs: null is empty, lists and objects are JSON.
    pub fn text(&mut self, value: &Value) -> Result<Arc<str>, Failure> {
        let open = self.open(value)?;
        text_form(&open, &Semantics::HOUSE)
            .map_err(|error| Failure::new(class::EXPRESSION_ERROR, error.message))
    }

    /// A value as JSON for other programs.
    pub fn json(&mut self, value: &Value) -> Result<String, Failure> {
        let open = self.open(value)?;
        open.to_json_text().ok_or_else(|| Failure::new(class::ERROR, "the value cannot be written as JSON"))
    }

    fn open(&mut self, value: &Value) -> Result<Value, Failure> {
        Ok(match value {
            Value::Sealed(parts) => Value::text(self.join(parts)?),
            Value::List(items) if value.is_sealed() => {
                Value::List(items.iter().map(|item| self.open(item)).collect::<Result<_, _>>()?)
            }
            Value::Map(map) if value.is_sealed() => {
                let entries = map.iter().map(|(key, value)| Ok((key.clone(), self.open(value)?)));
                Value::Map(Arc::new(entries.collect::<Result<_, Failure>>()?))
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => value.clone(),
            Value::Text(_) | Value::List(_) | Value::Map(_) => value.clone(),
        })
    }

    fn join(&mut self, parts: &[SealedPart]) -> Result<String, Failure> {
        let mut text = String::new();
        for part in parts {
            match part {
                SealedPart::Text(plain) => text.push_str(plain),
                SealedPart::Secret(name) => text.push_str(self.secret(name)?),
            }
        }
        Ok(text)
    }

    fn secret(&mut self, name: &Arc<str>) -> Result<&str, Failure> {
        if !self.used.contains_key(name) {
            let value = self.secrets.resolve(name).map_err(|why| Failure::new(class::AUTH_FAILURE, why))?;
            self.used.insert(name.clone(), value);
        }
        Ok(self.used[name].expose_secret())
    }

    /// Redacts the secrets of the job, and every other secret that its run declares: a command may find one that it
    /// was not given, for instance in the environment of the owner.
    pub fn redactor(&self, declared: &[Arc<str>]) -> Redactor {
        let unused = declared.iter().filter(|name| !self.used.contains_key(*name));
        // A secret that is not set cannot be printed.
        let others: Vec<SecretString> = unused.filter_map(|name| self.secrets.resolve(name).ok()).collect();
        Redactor::new(self.used.values().chain(&others).map(ExposeSecret::expose_secret))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &Value, expected: Result<&str, &str>) {
        let variables = [("TOKEN", "hush"), ("EMPTY", "")].map(|(name, value)| (name.into(), value.into()));
        let environment = Environment { variables: variables.into(), ..Environment::default() };
        let text = Unsealer::new(&environment).text(value);
        let found = text.as_deref().map_err(|failure| {
            assert_eq!(&*failure.class, class::AUTH_FAILURE);
            &*failure.message
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn values_become_text() {
        let header =
            Value::Sealed([SealedPart::Text("Bearer ".into()), SealedPart::Secret("TOKEN".into())].into());
        check(&header, Ok("Bearer hush"));
        check(&Value::secret("EMPTY"), Ok(""));
        check(&Value::Null, Ok(""));
        check(&Value::Float(3.0), Ok("3.0"));
        check(&Value::list([Value::secret("TOKEN"), Value::Bool(true)]), Ok(r#"["hush",true]"#));
        check(&Value::map([("a", Value::secret("TOKEN"))]), Ok(r#"{"a":"hush"}"#));
    }

    #[test]
    fn a_missing_secret_is_named() {
        let why = "the secret `GONE` is not set: set the environment variable `GONE` where you start the run";
        check(&Value::secret("GONE"), Err(why));
    }
}
