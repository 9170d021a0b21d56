# SPDX-License-Identifier: LGPL-2.1-or-later
"""How a pipeline does: the counters of its elements, as JSON and for Prometheus."""
import threading
import time

COUNTS = ("frames", "lost-frames", "frames-missing", "bytes-uploaded", "bytes-downloaded", "bytes-copied", "replans")
TIMES = ("time-p50", "time-p99", "time-max")
SILENT = 4  # seconds


def of_element(element):
    stats = element.element.get_property("stats")
    found = {"name": element.name, "element": element.factory}
    for name in COUNTS + TIMES:
        if stats.has_field(name):
            found[name] = stats.get_value(name)
    if element.element.find_property("active-backend"):
        found["backend"] = element.element.get_property("active-backend")
    return found


def of_sink(element):
    """Returns: frames that were shown, and that came too late"""
    stats = element.get_property("stats") if element.find_property("stats") and not element.srcpads else None
    if not stats or not stats.has_field("rendered"):
        return 0, 0
    return stats.get_value("rendered"), stats.get_value("dropped")


class Counters:
    """Counts that do not fall: a sink counts from 0 again after a pause or a flush, other elements after a stop."""

    def __init__(self):
        self.lock = threading.Lock()
        self.all = {}  # by name: what was counted before, and the count now
        self.frames, self.since = None, None

    def count(self, name, now):
        before, last = self.all.get(name, (0, 0))
        if now < last:
            before += last
        self.all[name] = before, now
        return before + now

    def silent(self, frames, plays):
        """Returns: seconds without a frame of a pipeline that plays, None where frames pass"""
        now = time.monotonic()
        if frames != self.frames or not plays:
            self.frames, self.since = frames, now
        return now - self.since if now - self.since > SILENT else None


def passed(panel):
    """Returns: numbers that change as long as frames pass"""
    return [of_sink(e.element)[0] for e in panel.elements.values()] + \
        [of_element(e).get("frames") for e in panel.elements.values() if e.ours and e.element.find_property("stats")]


def hint(panel):
    """Returns: why there are no pictures, as a sentence; None where there are, or where the pipeline does not play"""
    silent = panel.counters.silent(passed(panel), panel.state_name == "playing")
    if panel.states.waiting() > SILENT:
        return panel.states.sentence()
    return f"The pipeline plays, but no frame has passed for {silent:.0f} s." if silent else None


def count(panel):
    """From any thread: before and after whatever resets the counts of elements. Returns: the counts of read() but those of leaky queues"""
    total = panel.counters.count
    with panel.counters.lock:  # a number from before a reset is not counted after one from behind it
        sinks = [{"name": e.name, "frames": total((e.name, 0), shown), "dropped": total((e.name, 1), late)}
                 for e in panel.elements.values() if not e.element.srcpads for shown, late in [of_sink(e.element)]]
        ours = [e for e in panel.elements.values() if e.ours and e.element.find_property("stats") and e.element.srcpads]
        # a stopped element keeps its counts until its next start, which is over in PAUSED: the state is read before the counts
        told = [(e.element.get_state(0).state > panel.Gst.State.READY, of_element(e)) for e in ours]
        counts = [one for _has_started, one in told if "frames" in one]
        since = [one if has_started else {} for has_started, one in told if "frames" in one]
        shown = max((s["frames"] for s in sinks), default=0)  # a frame may reach several sinks
        taken = total("in", since[0].get("frames", 0)) if since else shown
        lost, missing = (sum(e.get(name, 0) for e in since) for name in ("lost-frames", "frames-missing"))
        if panel.is_camera():  # they came, and could not be taken; those of files never were
            lost, missing = lost + missing, 0
        return {"elements": counts, "sinks": sinks, "frames-in": taken, "frames-out": shown,
                "dropped": total("lost", lost) + sum(s["dropped"] for s in sinks), "missing": total("missing", missing)}


def read(panel):
    counts = count(panel)
    return {"type": "health", "time": round(time.monotonic() - panel.begin, 3), **counts, "dropped": counts["dropped"] + panel.leaks.count(),
            "warnings": panel.messages.n_warnings, "errors": panel.messages.n_errors,
            "hint": hint(panel)}


def label(text):
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def prometheus(health):
    lines = []
    for name in COUNTS:
        metric = f'gst_imaging_{name.replace("-", "_")}_total'
        lines += [f"# TYPE {metric} counter"] + [
            f'{metric}{{element="{label(e["name"])}"}} {e[name]}' for e in health["elements"] if name in e]
    lines.append("# TYPE gst_imaging_frame_seconds gauge")
    lines += [f'gst_imaging_frame_seconds{{element="{label(e["name"])}",quantile="{quantile}"}} {e[name] / 1e6:.9g}'
              for e in health["elements"] for name, quantile in zip(TIMES, ("0.5", "0.99", "1")) if name in e]
    for name in "frames", "dropped":
        metric = f"gst_imaging_sink_{name}_total"
        lines += [f"# TYPE {metric} counter"] + [f'{metric}{{element="{label(s["name"])}"}} {s[name]}' for s in health["sinks"]]
    for name in ("frames-in", "frames-out", "dropped", "missing", "warnings", "errors", "pictures"):
        metric = f'gst_imaging_panel_{name.replace("-", "_")}_total'
        lines += [f"# TYPE {metric} counter", f"{metric} {health.get(name, 0)}"]
    for name in ("clients", "views"):
        lines += [f"# TYPE gst_imaging_panel_{name} gauge", f"gst_imaging_panel_{name} {health.get(name, 0)}"]
    return "\n".join(lines) + "\n"
