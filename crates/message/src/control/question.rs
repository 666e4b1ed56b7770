//! Which answer belongs to which request of a host.

use serde::de::DeserializeOwned;

use super::{RequestBody, answer, request};
use crate::Json;

/// A request of a host whose answer has a known form.
///
/// ```
/// use quipu_message::control::{Question, answer, request};
/// fn answer_to<Q: Question>(_: &Q, text: &str) -> Q::Answer {
///     serde_json::from_str(text).unwrap()
/// }
/// let mode: answer::ModeSet = answer_to(&request::SetPermissionMode::default(), r#"{"mode":"plan"}"#);
/// assert_eq!(mode.mode, "plan");
/// ```
pub trait Question: Into<RequestBody> {
    /// What the agent answers.
    type Answer: DeserializeOwned;
}

macro_rules! questions {
    ($( $request:ident => $answer:ident ),+ $(,)?) => {
        $(
            impl From<request::$request> for RequestBody {
                fn from(request: request::$request) -> Self {
                    Self::$request(Box::new(request))
                }
            }

            impl Question for request::$request {
                type Answer = answer::$answer;
            }
        )+

        impl RequestBody {
            /// Whether `answer` has the form that belongs to this request; none when no
            /// form is known, as for requests that an agent makes.
            pub fn is_answered_by(&self, answer: &Json) -> Option<serde_json::Result<()>> {
                Some(match self {
                    $( Self::$request(_) => answer.read::<answer::$answer>().map(drop), )+
                    _ => return None,
                })
            }
        }
    };
}

questions! {
    Initialize => Initialized,
    Interrupt => Interrupted,
    SetPermissionMode => ModeSet,
    SetModel => ModelSet,
    SetMaxThinkingTokens => Nothing,
    McpStatus => McpServers,
    McpSetServers => McpServersSet,
    McpReconnect => Nothing,
    McpToggle => Nothing,
    McpCall => McpResult,
    McpReadResource => McpResource,
    RewindFiles => Rewound,
    GetContextUsage => ContextUsage,
    GetUsage => UsageReport,
    GetSessionCost => SessionCost,
    ListModels => Models,
    GetSettings => Settings,
    GetHooksListing => HooksListing,
    ListPermissionRules => PermissionRules,
    GetBinaryVersion => BinaryVersion,
    ReadFile => FileRead,
    FileSuggestions => FileSuggestions,
    SeedReadState => Nothing,
    RenameSession => Nothing,
    StopTask => Nothing,
    BackgroundTasks => Nothing,
    GetTaskOutput => TaskOutput,
    ReloadPlugins => Reloaded,
    ReloadSkills => Skills,
    ReloadOutputStyles => OutputStyles,
    RegisterRepoRoot => Nothing,
    ApplyFlagSettings => Nothing,
    UpdateSettings => Nothing,
    SetHasSubscribers => Nothing,
    CancelAsyncMessage => Cancelled,
    GenerateSessionTitle => Title,
    SideQuestion => SideAnswer,
    SetColor => Nothing,
    EndSession => Nothing,
}
