use super::*;

fn status(status: u16) -> ApiError {
    ApiError::Status {
        status,
        kind: None,
        message: String::new(),
        body: String::new(),
        request_id: None,
        retry_after: None,
        should_retry: None,
    }
}

#[test]
fn only_temporary_errors_are_retried() {
    let policy = RetryPolicy::default();
    for again in [408, 409, 429, 500, 502, 503, 529] {
        assert!(policy.retry_delay(&status(again), 2, 0.0).is_some(), "{again}");
    }
    for never in [307, 400, 403, 404, 413, 422] {
        assert_eq!(policy.retry_delay(&status(never), 1, 0.0), None, "{never}");
    }
    assert!(policy.retry_delay(&status(401), 1, 0.0).is_some());
    assert_eq!(policy.retry_delay(&status(401), 2, 0.0), None);
}

#[test]
fn delays_are_those_of_claude_code() {
    let policy = RetryPolicy::default();
    let wait = |attempt, random| policy.retry_delay(&status(500), attempt, random).map(|wait| wait.as_millis());
    assert_eq!((wait(1, 0.0), wait(1, 1.0)), (Some(500), Some(625)));
    assert_eq!((wait(2, 0.0), wait(2, 1.0)), (Some(1000), Some(1250)));
    assert_eq!((wait(7, 0.0), wait(10, 1.0)), (Some(32_000), Some(40_000)));
    assert_eq!(wait(11, 0.0), None);
}

#[test]
fn random_numbers_are_between_0_and_1() {
    let numbers: Vec<f64> = (0..64).map(|_| SystemClock.random()).collect();
    assert!(numbers.iter().all(|number| (0.0..=1.0).contains(number)));
    assert!(numbers.iter().any(|number| *number != numbers[0]));
}

#[test]
fn a_server_may_ask_for_a_delay_in_three_ways() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(60);
    let read = |name: &'static str, value: &'static str| {
        retry_after(|asked| (asked == name).then_some(value), now).map(|wait| wait.as_millis())
    };
    assert_eq!(read("retry-after", "2"), Some(2000));
    assert_eq!(read("retry-after", "0.5"), Some(500));
    assert_eq!(read("retry-after-ms", "250"), Some(250));
    assert_eq!(read("retry-after", "Thu, 01 Jan 1970 00:02:00 GMT"), Some(60_000));
    assert_eq!(read("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
    for nonsense in ["-1", "soon", "NaN", "inf", ""] {
        assert_eq!(read("retry-after", nonsense), None, "{nonsense}");
    }
}
