//! The response type of each control request of a host.

use serde::de::DeserializeOwned;

use super::{RequestBody, request, response};
use crate::Json;

/// A request of a host whose answer has a known form.
///
/// ```
/// use quipu_message::control::{HostRequest, request, response};
/// fn read_response<R: HostRequest>(_: &R, text: &str) -> R::Response {
///     serde_json::from_str(text).unwrap()
/// }
/// let set: response::SetPermissionModeResponse = read_response(&request::SetPermissionMode::default(), r#"{"mode":"plan"}"#);
/// assert_eq!(set.mode, "plan");
/// ```
pub trait HostRequest: Into<RequestBody> {
    /// The type of the response.
    type Response: DeserializeOwned;
}

macro_rules! host_requests {
    ($( $request:ident => $answer:ident ),+ $(,)?) => {
        $(
            impl From<request::$request> for RequestBody {
                fn from(request: request::$request) -> Self {
                    Self::$request(Box::new(request))
                }
            }

            impl HostRequest for request::$request {
                type Response = response::$answer;
            }
        )+

        impl RequestBody {
            /// Checks that `response` has the type that belongs to this request; `None` if the request has no
            /// response type, as requests of agents.
            pub fn check_response(&self, response: &Json) -> Option<serde_json::Result<()>> {
                Some(match self {
                    $( Self::$request(_) => response.read::<response::$answer>().map(drop), )+
                    _ => return None,
                })
            }
        }
    };
}

host_requests! {
    Initialize => InitializeResponse,
    Interrupt => InterruptResponse,
    SetPermissionMode => SetPermissionModeResponse,
    SetModel => SetModelResponse,
    SetMaxThinkingTokens => EmptyResponse,
    McpStatus => McpStatusResponse,
    McpSetServers => McpSetServersResponse,
    McpReconnect => EmptyResponse,
    McpToggle => EmptyResponse,
    McpCall => McpCallResponse,
    McpReadResource => McpReadResourceResponse,
    RewindFiles => RewindFilesResponse,
    GetContextUsage => GetContextUsageResponse,
    GetUsage => GetUsageResponse,
    GetSessionCost => GetSessionCostResponse,
    ListModels => ListModelsResponse,
    GetSettings => GetSettingsResponse,
    GetHooksListing => GetHooksListingResponse,
    ListPermissionRules => ListPermissionRulesResponse,
    GetBinaryVersion => GetBinaryVersionResponse,
    ReadFile => ReadFileResponse,
    FileSuggestions => FileSuggestionsResponse,
    SeedReadState => EmptyResponse,
    RenameSession => EmptyResponse,
    StopTask => EmptyResponse,
    BackgroundTasks => EmptyResponse,
    GetTaskOutput => GetTaskOutputResponse,
    ReloadPlugins => ReloadPluginsResponse,
    ReloadSkills => ReloadSkillsResponse,
    ReloadOutputStyles => ReloadOutputStylesResponse,
    RegisterRepoRoot => EmptyResponse,
    ApplyFlagSettings => EmptyResponse,
    UpdateSettings => EmptyResponse,
    SetHasSubscribers => EmptyResponse,
    CancelAsyncMessage => CancelAsyncMessageResponse,
    GenerateSessionTitle => GenerateSessionTitleResponse,
    SideQuestion => SideQuestionResponse,
    SetColor => EmptyResponse,
    EndSession => EmptyResponse,
}
