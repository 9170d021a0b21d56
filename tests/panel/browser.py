# SPDX-License-Identifier: LGPL-2.1-or-later
"""A panel in a process of its own, and a headless Chromium that opens it."""
import json
import os
import shutil
import subprocess
import sys
import time

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
except ImportError:
    webdriver = None

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
TIMEOUT = 30


def missing():
    """Returns: why no browser can be tested, None if one can"""
    if webdriver is None:
        return "python3-selenium is missing"
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        return "chromium or chromium-driver is missing"
    try:
        import aiohttp  # noqa: F401
        import gi

        gi.require_version("GstImaging", "1.0")
    except (ImportError, ValueError) as error:
        return str(error)
    return None


class Served:
    """gst-imaging panel, over the plug-ins of the environment; presets and demo data are in @folder."""

    def __init__(self, folder, *words):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gst_imaging", "panel", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "pipelines"), "XDG_CACHE_HOME": folder, "XDG_DATA_HOME": folder}, cwd=folder)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise AssertionError(self.process.stderr.read())

    def end(self):
        """It has not ended by itself, and says nothing of faults."""
        died = self.process.poll()
        self.process.terminate()
        said = self.process.communicate(timeout=TIMEOUT)[1]
        if died is not None or "Traceback" in said or "CRITICAL" in said:
            raise AssertionError(f"the panel ended with status {self.process.returncode}: {said}")


class Browser:
    def __init__(self, width=1280, height=800, *words):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb", *words):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        # with a path Selenium looks for no driver elsewhere
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.driver.set_script_timeout(TIMEOUT)
        self.screen(width, height)

    def screen(self, width, height, touch=False):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": touch})

    def open(self, address):
        self.driver.get(address)
        self.until("document.querySelector('.view')?.dataset.serial > 1", "the first pictures")

    def js(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def until(self, condition, what, timeout=TIMEOUT):
        """Waits until the expression is true; returns its value."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            value = self.js(f"return {condition}")
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"{what}: `{condition}` did not become true in {timeout} s; console: {self.console()}")

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def ask(self, command, **values):
        """The same command over HTTP, for what the page should show."""
        return self.driver.execute_async_script(
            "const done = arguments[2]; fetch('/api/' + arguments[0], {method: 'POST', headers: {'Content-Type': 'application/json'},"
            " body: JSON.stringify(arguments[1])}).then((r) => r.json()).then(done)", command, values)

    def console(self):
        """Errors and warnings of the console since the last call."""
        return [json.dumps(entry) for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def save(self, path):
        self.driver.save_screenshot(path)

    def close(self):
        self.driver.quit()
