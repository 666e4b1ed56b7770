//! Connections, proxies and headers.

use std::net::SocketAddr;

use quipu_api::mock::{MockServer, Script};
use quipu_api::{ApiError, Client, Credential, Endpoint, Proxy};
use quipu_message::{Message, Role};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::{error_of, event_outline, start_server, start_server_with, user_request};

#[tokio::test]
async fn a_connection_that_cannot_be_made_is_tried_again() {
    // A port that was free a moment ago and has no listener.
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut endpoint = Endpoint::new(&format!("http://{free}")).unwrap();
    endpoint.retry_policy.max_retries = 2;
    let clock = std::sync::Arc::new(crate::NoWait::default());
    let client = Client::with_clock(endpoint, clock).unwrap();
    let lines = event_outline(&client, &user_request("hi")).await;
    assert_eq!(lines[..2], ["retry 1/2 562 ms null unknown", "retry 2/2 1125 ms null unknown"]);
    assert_eq!(lines[2], format!("error api.cannot_connect: cannot connect to {free}"));
}

#[tokio::test]
async fn a_connection_that_closes_before_the_answer_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut endpoint = Endpoint::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    endpoint.retry_policy.max_retries = 0;
    let client = Client::new(endpoint).unwrap();
    let hang_up = async {
        let (mut tcp, _) = listener.accept().await.unwrap();
        let _ = tcp.read(&mut [0; 64]).await.unwrap();
    };
    let request = user_request("hi");
    let (error, ()) = tokio::join!(error_of(&client, &request), hang_up);
    assert!(matches!(error, ApiError::ConnectionClosed { .. }), "{error:?}");
}

#[tokio::test]
async fn the_headers_name_the_client() {
    let setup = start_server_with("- reply: hi", |endpoint| {
        endpoint.credential = Some(Credential::ApiKey("sk-test-0123456789".into()));
        endpoint.betas = vec!["one-2026-01-01".to_owned()];
        endpoint.headers = vec![("X-Team".to_owned(), "tide".into()), ("x-app".to_owned(), "mine".into())];
    })
    .await;
    let mut request = user_request("hi");
    request.betas = vec!["two-2026-01-01".to_owned(), "one-2026-01-01".to_owned()];
    request.session_id = Some("5e55".into());
    request.agent_id = Some("a1".into());
    request.device_id = "d0".to_owned();
    setup.client.call(&request).response().await.unwrap();
    let seen = &setup.server.requests()[0];
    assert_eq!(seen.path, "/v1/messages?beta=true");
    let expected = [
        ("x-api-key", "sk-test-0123456789"),
        ("anthropic-version", "2023-06-01"),
        ("anthropic-beta", "one-2026-01-01,two-2026-01-01"),
        ("x-claude-code-session-id", "5e55"),
        ("x-claude-code-agent-id", "a1"),
        ("x-team", "tide"),
        ("x-app", "mine"),
        ("content-type", "application/json"),
    ];
    for (name, value) in expected {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    assert_eq!(seen.header("authorization"), None);
    let metadata = seen.request.as_ref().unwrap().metadata.get().unwrap().to_value();
    assert_eq!(metadata["user_id"], r#"{"device_id":"d0","account_uuid":"","session_id":"5e55"}"#);
}

#[tokio::test]
async fn a_token_is_sent_as_bearer_and_a_path_before_the_method_is_kept() {
    let server = MockServer::start(Script::parse("- reply: hi").unwrap()).await.unwrap();
    let url = format!("{}/gateway/", server.url());
    let env = |name: &str| match name {
        "ANTHROPIC_BASE_URL" => Some(url.clone()),
        "ANTHROPIC_AUTH_TOKEN" => Some("token-0123".to_owned()),
        "ANTHROPIC_API_KEY" => Some("sk-unused".to_owned()),
        _ => None,
    };
    let client = Client::new(Endpoint::from_env(env).unwrap()).unwrap();
    client.call(&user_request("hi")).response().await.unwrap();
    let seen = &server.requests()[0];
    assert_eq!((seen.path.as_str(), seen.header("authorization")), ("/gateway/v1/messages", Some("Bearer token-0123")));
    assert_eq!(seen.header("x-api-key"), None);
}

#[tokio::test]
async fn a_proxy_is_used_for_other_hosts_and_for_this_machine_only_when_asked() {
    // The proxy answers everything itself and so shows that it was response.
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = proxy.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut tcp, _) = proxy.accept().await.unwrap();
            let mut head = vec![0; 4096];
            let length = tcp.read(&mut head).await.unwrap();
            let line = String::from_utf8_lossy(&head[..length]).lines().next().unwrap_or_default().to_owned();
            let body = format!(r#"{{"type":"error","error":{{"type":"proxied","message":{line:?}}}}}"#);
            let answer = format!(
                "HTTP/1.1 418 Proxied\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = tcp.write_all(answer.as_bytes()).await;
        }
    });
    let through = |base: &str, more: &[(&str, &str)]| {
        let proxy = format!("http://name:hushhush@{address}");
        let mut vars = vec![("HTTP_PROXY", proxy.as_str()), ("ANTHROPIC_BASE_URL", base)];
        vars.extend(more);
        let find = |name: &str| vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let mut endpoint = Endpoint::from_env(find).unwrap();
        endpoint.retry_policy.max_retries = 0;
        Client::new(endpoint).unwrap()
    };
    let error = error_of(&through("http://model.invalid", &[]), &user_request("hi")).await;
    assert_eq!(error.to_string(), "418 POST http://model.invalid/v1/messages HTTP/1.1");
    let server = MockServer::start(Script::parse("- reply: straight").unwrap()).await.unwrap();
    let straight = through(&server.url(), &[]);
    assert_eq!(event_outline(&straight, &user_request("hi")).await, ["done \"straight\""]);
    let response = through(&server.url(), &[("QUIPU_PROXY_LOOPBACK", "1")]);
    assert_eq!(error_of(&response, &user_request("hi")).await.status(), Some(418));
    let excepted = through(&server.url(), &[("QUIPU_PROXY_LOOPBACK", "1"), ("no_proxy", "127.0.0.1")]);
    assert_eq!(event_outline(&excepted, &user_request("hi")).await, ["done \"straight\""]);
    assert!(!format!("{straight:?}").contains("hushhush"), "{straight:?}");
}

#[tokio::test]
async fn a_host_without_tls_is_not_connected_to() {
    let setup = start_server("- reply: in the clear").await;
    let mut endpoint = Endpoint::new(&setup.server.url().replace("http:", "https:")).unwrap();
    endpoint.retry_policy.max_retries = 0;
    let error = error_of(&Client::new(endpoint).unwrap(), &user_request("hi")).await;
    assert_eq!(error.code(), "api.cannot_connect");
    assert!(setup.server.requests().is_empty());
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_key() {
    let redirect =
        r#"{"method":"POST","path":"/v1/messages","body":{"model":"m","messages":[]},"status":307,"response":{}}"#;
    let setup = start_server(redirect).await;
    assert_eq!(error_of(&setup.client, &user_request("hi")).await.status(), Some(307));
}

#[tokio::test]
async fn only_this_machine_is_listened_on() {
    let script = Script::parse("- reply: hi").unwrap();
    let everywhere: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let error = MockServer::listen(script, everywhere, |_| {}).await.unwrap_err();
    assert!(error.to_string().contains("not a loopback address"), "{error}");
}

#[test]
fn proxies_with_passwords_are_not_shown() {
    let proxy = Proxy { url: "http://name:hushhush@proxy".into(), no_proxy: None, includes_loopback: false };
    assert!(!format!("{proxy:?}").contains("hushhush"));
}

#[tokio::test]
async fn settled_messages_go_out_in_one_body_of_known_length_each_time_it_is_tried() {
    let setup = start_server("- {times: 1, error: 529}\n- reply: hi").await;
    let mut request = user_request("and now?");
    for turn in 0..300 {
        let text_message = |role, text: String| Message::new(role, text);
        let (asked, told) = (format!("question {turn}"), format!("answer {turn} {}", "é".repeat(turn * 7)));
        request.history.append(&[text_message(Role::User, asked), text_message(Role::Assistant, told)]).unwrap();
    }
    setup.client.call(&request).response().await.unwrap();
    let seen = setup.server.requests();
    assert_eq!(seen.len(), 2);
    for call in &seen {
        assert_eq!(call.header("content-length"), Some(call.body.len().to_string().as_str()));
        assert_eq!(call.header("transfer-encoding"), None);
        let messages = &call.request.as_ref().unwrap().messages;
        assert_eq!(messages.len(), 601);
        assert_eq!(messages[598].content.to_text(), "question 299");
    }
    assert_eq!(seen[0].body, seen[1].body);
}
