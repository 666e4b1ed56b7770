"""The published Python SDK drives quipu-agent. Arguments: the agent, a folder."""

import asyncio
import os
import sys

from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    create_sdk_mcp_server,
    query,
    tool,
)

AGENT, CWD = sys.argv[1:3]
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


def options(**more):
    return ClaudeAgentOptions(cli_path=AGENT, cwd=CWD, env=dict(os.environ), **more)


async def ask(prompt, **more):
    lines = []
    async for line in query(prompt=prompt, options=options(**more)):
        lines.append(line)
    return lines


async def say(client, prompt):
    await client.query(prompt)
    return [line async for line in client.receive_response()]


def check(what, holds):
    assert holds, what
    print(f"  {what}")


def kinds(lines):
    return [type(line).__name__ for line in lines]


async def one_shot():
    lines = await ask("hi")
    check("one-shot", kinds(lines) == ["SystemMessage", "AssistantMessage", "ResultMessage"] and lines[-1].result == "Hello.")
    session = lines[-1].session_id
    check("resume", (await ask("hi", resume=session))[-1].session_id == session)
    check("continue", (await ask("hi", continue_conversation=True))[-1].session_id == session)
    check("fork", (await ask("hi", resume=session, fork_session=True))[-1].session_id != session)
    lines = await ask("FORM", output_format={"type": "json_schema", "schema": SCHEMA})
    check("structured output", lines[-1].structured_output == {"ok": True})
    heard = []
    try:
        await ask("FAIL", stderr=heard.append)
        failed = False
    except Exception as error:  # the SDK's own classes differ between versions
        failed = "bad thing" in str(error)
    check("an error result", failed)
    try:
        await ask("hi", resume="44444444-4444-4444-8444-444444444444", stderr=heard.append)
    except Exception:
        pass
    check("stderr callback", any("No conversation found" in line for line in heard))


async def client():
    @tool("add", "Adds", {"a": float, "b": float})
    async def add(args):
        return {"content": [{"type": "text", "text": str(args["a"] + args["b"])}]}

    fired, allow = [], True

    async def hook(data, call, context):
        fired.append(data["hook_event_name"])
        return {}

    async def can_use_tool(name, data, context):
        fired.append(f"ask {name}")
        return PermissionResultAllow() if allow else PermissionResultDeny(message="not now")

    hooks = {event: [HookMatcher(hooks=[hook])] for event in ("PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop")}
    setup = options(
        mcp_servers={"calc": create_sdk_mcp_server("calc", tools=[add])},
        hooks=hooks,
        can_use_tool=can_use_tool,
        include_partial_messages=True,
        agents={"helper": AgentDefinition(description="Helps", prompt="You help.")},
        extra_args={"forward-subagent-text": None},
    )
    async with ClaudeSDKClient(setup) as c:
        check("server info", "commands" in await c.get_server_info())
        lines = await say(c, "please ADD")
        check("in-process MCP tool", lines[-1].result == "It is five." and "ask mcp__calc__add" in fired)
        check("hooks", {"PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop"} <= set(fired))
        check("partial messages", "StreamEvent" in kinds(lines))
        status = await c.get_mcp_status()
        check("MCP status", status["mcpServers"][0]["status"] == "connected")
        check("can_use_tool allows", (await say(c, "RUN it"))[-1].result == "Ran it." and os.path.exists(f"{CWD}/made"))
        os.remove(f"{CWD}/made")
        allow = False
        await say(c, "RUN it again")
        check("can_use_tool denies", not os.path.exists(f"{CWD}/made"))
        lines = await say(c, "HELP me")
        theirs = [line for line in lines if getattr(line, "parent_tool_use_id", None)]
        check("agents by initialize, subagent text", lines[-1].result == "The helper is done." and theirs)
        await c.set_permission_mode("acceptEdits")
        check("set_permission_mode", (await say(c, "WRITE it"))[-1].result == "Wrote it." and os.path.exists(f"{CWD}/w.txt"))
        await c.set_model("claude-haiku-4-5")
        lines = await say(c, "which?")
        models = [line.data["model"] for line in lines if type(line).__name__ == "SystemMessage" and line.subtype == "init"]
        check("set_model", models == ["claude-haiku-4-5"])
        await c.query("SLOW")
        async for line in c.receive_messages():
            if type(line).__name__ == "StreamEvent" and line.event["type"] == "content_block_delta":
                await c.interrupt()
                break
        lines = [line async for line in c.receive_response()]
        check("interrupt", lines[-1].subtype == "error_during_execution")
        check("context usage", (await c.get_context_usage())["totalTokens"] > 0)


async def rewind():
    os.remove(f"{CWD}/w.txt")
    setup = options(enable_file_checkpointing=True, permission_mode="acceptEdits", extra_args={"replay-user-messages": None})
    async with ClaudeSDKClient(setup) as c:
        lines = await say(c, "WRITE it")
        prompt = next(line.uuid for line in lines if type(line).__name__ == "UserMessage" and line.uuid)
        there = os.path.exists(f"{CWD}/w.txt")
        await c.rewind_files(prompt)
        check("rewind", there and not os.path.exists(f"{CWD}/w.txt"))


async def main():
    print("the Python SDK drives quipu-agent:")
    await one_shot()
    await client()
    await rewind()


asyncio.run(asyncio.wait_for(main(), 120))
