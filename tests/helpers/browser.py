"""A browser without a window, driven over a pipe: pages as they look and behave, with real pointers and keys."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking")
PATIENCE = 60.0  # seconds that an answer may take


class Page:
    """One tab. Errors and console lines that the page causes are collected in `console`."""

    def __init__(self, to: int, back: int):
        self.to, self.back, self.rest, self.number, self.session = to, back, b"", 0, ""
        self.console: list[str] = []
        self.loaded = False
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        os.write(
            self.to, json.dumps({**message, **({"sessionId": self.session} if self.session else {})}).encode() + b"\0"
        )
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self.rest:
            assert select.select([self.back], [], [], max(0.0, until - time.monotonic()))[0], "the browser is silent"
            read = os.read(self.back, 1 << 20)
            assert read, "the browser has ended"
            self.rest += read
        text, _, self.rest = self.rest.partition(b"\0")
        event: dict[str, Any] = json.loads(text)
        kind, about = event.get("method"), event.get("params", {})
        self.loaded |= kind == "Page.loadEventFired"
        if kind == "Runtime.exceptionThrown":
            self.console.append(about["exceptionDetails"].get("exception", {}).get("description", "error"))
        elif kind == "Runtime.consoleAPICalled":
            self.console.append(str(about["args"]))
        elif kind == "Log.entryAdded":
            self.console.append(about["entry"]["text"])
        return event

    def open(self, path: Path, width: int = 1200, height: int = 900, dark: bool = False, scripts: bool = True) -> None:
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme, {"name": "prefers-reduced-motion", "value": "reduce"}])
        self.ask("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.loaded = False
        self.ask("Page.navigate", url=path.resolve().as_uri())
        while not self.loaded:
            self._next()

    def value(self, expression: str) -> Any:
        """What an expression in the page comes to."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def point(self, x: float, y: float, click: bool = False) -> None:
        kinds = ("mouseMoved", "mousePressed", "mouseReleased") if click else ("mouseMoved",)
        for kind in kinds:
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left" if click else "none", clickCount=1)

    def press(self, key: str) -> None:
        code = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}[key]
        text = {"text": "\r"} if key == "Enter" else {}
        about = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **about, **text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **about)

    def picture(self, path: Path, whole: bool = False) -> Path:
        found = self.ask("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))
        return path

    def paper(self, path: Path) -> Path:
        """As a PDF."""
        path.write_bytes(base64.b64decode(self.ask("Page.printToPDF", preferCSSPageSize=True)["data"]))
        return path


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    assert CHROMIUM is not None
    down, up = os.pipe(), os.pipe()
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-pipe"]
    script = f'exec "$@" 3<&{down[0]} 4>&{up[1]}'
    process = subprocess.Popen(
        ["bash", "-c", script, "bash", *command],
        pass_fds=(down[0], up[1]), stderr=subprocess.DEVNULL, env={**os.environ, "HOME": str(profile)},
    )  # fmt: skip
    os.close(down[0])
    os.close(up[1])
    try:
        yield Page(down[1], up[0])
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)
        os.close(down[1])
        os.close(up[0])
