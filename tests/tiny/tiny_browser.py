"""A headless Chromium that a test drives over its DevTools protocol: evaluate, wait, drag, click, photograph.

It reaches this machine alone. The protocol is JSON over a web socket, for which `websocket` is there already: JupyterLab needs it.
"""

import base64
import contextlib
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run")
LOCAL = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"


def found() -> str | None:
    """The program, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One page; `errors` holds what its scripts threw, `logged` the errors on its console, such as a file that is missing."""

    def __init__(self, socket):
        self.socket, self.number, self.errors, self.logged = socket, 0, [], []
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setFocusEmulationEnabled", enabled=True)  # a page without the focus has no current notebook

    def send(self, method: str, **parameters: Any) -> dict:
        """The answer to a command; what happens meanwhile is looked through for errors."""
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while (message := json.loads(self.socket.recv())).get("id") != self.number:
            if message.get("method") == "Runtime.exceptionThrown":
                self.errors.append(message["params"]["exceptionDetails"])
            if message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
                self.logged.append(message["params"]["entry"])
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return message["result"]

    def value(self, script: str) -> Any:
        """What an expression (or promise) of the page comes to."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{script}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def wait(self, script: str, *, seconds: float) -> Any:
        """The first value of an expression that is true; TimeoutError shows what the page says."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.value(script):
                return value
            time.sleep(0.2)
        raise TimeoutError(f"{script}: not so within {seconds:g} s; the page ends with: {self.value('document.body.innerText')[-600:]}")

    def centre(self, element: str) -> tuple[float, float]:
        """Where the middle of an element (an expression) is, after it was scrolled into view."""
        self.value(f"{element}.scrollIntoView({{block: 'center'}})")
        return tuple(self.value(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({element}.getBoundingClientRect())"))

    def mouse(self, kind: str, place: tuple[float, float], buttons: int) -> None:
        """One event of the left button."""
        self.send(
            "Input.dispatchMouseEvent",
            type=kind,
            x=place[0],
            y=place[1],
            button="left" if kind != "mouseMoved" else "none",
            buttons=buttons,
            clickCount=1,
        )

    def click(self, element: str) -> None:
        """A click on the middle of an element."""
        place = self.centre(element)
        self.mouse("mousePressed", place, 1)
        self.mouse("mouseReleased", place, 0)

    def drag(self, element: str, *, right: float) -> None:
        """Takes an element by its middle and drags it to the right, in ten moves."""
        x, y = self.centre(element)
        self.mouse("mousePressed", (x, y), 1)
        for step in range(1, 11):
            self.mouse("mouseMoved", (x + right * step / 10, y), 1)
        self.mouse("mouseReleased", (x + right, y), 0)

    def key(self, name: str) -> None:
        """A key that goes to whatever has the focus."""
        code = {"ArrowLeft": 37, "ArrowRight": 39}[name]
        for kind in ("rawKeyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code)

    def resize(self, width: int, height: int) -> None:
        """Gives the window another size; a narrow one is that of a phone, which lays a page out as wide as its widest part."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def visit(self, address: str) -> None:
        """Goes to an address and waits until all of the page is there."""
        self.send("Page.navigate", url=address)
        self.wait(f"document.readyState == 'complete' && location.href == {json.dumps(address)}", seconds=60)

    def photograph(self, path: Path, element: str = "") -> None:
        """A picture of an element, or of the whole window, as a PNG."""
        clip = {}
        if element:
            self.value(f"{element}.scrollIntoView({{block: 'center'}})")
            box = self.value(f"(b => ({{x: b.x, y: b.y, width: b.width, height: b.height}}))({element}.getBoundingClientRect())")
            clip = {"clip": box | {"scale": 1}}
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png", **clip)["data"]))


@contextlib.contextmanager
def page(address: str, profile: Path, *, width: int = 1500, height: int = 1100) -> Iterator[Page]:
    """A page of that address in a browser with a profile of its own."""
    import websocket

    program = [found(), *QUIET, LOCAL, "--remote-debugging-port=0", f"--user-data-dir={profile}", f"--window-size={width},{height}"]
    with subprocess.Popen([*program, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            place = first_page(profile / "DevToolsActivePort", process)
            with contextlib.closing(websocket.create_connection(place, suppress_origin=True, timeout=600)) as socket:
                opened = Page(socket)
                opened.send("Page.navigate", url=address)
                yield opened
        finally:
            process.terminate()


def first_page(port: Path, process: subprocess.Popen) -> str:
    """The web socket of the browser's first page, once it has written its port. RuntimeError when it has ended."""
    while process.poll() is None:
        if port.exists() and (lines := port.read_text().split()):
            with urllib.request.urlopen(f"http://127.0.0.1:{lines[0]}/json/list") as answer:
                return next(target["webSocketDebuggerUrl"] for target in json.load(answer) if target["type"] == "page")
        time.sleep(0.2)
    raise RuntimeError(f"{found()} ended with {process.returncode}")
