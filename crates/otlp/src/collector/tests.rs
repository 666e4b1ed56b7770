use super::*;

fn resource() -> Resource {
    Resource { service_name: "test".to_owned(), service_version: "1".to_owned() }
}

#[test]
fn spans_go_below_the_address_of_the_collector() {
    for (endpoint, url) in [
        ("http://localhost:4318", "http://localhost:4318/v1/traces"),
        ("http://localhost:4318/", "http://localhost:4318/v1/traces"),
        ("https://example.org/otlp", "https://example.org/otlp/v1/traces"),
        ("https://example.org/otlp/v1/traces", "https://example.org/otlp/v1/traces"),
    ] {
        assert_eq!(Collector::new(endpoint, "", resource()).unwrap().url.as_str(), url);
    }
    for endpoint in ["", "localhost:4318", "file:///tmp/spans", "ftp://example.org"] {
        assert!(matches!(Collector::new(endpoint, "", resource()), Err(CollectorError::Endpoint)), "{endpoint}");
    }
}

#[test]
fn headers_are_decoded_and_marked_as_sensitive() {
    let headers = parse_headers("authorization=Basic%20abc%3D, x-team = core,").unwrap();
    assert_eq!(headers["authorization"], "Basic abc=");
    assert_eq!(headers["x-team"], "core");
    assert!(headers.values().all(HeaderValue::is_sensitive));
}

#[test]
fn no_error_and_no_debug_output_contains_a_header() {
    for headers in ["authorization", "a b=secret-value", "x=secret-value%0Aother"] {
        let error = Collector::new("http://localhost", headers, resource()).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    }
    let collector = Collector::new("http://user:secret@localhost/secret", "x=secret-value", resource()).unwrap();
    assert!(!format!("{collector:?}").contains("secret"), "{collector:?}");
}
