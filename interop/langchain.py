# pip: langchain-claude-code
# venv: venv
"""LangChain's chat model on the agent."""

import asyncio
import inspect
import os

import langchain_claude_code
from langchain_core.messages import HumanMessage

chat = next(thing for name, thing in inspect.getmembers(langchain_claude_code, inspect.isclass) if name.startswith("Chat"))
fields = set(getattr(chat, "model_fields", {}))
options = {name: os.environ["AGENT"] for name in ("cli_path",) if name in fields}
model = chat(model="claude-haiku-4-5", **options)
print("made:", type(model).__name__, sorted(options))
print("invoke:", model.invoke([HumanMessage("hi")]).content)
print("stream:", "".join(str(part.content) for part in model.stream("hi")))
print("ainvoke:", asyncio.run(model.ainvoke("hi")).content)
try:
    print("error:", model.invoke("FAIL now").content)
except Exception as error:
    print("error:", type(error).__name__)
