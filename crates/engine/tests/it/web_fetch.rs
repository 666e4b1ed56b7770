//! WebFetch.

use std::sync::Arc;

use quipu_engine::testing::tool::{FetchScope, WorkspaceOptions, is_public};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::{TestWorkspace, error_text, success_text};

/// A server on loopback that answers the given paths, and any other with 404.
async fn server(pages: Vec<(&'static str, String)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 4096];
            let count = stream.read(&mut buffer).await.unwrap_or(0);
            let request = String::from_utf8_lossy(&buffer[..count]).into_owned();
            let path = request.split(' ').nth(1).unwrap_or_default();
            let page = pages.iter().find(|(name, _)| *name == path).map(|(_, page)| page.as_str());
            let none = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(page.unwrap_or(none).as_bytes()).await;
        }
    });
    format!("http://{address}")
}

fn page(kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn redirect(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

fn open_workspace() -> TestWorkspace {
    TestWorkspace::with_options(WorkspaceOptions { fetch_scope: FetchScope::Any, ..WorkspaceOptions::default() })
}

#[tokio::test]
async fn a_page_comes_as_text() {
    let html = "<html><head><title>no</title></head><body><h1>A &amp; B</h1><script>x < 1</script><p>One <b>two</b>\n three.\
                <ul><li>x</li><li><a href=\"https://e.org/?a=1&amp;b\">y</a></li></ul><pre>a\n  b</pre><!-- <p>no --></body></html>";
    let url =
        server(vec![("/", page("text/html; charset=utf-8", html)), ("/plain", page("text/plain", "a <b> c"))]).await;
    let workspace = open_workspace();
    let output = workspace.run_tool("WebFetch", json!({"url": format!("{url}/"), "prompt": "?"})).await;
    let raw = output.raw.clone().unwrap();
    assert_eq!(
        (&raw["code"], &raw["codeText"], raw["bytes"].as_u64()),
        (&json!(200), &json!("OK"), Some(html.len() as u64))
    );
    assert_eq!(success_text(output), "# A & B\n\nOne two three.\n- x\n- y (https://e.org/?a=1&b)\n\na\n  b");
    assert_eq!(
        success_text(workspace.run_tool("WebFetch", json!({"url": format!("{url}/plain"), "prompt": "?"})).await),
        "a <b> c"
    );
}

/// Without a limit on what is searched for each of them, these take minutes.
#[tokio::test]
async fn a_page_of_nothing_but_signs_or_line_breaks_is_converted_at_once() {
    let workspace = open_workspace();
    let signs = "&".repeat(8_000_000);
    let breaks = format!("{}{}end", "<br>".repeat(1_000_000), "<p>".repeat(1_000_000));
    let url = server(vec![("/signs", page("text/html", &signs)), ("/breaks", page("text/html", &breaks))]).await;
    for (path, expected) in [("/signs", "&&&&"), ("/breaks", "end")] {
        let input = json!({"url": format!("{url}{path}"), "prompt": "x"});
        let output = success_text(workspace.run_tool("WebFetch", input).await);
        assert!(output.contains(expected), "{path}");
    }
}

#[tokio::test]
async fn a_model_may_answer_about_the_page() {
    let url = server(vec![("/", page("text/plain", "the page"))]).await;
    let summarise: quipu_engine::testing::tool::Summariser =
        Arc::new(|prompt, page| Box::pin(async move { Ok(format!("{prompt} -> {page}")) }));
    let workspace = TestWorkspace::with_options(WorkspaceOptions {
        fetch_scope: FetchScope::Any,
        summariser: Some(summarise),
        ..WorkspaceOptions::default()
    });
    let output = workspace.run_tool("WebFetch", json!({"url": url, "prompt": "what?"})).await;
    assert_eq!(success_text(output), "what? -> the page");
}

#[tokio::test]
async fn pages_that_lead_elsewhere_are_followed_on_their_host_only() {
    let other = server(vec![("/", page("text/plain", "secret"))]).await;
    let url = server(vec![
        ("/here", redirect("/there")),
        ("/there", page("text/plain", "there")),
        ("/away", redirect(&other)),
        ("/file", redirect("file:///etc/passwd")),
        ("/ring", redirect("/ring")),
    ])
    .await;
    let workspace = open_workspace();
    let fetch =
        async |path: &str| workspace.run_tool("WebFetch", json!({"url": format!("{url}{path}"), "prompt": "?"})).await;
    assert_eq!(success_text(fetch("/here").await), "there");
    let away = error_text(fetch("/away").await);
    assert!(away.contains(&other) && !away.contains("secret"), "{away}");
    assert!(error_text(fetch("/file").await).contains("Only http and https"));
    assert!(error_text(fetch("/ring").await).contains("without end"));
    assert!(error_text(fetch("/none").await).contains("404 Not Found"));
}

#[tokio::test]
async fn what_is_not_text_or_too_long_is_refused() {
    let long =
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n{}", "x".repeat(11 << 20));
    let url = server(vec![("/pic", page("image/png", "x")), ("/long", long)]).await;
    let workspace = open_workspace();
    assert!(
        error_text(workspace.run_tool("WebFetch", json!({"url": format!("{url}/pic"), "prompt": "?"})).await)
            .contains("not text")
    );
    assert!(
        error_text(workspace.run_tool("WebFetch", json!({"url": format!("{url}/long"), "prompt": "?"})).await)
            .contains("more than")
    );
    for url in ["file:///etc/passwd", "ftp://example.com", "javascript:1", "nonsense", "https://me:pw@example.com/"] {
        assert!(
            error_text(workspace.run_tool("WebFetch", json!({"url": url, "prompt": "?"})).await)
                .starts_with("<tool_use_error>"),
            "{url}"
        );
    }
}

#[tokio::test]
async fn private_addresses_are_refused_however_they_are_written() {
    let url = server(vec![("/", page("text/plain", "secret"))]).await;
    let port = url.rsplit(':').next().unwrap();
    let hosts = [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.1.",
        "[::1]",
        "[::]",
        "0.0.0.0",
        "0",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]",
        "[fe80::1]",
        "[fc00::1]",
        "[fd12::1]",
        "[ff02::1]",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost",
        "printer.local",
        "db.internal",
        "intranet",
        "169.254.169.254",
        "10.0.0.1",
        "10.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "100.64.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "１２７.０.０.１",
        "127。0。0。1",
        "%31%32%37.0.0.1",
    ];
    let workspace = TestWorkspace::new();
    for host in hosts {
        let output =
            workspace.run_tool("WebFetch", json!({"url": format!("http://{host}:{port}/"), "prompt": "?"})).await;
        let words = error_text(output);
        assert!(words.contains("not on the public internet"), "{host}: {words}");
    }
}

#[tokio::test]
async fn a_name_of_a_private_address_is_refused_when_it_is_resolved() {
    use reqwest::dns::Resolve as _;
    // A name with a dot, which only looking it up tells: the machine's own list of names has it or it is not found.
    let resolver = quipu_engine::testing::tool::ScopedResolver(FetchScope::Public);
    let refused = resolver.resolve("localhost".parse().unwrap()).await.err().unwrap();
    assert!(refused.to_string().contains("not on the public internet"));
    let allowed =
        quipu_engine::testing::tool::ScopedResolver(FetchScope::Any).resolve("localhost".parse().unwrap()).await;
    assert!(allowed.unwrap().next().is_some());
}

#[test]
fn public_addresses_are_distinguished_from_others() {
    for ip in
        ["1.1.1.1", "172.15.0.1", "172.32.0.1", "100.63.0.1", "2606:4700::1111", "::ffff:1.1.1.1", "2002:101:101::"]
    {
        assert!(is_public(ip.parse().unwrap()), "{ip}");
    }
    for ip in [
        "192.0.2.1",
        "203.0.113.9",
        "240.0.0.1",
        "2001:db8::1",
        "2001::1",
        "::",
        "::127.0.0.1",
        "fec0::1",
        "100::1",
        "5f00::1",
    ] {
        assert!(!is_public(ip.parse().unwrap()), "{ip}");
    }
}

#[tokio::test]
async fn another_question_about_a_page_makes_no_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    // It answers once and is gone.
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 4096];
        let _ = stream.read(&mut buffer).await;
        stream.write_all(page("text/plain", "once").as_bytes()).await.unwrap();
    });
    let workspace = open_workspace();
    for prompt in ["?", "and?"] {
        assert_eq!(success_text(workspace.run_tool("WebFetch", json!({"url": url, "prompt": prompt})).await), "once");
    }
}

#[tokio::test]
async fn a_proxy_is_used_and_private_addresses_stay_out_of_reach() {
    let proxy = server(vec![("http://example.com/x", page("text/plain", "through the proxy"))]).await;
    let env = |name: &str, value: &str| (name.into(), value.into());
    let workspace = TestWorkspace::with_options(WorkspaceOptions {
        env: [env("HTTP_PROXY", &proxy)].into(),
        ..WorkspaceOptions::default()
    });
    let fetch = async |url: &str| workspace.run_tool("WebFetch", json!({"url": url, "prompt": "?"})).await;
    assert_eq!(success_text(fetch("http://example.com/x").await), "through the proxy");
    for private in ["http://127.0.0.1/x", "http://10.0.0.1/x", "http://localhost/x", "http://nas.local/x"] {
        assert!(error_text(fetch(private).await).contains("not on the public internet"), "{private}");
    }
    // What is excepted goes direct, and is looked at as ever.
    let own = server(vec![("/x", page("text/plain", "direct"))]).await;
    let vars = [env("HTTP_PROXY", &proxy), env("NO_PROXY", "127.0.0.1")];
    let workspace = TestWorkspace::with_options(WorkspaceOptions {
        env: vars.into(),
        fetch_scope: FetchScope::Any,
        ..WorkspaceOptions::default()
    });
    assert_eq!(
        success_text(workspace.run_tool("WebFetch", json!({"url": format!("{own}/x"), "prompt": "?"})).await),
        "direct"
    );
}
