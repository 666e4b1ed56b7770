# pip: langchain-claude-code
# venv: venv
"""LangChain's chat model on the agent."""

import asyncio
import os

from langchain_claude_code import ClaudeCodeChatModel
from langchain_core.messages import HumanMessage

AGENT = {"cli_path": os.environ["AGENT"]}
model = ClaudeCodeChatModel(model="claude-haiku-4-5")
print("invoke:", model.invoke([HumanMessage("hi")], **AGENT).content)
print("stream:", "".join(str(part.content) for part in model.stream("hi", **AGENT)))
print("ainvoke:", asyncio.run(model.ainvoke("hi", **AGENT)).content)
try:
    print("error:", model.invoke("FAIL now", **AGENT).content)
except Exception as error:
    print("error:", type(error).__name__)
