"""Runs the official `openai` client against a server of this API: chat, streams, tools, errors, text completions.

usage: openai_client_test.py PROGRAM     starts PROGRAM (dsv4_fake_server), which prints its endpoint
       openai_client_test.py --url URL   uses a server that runs; what only the scripts of the fake engine know is left out
"""
import asyncio
import subprocess
import sys

try:
    import openai
except ImportError:
    sys.exit("the openai package is not installed in this Python: run tools/test_venv.sh")

KEY = "key-for-this-test"
TOOL = {
    "type": "function",
    "function": {
        "name": "get_tide",
        "description": "Tide table of a harbour.",
        "parameters": {"type": "object", "properties": {"harbour": {"type": "string"}}, "required": ["harbour"]},
    },
}


def ask(text):
    return [{"role": "user", "content": text}]


def chat(client, model, scripted):
    answer = client.chat.completions.create(model=model, messages=ask("hi"), max_tokens=64, temperature=0)
    choice = answer.choices[0]
    assert choice.finish_reason in ("stop", "length"), choice
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.usage.prompt_tokens_details.cached_tokens >= 0
    if scripted:
        assert choice.message.content == "Hello, wörld 😀!", choice
        assert choice.message.reasoning_content == "Let me think."
        assert choice.message.reasoning == "Let me think."


def several_choices(client, model, scripted):
    answer = client.chat.completions.create(model=model, messages=ask("hi"), n=3, max_tokens=8)
    assert [c.index for c in answer.choices] == [0, 1, 2]


def stream(client, model, scripted):
    content, reasoning, finish, usage = "", "", None, None
    for chunk in client.chat.completions.create(
        model=model, messages=ask("hi"), stream=True, max_tokens=64, stream_options={"include_usage": True}
    ):
        if chunk.usage:
            assert not chunk.choices
            usage = chunk.usage
            continue
        delta = chunk.choices[0].delta
        content += delta.content or ""
        reasoning += getattr(delta, "reasoning_content", None) or ""
        finish = chunk.choices[0].finish_reason or finish
    assert finish in ("stop", "length"), finish
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    if scripted:
        assert content == "Hello, wörld 😀!", content
        assert reasoning == "Let me think."


def tools(client, model, scripted):
    if not scripted:
        client.chat.completions.create(model=model, messages=ask("hi"), tools=[TOOL], max_tokens=16)
        return
    answer = client.chat.completions.create(model=model, messages=ask("tide?"), tools=[TOOL])
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    call = choice.message.tool_calls[0]
    assert (call.type, call.function.name, call.function.arguments) == ("function", "get_tide", '{"harbour": "Faro"}')
    # The client's own accumulator puts streamed calls together.
    with client.chat.completions.stream(model=model, messages=ask("tide?"), tools=[TOOL]) as events:
        final = events.get_final_completion()
    call = final.choices[0].message.tool_calls[0]
    assert (call.function.name, call.function.arguments) == ("get_tide", '{"harbour": "Faro"}'), call
    # A whole turn back and forth is accepted.
    client.chat.completions.create(
        model=model,
        messages=ask("tide?")
        + [choice.message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "2.2 m"}],
    )


def logprobs(client, model, scripted):
    answer = client.chat.completions.create(
        model=model, messages=ask("hi"), logprobs=True, top_logprobs=2, max_tokens=16
    )
    entries = answer.choices[0].logprobs.content
    if scripted:
        assert "".join(e.token for e in entries) == "Hello, wörld 😀!"
        assert bytes(entries[2].bytes).decode() == "wörld"
    for e in entries:
        assert e.logprob <= 0 and len(e.top_logprobs) <= 2


def completions(client, model, scripted):
    answer = client.completions.create(model=model, prompt=["a", "b"], max_tokens=8, logprobs=1)
    assert [c.index for c in answer.choices] == [0, 1]
    assert answer.choices[0].logprobs.tokens
    text = ""
    for chunk in client.completions.create(model=model, prompt="a", max_tokens=8, stream=True):
        text += chunk.choices[0].text
    if scripted:
        assert text == "Hello, wörld 😀!", text


def models(client, model, scripted):
    assert model in [m.id for m in client.models.list()]
    assert client.models.retrieve(model).id == model


def expect(error, status, code, call):
    try:
        call()
    except error as e:
        assert e.status_code == status, e
        assert e.code == code, e
        return e
    raise AssertionError("no error came")


def errors(client, model, scripted):
    create = client.chat.completions.create
    e = expect(openai.BadRequestError, 400, None, lambda: create(model=model, messages=ask("x"), temperature=9))
    assert e.param == "temperature"
    expect(openai.NotFoundError, 404, "model_not_found", lambda: create(model="no such model", messages=ask("x")))
    expect(openai.NotFoundError, 404, "model_not_found", lambda: client.models.retrieve("none"))
    if not scripted:
        return
    wrong = openai.OpenAI(base_url=client.base_url, api_key="another", max_retries=0)
    expect(openai.AuthenticationError, 401, "invalid_api_key", lambda: wrong.models.list())
    long = lambda: create(model=model, messages=ask("too long"))
    expect(openai.BadRequestError, 400, "context_length_exceeded", long)
    expect(openai.RateLimitError, 429, "rate_limit_exceeded", lambda: create(model=model, messages=ask("queue")))
    late = lambda: list(create(model=model, messages=ask("please fail late"), stream=True))
    try:
        late()
    except openai.APIError:
        return
    raise AssertionError("a broken stream looked whole")


async def many(url, model):
    client = openai.AsyncOpenAI(base_url=url + "/v1", api_key=KEY, max_retries=0)

    async def one():
        text = ""
        events = await client.chat.completions.create(model=model, messages=ask("hi"), stream=True, max_tokens=8)
        async for chunk in events:
            if chunk.choices:
                text += chunk.choices[0].delta.content or ""
        return text

    answers = await asyncio.gather(*[one() for _ in range(50)])
    await client.close()
    return answers


def run(url, scripted):
    client = openai.OpenAI(base_url=url + "/v1", api_key=KEY, max_retries=0, timeout=60)
    model = client.models.list().data[0].id
    for test in (chat, several_choices, stream, tools, logprobs, completions, models, errors):
        test(client, model, scripted)
        print("ok", test.__name__)
    answers = asyncio.run(many(url, model))
    assert len(answers) == 50
    if scripted:
        assert set(answers) == {"Hello, wörld 😀!"}
    print("ok many")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--url":
        run(sys.argv[2].rstrip("/"), False)
        return
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    server = subprocess.Popen([sys.argv[1], KEY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        run(server.stdout.readline().strip(), True)
    finally:
        server.stdin.close()
        assert server.wait(timeout=20) == 0


main()
