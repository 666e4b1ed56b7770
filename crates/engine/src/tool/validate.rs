//! Validation of tool input, with messages that a model can act on.

use serde_json::{Map, Value};

use super::{ToolDefinition, ToolOutput};

/// Checks an input against the schema of the tool: required fields, unknown fields, types.
/// The error is the output to send to the model.
pub fn validate_input(definition: &ToolDefinition, input: &Value) -> Result<(), Box<ToolOutput>> {
    let issues = match input.as_object() {
        Some(fields) => object_issues(&definition.input_schema, fields),
        None => vec![format!("The input is expected as `object` but provided as `{}`", type_name(input))],
    };
    let heading = match issues.len() {
        0 => return Ok(()),
        1 => "issue",
        _ => "issues",
    };
    let message = format!(
        "InputValidationError: {} failed due to the following {heading}:\n{}",
        definition.name,
        issues.join("\n")
    );
    let mut output = ToolOutput::tool_use_error(&message);
    output.raw = Some(Value::String(message));
    Err(Box::new(output))
}

fn object_issues(schema: &Value, fields: &Map<String, Value>) -> Vec<String> {
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let missing = required
        .filter(|name| !fields.contains_key(*name))
        .map(|name| format!("The required parameter `{name}` is missing"));
    let closed = schema["additionalProperties"] == Value::Bool(false);
    let unexpected = fields
        .keys()
        .filter(|name| closed && !properties.contains_key(*name))
        .map(|name| format!("An unexpected parameter `{name}` was provided"));
    // Optional fields may also be null.
    let needed = |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name));
    let given = fields.iter().filter(|(name, value)| !value.is_null() || needed(name));
    let wrong = given.filter_map(|(name, value)| value_issue(name, properties.get(name)?, value));
    missing.chain(unexpected).chain(wrong).collect()
}

fn value_issue(name: &str, schema: &Value, value: &Value) -> Option<String> {
    if let Some(expected) = schema["type"].as_str() {
        let found = type_name(value);
        let fits = match expected {
            "integer" => value.is_u64() || value.is_i64(),
            expected => expected == found,
        };
        if !fits {
            return Some(format!("The parameter `{name}` type is expected as `{expected}` but provided as `{found}`"));
        }
    }
    if let Some(minimum) = schema["minimum"].as_f64()
        && value.as_f64().is_some_and(|n| n < minimum)
    {
        return Some(format!("The parameter `{name}` must be at least {minimum}"));
    }
    if let Some(choices) = schema["enum"].as_array()
        && !choices.contains(value)
    {
        let words: Vec<String> = choices.iter().map(|c| format!("`{}`", c.as_str().unwrap_or_default())).collect();
        return Some(format!("The parameter `{name}` must be one of {}", words.join(", ")));
    }
    let list = value.as_array()?;
    let items = &schema["items"];
    list.iter().enumerate().find_map(|(i, item)| match item.as_object() {
        Some(fields) if items["type"] == "object" => {
            object_issues(items, fields).into_iter().next().map(|issue| format!("{issue} (in `{name}[{i}]`)"))
        }
        _ => value_issue(&format!("{name}[{i}]"), items, item),
    })
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
