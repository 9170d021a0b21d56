# SPDX-License-Identifier: LGPL-2.1-or-later
"""How a pipeline does: the counters of its elements, as JSON and for Prometheus."""
import time

COUNTS = ("frames", "lost-frames", "frames-missing", "bytes-uploaded", "bytes-downloaded", "bytes-copied", "replans")
TIMES = ("time-p50", "time-p99", "time-max")


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


def read(panel):
    ours = [of_element(e) for e in panel.elements.values() if e.ours and e.element.find_property("stats") and e.element.srcpads]
    sinks = [of_sink(e.element) for e in panel.elements.values()]
    counts = [e for e in ours if "frames" in e]
    return {"type": "health", "time": round(time.monotonic() - panel.begin, 3), "elements": counts,
            "frames-in": counts[0]["frames"] if counts else sum(s[0] for s in sinks),
            "frames-out": sum(s[0] for s in sinks),
            "dropped": sum(e.get("lost-frames", 0) + e.get("frames-missing", 0) for e in counts) + sum(s[1] for s in sinks),
            "warnings": panel.n_warnings, "errors": panel.n_errors}


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
    for name in ("frames-in", "frames-out", "dropped", "warnings", "errors", "pictures"):
        metric = f'gst_imaging_panel_{name.replace("-", "_")}_total'
        lines += [f"# TYPE {metric} counter", f"{metric} {health.get(name, 0)}"]
    for name in ("clients", "views"):
        lines += [f"# TYPE gst_imaging_panel_{name} gauge", f"gst_imaging_panel_{name} {health.get(name, 0)}"]
    return "\n".join(lines) + "\n"
