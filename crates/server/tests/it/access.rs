//! Who may use the server.

use crate::client::{TestServer, demo};

const ID: &str = "05ef09b2-9c3d-4897-965b-0c47c2889d7b";

/// Every path of the API, and one that does not exist.
fn api_paths(server: &TestServer) -> Vec<String> {
    let document = server.json("/api/openapi.json");
    let mut paths: Vec<String> =
        document["paths"].as_object().unwrap().keys().map(|path| path.replace("{key}", ID)).collect();
    assert!(paths.len() > 20, "{paths:?}");
    paths.push("/api/nothing".to_owned());
    paths
}

#[track_caller]
fn check(server: &TestServer, path: &str, headers: &[(&str, &str)], status: u16, code: &str) {
    let reply = server.request("GET", path, headers);
    assert_eq!((reply.status, reply.json()["error"]["code"].as_str()), (status, Some(code)), "{path} {headers:?}");
    assert!(!reply.text().contains(&server.token));
}

#[test]
fn every_path_of_the_api_needs_the_token() {
    let server = demo();
    for path in api_paths(&server) {
        for method in ["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"] {
            assert_eq!(server.request(method, &path, &[]).status, 401, "{method} {path}");
        }
        let wrong = format!("Bearer {}", "0".repeat(server.token.len()));
        for sent in ["", "Bearer ", "Basic abc", &wrong, &wrong[..20], &format!("Bearer {}0", server.token)] {
            check(&server, &path, &[("authorization", sent)], 401, "token.refused");
        }
        // Neither the query nor a cookie is a place for a token.
        check(&server, &format!("{path}?token={}", server.token), &[], 401, "token.refused");
        check(&server, &path, &[("cookie", &format!("token={}", server.token))], 401, "token.refused");
    }
    // Other spellings of the path do not lead around the check.
    for path in ["//api/status", "/api//status", "/%61pi/status", "/./api/status", "/x/../api/status", "/API/status"] {
        let reply = server.request("GET", path, &[]);
        assert!(!reply.text().contains("claude_dirs"), "{path}");
    }
}

#[test]
fn other_hosts_and_origins_are_refused_everywhere() {
    let server = demo();
    let token = format!("Bearer {}", server.token);
    let port = server.address.port();
    let mut paths = api_paths(&server);
    paths.extend(["/".to_owned(), "/s/abc".to_owned(), "/assets/index.js".to_owned()]);
    for path in &paths {
        for host in ["evil.example", "127.0.0.1", "127.0.0.1:1", &format!("evil.example:{port}"), ""] {
            check(&server, path, &[("host", host), ("authorization", &token)], 403, "host.refused");
        }
        let others = [
            "http://evil.example".to_owned(),
            "null".to_owned(),
            format!("https://127.0.0.1:{port}"),
            format!("http://127.0.0.1:{}", port ^ 1),
            format!("http://127.0.0.1:{port}.evil.example"),
        ];
        for origin in &others {
            check(&server, path, &[("origin", origin), ("authorization", &token)], 403, "origin.refused");
        }
    }
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("LOCALHOST:{port}")] {
        let origin = format!("http://{}", host.to_lowercase());
        let headers = [("host", host.as_str()), ("origin", &origin), ("authorization", &token)];
        assert_eq!(server.request("GET", "/api/status", &headers).status, 200, "{host}");
    }
}

#[test]
fn the_page_needs_no_token_and_loads_nothing_from_elsewhere() {
    let server = demo();
    for path in ["/", "/s/abc?line=3", "/usage"] {
        let reply = server.request("GET", path, &[]);
        assert_eq!((reply.status, reply.header("content-type")), (200, "text/html; charset=utf-8"), "{path}");
        assert!(reply.text().contains("quipu"));
        let policy = reply.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
        assert_eq!(reply.header("x-frame-options"), "DENY");
        assert_eq!(reply.header("access-control-allow-origin"), "");
    }
    for path in ["/assets/none.js", "/../Cargo.toml", "/assets/../../Cargo.toml", "/..%2fCargo.toml", "/.env"] {
        assert_eq!(server.request("GET", path, &[]).status, 404, "{path}");
    }
    let reply = server.get("/api/status");
    assert_eq!((reply.header("cache-control"), reply.header("x-content-type-options")), ("no-store", "nosniff"));
}

#[test]
fn no_key_leads_out_of_the_projects() {
    let server = demo();
    let keys = [
        "..%2f..%2f..%2fetc%2fpasswd",
        "%2fetc%2fpasswd",
        "..",
        "-home-sam-tidepool%2f05ef09b2-9c3d-4897-965b-0c47c2889d7b",
        "-home-sam-tidepool:..%2f-home-sam-tidepool%2f05ef09b2-9c3d-4897-965b-0c47c2889d7b",
        "05ef09b2",
        "%00",
        "*",
    ];
    for key in keys {
        for rest in ["", "/items", "/raw?line=1"] {
            let reply = server.get(&format!("/api/sessions/{key}{rest}"));
            assert_eq!(reply.status, 404, "{key}{rest}: {}", reply.text());
        }
    }
}
