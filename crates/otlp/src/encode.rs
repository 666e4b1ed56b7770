//! Spans as OTLP messages.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource as ResourceMessage;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind as KindCode;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span as SpanMessage, Status};
use prost::Message as _;

use crate::span::{AttributeValue, Span, SpanKind};

/// The program that the spans are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Name of the program: `service.name`.
    pub service_name: String,
    /// Version of the program: `service.version`.
    pub service_version: String,
}

/// The body of a request with these spans.
pub(crate) fn encode(resource: &Resource, spans: &[Span]) -> Vec<u8> {
    let attributes = [("service.name", &resource.service_name), ("service.version", &resource.service_version)];
    let attributes = attributes.map(|(name, value)| key_value(name, &AttributeValue::Text(value.clone())));
    let scope = InstrumentationScope {
        name: "quipu".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let scope_spans =
        ScopeSpans { scope: Some(scope), spans: spans.iter().map(span_message).collect(), ..ScopeSpans::default() };
    let resource = ResourceMessage { attributes: attributes.to_vec(), ..ResourceMessage::default() };
    let resource_spans =
        ResourceSpans { resource: Some(resource), scope_spans: vec![scope_spans], ..ResourceSpans::default() };
    ExportTraceServiceRequest { resource_spans: vec![resource_spans] }.encode_to_vec()
}

fn span_message(span: &Span) -> SpanMessage {
    let kind = match span.kind {
        SpanKind::Internal => KindCode::Internal,
        SpanKind::Client => KindCode::Client,
    };
    SpanMessage {
        trace_id: span.place.trace.0.to_vec(),
        span_id: span.place.id.0.to_vec(),
        parent_span_id: span.place.parent.map(|id| id.0.to_vec()).unwrap_or_default(),
        name: span.name.clone(),
        kind: kind.into(),
        start_time_unix_nano: span.times.start,
        end_time_unix_nano: span.times.end.max(span.times.start),
        attributes: span.attributes.iter().map(|(name, value)| key_value(name, value)).collect(),
        status: span.error.as_ref().map(|error| Status { message: error.clone(), code: StatusCode::Error.into() }),
        ..SpanMessage::default()
    }
}

fn key_value(name: &str, value: &AttributeValue) -> KeyValue {
    KeyValue { key: name.to_owned(), value: Some(any_value(value)), ..KeyValue::default() }
}

fn any_value(value: &AttributeValue) -> AnyValue {
    let text = |text: &String| AnyValue { value: Some(Value::StringValue(text.clone())) };
    let value = match value {
        AttributeValue::Text(value) => return text(value),
        AttributeValue::Texts(values) => Value::ArrayValue(ArrayValue { values: values.iter().map(text).collect() }),
        AttributeValue::Integer(value) => Value::IntValue(*value),
        AttributeValue::Float(value) => Value::DoubleValue(*value),
        AttributeValue::Boolean(value) => Value::BoolValue(*value),
    };
    AnyValue { value: Some(value) }
}
