//! The page at `/docs`: every route with its role, for people. It is made from the declared operations and loads nothing.

use crate::PREFIX;
use windlass_api::{Method, Row};

const HEAD: &str = r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Windlass API</title>
<style>
  :root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
  body { max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
  h2 { margin-top: 2rem; font-size: 1.1rem; text-transform: capitalize; }
  table { width: 100%; border-collapse: collapse; }
  td { padding: .35rem .75rem .35rem 0; border-top: 1px solid #8884; vertical-align: top; }
  code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
  .method { width: 4rem; font-weight: 600; }
  .role { width: 6rem; text-align: right; opacity: .7; }
</style>
<h1>Windlass API</h1>
<p>Send <code>Authorization: Bearer TOKEN</code>. The server writes a token to <code>server.token</code> in its data folder;
<code>windlass tokens create</code> makes others. <a href="/openapi.json">openapi.json</a> describes every request and reply.</p>
"#;

pub fn page(rows: &[Row]) -> String {
    let mut page = HEAD.to_owned();
    let mut noun = "";
    for row in rows.iter().filter(|row| !row.about.http.is_empty()) {
        let (its_noun, _) = row.about.name.split_once('.').unwrap_or((row.about.name, ""));
        if its_noun != noun {
            let end = if noun.is_empty() { "" } else { "</table>\n" };
            page += &format!("{end}<h2>{its_noun}</h2>\n<table>\n");
            noun = its_noun;
        }
        for route in row.about.http {
            page += &format!(
                "<tr><td class=method>{}<td><code>{PREFIX}{}</code><br>{}<td class=role>{}\n",
                method(route.method),
                escaped(route.path),
                escaped(row.about.summary),
                row.about.role,
            );
        }
    }
    page + "</table>\n</html>\n"
}

fn method(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Delete => "DELETE",
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
