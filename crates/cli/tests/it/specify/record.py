"""Records what Spec Kit makes of the workflows in this folder, for `specify.rs` to compare with.

Usage: python record.py SPECIFY, where SPECIFY is the program of specify-cli 1.2.3.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

# What is run in each folder, one phase after the other: the files that appear before it, and the arguments.
PHASES = {
    "completed": [([], ["run", "workflow.yml"])],
    "failed": [
        ([], ["run", "workflow.yml"]),
        ([], ["resume", "run"]),
        (["ok"], ["resume", "run", "-i", "note=fixed", "-i", "unknown=1"]),
    ],
    "paused": [
        ([], ["run", "workflow.yml"]),
        ([], ["resume", "run"]),
        ([], ["resume", "run", "-i", "verdict=reject"]),
        ([], ["resume", "run", "-i", "verdict= approve "]),
        ([], ["resume", "run", "-i", "second=reject"]),
    ],
    "aborted": [
        ([], ["run", "workflow.yml"]),
        ([], ["resume", "run", "-i", "verdict=reject"]),
        ([], ["resume", "run"]),
    ],
    "raised": [
        ([], ["run", "workflow.yml"]),
        ([], ["resume", "run"]),
        ([], ["resume", "run", "-i", "text=[1]"]),
    ],
    "called": [
        ([], ["run", "outer"]),
        ([], ["resume", "run", "-i", "ok=yes"]),
        ([], ["resume", "run", "-i", "verdict=approve"]),
    ],
    "agents": [([], ["run", "workflow.yml"])],
}


def record(specify, source, phases):
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top).resolve() / "project"
        shutil.copytree(source, folder)
        (folder / ".specify").mkdir(exist_ok=True)
        for program in folder.glob("bin/*"):
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
        path = f"{folder}/bin:/usr/bin:/bin"
        env = {"PATH": path, "HOME": top, "SPECKIT_WORKFLOW_RUN_ID": "run", "PYTHONUTF8": "1"}

        def ask(args):
            return subprocess.run(
                [specify, "workflow", *args, "--json"],
                cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            )

        def whole(text):
            return text.replace(str(folder), "PROJECT")

        run = folder / ".specify/workflows/runs/run"
        for files, args in phases:
            for name in files:
                (folder / name).touch()
            said = ask(args)
            yield {
                "files": files,
                "args": args,
                "exit": said.returncode,
                "stdout": whole(said.stdout),
                "status": whole(ask(["status", "run"]).stdout),
                "runs": whole(ask(["status"]).stdout),
                "folder": {name: whole((run / name).read_text()) for name in sorted(os.listdir(run))},
            }


def main():
    here = Path(__file__).parent
    for case, phases in PHASES.items():
        recorded = list(record(sys.argv[1], here / case, phases))
        text = json.dumps(recorded, indent=1, ensure_ascii=False)
        (here / f"{case}.json").write_text(text + "\n")


main()
