#!/usr/bin/env python3
"""Records cases: does what the phases of CASE/expected.json say with the real Spec Kit, and fills in what it was seen to do.

usage: SPECIFY=path/to/specify record.py CASE...

What is read of a case: note, setup, env, path_prefix; of a phase: command, args, source, touch_before, write_before, tty_answers
and windlass (what a decision makes different here). Everything else is overwritten.
"""
import json
import os
import pty
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SPECIFY = os.environ.get("SPECIFY", "specify")
ASKED = ["command", "args", "source", "touch_before", "write_before", "tty_answers", "windlass"]


def environment(case, project):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPECKIT", "SPECIFY"))}
    path = f"{project / case['path_prefix']}:" if "path_prefix" in case else ""
    given = {name: value.replace("<PROJECT>", str(project)) for name, value in case.get("env", {}).items()}
    return kept | given | {"PATH": f"{path}/usr/bin:/bin"}


def start(phase, project, env, run):
    what = ["run", phase.get("source", "workflow.yml")] if phase["command"] == "run" else ["resume", run]
    command = [SPECIFY, "workflow", *what, "--json", *phase["args"]]
    piped = {"cwd": project, "env": env, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if "tty_answers" not in phase:
        return subprocess.run(command, stdin=subprocess.DEVNULL, **piped)
    keys, other = pty.openpty()
    # A session of its own, so that Ctrl-C reaches it.
    child = subprocess.Popen(["setsid", "--ctty", "--wait", *command], stdin=other, **piped)
    for answer in phase["tty_answers"]:
        key = answer in ("\x03", "\x04")
        if key:
            # The process that hears of it has to exist.
            time.sleep(4)
        os.write(keys, (answer if key else answer + "\n").encode())
    out, err = child.communicate()
    return subprocess.CompletedProcess(command, child.returncode, out, err)


def state(project, run):
    file = project / ".specify/workflows/runs" / (run or "none") / "state.json"
    return json.loads(file.read_text()) if file.is_file() else None


def record(folder):
    file = folder / "expected.json"
    case = json.loads(file.read_text())
    case = {"engine": "specify-cli 1.2.3"} | {key: value for key, value in case.items() if key != "stdin"}
    phases, project, run = [], None, None
    for asked in case["phases"]:
        phase = {key: asked[key] for key in ASKED if key in asked}
        if phase["command"] == "run":
            project, run = Path(tempfile.mkdtemp()).resolve() / "project", None
            shutil.copytree(folder, project, ignore=shutil.ignore_patterns("expected.json"))
            env = environment(case, project)
            for command in case.get("setup", []):
                subprocess.run([SPECIFY if word == "specify" else word for word in command[:1]] + command[1:],
                               cwd=project, env=env, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        for name in phase.get("touch_before", []):
            (project / name).touch()
        for name, text in phase.get("write_before", {}).items():
            (project / name).write_text(text)
        done = start(phase, project, env, run)
        try:
            payload = json.loads(done.stdout)
        except ValueError:
            payload = None
        run = (payload or {}).get("run_id", run)
        phase |= {"exit_code": done.returncode, "json": payload}
        if payload is None:
            phase["stderr_lines"] = [line for line in done.stderr.decode().splitlines() if line.strip()][:12]
        if kept := state(project, run):
            fields = ["type", "integration", "model", "output", "status", "error"]
            steps = {id: {key: step.get(key) for key in fields} for id, step in kept["step_results"].items()}
            phase |= {key: kept[key] for key in ["status", "error", "current_step_id", "current_step_index", "inputs"]}
            phase["steps"] = steps
        text = json.dumps(phase, ensure_ascii=False).replace(str(project), "<PROJECT>")
        phases.append(json.loads(text.replace(run, "<RUN_ID>") if run else text))
    case["phases"] = phases
    file.write_text(json.dumps(case, ensure_ascii=False, indent=1) + "\n")
    for phase in phases:
        print(folder.name, phase["command"], phase["exit_code"], phase.get("status"), (phase.get("error") or phase.get("stderr_lines") or ""))


for name in sys.argv[1:]:
    record(Path(name))
