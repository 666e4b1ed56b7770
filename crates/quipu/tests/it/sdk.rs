//! One suite for the SDK, for every agent: the fake agent on recordings of ours,
//! `quipu-agent`, and any other program that `QUIPU_SDK_CLI` names.
//!
//! `QUIPU_SDK_RECORD=1` makes the recordings again, from `quipu-agent`.

mod agent_under_test;
mod contexts;
mod examples;
mod recording_transport;
mod scenarios;

use agent_under_test::AgentUnderTest;

/// A test of each story for each agent.
macro_rules! stories {
    ($($story:ident),+ $(,)?) => {
        mod fake {
            $(
                #[tokio::test]
                async fn $story() {
                    let mut agents = super::AgentUnderTest::fake(stringify!($story));
                    super::scenarios::$story(&mut agents).await;
                    agents.finish().await;
                }
            )+
        }

        mod ours {
            $(
                #[tokio::test]
                async fn $story() {
                    let program = env!("CARGO_BIN_EXE_quipu-agent");
                    let mut agents = super::AgentUnderTest::program(stringify!($story), program).await;
                    super::scenarios::$story(&mut agents).await;
                    agents.finish().await;
                }
            )+
        }

        mod other {
            $(
                #[tokio::test]
                async fn $story() {
                    // Only `make interop` names one.
                    let Some(program) = std::env::var_os("QUIPU_SDK_CLI") else { return };
                    let mut agents = super::AgentUnderTest::program(stringify!($story), program).await;
                    super::scenarios::$story(&mut agents).await;
                    agents.finish().await;
                }
            )+
        }
    };
}

stories! {
    a_query_is_answered,
    a_conversation_has_turns,
    permissions_are_asked,
    hooks_are_called,
    a_guard_that_fails_keeps_things_from_happening,
    prompts_are_taken_as_they_are,
    tools_of_this_program_are_called,
    answers_have_a_form,
    a_turn_is_interrupted,
    pieces_come_before_the_whole,
    requests_are_answered,
    a_session_goes_on_and_is_forked,
    a_subagent_is_heard,
    a_failed_call_is_a_result,
}
