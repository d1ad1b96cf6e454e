"""Starts `dsv4 pipeline pipelines/cpu_tiny.toml`, drives it with the official `openai` client, and stops it by SIGTERM.

usage: serve_tiny.py DSV4_PROGRAM SOURCE_DIR
"""
import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

try:
    import openai
except ImportError:
    sys.exit("the openai package is not installed in this Python: run tools/test_venv.sh")

PROGRAM, SOURCE = sys.argv[1:]
NORWAY = [{"role": "user", "content": "What is the capital of Norway?"}]
OSLO = "The capital of Norway is Oslo."
# In the form that the model was trained on.
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Add two numbers.",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                "required": ["a", "b"],
            },
        },
    }
]
SUM = [
    {"role": "system", "content": "You are a helpful assistant."},
    {"role": "user", "content": "Use the tool to add 17 and 25."},
]


def plain(client, model):
    answer = client.chat.completions.create(model=model, messages=NORWAY)
    assert answer.choices[0].message.content == OSLO, answer
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.prompt_tokens == 11 and answer.usage.completion_tokens == 8, answer.usage


def stream(client, model):
    text, reason = "", None
    for chunk in client.chat.completions.create(model=model, messages=NORWAY, stream=True):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            reason = choice.finish_reason or reason
    assert text == OSLO and reason == "stop", (text, reason)


def tool_call(client, model):
    whole = client.chat.completions.create(model=model, messages=SUM, tools=TOOLS).choices[0]
    assert whole.finish_reason == "tool_calls", whole
    (call,) = whole.message.tool_calls
    assert call.function.name == "add" and json.loads(call.function.arguments) == {"a": 17, "b": 25}, call

    name, arguments, content, reason = "", "", "", None
    for chunk in client.chat.completions.create(model=model, messages=SUM, tools=TOOLS, stream=True):
        for choice in chunk.choices:
            content += choice.delta.content or ""
            for delta in choice.delta.tool_calls or []:
                assert delta.index == 0
                name += delta.function.name or ""
                arguments += delta.function.arguments or ""
            reason = choice.finish_reason or reason
    assert (name, arguments, reason) == ("add", call.function.arguments, "tool_calls"), (name, arguments, reason)
    assert "DSML" not in content, content


def errors(client, model):
    for bad, parameter in (
        ({"messages": []}, "messages"),
        ({"messages": NORWAY, "temperature": -1}, "temperature"),
        ({"messages": [{"role": "nobody", "content": "x"}]}, "messages"),
    ):
        try:
            client.chat.completions.create(model=model, **bad)
        except openai.BadRequestError as e:
            assert e.param == parameter, (bad, e.body)
        else:
            raise AssertionError(f"accepted: {bad}")


def same_alone_and_together(client, model):
    prompts = [f"What is the capital of {c}?" for c in ("Norway", "France", "Italy", "Spain", "Japan", "Peru", "Kenya")]

    def ask(prompt):
        answer = client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": prompt}], max_tokens=24
        )
        return answer.choices[0].message.content

    alone = [ask(p) for p in prompts]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(ask, prompts * 6))
    assert together == alone * 6


def main():
    server = subprocess.Popen(
        [PROGRAM, "pipeline", f"{SOURCE}/pipelines/cpu_tiny.toml", "--set", "api.port=0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        line = server.stdout.readline()
        assert line.startswith("serving on http://127.0.0.1:"), line
        url = line.split()[-1]
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=60)
        model = client.models.list().data[0].id
        assert model == "dsv4-tiny", model
        for check in (plain, stream, tool_call, errors, same_alone_and_together):
            check(client, model)
            print("ok", check.__name__, flush=True)
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(timeout=40)
    assert code == 0, code


main()
