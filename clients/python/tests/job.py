"""A job that may be killed at any time and started again: it makes the same calls. It prints each outcome."""

import asyncio
import concurrent.futures
import json
import sys

import world
import readback

way, count, parallel = sys.argv[1], int(sys.argv[2]), 24


def show(outcome):
    sys.stdout.write(json.dumps(outcome.data) + "\n")
    sys.stdout.flush()


def threads():
    with readback.Client(patience=120) as rb, concurrent.futures.ThreadPoolExecutor(parallel) as pool:
        for done in concurrent.futures.as_completed([pool.submit(rb.write, world.order(f"A-{i}")) for i in range(count)]):
            show(done.result())


async def tasks():
    async with readback.AsyncClient(patience=120) as rb:
        limit = asyncio.Semaphore(parallel)

        async def one(i):
            async with limit:
                show(await rb.write(world.order(f"A-{i}")))

        await asyncio.gather(*map(one, range(count)))


def counted():
    with readback.Client(patience=120) as rb, rb.workflow("run"), rb.step("charge") as step:
        for i in range(count):
            show(step.write(world.order(f"A-{i}", workflow=None, step=None)))


if way == "threads":
    threads()
elif way == "counted":
    counted()
else:
    asyncio.run(tasks())
