"""Uses the openai package as any program does: with a base URL and a key. Prints one line of JSON for each step it is told."""

import asyncio
import json
import os
import sys
import time

import openai


def client():
    return openai.OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["KEY"], max_retries=0, timeout=120)


def models():
    return [m.id for m in client().models.list()]


def chat(text):
    done = client().chat.completions.create(model="hermes-agent", messages=[{"role": "user", "content": text}])
    return {"text": done.choices[0].message.content, "finish": done.choices[0].finish_reason, "tokens": done.usage.total_tokens}


def stream(text):
    parts, times, finish = [], [], None
    for chunk in client().chat.completions.create(model="hermes-agent", messages=[{"role": "user", "content": text}], stream=True):
        for choice in chunk.choices:
            if choice.delta.content:
                parts.append(choice.delta.content)
                times.append(time.monotonic())
                if len(parts) == 1:
                    print(json.dumps({"began": True}), flush=True)
            finish = choice.finish_reason or finish
    return {"text": "".join(parts), "parts": len(parts), "seconds": times[-1] - times[0] if times else 0, "finish": finish}


def in_async(text):
    async def run():
        async with openai.AsyncOpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["KEY"], max_retries=0, timeout=120) as c:
            done = await c.chat.completions.create(model="hermes-agent", messages=[{"role": "user", "content": text}])
            return {"text": done.choices[0].message.content}

    return asyncio.run(run())


def respond(text, previous=None):
    more = {"previous_response_id": previous} if previous else {}
    r = client().responses.create(model="hermes-agent", input=text, **more)
    return {"id": r.id, "text": r.output_text}


def respond_stream(text):
    parts, end = [], None
    for event in client().responses.create(model="hermes-agent", input=text, stream=True):
        if event.type == "response.output_text.delta":
            parts.append(event.delta)
        if event.type == "response.completed":
            end = event.response.output_text
    return {"text": "".join(parts), "end": end}


def retrieve(id):
    return {"text": client().responses.retrieve(id).output_text}


step, arguments = sys.argv[1], sys.argv[2:]
try:
    print(json.dumps({"ok": globals()[step](*arguments)}), flush=True)
except openai.APIStatusError as e:
    print(json.dumps({"error": type(e).__name__, "status": e.status_code, "code": e.code, "message": str(e)}), flush=True)
except (openai.APIError, openai.APIConnectionError) as e:
    print(json.dumps({"error": type(e).__name__, "message": str(e)}), flush=True)
except Exception as e:  # what httpx says of a stream that is cut
    print(json.dumps({"error": type(e).__name__, "message": str(e)}), flush=True)
