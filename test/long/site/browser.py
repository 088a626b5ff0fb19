#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Looks at the site in chromium, from file://: browser.py SITE FUNCTION...

Types into the search and follows a result, asks the search for each function, and looks whether all
pages fit a phone, load without an error, and ask the network for nothing. The driver is
chromedriver, by its protocol (W3C WebDriver).
"""
import atexit
import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

SITE = pathlib.Path(sys.argv[1]).resolve()
FUNCTIONS = sys.argv[2:]
SHOTS = os.environ.get("SHOTS")
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    def __init__(self, profile):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                       text=True)
        atexit.register(self.driver.terminate)
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                self.session = f"http://127.0.0.1:{line.split()[-1].rstrip('.')}/session"
                break
        arguments = ["--headless", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        made = self.call("", capabilities={"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}})
        self.session += "/" + made["sessionId"]

    def call(self, path, method="POST", **body):
        request = urllib.request.Request(self.session + path, method=method,
                                         data=json.dumps(body).encode() if method == "POST" else None,
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)["value"]

    def close(self):
        self.call("", "DELETE")

    def open(self, page):
        self.call("/url", url=(SITE / page).as_uri())

    def run(self, script, *arguments):
        return self.call("/execute/sync", script=script, args=list(arguments))

    def find(self, selector):
        return self.call("/element", using="css selector", value=selector)[ELEMENT]

    def type(self, selector, text):
        self.call(f"/element/{self.find(selector)}/value", text=text)

    def look(self, width, height, scheme):
        """Sets the size of the page, and whether it is to be "light" or "dark"."""
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height,
                      deviceScaleFactor=1, mobile=width < 600)
        self.devtools("Emulation.setEmulatedMedia",
                      features=[{"name": "prefers-color-scheme", "value": scheme}])

    def devtools(self, command, **parameters):
        return self.call("/goog/cdp/execute", cmd=command, params=parameters)

    def shot(self, name):
        if SHOTS:
            picture = self.devtools("Page.captureScreenshot")["data"]
            pathlib.Path(SHOTS, name + ".png").write_bytes(base64.b64decode(picture))

    def log(self, kind):
        return self.call("/se/log", type=kind)


def expect(condition, text):
    if not condition:
        sys.exit(text)


def search_and_follow(browser):
    browser.open("index.html")
    browser.type("input", "move")
    found = browser.run("return [...document.querySelectorAll('form li a')].map(a => a.innerText)")
    expect(any(text.startswith("tw_move_timer(3)") for text in found),
           f"a search for move finds {found}")
    browser.shot(f"search-{browser.run('return innerWidth')}")
    link = browser.find("form a[href='tw_move_timer.3.html']")
    browser.call(f"/element/{link}/click")
    place = browser.run("return location.href")
    expect(place.endswith("/tw_move_timer.3.html"), f"the result leads to {place}")
    expect("tw_move_timer" in browser.run("return document.querySelector('h1').innerText"),
           "the result's page has another title")
    # The return key follows the first result, which may be a section of a page.
    browser.type("input", "rolling upgrades\ue007")
    place = browser.run("return location.href")
    expect("/src-upgrade.html#" in place, f"the first result leads to {place}")


def main():
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(profile)
        try:
            for width, height in (1280, 900), (360, 740):
                browser.look(width, height, "light")
                search_and_follow(browser)
            wrong = browser.run("return arguments[0].filter(name => { const first = search(name)[0];"
                                "return !first || !first[2].split(' ').includes(name); })", FUNCTIONS)
            expect(FUNCTIONS and not wrong, f"the search does not find {wrong}")
            pages = sorted(path.name for path in SITE.glob("*.html"))
            for page in pages:
                browser.open(page)
                wide = browser.run("return document.documentElement.scrollWidth - innerWidth")
                expect(wide <= 0, f"{page} is {wide} pixels too wide for a phone")
            for page in "index.html", "src-upgrade.html", "tw_options.3.html", "twr.1.html", \
                    "bench-results-summary.html":
                for width, height in (1280, 900), (360, 740):
                    for scheme in "light", "dark":
                        browser.look(width, height, scheme)
                        browser.open(page)
                        browser.shot(f"{page}-{width}-{scheme}")
                        ground = browser.run("return getComputedStyle(document.body).backgroundColor")
                        expect((ground == "rgb(255, 255, 255)") == (scheme == "light"),
                               f"{page} has the ground {ground} with {scheme} colours")
            errors = [entry["message"] for entry in browser.log("browser")]
            expect(not errors, f"the browser reports {errors}")
            sent = [json.loads(entry["message"])["message"] for entry in browser.log("performance")]
            asked = {message["params"]["request"]["url"] for message in sent
                     if message["method"] == "Network.requestWillBeSent"}
            expect((SITE / "index.js").as_uri() in asked, "the requests are not in the log")
            other = [url for url in asked if url.startswith(("http", "ws"))]
            expect(not other, f"the site asks for {other}")
            print(f"{len(pages)} pages, {len(FUNCTIONS)} functions")
        finally:
            browser.close()


main()
