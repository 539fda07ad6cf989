//! The description of the API: OpenAPI 3.1, made from the declared operations.

use crate::PREFIX;
use crate::problem::status;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use windlass_api::{Code, Effect, Method, Route, Row, Stability};

/// Where schemas refer to each other.
const SCHEMAS: &str = "#/components/schemas/";

pub fn openapi(rows: &[Row]) -> Json {
    let mut schemas = Schemas::default();
    schemas.0.insert("Problem".into(), problem());
    let mut paths: Map<String, Json> = Map::new();
    for row in rows {
        for route in row.about.http {
            let path = paths.entry(format!("{PREFIX}{}", route.path)).or_insert_with(|| json!({}));
            path[method(route.method)] = operation(row, *route, &mut schemas);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Windlass",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs workflows of agents, tools, shell commands, workers and human decisions.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas.0,
        },
    })
}

fn method(method: Method) -> &'static str {
    match method {
        Method::Get => "get",
        Method::Post => "post",
        Method::Put => "put",
        Method::Delete => "delete",
    }
}

fn operation(row: &Row, route: Route, schemas: &mut Schemas) -> Json {
    let request = schemas.add(row.request.as_value(), "Request");
    let members = schemas.members(&request);
    let in_path: Vec<(&str, &str)> = route.members().collect();
    let has_body = matches!(route.method, Method::Post | Method::Put);
    let mut parameters: Vec<Json> = in_path
        .iter()
        .map(|(part, member)| {
            let mut parameter = json!({
                "name": part,
                "in": "path",
                "required": true,
                "schema": {"type": "string", "minLength": 1},
                "description": about(members.get(*member)),
            });
            if let Some(example) = row.example.get(*member).filter(|example| example.is_string()) {
                parameter["example"] = example.clone();
            }
            parameter
        })
        .collect();
    let rest = || members.iter().filter(|(name, _)| !in_path.iter().any(|(_, member)| *name == member));
    if !has_body {
        parameters.extend(rest().map(|(name, schema)| {
            json!({"name": name, "in": "query", "required": false, "schema": schema, "description": about(Some(schema))})
        }));
    }
    if row.about.effect == Effect::Changes {
        parameters.push(json!({
            "name": "Idempotency-Key",
            "in": "header",
            "required": false,
            "description": "A repeated call with the same key and request changes nothing and gets the same reply.",
            "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
        }));
    }
    let reply = schemas.add(row.reply.as_value(), "Reply");
    let mut about = json!({
        "operationId": row.about.name,
        "summary": row.about.summary,
        "tags": [row.about.name.split('.').next()],
        "parameters": parameters,
        "responses": responses(row, &reply),
        "x-role": row.about.role,
    });
    if row.about.stability == Stability::Preview {
        about["x-stability"] = json!("preview");
    }
    if has_body {
        let properties: Map<String, Json> =
            rest().map(|(name, schema)| (name.clone(), schema.clone())).collect();
        let required = schemas.required(&request);
        let required: Vec<&String> = required.iter().filter(|name| properties.contains_key(*name)).collect();
        let body = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        });
        let given = row.example.as_object().into_iter().flatten();
        let given = given.filter(|(name, value)| properties.contains_key(*name) && !value.is_null());
        let example: Map<String, Json> = given.map(|(name, value)| (name.clone(), value.clone())).collect();
        let content = json!({"schema": body, "example": example});
        let is_required = !required.is_empty();
        about["requestBody"] = json!({"required": is_required, "content": {"application/json": content}});
    }
    about
}

fn about(schema: Option<&Json>) -> Json {
    schema.and_then(|schema| schema.get("description")).cloned().unwrap_or_else(|| json!(""))
}

/// The reply and, by status, the codes of refusals.
fn responses(row: &Row, reply: &Json) -> Json {
    let mut by_status: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for code in Code::ALL.iter().filter(|code| row.about.declares(**code) || **code == Code::Unauthorized) {
        by_status.entry(status(*code).as_str().to_owned()).or_default().push(format!("`{code}`"));
    }
    // The body may have another type than JSON, and its size is checked before it is read.
    by_status.entry("413".into()).or_default();
    by_status.entry("415".into()).or_default();
    let problem = json!({"application/problem+json": {"schema": {"$ref": format!("{SCHEMAS}Problem")}}});
    let mut responses: Map<String, Json> = by_status
        .into_iter()
        .map(|(status, codes)| (status, json!({"description": codes.join(", "), "content": problem})))
        .collect();
    let mut content = json!({"application/json": {"schema": reply}});
    let success: &[&str] = match row.about.name {
        "runs.start" => &["200", "202"],
        "tokens.create" => &["201"],
        "events.list" => {
            content["text/event-stream"] = json!({"schema": {"type": "string"}});
            responses.insert("204".into(), json!({"description": "The run is over and has no more events."}));
            &["200"]
        }
        _ => &["200"],
    };
    for status in success {
        responses.insert((*status).into(), json!({"description": row.about.summary, "content": content}));
    }
    Json::Object(responses)
}

fn problem() -> Json {
    json!({
        "type": "object",
        "description": "Why nothing was done (RFC 9457). `code` is stable; `help` says what to do next.",
        "required": ["type", "title", "status", "detail", "instance", "code", "message"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "instance": {"type": "string"},
            "code": {"type": "string"},
            "message": {"type": "string"},
            "help": {"type": ["string", "null"]},
            "step": {"type": ["string", "null"]},
            "field": {"type": ["string", "null"]},
            "place": {"type": ["object", "null"]},
            "diagnostics": {"type": "array"},
            "retry_after_seconds": {"type": ["number", "null"]},
        },
    })
}

/// The schemas that others refer to, by name.
#[derive(Default)]
struct Schemas(Map<String, Json>);

impl Schemas {
    /// Adds what a schema defines and returns the schema itself. A definition that another schema has with other contents gets
    /// a name of its own.
    fn add(&mut self, whole: &Json, kind: &str) -> Json {
        let empty = Map::new();
        let defined = whole["$defs"].as_object().unwrap_or(&empty);
        let plain: BTreeMap<&str, String> =
            defined.keys().map(|name| (name.as_str(), name.clone())).collect();
        let differ = |name: &str, schema: &Json| {
            self.0.get(name).is_some_and(|known| *known != renamed(schema, &plain))
        };
        let names: BTreeMap<&str, String> = defined
            .iter()
            .map(|(name, schema)| {
                let own = if differ(name, schema) { format!("{name}{kind}") } else { name.clone() };
                (name.as_str(), own)
            })
            .collect();
        for (name, schema) in defined {
            self.0.insert(names[name.as_str()].clone(), renamed(schema, &names));
        }
        let mut schema = renamed(whole, &names);
        if let Some(members) = schema.as_object_mut() {
            members.remove("$defs");
            members.remove("$schema");
            members.remove("title");
        }
        schema
    }

    fn behind<'a>(&'a self, schema: &'a Json) -> &'a Json {
        let name = schema["$ref"].as_str().and_then(|place| place.strip_prefix(SCHEMAS));
        name.and_then(|name| self.0.get(name)).unwrap_or(schema)
    }

    fn members(&self, schema: &Json) -> Map<String, Json> {
        self.behind(schema)["properties"].as_object().cloned().unwrap_or_default()
    }

    fn required(&self, schema: &Json) -> Vec<String> {
        let required = self.behind(schema)["required"].as_array().cloned().unwrap_or_default();
        required.iter().filter_map(Json::as_str).map(str::to_owned).collect()
    }
}

/// The same schema with references to the components of the document.
fn renamed(schema: &Json, names: &BTreeMap<&str, String>) -> Json {
    match schema {
        Json::Object(members) => members
            .iter()
            .map(|(key, value)| {
                let place = value.as_str().filter(|_| key == "$ref");
                let name = place.and_then(|place| place.strip_prefix("#/$defs/"));
                let value = match name.and_then(|name| names.get(name)) {
                    Some(name) => json!(format!("{SCHEMAS}{name}")),
                    None => renamed(value, names),
                };
                (key.clone(), value)
            })
            .collect(),
        Json::Array(items) => items.iter().map(|item| renamed(item, names)).collect(),
        other => other.clone(),
    }
}
