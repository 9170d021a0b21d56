# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pictures of a report: embedded, with a scale bar and a bar of grey values or colours."""
import base64
import concurrent.futures
import math
import os
import struct
import zlib

from . import page

STRIP = 1 << 20  # bytes that a thread compresses
LEVEL = 4  # of zlib: fringes take a fifth of the time of its default, and 5 % more bytes
LONGEST = 900  # pixels of an embedded picture; larger ones are averaged

# Places of colours; readable in grey and for those who see colours differently. "height" follows viridis.
COLOURS = {
    "grey": ((0, 0, 0), (255, 255, 255)),
    "height": ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)),
    "both-signs": ((5, 60, 120), (120, 170, 215), (245, 245, 245), (225, 150, 110), (140, 20, 20)),
    # of a phase from -pi to pi, as insarform's
    "phase": ((0, 255, 255), (0, 0, 255), (255, 0, 255), (255, 0, 0), (255, 255, 0), (0, 255, 0), (0, 255, 255)),
}


def deflate(data):
    """The zlib stream of data, whose strips are compressed at the same time. The bytes do not depend on the number of threads."""
    def compress(start):
        is_last = start + STRIP >= len(data)
        packer = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        return packer.compress(data[start:start + STRIP]) + packer.flush(zlib.Z_FINISH if is_last else zlib.Z_SYNC_FLUSH)

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        strips = threads.map(compress, range(0, len(data), STRIP))
        return b"\x78\x9c" + b"".join(strips) + struct.pack(">I", zlib.adler32(data))


def png(np, values, delta=False):
    """Bytes of a PNG; u8 [height, width], [height, width, 3] or, with alpha, [height, width, 4]. Written here, because the
    formats of the library depend on how it was built, and a report always has pictures. delta: what is stored are differences
    of neighbours, which makes files of smooth maps smaller"""
    height, width = values.shape[:2]
    kind = {1: 0, 3: 2, 4: 6}[values.shape[2] if values.ndim == 3 else 1]
    lines = np.zeros((height, 1 + values[0].size), np.uint8)
    lines[:, 1:] = values.reshape(height, -1)
    if delta:
        channels = values[0, 0].size
        lines[:, 0] = 1  # the filter "sub" of PNG
        lines[:, 1 + channels:] -= lines[:, 1:-channels].copy()

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, kind, 0, 0, 0)) \
        + chunk(b"IDAT", deflate(lines.tobytes())) + chunk(b"IEND", b"")


def shrink(np, values, longest=LONGEST):
    """The mean of whole blocks, without those that are no numbers."""
    step = math.ceil(max(values.shape[:2]) / longest)
    if step <= 1:
        return values.astype(np.float32)
    height, width = (n // step * step or n for n in values.shape[:2])
    rows, columns = min(step, height), min(step, width)
    blocks = values[:height, :width].astype(np.float32).reshape(height // rows, rows, width // columns, columns, -1)
    known = np.isfinite(blocks)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, blocks, 0).sum((1, 3)) / known.sum((1, 3))
    return mean.reshape(mean.shape[:2] + values.shape[2:])


def colour(np, values, low, high, colours):
    """u8 [height, width, 4]; what is no number is transparent."""
    known = np.isfinite(values)
    place = np.clip((np.where(known, values, low) - low) / ((high - low) or 1), 0, 1)
    stops = np.array(COLOURS[colours], float)
    at = np.linspace(0, 1, len(stops))
    channels = [np.interp(place, at, stops[:, i]) + 0.5 for i in range(3)]
    return np.dstack([*channels, 255 * known]).astype(np.uint8)


def round_length(span):
    """The largest of 1, 2, 5, 10, ... that is at most 0.3 of the span."""
    most = 0.3 * span
    power = 10 ** math.floor(math.log10(most))
    return max((step * power for step in (1, 2, 5) if step * power <= most * 1.0001), default=power)


def axis_of(quantity, index, n):
    """Returns: length of the n samples along an axis, its unit and name"""
    axes = quantity.get("axes") or []
    axis = index < len(axes) and axes[index] or {}
    step = abs(axis.get("step") or 0)
    if not step or not math.isfinite(step) or axis.get("unit") in ("pixel", "pixels", ""):
        return n, "pixels", axis.get("name", "")
    return n * step, axis["unit"], axis.get("name", "")


def rule(span, unit):
    """Returns: a round length as a percentage of the span, and its label"""
    length = round_length(span)
    return 100 * length / span, f"{page.number(length)} {unit}"


def scale_bars(quantity, height, width):
    """Returns: HTML of the bar below, HTML of the bar beside, and the ratio of the sides of the picture"""
    across, unit, name = axis_of(quantity, 0, width)
    down, unit_down, name_down = axis_of(quantity, 1, height)
    percent, label = rule(across, unit)
    below = f'<div class="scale" style="width:{percent:.2f}%"></div><div class="ends"><span>{page.escape(label)}</span></div>'
    if unit == unit_down:
        return below, "", across / down
    below = f'<div class="scale" style="width:{percent:.2f}%"></div><div class="ends"><span>{page.escape(f"{name} {label}".strip())}</span></div>'
    percent, label = rule(down, unit_down)
    beside = f'<div class="rule" style="height:{percent:.2f}%"><span>{page.escape(f"{name_down} {label}".strip())}</span></div>'
    return below, beside, width / height


def colour_bar(quantity, low, high, colours):
    stops = ",".join(f"rgb{stop}" for stop in COLOURS[colours])
    unit = quantity.get("unit") or ""
    name = " ".join(filter(None, (quantity.get("name"), f"({unit})" if unit else "")))
    ends = [page.escape(text) for text in (page.number(low), name, page.number(high))]
    return f'<div class="bar" style="background:linear-gradient(to right,{stops})"></div>' \
           f'<div class="ends"><span>{ends[0]}</span><span>{ends[1]}</span><span>{ends[2]}</span></div>'


def limits(np, values, low, high):
    known = values[np.isfinite(values)]
    if not known.size:
        return low or 0, high if high is not None else 1
    return (float(np.percentile(known, 0.5)) if low is None else low,
            float(np.percentile(known, 99.5)) if high is None else high)


def figure(title, values, quantity, file, caption, colours, low, high):
    """HTML of one picture; see Report.picture()."""
    import numpy as np

    values = np.asarray(values)
    height, width = values.shape[:2]
    bar = ""
    if values.ndim == 3:
        most = np.iinfo(values.dtype).max if values.dtype.kind in "iu" else 1
        shown = np.clip(255 * np.nan_to_num(shrink(np, values[..., :3]), posinf=most, neginf=0) / most + 0.5, 0, 255).astype(np.uint8)
    else:
        scale, offset = quantity.get("scale", 1), quantity.get("offset", 0)
        shown = offset + scale * shrink(np, values)
        low, high = limits(np, shown, low, high)
        shown = colour(np, shown, low, high, colours)
        bar = colour_bar(quantity, low, high, colours)
    below, beside, ratio = scale_bars(quantity, height, width)
    data = base64.b64encode(png(np, shown)).decode()
    small = " ".join(filter(None, (page.escape(caption), f"Full size: {page.escape(file)}." if file else "")))
    small = f"<small>{small}</small>" if small else ""
    return (f'<figure><figcaption>{page.escape(title)}{small}</figcaption><div class="{"tall" if beside else ""}">'
            f'<div class="frame"><img alt="{page.escape(title)}" style="aspect-ratio:{ratio:.4f}"'
            f' src="data:image/png;base64,{data}">'
            f'{beside}</div>{below}{bar}</div></figure>\n')


def tiles(title, shown, caption):
    """HTML of many small pictures; see Report.tiles()."""
    import numpy as np

    each = "".join(f'<figure><img alt="{page.escape(name)}" src="data:image/png;base64,{base64.b64encode(png(np, values)).decode()}">'
                   f"<small>{page.escape(name)}</small></figure>" for name, values in shown.items())
    widest = max((values.shape[1] for values in shown.values()), default=1)
    return (f'<p class="title"><b>{page.escape(title)}</b> <small class="soft">{page.escape(caption)}</small></p>'
            f'<div class="tiles" style="--width:{widest}px">{each}</div>\n')
