"""Answers for the programs that the dialects come from: one JSON request a line in, one JSON answer a line out.

Imports Spec Kit's own evaluator and engine and, if it is installed, dcc-mcp-core, so that a question costs no process.
Floats and integers beyond 64 bits travel as {"~float": text} and {"~int": text}: no reader of JSON in between changes them.
"""

import json
import os
import sys
from pathlib import Path

# What the engine or a step of it prints, or reads, must not get between the questions and the answers.
QUESTIONS = os.fdopen(os.dup(0), "r", encoding="utf-8")
ANSWERS = os.fdopen(os.dup(1), "w", encoding="utf-8")
NOTHING = os.open(os.devnull, os.O_RDWR)
os.dup2(NOTHING, 0)
os.dup2(NOTHING, 1)

from specify_cli.workflows.base import StepContext  # noqa: E402
from specify_cli.workflows.engine import WorkflowEngine  # noqa: E402
from specify_cli.workflows.expressions import evaluate_condition, evaluate_expression  # noqa: E402


def tagged(value):
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else {"~int": str(value)}
    if isinstance(value, float):
        return {"~float": repr(value)}
    if isinstance(value, (list, tuple)):
        return [tagged(item) for item in value]
    if isinstance(value, dict):
        return {str(key): tagged(item) for key, item in value.items()}
    return {"~other": type(value).__name__}


def attempt(evaluate, text, context):
    try:
        return {"value": tagged(evaluate(text, context))}
    except Exception as error:  # whatever is raised ends a run
        return {"error": f"{type(error).__name__}: {error}"[:300]}


def expressions(request):
    context = StepContext(**request["context"])
    return [
        {"value": attempt(evaluate_expression, text, context), "condition": attempt(evaluate_condition, text, context)}
        for text in request["texts"]
    ]


def seen(folder, run_id):
    run = folder / ".specify/workflows/runs" / run_id
    state = json.loads((run / "state.json").read_text(encoding="utf-8"))
    return {
        "status": state["status"],
        "current_step": state["current_step_id"],
        "current_index": state["current_step_index"],
        "error": state["error"],
        "inputs": tagged(state["inputs"]),
        "steps": tagged(state["step_results"]),
        "execution": tagged(state["execution"]),
        "log": [tagged(json.loads(line)) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()],
        "definition": (run / "workflow.yml").read_text(encoding="utf-8"),
    }


def workflow(request):
    """One phase of a run: its start, or a resume after the world around it has changed."""
    folder, run_id = Path(request["folder"]), "run"
    os.chdir(folder)
    engine = WorkflowEngine(project_root=folder)
    # As its command line reads `-i name=value`.
    inputs = {name.strip(): value.strip() for name, value in request["inputs"].items()}
    try:
        if request["resume"]:
            engine.resume(run_id, inputs)
        else:
            definition = engine.load_workflow(folder / "workflow.yml")
            refusals = engine.validate(definition)
            if refusals:
                return {"refused": " ".join(refusals)}
            engine.execute(definition, inputs, run_id=run_id)
    except Exception as error:  # recorded in the state, unless there is none yet
        if not (folder / ".specify/workflows/runs" / run_id / "state.json").exists():
            return {"refused": str(error)}
    return seen(folder, run_id)


def dcc(request):
    import yaml
    from dcc_mcp_core import WorkflowSpec

    # It warns of each number that it corrects.
    os.dup2(NOTHING, 2)

    def nested(steps):
        for step in steps or []:
            yield step
            for key in ("steps", "then", "else"):
                yield from nested(step.get(key))

    def retried(step):
        """The delays of a step anywhere in the tree: those of the same policy on a step alone."""
        retry = step.get("retry")
        # With an empty list nothing is tried again.
        if retry is None or retry["max_attempts"] == 1 or retry["retry_on"] == []:
            return None
        alone = yaml.safe_dump({"name": "x", "steps": [{"id": "x", "tool": "x", "retry": retry}]})
        policy = WorkflowSpec.from_yaml_str(alone).steps[0].policy.retry
        delays = [policy.next_delay_ms(attempt + 1) for attempt in range(1, request["delays"])]
        return {"attempts": policy.max_attempts, "delays": delays}

    def read(text):
        try:
            spec = WorkflowSpec.from_yaml_str(text)
            spec.validate()
        except ValueError as error:
            return {"refused": str(error)}
        whole = yaml.safe_load(spec.to_yaml())
        return {
            "steps": {
                step["id"]: {"kind": step["kind"], "timeout": step.get("timeout_secs"), "retry": retried(step)}
                for step in nested(whole["steps"])
            }
        }

    return [read(text) for text in request["texts"]]


HANDLERS = {"expressions": expressions, "workflow": workflow, "dcc": dcc}


def main():
    for line in QUESTIONS:
        request = json.loads(line)
        try:
            answer = {"answer": HANDLERS[request["ask"]](request)}
        except BaseException as error:
            answer = {"broken": f"{type(error).__name__}: {error}"}
        # Text that is no Unicode (half a surrogate pair) is shown as what it is.
        ANSWERS.write(json.dumps(answer) + "\n")
        ANSWERS.flush()


main()
