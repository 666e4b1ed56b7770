//! The OpenAPI document, the types of the page that are generated from it, and replies that follow it.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Map, Value, json};

use crate::client::demo;

const TIDE: &str = "05ef09b2-9c3d-4897-965b-0c47c2889d7b";

#[test]
fn replies_follow_the_document() {
    let server = demo();
    server.wait_for_index();
    let document = server.json("/api/openapi.json");
    let calls = server.json(&format!("/api/sessions/{TIDE}/calls"));
    let last_call = calls["calls"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let query = |path: &str| match path.rsplit('/').next() {
        Some("search" | "find") => "?q=tide".to_owned(),
        Some("files") => format!("?cwd={}", folder.path().display()),
        Some("context") => format!("?cwd={}&kind=git_diff", folder.path().display()),
        Some("diff") => format!("?b={last_call}"),
        _ => String::new(),
    };
    // A chat whose agent does not start is a chat, too.
    let start = json!({"agent": "/bin/false", "cwd": folder.path(), "trust": true});
    let started = server.post("/api/chats", &start);
    assert_eq!(started.status, 201, "{}", started.text());
    let chat = started.json()["id"].as_str().unwrap().to_owned();
    let mut checked = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let schema = &methods["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        if schema.is_null() {
            continue;
        }
        let reply = server.json(&format!("{}{}", path.replace("{key}", TIDE).replace("{id}", &chat), query(path)));
        let mut whole = schema.clone();
        if let Some(fields) = whole.as_object_mut() {
            fields.insert("components".to_owned(), document["components"].clone());
        }
        let validator = jsonschema::validator_for(&whole).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&reply)
            .take(3)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{path}: {errors:#?}");
        checked += 1;
    }
    assert!(checked >= 24, "{checked}");
}

#[test]
fn the_types_of_the_page_are_those_of_the_server() {
    let document = demo().json("/api/openapi.json");
    let types = typescript(document["components"]["schemas"].as_object().unwrap());
    let path = quipu_testkit::repository_root().join("web/src/api/types/api.ts");
    if std::env::var_os("QUIPU_UPDATE_TYPES").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &types).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let hint = "QUIPU_UPDATE_TYPES=1 cargo test -p quipu-server the_types_of_the_page writes them again";
    assert!(written == types, "{} is not up to date: {hint}", path.display());
}

/// TypeScript declarations of schemas.
fn typescript(schemas: &Map<String, Value>) -> String {
    let mut text = "// Generated from the types of the server by a test of crates/server; do not edit.\n".to_owned();
    let mut names: Vec<&String> = schemas.keys().collect();
    names.sort();
    for name in names {
        let schema = &schemas[name];
        text.push('\n');
        push_comment(&mut text, schema, "");
        match schema.get("properties") {
            Some(_) => writeln!(text, "export interface {name} {}", type_of(schema, "")).unwrap(),
            None => writeln!(text, "export type {name} = {};", type_of(schema, "")).unwrap(),
        }
    }
    text
}

fn push_comment(text: &mut String, schema: &Value, indent: &str) {
    if let Some(description) = schema["description"].as_str() {
        let description = description.replace("\n\n", "\n").replace('\n', " ").replace("*/", "* /");
        writeln!(text, "{indent}/** {description} */").unwrap();
    }
}

/// The type that a schema describes.
fn type_of(schema: &Value, indent: &str) -> String {
    let union = |list: &Value| {
        let mut types: Vec<String> = list.as_array().unwrap().iter().map(|part| type_of(part, indent)).collect();
        types.dedup();
        types.join(" | ")
    };
    let nullable = if schema["nullable"] == json!(true) { " | null" } else { "" };
    let base = if let Some(reference) = schema["$ref"].as_str() {
        reference.rsplit('/').next().unwrap().to_owned()
    } else if schema["enum"].is_array() {
        let values: Vec<String> = schema["enum"].as_array().unwrap().iter().map(Value::to_string).collect();
        values.join(" | ")
    } else if schema["const"].is_string() {
        schema["const"].to_string()
    } else if let Some(list) = ["oneOf", "anyOf", "allOf"].iter().find(|name| schema[**name].is_array()) {
        union(&schema[*list])
    } else if let Value::Array(kinds) = &schema["type"] {
        let types: Vec<String> = kinds
            .iter()
            .map(|kind| {
                let mut one = schema.clone();
                one["type"] = kind.clone();
                type_of(&one, indent)
            })
            .collect();
        types.join(" | ")
    } else {
        match schema["type"].as_str() {
            Some("string") => "string".to_owned(),
            Some("integer" | "number") => "number".to_owned(),
            Some("boolean") => "boolean".to_owned(),
            Some("null") => "null".to_owned(),
            Some("array") => {
                let items = type_of(&schema["items"], indent);
                if items.contains(" | ") { format!("({items})[]") } else { format!("{items}[]") }
            }
            Some("object") if schema["properties"].is_object() => fields_of(schema, indent),
            Some("object") if schema["additionalProperties"].is_object() => {
                format!("Record<string, {}>", type_of(&schema["additionalProperties"], indent))
            }
            Some("object") => "Record<string, unknown>".to_owned(),
            _ => "unknown".to_owned(),
        }
    };
    base + nullable
}

fn fields_of(schema: &Value, indent: &str) -> String {
    let inner = format!("{indent}  ");
    let mut text = "{\n".to_owned();
    for (name, field) in schema["properties"].as_object().unwrap() {
        push_comment(&mut text, field, &inner);
        let is_required = schema["required"].as_array().is_some_and(|list| list.iter().any(|field| field == name));
        let mark = if is_required { "" } else { "?" };
        writeln!(text, "{inner}{name}{mark}: {};", type_of(field, &inner)).unwrap();
    }
    text + indent + "}"
}
