"""Running a kernel on asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from rebalance_lab.kernel.drivers import AsyncioDriver
from rebalance_lab.kernel.futures import Future
from rebalance_lab.kernel.kernel import Kernel

T = TypeVar("T")


class LiveKernel:
    """A kernel on a loop of its own, in this thread. Close it, or use it as a context manager."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.kernel = Kernel(AsyncioDriver(self.loop))
        self.loop.set_exception_handler(self._loop_failed)
        self._closers: list[Callable[[], None]] = []

    def run(self, coroutine: Coroutine[Any, Any, T], name: str = "main") -> T:
        """Run `coroutine` to its end while other tasks go on, and return its result.

        Raises the coroutine's error, or the first failure of a root task or of a callback of the loop. It may be called
        again.
        """
        main = self.kernel.spawn(coroutine, name)
        waiter = self.loop.create_task(self._until(main))
        try:
            return self.loop.run_until_complete(waiter)
        except (KeyboardInterrupt, SystemExit):
            waiter.cancel()  # no code will ask it for the end of the task that it waits for
            self.loop.run_until_complete(asyncio.wait([waiter]))
            raise

    async def _until(self, main: Future[T]) -> T:
        ended = self.loop.create_future()

        def end(_task: Future[Any]) -> None:
            if not ended.done():
                ended.set_result(None)

        main.on(end)
        self.kernel.on_failure = lambda: end(main)
        if self.kernel.failures:  # of a callback that ran before this task
            end(main)
        try:
            await ended
        finally:
            self.kernel.on_failure = None
            main.off(end)
        if self.kernel.failures:
            where, error = self.kernel.failures[0]
            error.add_note(f"in {where}")
            raise error
        return main.result()

    def _loop_failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End the run with an error of a callback, as on the heap. asyncio alone would only log it."""
        error = context.get("exception")
        if error is None or self.kernel.on_failure is None:
            loop.default_exception_handler(context)
        else:
            self.kernel.failed(f"the event loop: {context['message']}", error)

    def on_close(self, closer: Callable[[], None]) -> None:
        """Call `closer` when this kernel closes and none of its tasks runs any more. For adapters that hold sockets of
        the loop."""
        self._closers.append(closer)

    def close(self) -> None:
        """Unwind the tasks that still wait, and close the loop."""
        self.kernel.close()
        for closer in self._closers:
            closer()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def __enter__(self) -> LiveKernel:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
