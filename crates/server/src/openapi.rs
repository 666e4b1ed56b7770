//! The OpenAPI document: every operation with its parameters and the schema of its reply.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use quipu_render::FileChange;
use quipu_trace::CallDiff;
use quipu_trace::explain::Report;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::api::{
    calls, changes, chat_control, chat_rewind, chats, files, find, items, labels, overview, raw, search, session,
    sessions, settings, status, timeline, turns, usage,
};
use crate::chat::{Chat, ChatEvent, PromptReply, StartRequest};
use crate::event::Event;

/// Adds the schema of a type to a generator.
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// What an operation returns.
enum Reply {
    Json(SchemaOf),
    /// Another type of content.
    Content(&'static str),
    /// Lines of JSON.
    Lines(SchemaOf),
}

/// One method of a path.
struct Operation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    params: Option<SchemaOf>,
    body: Option<SchemaOf>,
    reply: Reply,
}

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

const fn get(path: &'static str, summary: &'static str, reply: Reply) -> Operation {
    Operation { method: "get", path, summary, params: None, body: None, reply }
}

impl Operation {
    const fn params(self, params: SchemaOf) -> Self {
        Self { params: Some(params), ..self }
    }

    const fn with_body(self, method: &'static str, body: Option<SchemaOf>) -> Self {
        Self { method, body, ..self }
    }
}

/// All operations, in the order of the router.
const OPERATIONS: [Operation; 44] = [
    get("/api/status", "Version, folders and state of the index", Reply::Json(schema::<status::Status>)),
    get("/api/chat/setup", "Agents and folders for a chat", Reply::Json(schema::<chats::ChatSetup>))
        .params(schema::<chats::SetupParams>),
    get("/api/chats", "Lists chats", Reply::Json(schema::<Vec<Chat>>)),
    get("/api/chats", "Starts a chat", Reply::Json(schema::<Chat>)).with_body("post", Some(schema::<StartRequest>)),
    get("/api/chats/{id}", "A chat", Reply::Json(schema::<Chat>)),
    get("/api/chats/{id}", "Ends a chat", Reply::Json(schema::<Chat>)).with_body("delete", None),
    get("/api/chats/{id}/events", "What happens in a chat, one a line", Reply::Lines(schema::<ChatEvent<'static>>)),
    get("/api/chats/{id}/interrupt", "Ends the running turn", Reply::Json(schema::<Chat>)).with_body("post", None),
    get("/api/chats/{id}/messages", "Sends a message", Reply::Json(schema::<chat_control::SentMessage>))
        .with_body("post", Some(schema::<chat_control::MessageBody>)),
    get("/api/chats/{id}/model", "Sets the model", Reply::Json(schema::<Chat>))
        .with_body("post", Some(schema::<chat_control::ModelBody>)),
    get("/api/chats/{id}/permission_mode", "Sets the permission mode", Reply::Json(schema::<Chat>))
        .with_body("post", Some(schema::<chat_control::PermissionModeBody>)),
    get("/api/chats/{id}/prompts/{prompt}", "Replies to a prompt", Reply::Json(schema::<Chat>))
        .with_body("post", Some(schema::<PromptReply>)),
    get("/api/chats/{id}/queue/{uuid}", "Removes a message from the queue", Reply::Json(schema::<Chat>))
        .with_body("delete", None),
    get("/api/chats/{id}/rewind", "Takes files and conversation back", Reply::Json(schema::<chat_rewind::RewindReply>))
        .with_body("post", Some(schema::<chat_rewind::RewindBody>)),
    get("/api/context", "A text to attach to a message", Reply::Json(schema::<files::ContextText>))
        .params(schema::<files::ContextParams>),
    get("/api/events", "Changes as they happen, one a line", Reply::Lines(schema::<Event>)),
    get("/api/files", "Files, folders and symbols by name", Reply::Json(schema::<files::FoundFiles>))
        .params(schema::<files::FileParams>),
    get("/api/openapi.json", "This document", Reply::Json(schema::<Value>)),
    get("/api/overview", "What the first page shows", Reply::Json(schema::<overview::Overview<'static>>)),
    get("/api/search", "Finds text in all sessions", Reply::Json(schema::<search::Found>))
        .params(schema::<search::SearchParams>),
    get("/api/sessions", "Lists sessions", Reply::Json(schema::<sessions::SessionPage<'static>>))
        .params(schema::<sessions::ListParams>),
    get("/api/sessions/{key}", "Structure of a session", Reply::Json(schema::<session::SessionStructure<'static>>)),
    get("/api/sessions/{key}", "Deletes a session", Reply::Json(schema::<labels::DeleteReply>))
        .with_body("delete", None),
    get("/api/sessions/{key}/cache", "What the prompt cache did", Reply::Json(schema::<calls::CacheDocument<'static>>))
        .params(schema::<calls::CallParams>),
    get(
        "/api/sessions/{key}/calls",
        "API calls, branches and turns",
        Reply::Json(schema::<calls::CallsDocument<'static>>),
    )
    .params(schema::<calls::CallParams>),
    get("/api/sessions/{key}/calls/diff", "Compares two requests", Reply::Json(schema::<Vec<CallDiff<'static>>>))
        .params(schema::<calls::DiffParams>),
    get("/api/sessions/{key}/changes", "Files that the session changed", Reply::Json(schema::<Vec<FileChange>>)),
    get("/api/sessions/{key}/timeline", "What happened in each turn", Reply::Json(schema::<timeline::TurnTimelines>)),
    get("/api/sessions/{key}/explain", "Where time and money went", Reply::Json(schema::<Report>)),
    get("/api/sessions/{key}/export", "The session as a file to save", Reply::Content("application/octet-stream"))
        .params(schema::<changes::ExportParams>),
    get("/api/sessions/{key}/find", "Finds text in the session", Reply::Json(schema::<find::Matches>))
        .params(schema::<find::FindParams>),
    get("/api/sessions/{key}/items", "A window of the conversation", Reply::Json(schema::<items::Window>))
        .params(schema::<items::ItemParams>),
    get("/api/sessions/{key}/raw", "Lines of the file as they are", Reply::Content("text/plain"))
        .params(schema::<raw::RawParams>),
    get("/api/sessions/{key}/star", "Gives or removes a star", Reply::Json(schema::<labels::StarBody>))
        .with_body("post", Some(schema::<labels::StarBody>)),
    get("/api/sessions/{key}/tags", "Sets the tags", Reply::Json(schema::<labels::TagsBody>))
        .with_body("post", Some(schema::<labels::TagsBody>)),
    get("/api/sessions/{key}/title", "Sets the title", Reply::Json(schema::<labels::TitleBody>))
        .with_body("post", Some(schema::<labels::TitleBody>)),
    get("/api/sessions/{key}/turns", "Cost and time of each turn", Reply::Json(schema::<turns::TurnFigures>)),
    get("/api/settings", "Settings of the page", Reply::Json(schema::<settings::Settings>)),
    get("/api/settings", "Changes settings of the page", Reply::Json(schema::<settings::Settings>))
        .with_body("put", Some(schema::<settings::SettingsChanges>)),
    get("/api/usage", "Tokens and cost", Reply::Json(schema::<usage::UsageDocument>))
        .params(schema::<usage::UsageParams>),
    get("/api/usage.csv", "Tokens and cost as a table", Reply::Content("text/csv"))
        .params(schema::<usage::UsageParams>),
    get("/api/usage/compare", "A period and the one before", Reply::Json(schema::<usage::Comparison>))
        .params(schema::<usage::UsageParams>),
    get("/api/usage/heatmap", "Cost of each day", Reply::Json(schema::<Vec<usage::DayCell>>))
        .params(schema::<usage::UsageParams>),
    get("/api/usage/hours", "Cost by weekday and hour", Reply::Json(schema::<Vec<usage::HourCell>>))
        .params(schema::<usage::UsageParams>),
];

pub(crate) async fn serve_document() -> Response {
    ([(CONTENT_TYPE, "application/json")], document().to_string()).into_response()
}

/// The OpenAPI document.
pub(crate) fn document() -> Value {
    // OpenAPI 3.1 has schemas of this draft, at its own place.
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    // Parameters are read, replies are written: a default makes a parameter optional.
    let mut requests = settings.clone().for_deserialize().into_generator();
    let mut replies = settings.for_serialize().into_generator();
    let mut paths = Map::new();
    for operation in &OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = operation.describe(&mut replies, &mut requests);
    }
    let mut schemas = requests.take_definitions(true);
    schemas.extend(replies.take_definitions(true));
    json!({
        "openapi": "3.1.0",
        "info": {"title": "quipu", "version": env!("CARGO_PKG_VERSION")},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

impl Operation {
    fn describe(&self, replies: &mut SchemaGenerator, requests: &mut SchemaGenerator) -> Value {
        let content = match &self.reply {
            Reply::Json(schema) => json!({"application/json": {"schema": schema(replies)}}),
            Reply::Lines(schema) => json!({"application/x-ndjson": {"schema": schema(replies)}}),
            Reply::Content(kind) => json!({*kind: {}}),
        };
        let mut operation = json!({
            "summary": self.summary,
            "parameters": self.parameters(requests),
            "responses": {"200": {"description": "OK", "content": content}},
        });
        if let Some(body) = self.body {
            operation["requestBody"] = json!({"content": {"application/json": {"schema": body(requests)}}});
        }
        operation
    }

    /// The names in the path and the fields of the query.
    fn parameters(&self, requests: &mut SchemaGenerator) -> Vec<Value> {
        let mut parameters = Vec::new();
        for name in self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
            parameters.push(json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
        }
        let Some(params) = self.params else { return parameters };
        let reference = params(requests);
        let name = reference.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
        let fields = name.and_then(|name| requests.definitions().get(name)).cloned().unwrap_or_default();
        for (name, field) in fields["properties"].as_object().into_iter().flatten() {
            let is_required = fields["required"].as_array().is_some_and(|list| list.iter().any(|field| field == name));
            parameters.push(json!({"name": name, "in": "query", "required": is_required, "schema": field}));
        }
        parameters
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_route_is_described_and_every_description_has_a_route() {
        let mut routes = BTreeSet::new();
        for line in include_str!("router.rs").lines() {
            let Some((path, methods)) = line.trim().strip_prefix(".route(\"").and_then(|rest| rest.split_once("\", "))
            else {
                continue;
            };
            for method in ["get", "post", "put", "delete"] {
                if methods.starts_with(&format!("{method}(")) || methods.contains(&format!(".{method}(")) {
                    routes.insert((method, path));
                }
            }
        }
        let described: BTreeSet<_> = OPERATIONS.iter().map(|operation| (operation.method, operation.path)).collect();
        assert_eq!(routes, described);
        assert_eq!(OPERATIONS.len(), described.len());
    }

    #[test]
    fn every_reference_of_the_document_leads_to_a_schema() {
        let document = document();
        let text = document.to_string();
        let references: Vec<&str> = text.split("\"#/components/schemas/").skip(1).collect();
        assert!(references.len() > 40, "{}", references.len());
        for reference in references {
            let name = reference.split('"').next().unwrap();
            assert!(document["components"]["schemas"][name].is_object(), "{name}");
        }
    }
}
