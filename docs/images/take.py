"""Takes the pictures of this folder anew: `take.py CUEMARK DEMO`, the program and the folder that `demo --quick --out DEMO` made.

Needs chromedriver, Chromium and ffmpeg. Look at every picture before it is committed.
"""

import base64
import json
import pathlib
import re
import subprocess
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
DRIVER = "http://127.0.0.1:9517"
# The films' own log of events says that the answers to both are right.
ONE, SEVERAL = "the small azure cross joins the turquoise triangle", "something grows"


def ask(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(DRIVER + path, data, {"Content-Type": "application/json"}, method=method)
    return json.load(urllib.request.urlopen(request, timeout=60))["value"]


class Window:
    """A browser window of a given size; `phone` has a touch screen and two device pixels to each of the page's."""

    def __init__(self, width, height, phone=False, dark=False):
        arguments = ["--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}"]
        options = {"args": arguments + (["--force-dark-mode"] if dark else [])}
        if phone:
            metrics = {"width": width, "height": height, "pixelRatio": 1.5, "touch": True, "mobile": True}
            options["mobileEmulation"] = {"deviceMetrics": metrics}
        chosen = {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}
        self.path = "/session/" + ask("POST", "/session", {"capabilities": chosen})["sessionId"]
        size = {"width": width, "height": height, "deviceScaleFactor": 1.5 if phone else 1, "mobile": phone}
        self.tell("Emulation.setDeviceMetricsOverride", size)
        if dark:
            self.tell("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        ask("DELETE", self.path)

    def tell(self, command, parameters):
        return ask("POST", self.path + "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, url):
        ask("POST", self.path + "/url", {"url": url})

    def run(self, script):
        return ask("POST", self.path + "/execute/sync", {"script": script, "args": []})

    def until(self, script):
        for _ in range(200):
            if self.run("return !!(" + script + ")"):
                return
            time.sleep(0.1)
        raise SystemExit(f"never came true: {script}")

    def take(self, name):
        picture = self.tell("Page.captureScreenshot", {"format": "png"})["data"]
        # 256 colours are enough for a page, and a third of the bytes.
        few = "split[a][b];[a]palettegen=stats_mode=full[p];[b][p]paletteuse=dither=none"
        command = ["ffmpeg", "-loglevel", "error", "-y", "-f", "png_pipe", "-i", "-", "-vf", few, HERE / name]
        subprocess.run(command, input=base64.b64decode(picture), check=True)


def search(address, question, name, width, height, phone=False, play=False):
    with Window(width, height, phone) as window:
        # The first time a sentence goes through the text encoder; what people see is the second.
        for _ in range(2):
            window.open(f"http://{address}/?q=" + question.replace(" ", "+"))
            window.until("document.querySelector('#results li:not([hidden]) img')")
        if play:
            window.run("document.querySelector('#results .card').click()")
            window.until("document.querySelector('#video').currentTime > 0")
            window.until("document.querySelector('#video').paused")
        shown = "[...document.images].filter(one => one.offsetParent && one.getBoundingClientRect().top < innerHeight)"
        window.until(shown + ".every(one => one.complete)")
        time.sleep(1)
        window.take(name)


def report(demo, name, width, height, section="", dark=False):
    with Window(width, height, dark=dark) as window:
        window.open(pathlib.Path(demo, "report/report.html").resolve().as_uri())
        window.until("document.readyState === 'complete'")
        heading = f"[...document.querySelectorAll('section, h2')].find(one => one.textContent.startsWith('{section}'))"
        for _ in range(3 if section else 0):
            # Figures take their place when they come into view, and move what is below.
            window.run(f"{heading}.scrollIntoView()")
            time.sleep(1)
        window.take(name)


def main():
    program, demo = sys.argv[1:]
    driver = subprocess.Popen(["chromedriver", "--port=9517"], stdout=subprocess.DEVNULL)
    server = subprocess.Popen(
        [program, "serve", f"{demo}/index", "--listen", "127.0.0.1:0", "--read-only"], stderr=subprocess.PIPE, text=True
    )
    try:
        address = next(found[1] for line in server.stderr if (found := re.search(r"http://(\S+)", line)))
        time.sleep(1)
        search(address, SEVERAL, "search-desktop.png", 1280, 600)
        search(address, SEVERAL, "search-phone.png", 390, 720, phone=True)
        search(address, ONE, "search-playing.png", 1280, 760, play=True)
        report(demo, "report-top.png", 1280, 900)
        report(demo, "report-cards-dark.png", 1280, 740, section="Trust cards", dark=True)
    finally:
        server.terminate()
        driver.terminate()


if __name__ == "__main__":
    main()
