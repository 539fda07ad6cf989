//! What was expected of a phase against what was seen. Wordings of errors are our own; that there is one is not.

use serde_json::Value as Json;

#[derive(Debug)]
pub struct Seen {
    pub status: Option<i32>,
    pub payload: Json,
    /// `windlass show`, when there is a run.
    pub kept: Option<Json>,
    /// `windlass runs`, when there should be none.
    pub runs: Option<Json>,
    /// The findings of `windlass validate`, where they are asked for.
    pub problems: Json,
    /// Where it happened.
    pub folder: String,
    pub stderr: String,
}

pub fn compare(phase: &Json, seen: &Seen) -> Result<(), String> {
    let run = seen.payload["run_id"].as_str().or_else(|| seen.kept.as_ref()?["run_id"].as_str());
    let phase =
        phase.to_string().replace("<RUN_ID>", run.unwrap_or_default()).replace("<PROJECT>", &seen.folder);
    let phase: Json = serde_json::from_str(&phase).expect("still JSON");
    let mut found = Differences(Vec::new());
    found.check("exit status", &phase["exit_code"], &seen.status.into());
    found.payload(&phase["json"], &seen.payload);
    match (phase.get("status"), &seen.kept) {
        (Some(_), Some(kept)) => found.kept(&phase, kept),
        (Some(_), None) => found.add("no run", "one is kept", "none"),
        (None, Some(kept)) => found.add("a run", "nothing is kept", kept),
        (None, None) => found.check(
            "runs",
            &Json::Array(Vec::new()),
            &seen.runs.as_ref().map(|runs| runs["items"].clone()).unwrap_or_default(),
        ),
    }
    if let Some(problems) = phase["validation_problems"].as_array() {
        found.problems(problems, seen.problems.as_array().map_or(&[], Vec::as_slice));
    }
    match found.0.is_empty() {
        true => Ok(()),
        false => Err(format!("{}\n{}", found.0.join("\n"), seen.stderr)),
    }
}

struct Differences(Vec<String>);

impl Differences {
    fn add(&mut self, what: &str, expected: impl std::fmt::Display, seen: impl std::fmt::Display) {
        self.0.push(format!("  {what}: expected {expected}, seen {seen}"));
    }

    fn check(&mut self, what: &str, expected: &Json, seen: &Json) {
        if !is_same(expected, seen) {
            self.add(what, expected, seen);
        }
    }

    /// Whether something went wrong, not in which words.
    fn check_error(&mut self, what: &str, expected: &Json, seen: &Json) {
        if expected.is_null() != seen.is_null() {
            self.add(what, expected, seen);
        }
    }

    fn payload(&mut self, expected: &Json, seen: &Json) {
        let (Json::Object(expected), Json::Object(own)) = (expected, seen) else {
            return self.check("payload", expected, seen);
        };
        for (key, value) in expected {
            match key.as_str() {
                "error" => self.check_error("error in the payload", value, &seen["error"]),
                _ => self.check(&format!("{key} in the payload"), value, &seen[key]),
            }
        }
        for key in own.keys().filter(|key| !expected.contains_key(*key)) {
            self.add("payload", "nothing else", key);
        }
    }

    fn kept(&mut self, phase: &Json, kept: &Json) {
        self.check("status", &phase["status"], &kept["dialect_status"]);
        self.check("inputs", &phase["inputs"], &kept["inputs"]);
        self.check("current step", &phase["current_step_id"], &kept["current_step"]);
        self.check_error("error", &phase["error"], &kept["error"]);
        let (theirs, ours) = (phase["steps"].as_object().expect("steps"), &kept["steps"]);
        for (id, step) in theirs {
            self.check(&format!("status of {id}"), &step["status"], &ours[id]["dialect_status"]);
            self.output(id, &step["output"], &ours[id]["output"]);
            self.check_error(&format!("error of {id}"), &step["error"], &ours[id]["error"]);
        }
        let ours = ours.as_object().into_iter().flatten();
        for (id, step) in ours.filter(|(id, _)| !theirs.contains_key(*id)) {
            self.add(id, "no record", step);
        }
    }

    /// A call tells its caller what went wrong, too.
    fn output(&mut self, id: &str, expected: &Json, seen: &Json) {
        let (mut expected, mut seen) = (expected.clone(), seen.clone());
        if expected["error"].is_string() && seen["error"].is_string() {
            (expected["error"], seen["error"]) = (Json::Null, Json::Null);
        }
        self.check(&format!("output of {id}"), &expected, &seen);
    }

    /// Every problem is found, and nothing else is an error.
    fn problems(&mut self, expected: &[Json], diagnostics: &[Json]) {
        let mut errors: Vec<&Json> =
            diagnostics.iter().filter(|found| found["severity"] == "error").collect();
        for problem in expected {
            match errors.iter().position(|found| is_problem(problem, found)) {
                Some(place) => drop(errors.remove(place)),
                None => self.add("problem", problem, "none"),
            }
        }
        for error in errors {
            self.add("problem", "no other", error);
        }
    }
}

/// `missing:run` is `missing_field` with the field `run`, `bad:run` is `bad_field`; every other word is a code.
fn is_problem(expected: &Json, finding: &Json) -> bool {
    let problem = expected["problem"].as_str().expect("a problem");
    let is_kind = match problem.split_once(':') {
        Some((kind, field)) => finding["code"] == format!("{kind}_field") && finding["field"] == field,
        None => finding["code"] == problem.replace('-', "_"),
    };
    let subject = &expected["subject"];
    is_kind && (subject.is_null() || finding["step"] == *subject || finding["ref"] == *subject)
}

/// Texts that end in `…` were cut off.
fn is_same(expected: &Json, seen: &Json) -> bool {
    match (expected, seen) {
        (Json::String(expected), Json::String(seen)) => match expected.strip_suffix('…') {
            Some(beginning) => seen.starts_with(beginning),
            None => expected == seen,
        },
        (Json::Array(expected), Json::Array(seen)) => {
            expected.len() == seen.len()
                && expected.iter().zip(seen).all(|(expected, seen)| is_same(expected, seen))
        }
        (Json::Object(expected), Json::Object(seen)) => {
            let same =
                |(key, value): (&String, &Json)| seen.get(key).is_some_and(|seen| is_same(value, seen));
            expected.len() == seen.len() && expected.iter().all(same)
        }
        (expected, seen) => expected == seen,
    }
}
