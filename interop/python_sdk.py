# pip: claude-agent-sdk
# venv: venv
"""The published Python SDK drives the agent: every field of ClaudeAgentOptions and every method of
ClaudeSDKClient does what it promises. docs/sdk.md has the same list."""

import asyncio
import dataclasses
import inspect
import json
import os
import sys
import uuid
from pathlib import Path

import proxy
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    InMemorySessionStore,
    PermissionResultAllow,
    PermissionResultDeny,
    create_sdk_mcp_server,
    query,
    tool,
)

AGENT, CWD = os.environ["AGENT"], Path.cwd()
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
FIELDS, METHODS = {}, {}
# Fields and methods that no scenario is about, and why.
ELSEWHERE = {
    "cli_path": "in every scenario",
    "cwd": "in every scenario",
    "env": "in every scenario",
    "user": "needs another user of the system; the SDK starts the process, the agent has no part in it",
    "debug_stderr": "deprecated; the SDK itself writes to it",
    "max_buffer_size": "a limit of the SDK's own reader",
    "load_timeout_ms": "a limit of the SDK's own session store",
}
BASE = dict(os.environ, ANTHROPIC_BASE_URL=proxy.start())


def options(**more):
    env = dict(BASE, **more.pop("env", {}))
    return ClaudeAgentOptions(cli_path=AGENT, cwd=more.pop("cwd", CWD), env=env, **more)


def field(*names):
    return lambda scenario: [FIELDS.setdefault(name, scenario) for name in names] and scenario


def method(*names):
    return lambda scenario: [METHODS.setdefault(name, scenario) for name in names] and scenario


def kind(line):
    return type(line).__name__


async def ask(prompt, **more):
    """All that is said to a prompt. What the SDK raises ends the list."""
    proxy.asked.clear()
    lines = []
    try:
        async for line in query(prompt=prompt, options=options(**more)):
            lines.append(line)
    except Exception as error:  # the SDK's own classes differ between versions
        lines.append(error)
    return lines


async def stream(*prompts):
    for prompt in prompts:
        yield {"type": "user", "message": {"role": "user", "content": prompt}, "parent_tool_use_id": None}


def result(lines):
    found = [line for line in lines if kind(line) == "ResultMessage"]
    return found[-1] if found else None


def init(lines):
    return next(line.data for line in lines if kind(line) == "SystemMessage" and line.subtype == "init")


def request():
    """The body of the last request with tools, or of the last one."""
    bodies = [body for _, body in proxy.asked]
    return next((body for body in reversed(bodies) if body.get("tools")), bodies[-1])


def beta():
    return ",".join(value for headers, _ in proxy.asked for name, value in headers.items() if name.lower() == "anthropic-beta")


def offered():
    return {tool["name"] for tool in request().get("tools", [])}


def system():
    return "\n".join(part["text"] for part in request().get("system", []))


async def say(client, prompt):
    await client.query(prompt)
    return [line async for line in client.receive_response()]


@tool("add", "Adds", {"a": float, "b": float})
async def add(args):
    return {"content": [{"type": "text", "text": str(args["a"] + args["b"])}]}


CALCULATOR = create_sdk_mcp_server("calc", tools=[add])


async def refuse(name, data, context):
    return PermissionResultDeny(message="not now")


async def allow(name, data, context):
    return PermissionResultAllow()


def fresh(name):
    (CWD / name).unlink(missing_ok=True)
    return CWD / name


@field("tools")
async def tools():
    await ask("hi", tools=["Read", "Bash"])
    some = offered()
    await ask("hi", tools=[])
    return {"Read", "Bash"} <= some, "Edit" in some, not offered()


@field("allowed_tools")
async def allowed_tools():
    made = fresh("made")
    await ask("RUN it", allowed_tools=["Bash(touch:*)"])
    return made.exists()


@field("disallowed_tools")
async def disallowed_tools():
    await ask("hi", disallowed_tools=["Bash"])
    return "Bash" not in offered(), "Read" in offered()


@field("system_prompt")
async def system_prompt():
    await ask("hi", system_prompt="You are a pirate.")
    text = "You are a pirate." in system()
    await ask("hi", system_prompt={"type": "preset", "preset": "claude_code", "append": "Mind the gap."})
    appended = system().rstrip().endswith("Mind the gap.") and len(system()) > 200
    (CWD / "prompt.md").write_text("You are a cook.")
    await ask("hi", system_prompt={"type": "file", "path": str(CWD / "prompt.md")})
    file = "You are a cook." in system()
    await ask("hi")
    return text, appended, file, "empty", len(system()) < 300


@field("mcp_servers")
async def mcp_servers():
    lines = await ask(stream("please ADD"), mcp_servers={"calc": CALCULATOR}, allowed_tools=["mcp__calc__add"])
    in_process = result(lines).result
    config = {"mcpServers": {"lost": {"command": "/no/such/program"}}}
    (CWD / "mcp.json").write_text(json.dumps(config))
    lines = await ask(stream("hi"), mcp_servers=str(CWD / "mcp.json"))
    return in_process, [server["name"] for server in init(lines)["mcp_servers"]]


@field("strict_mcp_config")
async def strict_mcp_config():
    (CWD / ".mcp.json").write_text('{"mcpServers": {"project": {"command": "/no/such/program"}}}')
    lines = await ask(stream("hi"), strict_mcp_config=True, mcp_servers={"calc": CALCULATOR})
    (CWD / ".mcp.json").unlink()
    return [server["name"] for server in init(lines)["mcp_servers"]]


@field("permission_mode")
async def permission_mode():
    wrote = fresh("w.txt")
    lines = await ask("WRITE it", permission_mode="acceptEdits")
    edits = wrote.exists(), init(lines)["permissionMode"]
    wrote = fresh("w.txt")
    await ask("WRITE it", permission_mode="plan")
    planned = wrote.exists()
    made = fresh("made")
    await ask("RUN it", permission_mode="bypassPermissions")
    return edits, planned, made.exists()


@field("permission_prompt_tool_name", "can_use_tool")
async def can_use_tool():
    made = fresh("made")
    lines = await ask(stream("RUN it"), can_use_tool=refuse)
    denied = made.exists(), [denial["tool_name"] for denial in result(lines).permission_denials]
    await ask(stream("RUN it"), can_use_tool=allow)
    return denied, made.exists()


@field("hooks", "include_hook_events")
async def hooks():
    fired = []

    async def hook(data, call, context):
        fired.append(data["hook_event_name"])
        return {}

    events = ("PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop")
    await ask(stream("RUN it"), hooks={event: [HookMatcher(hooks=[hook])] for event in events}, allowed_tools=["Bash"])

    async def guard(data, call, context):
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                                       "permissionDecisionReason": "guarded"}}

    made = fresh("made")
    lines = await ask(stream("RUN it"), hooks={"PreToolUse": [HookMatcher(matcher="Bash", hooks=[guard])]}, allowed_tools=["Bash"])
    settings = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}
    lines = await ask("hi", include_hook_events=True, settings=json.dumps(settings))
    told = sorted({line.subtype for line in lines if kind(line).endswith("Message") and "hook" in str(getattr(line, "subtype", ""))})
    return sorted(set(fired)), made.exists(), told


@field("continue_conversation", "resume", "fork_session", "session_id")
async def sessions():
    id = str(uuid.uuid4())
    first = result(await ask("hi", session_id=id)).session_id
    resumed = result(await ask("hi", resume=id)).session_id
    before = len(request()["messages"]) > 2
    continued = result(await ask("hi", continue_conversation=True)).session_id
    forked = result(await ask("hi", resume=id, fork_session=True)).session_id
    return first == id, resumed == id, before, continued == id, forked != id


@field("resume_session_at", "resume_drops_turn")
async def resume_at():
    lines = await ask("hi", permission_mode="acceptEdits")
    id, said = result(lines).session_id, next(line for line in lines if kind(line) == "AssistantMessage")
    echo = await ask(stream("WRITE it"), resume=id, permission_mode="acceptEdits", extra_args={"replay-user-messages": None})
    prompt = next(line.uuid for line in echo if kind(line) == "UserMessage" and line.uuid)
    await ask("hi", resume=id, resume_session_at=said.uuid, fork_session=True)
    short = "WRITE it" not in json.dumps(request()["messages"])
    lines = await ask("hi", resume=id, resume_session_at=said.uuid, resume_drops_turn=prompt, fork_session=True)
    kept = result(lines) is not None
    lines = await ask("hi", resume=id, resume_session_at=said.uuid, resume_drops_turn=str(uuid.uuid4()), fork_session=True)
    return short, kept, "refused", result(lines) is None or result(lines).is_error


@field("max_turns")
async def max_turns():
    lines = await ask("RUN it", max_turns=1, allowed_tools=["Bash"])
    return result(lines).subtype


@field("max_budget_usd")
async def max_budget():
    lines = await ask("RUN it", max_budget_usd=0.0000001, allowed_tools=["Bash"])
    return result(lines).subtype


@field("task_budget")
async def task_budget():
    await ask("hi", task_budget={"total": 50000})
    return request().get("output_config", {}).get("task_budget"), "task-budgets" in beta()


@field("model", "fallback_model", "betas")
async def model():
    await ask("hi", model="claude-sonnet-4-5", betas=["context-1m-2025-08-07"])
    chosen = request()["model"], "context-1m-2025-08-07" in beta()
    lines = await ask("hi", model="claude-sonnet-4-5", fallback_model="claude-haiku-4-5")
    return chosen, result(lines).is_error


@field("thinking", "max_thinking_tokens", "effort")
async def thinking():
    await ask("hi", model="claude-haiku-4-5", thinking={"type": "enabled", "budget_tokens": 5000})
    enabled = request().get("thinking", {}).get("budget_tokens")
    await ask("hi", model="claude-haiku-4-5", thinking={"type": "disabled"})
    disabled = request().get("thinking", {}).get("type", "disabled")
    await ask("hi", model="claude-haiku-4-5", max_thinking_tokens=4000)
    limited = request().get("thinking", {}).get("budget_tokens")
    await ask("hi", effort="low")
    return enabled, disabled, limited, request().get("output_config", {}).get("effort")


@field("output_format")
async def output_format():
    lines = await ask("FORM it", output_format={"type": "json_schema", "schema": SCHEMA})
    return result(lines).structured_output


@field("add_dirs")
async def add_dirs():
    other = CWD.parent / "other"
    other.mkdir(exist_ok=True)
    lines = await ask("hi", add_dirs=[other], permission_mode="acceptEdits")
    return result(lines).result


@field("extra_args", "stderr")
async def extra_args():
    heard = []
    lines = await ask("hi", resume=str(uuid.uuid4()), stderr=heard.append, extra_args={"no-session-persistence": None})
    return any("No conversation found" in line for line in heard), result(lines) is None or result(lines).is_error


@field("settings", "setting_sources")
async def settings():
    made = fresh("made")
    await ask("RUN it", settings=json.dumps({"permissions": {"allow": ["Bash(touch:*)"]}}))
    given = made.exists()
    home = Path(os.environ["HOME"], ".claude")
    home.mkdir(exist_ok=True)
    (home / "settings.json").write_text('{"permissions": {"allow": ["Bash(touch:*)"]}}')
    made = fresh("made")
    await ask("RUN it", setting_sources=["project"])
    left_out = made.exists()
    await ask("RUN it", setting_sources=["user"])
    (home / "settings.json").unlink()
    return given, left_out, made.exists()


@field("sandbox")
async def sandbox():
    # Where there is no sandbox the agent may refuse to start: both are right, running without it is not.
    lines = await ask("hi", sandbox={"enabled": True, "failIfUnavailable": False})
    return result(lines).result


@field("agents", "forward_subagent_text")
async def agents():
    helper = {"helper": AgentDefinition(description="Helps", prompt="You help.")}
    lines = await ask(stream("HELP me"), agents=helper, forward_subagent_text=True, allowed_tools=["Agent"])
    theirs = [line for line in lines if getattr(line, "parent_tool_use_id", None) and kind(line) == "AssistantMessage"]
    return result(lines).result, any("report" in block.text for line in theirs for block in line.content if hasattr(block, "text"))


@field("skills", "plugins")
async def skills():
    folder = CWD / "plugin"
    (folder / ".claude-plugin").mkdir(parents=True, exist_ok=True)
    (folder / ".claude-plugin/plugin.json").write_text('{"name": "kit"}')
    (folder / "skills/tides").mkdir(parents=True, exist_ok=True)
    (folder / "skills/tides/SKILL.md").write_text("---\nname: tides\ndescription: Knows tides\n---\nSpeak of tides.")
    lines = await ask(stream("hi"), plugins=[{"type": "local", "path": str(folder)}], skills=["kit:tides"])
    return "kit:tides" in init(lines)["slash_commands"], "kit" in [plugin["name"] for plugin in init(lines).get("plugins", [])]


@field("include_partial_messages")
async def partial():
    lines = await ask("hi", include_partial_messages=True)
    return "StreamEvent" in map(kind, lines)


@field("verbatim_prompts")
async def verbatim():
    lines = await ask(stream("/cost hi"), verbatim_prompts=True)
    return result(lines).result


@field("enable_file_checkpointing")
@method("rewind_files")
async def rewind():
    wrote = fresh("w.txt")
    setup = options(enable_file_checkpointing=True, permission_mode="acceptEdits", extra_args={"replay-user-messages": None})
    async with ClaudeSDKClient(setup) as client:
        lines = await say(client, "WRITE it")
        prompt = next(line.uuid for line in lines if kind(line) == "UserMessage" and line.uuid)
        there = wrote.exists()
        await client.rewind_files(prompt)
        return there, wrote.exists()


@field("client_app")
async def client_app():
    await ask("hi", client_app="interop/1.0")
    return any("interop/1.0" in value for headers, _ in proxy.asked for name, value in headers.items() if name.lower() == "user-agent")


@field("session_store", "session_store_flush")
async def session_store():
    store = InMemorySessionStore()
    id = result(await ask("hi", session_store=store)).session_id
    resumed = await ask("hi again", session_store=store, resume=id)
    return result(resumed).session_id == id, "hi" in json.dumps(request()["messages"])


@method("connect", "disconnect", "query", "receive_messages", "receive_response", "get_server_info")
async def conversation():
    client = ClaudeSDKClient(options())
    await client.connect()
    info = await client.get_server_info()
    first = await say(client, "hi")
    await client.query("hi")
    async for line in client.receive_messages():
        if kind(line) == "ResultMessage":
            break
    await client.disconnect()
    return "commands" in info, "models" in info, result(first).result, line.session_id == result(first).session_id


@method("interrupt")
async def interrupt():
    async with ClaudeSDKClient(options(include_partial_messages=True)) as client:
        await client.query("SLOW story")
        async for line in client.receive_messages():
            if kind(line) == "StreamEvent" and line.event["type"] == "content_block_delta":
                await client.interrupt()
                break
        lines = [line async for line in client.receive_response()]
        after = await say(client, "hi")
        return lines[-1].subtype, result(after).result


@method("set_permission_mode", "set_model")
async def setters():
    wrote = fresh("w.txt")
    async with ClaudeSDKClient(options()) as client:
        await client.set_permission_mode("acceptEdits")
        await say(client, "WRITE it")
        await client.set_model("claude-haiku-4-5")
        lines = await say(client, "which?")
        return wrote.exists(), init(lines)["model"], request()["model"]


@method("get_mcp_status", "reconnect_mcp_server", "toggle_mcp_server")
async def mcp_methods():
    calc = Path(__file__).with_name("calc_server.py")
    servers = {"tides": {"command": sys.executable, "args": [str(calc)]}}
    async with ClaudeSDKClient(options(mcp_servers=servers)) as client:
        await say(client, "hi")

        async def status():
            return [server["status"] for server in (await client.get_mcp_status())["mcpServers"] if server["name"] == "tides"]

        before = await status()
        await client.toggle_mcp_server("tides", False)
        off = await status()
        await client.toggle_mcp_server("tides", True)
        await client.reconnect_mcp_server("tides")
        return before, off, await status()


@method("stop_task", "get_context_usage")
async def usage():
    async with ClaudeSDKClient(options()) as client:
        await say(client, "hi")
        await client.stop_task("nope")
        return (await client.get_context_usage())["totalTokens"] > 0


async def main():
    named = {field.name for field in dataclasses.fields(ClaudeAgentOptions)}
    methods = {name for name, _ in inspect.getmembers(ClaudeSDKClient, inspect.isfunction) if not name.startswith("_")}
    missing = (named - set(FIELDS) - set(ELSEWHERE)) | (methods - set(METHODS) - set(ELSEWHERE))
    failed = bool(missing)
    print("no scenario for:", ", ".join(sorted(missing)) or "nothing")
    seen = set()
    for name, scenario in [*FIELDS.items(), *METHODS.items()]:
        if scenario in seen or (len(sys.argv) > 1 and name not in sys.argv[1:]):
            continue
        seen.add(scenario)
        names = [name for name, other in [*FIELDS.items(), *METHODS.items()] if other is scenario]
        try:
            outcome = await asyncio.wait_for(scenario(), 60)
        except Exception as error:
            outcome, failed = f"{type(error).__name__}: {error}", True
        print(f"{', '.join(dict.fromkeys(names))}: {outcome}", flush=True)
    sys.exit(failed)


asyncio.run(main())
