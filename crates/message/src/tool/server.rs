//! Tools that the API runs itself, by the `type` of their definition.

/// A tool that runs on the API's server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerTool {
    /// Searches the web.
    WebSearch,
    /// Fetches a page.
    WebFetch,
    /// Runs code in a container.
    CodeExecution,
    /// Finds tools whose definitions are loaded on demand.
    ToolSearch,
}

impl ServerTool {
    /// The server tool that a definition's `type` names; `None` for tools of the client.
    ///
    /// Types end with the date of their version (`web_search_20250305`).
    pub fn from_type(definition_type: &str) -> Option<Self> {
        let by_prefix = [
            ("web_search", Self::WebSearch),
            ("web_fetch", Self::WebFetch),
            ("code_execution", Self::CodeExecution),
            ("tool_search", Self::ToolSearch),
        ];
        by_prefix.into_iter().find(|(prefix, _)| definition_type.starts_with(prefix)).map(|(_, tool)| tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dated_type_names_its_server_tool() {
        assert_eq!(ServerTool::from_type("web_search_20250305"), Some(ServerTool::WebSearch));
        assert_eq!(ServerTool::from_type("tool_search_tool_regex_20251119"), Some(ServerTool::ToolSearch));
        assert_eq!(ServerTool::from_type("custom"), None);
        assert_eq!(ServerTool::from_type(""), None);
    }
}
