//! Keys and tokens are in no message, no error and no debug output.

use std::error::Error;
use std::time::Duration;

use quipu_api::{Credential, Endpoint, KeyHelper};

use crate::{start_server_with, user_request};

const KEY: &str = "sk-ant-very-secret-0123456789";

fn whole(error: &dyn Error) -> String {
    let mut text = format!("{error} {error:?}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(" {error} {error:?}"));
        cause = error.source();
    }
    text
}

#[tokio::test]
async fn a_server_that_repeats_the_key_does_not_make_us_repeat_it() {
    let scripts = [
        format!("- error: {{status: 400, message: 'bad key {KEY}'}}"),
        format!("- error: {{status: 502, body: 'got {KEY}'}}"),
        format!("- {{reply: x, fail: {{after: 1, type: invalid_request_error, message: 'no {KEY}'}}}}"),
    ];
    let helper = KeyHelper::new(Duration::from_secs(60), || Box::pin(async { Ok(format!("{KEY}\n")) }));
    let credentials = [Credential::ApiKey(KEY.into()), Credential::Helper(helper)];
    for (script, credential) in
        scripts.iter().flat_map(|script| credentials.iter().map(move |as_whom| (script, as_whom)))
    {
        let setup = start_server_with(script, |endpoint| {
            endpoint.credential = Some(credential.clone());
            endpoint.retry_policy.max_retries = 0;
        })
        .await;
        let text = whole(&setup.client.call(&user_request("hi")).response().await.unwrap_err());
        assert!(!text.contains(KEY) && text.contains("[secret]"), "{text}");
        let shown = format!("{:?} {:?} {:?}", setup.client, setup.client.endpoint(), setup.server.requests());
        assert!(!shown.replace(script, "").contains(KEY), "{shown}");
    }
}

#[test]
fn a_key_that_cannot_be_sent_is_not_shown_either() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut endpoint = Endpoint::new("http://127.0.0.1:9").unwrap();
    endpoint.credential = Some(Credential::ApiKey(format!("{KEY}\n").as_str().into()));
    let client = quipu_api::Client::new(endpoint).unwrap();
    let error = runtime.block_on(async { client.call(&user_request("hi")).response().await.unwrap_err() });
    assert_eq!(error.code(), "api.bad_request");
    assert!(!whole(&error).contains(KEY), "{error:?}");
}

#[test]
fn a_wrong_setting_is_reported_without_its_secret() {
    let with = |name: &'static str, value: &'static str| {
        let error = Endpoint::from_env(|asked| (asked == name).then(|| value.to_owned())).unwrap_err();
        (error.code(), whole(&error))
    };
    let (code, text) = with("ANTHROPIC_CUSTOM_HEADERS", KEY);
    assert_eq!(code, "endpoint.bad_header");
    assert!(!text.contains(KEY), "{text}");
    let (code, text) = with("ANTHROPIC_BASE_URL", "http://me:sk-ant-very-secret-0123456789@host");
    assert_eq!(code, "endpoint.bad_address");
    assert!(!text.contains(KEY), "{text}");
    assert_eq!(with("CLAUDE_CODE_MAX_RETRIES", "many").0, "endpoint.bad_number");
}
