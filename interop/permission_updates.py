# pip: claude-agent-sdk
# venv: venv
"""Rules that a host adds with its permission are kept where they belong: in a settings file, which the
next session reads, or in the session."""

import asyncio
import json
import os
import subprocess
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions, PermissionResultAllow, PermissionUpdate, query
from claude_agent_sdk.types import PermissionRuleValue

AGENT, CWD = os.environ["AGENT"], Path.cwd()
HOME = Path(os.environ["HOME"])
FILES = {
    "localSettings": CWD / ".claude/settings.local.json",
    "projectSettings": CWD / ".claude/settings.json",
    "userSettings": HOME / ".claude/settings.json",
}


async def run(updates, cwd=CWD, **more):
    """How often permission was requested; the host grants it with these updates."""
    asked = 0

    async def allow(name, data, context):
        nonlocal asked
        asked += 1
        return PermissionResultAllow(updated_permissions=updates)

    async def prompt():
        yield {"type": "user", "message": {"role": "user", "content": "RUN it"}, "parent_tool_use_id": None}

    made = cwd / "made"
    made.unlink(missing_ok=True)
    async for _ in query(prompt=prompt(), options=ClaudeAgentOptions(cli_path=AGENT, cwd=cwd, can_use_tool=allow, **more)):
        pass
    return f"requests {asked}, ran {made.exists()}"


def written():
    """The settings files that exist; they are removed."""
    found = {}
    for name, path in FILES.items():
        if path.exists():
            found[name] = json.loads(path.read_text()).get("permissions")
            path.unlink()
    return found


def add_rules(destination, behavior="allow"):
    rule = PermissionRuleValue(tool_name="Bash", rule_content="touch made")
    return [PermissionUpdate(type="addRules", rules=[rule], behavior=behavior, destination=destination)]


async def main():
    # Both programs ignore allow rules of the project's own files in folders that are not trusted.
    (HOME / ".claude.json").write_text(json.dumps({"projects": {str(CWD): {"hasTrustDialogAccepted": True}}}))
    sources = {"setting_sources": ["user", "project", "local"]}
    for destination in ["session", "localSettings", "projectSettings", "userSettings"]:
        first = await run(add_rules(destination), **sources)
        second = await run(None, **sources)
        print(destination, "|", first, "|", second, "|", written())
    print("without the source |", await run(add_rules("localSettings"), setting_sources=[]), "|", written())
    path = FILES["localSettings"]
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"env": {"A": "b"}, "permissions": {"allow": ["Read"], "deny": ["WebFetch"]}}')
    first = await run(add_rules("localSettings"), **sources)
    print("beside others |", first, "|", path.read_text().split())
    path.unlink()
    mode = [PermissionUpdate(type="setMode", mode="acceptEdits", destination="localSettings")]
    print("mode |", await run(mode, **sources), "|", written())
    folders = [PermissionUpdate(type="addDirectories", directories=[str(HOME)], destination="localSettings")]
    print("folders |", (await run(folders, **sources)), "|", str(written()).replace(str(HOME), "HOME"))
    path.write_text('{"permissions": {"allow": ["Bash(touch made)"]}}')
    gone = [PermissionUpdate(type="removeRules", rules=add_rules("localSettings")[0].rules, behavior="allow", destination="localSettings")]
    print("removed |", (await run(gone, **sources)), "|", written())
    await in_subfolder(sources)


async def in_subfolder(sources):
    """The same in a subfolder of a repository, whose root has local settings too."""
    subprocess.run(["git", "init", "-q"], check=True)
    sub = CWD / "sub"
    sub.mkdir()

    def files():
        found = {}
        for path in sorted(CWD.rglob(".claude/settings*.json")):
            found[str(path.relative_to(CWD))] = json.loads(path.read_text())
            path.unlink()
        return found

    def put(folder, name, settings):
        path = folder / ".claude" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(settings))

    for destination in ["localSettings", "projectSettings"]:
        first = await run(add_rules(destination), cwd=sub, **sources)
        second = await run(None, cwd=sub, **sources)
        print("subfolder,", destination, "|", first, "|", second, "|", files())
    rules = ["Bash(touch made)"]
    for behavior in ["allow", "deny"]:
        for name in ["settings.json", "settings.local.json"]:
            put(CWD, name, {"permissions": {behavior: rules}})
            print("subfolder,", behavior, "in", name, "of the root |", await run(None, cwd=sub, **sources))
            files()
    put(CWD, "settings.local.json", {"permissions": {"deny": rules}})
    put(sub, "settings.local.json", {"permissions": {"allow": rules}})
    print("subfolder, root denies |", await run(None, cwd=sub, **sources))
    files()
    other = PermissionRuleValue(tool_name="Bash", rule_content="other")
    for kind in ["addRules", "replaceRules", "removeRules"]:
        put(CWD, "settings.local.json", {"permissions": {"allow": ["Bash(other)", "Read"]}})
        put(sub, "settings.local.json", {"permissions": {"allow": ["Bash(other)", "WebFetch"]}})
        update = PermissionUpdate(type=kind, rules=[other], behavior="allow", destination="localSettings")
        print("subfolder,", kind, "|", await run([update], cwd=sub, **sources), "|", files())


asyncio.run(main())
