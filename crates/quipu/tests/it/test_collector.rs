//! A collector of OpenTelemetry on loopback, which decodes what arrives.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use prost::Message as _;
use tokio::runtime::Runtime;

/// What a collector does with a request.
#[derive(Clone, Copy)]
pub(crate) enum Behaviour {
    Accept,
    Refuse,
    NeverAnswer,
}

/// A request that arrived.
pub(crate) struct Received {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

pub(crate) struct TestCollector {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<Received>>>,
    _runtime: Runtime,
}

impl TestCollector {
    pub(crate) fn start(behaviour: Behaviour) -> Self {
        let runtime = Runtime::new().unwrap();
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let kept = Arc::clone(&received);
        let handler = move |headers: HeaderMap, body: Bytes| async move {
            kept.lock().push(Received { headers, body });
            match behaviour {
                Behaviour::Accept => StatusCode::OK,
                Behaviour::Refuse => StatusCode::UNAUTHORIZED,
                Behaviour::NeverAnswer => std::future::pending().await,
            }
        };
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/v1/traces", post(handler));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { url, received, _runtime: runtime }
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        std::mem::take(&mut self.received.lock())
    }
}

/// The spans of requests, and the names of the services that sent them.
pub(crate) fn decode(requests: &[Received]) -> (Vec<Span>, Vec<String>) {
    let (mut spans, mut services) = (Vec::new(), Vec::new());
    for request in requests {
        assert_eq!(request.headers["content-type"], "application/x-protobuf");
        for resource in ExportTraceServiceRequest::decode(request.body.clone()).unwrap().resource_spans {
            let attributes = resource.resource.unwrap().attributes;
            services.extend(attributes.into_iter().filter(|pair| pair.key == "service.name").map(|pair| {
                match pair.value.unwrap().value {
                    Some(Value::StringValue(name)) => name,
                    other => panic!("{other:?}"),
                }
            }));
            spans.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
    }
    (spans, services)
}

/// Value of an attribute as text; lists and numbers as Rust prints them.
pub(crate) fn attribute(span: &Span, name: &str) -> Option<String> {
    let value = span.attributes.iter().find(|pair| pair.key == name)?.value.as_ref()?.value.as_ref()?;
    Some(match value {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        Value::BoolValue(flag) => flag.to_string(),
        other => format!("{other:?}"),
    })
}
