"""A thousand open sockets: from the commit to the last delivery, against one prepared frame on bare
asyncio sockets. Reported, not asserted.

Both servers are processes of their own, and both have the same thousand clients, which read bytes
and count messages and do nothing else.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import statistics
import struct
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction

from scheduler import notify
from scheduler.models import QueueFigures
from tests.bench.console_site import a_console
from tests.bench.noted import note_times
from tests.browser.server import ConsoleServer
from tests.dashboard.conftest import free_port
from tests.dashboard.sample import amounts, load_tree

SOCKETS = 1000
ROUNDS = 7
PING = 9

BARE_SERVER = textwrap.dedent("""
    import asyncio, sys
    writers = []
    async def client(reader, writer):
        if await reader.readline() == b"go\\n":
            length = int(sys.argv[2])
            frame = bytes([0x81, 126]) + length.to_bytes(2, "big") + b"x" * length
            for other in writers:
                other.write(frame)
            writer.close()
        else:
            writers.append(writer)
    async def main():
        server = await asyncio.start_server(client, "127.0.0.1", int(sys.argv[1]))
        await server.serve_forever()
    asyncio.run(main())
""")


class Counter:
    """One client: reads frames and tells when each came."""

    def __init__(self) -> None:
        self.arrivals: list[float] = []
        self.sizes: list[int] = []
        self.writer: asyncio.StreamWriter

    async def read(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(
            asyncio.IncompleteReadError, ConnectionError
        ):  # the end of the measurement
            await self._read_frames(reader)

    async def _read_frames(self, reader: asyncio.StreamReader) -> None:
        while True:
            head = await reader.readexactly(2)
            size = head[1] & 127
            if size == 126:
                (size,) = struct.unpack("!H", await reader.readexactly(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", await reader.readexactly(8))
            payload = await reader.readexactly(size)
            if head[0] & 15 == PING:
                self.writer.write(bytes([0x8A, 0x80 | size]) + b"\0\0\0\0" + payload)
            elif b'"heartbeat"' not in payload:
                self.arrivals.append(time.perf_counter())
                self.sizes.append(size)


async def open_websocket(port: int, cookie: str) -> Counter:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    key = base64.b64encode(os.urandom(16)).decode()
    head = [
        "GET /ws/v1/ HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key}",
    ]
    head += [
        "Sec-WebSocket-Version: 13",
        f"Origin: http://127.0.0.1:{port}",
        f"Cookie: sessionid={cookie}",
        "",
        "",
    ]
    writer.write("\r\n".join(head).encode())
    assert b"101" in (await reader.readuntil(b"\r\n\r\n"))
    request = b'{"type": "subscribe", "topics": ["queues"]}'
    writer.write(bytes([0x81, 0x80 | len(request)]) + b"\0\0\0\0" + request)
    return start_counting(reader, writer)


async def open_bare(port: int) -> Counter:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"listen\n")
    return start_counting(reader, writer)


def start_counting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Counter:
    counter = Counter()
    counter.writer = writer
    counter.task = asyncio.create_task(counter.read(reader))  # type: ignore[attr-defined]
    return counter


async def until_all_have(counters: list[Counter], number: int) -> float:
    async with asyncio.timeout(120):
        while any(len(counter.arrivals) < number for counter in counters):
            await asyncio.sleep(0.005)
    return max(counter.arrivals[number - 1] for counter in counters)


def change(gpus: int) -> float:
    with transaction.atomic():
        QueueFigures.objects.filter(queue__name="vision").update(
            allocated=amounts(gpus, 53, "300Gi")
        )
        notify.queues_changed(["vision"])
        return time.perf_counter()  # the commit comes next


async def in_batches(opens: Any, number: int) -> list[Counter]:
    opened: list[Counter] = []
    while len(opened) < number:
        opened += await asyncio.gather(*(opens() for _ in range(min(50, number - len(opened)))))
    return opened


async def measure_console(server: ConsoleServer, cookie: str) -> tuple[list[float], int]:
    counters = await in_batches(lambda: open_websocket(server.port, cookie), SOCKETS)
    await until_all_have(counters, 1)
    await asyncio.sleep(2)
    taken = []
    for place in range(ROUNDS):
        seen = len(counters[0].arrivals)
        committed = await sync_to_async(change)(place + 1)
        taken.append((await until_all_have(counters, seen + 1) - committed) * 1000)
        await asyncio.sleep(0.5)
    size = counters[0].sizes[-1]
    for counter in counters:
        counter.writer.close()
    return taken, size


async def measure_bare(size: int) -> list[float]:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", BARE_SERVER, str(port), str(size)
    )
    await asyncio.sleep(1.5)
    counters = await in_batches(lambda: open_bare(port), SOCKETS)
    await asyncio.sleep(1)
    taken = []
    for place in range(ROUNDS):
        began = time.perf_counter()
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"go\n")
        taken.append((await until_all_have(counters, place + 1) - began) * 1000)
        await asyncio.sleep(0.3)
    process.kill()
    await process.wait()
    return taken


@pytest.mark.django_db(transaction=True)
def test_a_thousand_sockets(tmp_path: Path, settings: Any):
    with a_console(tmp_path, settings, load_tree) as (server, cookie):
        ours, size = asyncio.run(measure_console(server, cookie))
        bare = asyncio.run(measure_bare(size))

    note_times(
        f"{SOCKETS:,} sockets, commit to last delivery",
        ours,
        ratio=round(statistics.median(ours) / statistics.median(bare), 2),
    )
    note_times(f"{SOCKETS:,} bare sockets", bare)
    print(f"\n{SOCKETS} sockets, a message of {size} bytes, median of {ROUNDS} (least to most)")
    for name, taken in (("from commit to last delivery", ours), ("bare asyncio sockets", bare)):
        print(
            f"  {name:30} {statistics.median(taken):7.1f} ms ({min(taken):.1f} to {max(taken):.1f})"
        )
    print(f"  {statistics.median(ours) / statistics.median(bare):.1f} times the bare sockets")
