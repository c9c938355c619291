"""Reads the streams of the gateway part with the OpenAI client for Python, as test/bench/measure does for those in Go."""

import argparse
import asyncio
import gc
import json
import resource
import time

import openai

ENOUGH = 5


def rss():
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) << 10
    return 0


def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def messages():
    return [{"role": "user", "content": "go"}]


def pieces(client, model):
    for chunk in client.chat.completions.create(model=model, messages=messages(), stream=True):
        if chunk.choices and chunk.choices[0].delta.content:
            yield chunk.choices[0].delta.content


def paced(client, result):
    delays = []
    for text in pieces(client, "paced"):
        now = time.time_ns()
        if text.strip().isdigit():
            delays.append((now - int(text)) / 1e3)
    delays.sort()
    result.update(events=len(delays), p50_us=delays[len(delays) // 2], p99_us=delays[len(delays) * 99 // 100])


def burst(client, result):
    busy, n = cpu(), 0
    for _ in pieces(client, "burst"):
        n += 1
    result.update(events=n, cpu_us=(cpu() - busy) * 1e6 / n)


async def held(args, result):
    client = openai.AsyncOpenAI(base_url=args.url + "/v1", api_key=args.key, max_retries=0)
    gc.collect()
    result["before"] = rss()
    warm = asyncio.Semaphore(0)

    async def one():
        n = 0
        stream = await client.chat.completions.create(model="held", messages=messages(), stream=True)
        async for chunk in stream:
            if chunk.choices and chunk.choices[0].delta.content:
                n += 1
                if n == ENOUGH:
                    warm.release()

    tasks = [asyncio.create_task(one()) for _ in range(args.streams)]
    for _ in tasks:
        await warm.acquire()
    result.update(events=args.streams, rss=rss())
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("-url")
    p.add_argument("-key")
    p.add_argument("-do")
    p.add_argument("-streams", type=int, default=200)
    args = p.parse_args()
    result = {"version": openai.__version__}
    client = openai.OpenAI(base_url=args.url + "/v1", api_key=args.key, max_retries=0)
    for _ in pieces(client, "short"):
        pass
    if args.do == "held":
        asyncio.run(held(args, result))
    else:
        {"paced": paced, "burst": burst}[args.do](client, result)
    print(json.dumps(result))


main()
