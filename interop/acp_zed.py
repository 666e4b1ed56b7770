# npm: @zed-industries/claude-code-acp@latest
# differs: interrupted|ede_diagnostic the words of an interrupted turn are our own
"""The older adapter of the Agent Client Protocol, driven by the same script."""

import os
import runpy
from pathlib import Path

os.environ["ADAPTER"] = "@zed-industries/claude-code-acp"
runpy.run_path(str(Path(__file__).with_name("acp.py")))
