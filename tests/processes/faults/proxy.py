"""A TCP proxy in front of an API server: it can be slow, and cut its connections."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_BLOCK = 65536


class Proxy:
    """Runs in a thread of its own. TLS goes through it as it is."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._latency = 0.0
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self.port = 0

    def __enter__(self) -> Proxy:
        self._thread.start()
        assert self._is_ready.wait(30)
        return self

    def __exit__(self, *exception: object) -> None:
        self._loop.call_soon_threadsafe(self._end)
        self._thread.join(30)

    @contextmanager
    def slow(self, seconds: float) -> Iterator[None]:
        """Each block of bytes arrives so much later, in both directions."""
        self._latency = seconds
        try:
            yield
        finally:
            self._latency = 0.0

    def cut(self) -> None:
        """All connections break, in the middle of whatever they carry."""
        self._loop.call_soon_threadsafe(self._abort_all)

    def _abort_all(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    def _end(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.call_soon(self._loop.stop)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", self.port)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._is_ready.set()
        self._loop.run_forever()
        tasks = asyncio.all_tasks(self._loop)
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            other_reader, other_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, other_writer}
        try:
            with suppress(asyncio.CancelledError):
                await asyncio.gather(
                    self._copy(reader, other_writer), self._copy(other_reader, writer)
                )
        finally:
            self._writers -= {writer, other_writer}

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while block := await reader.read(_BLOCK):
                if self._latency:
                    await asyncio.sleep(self._latency)
                writer.write(block)
                await writer.drain()
        writer.close()
