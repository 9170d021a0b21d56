#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What sharpening gains and costs: MTF50 of a slanted edge (ISO 12233), noise of flat areas, and halo, of lapsharpen and its peers.

slanted-edge.py BUILD [FOLDER] runs lapsharpen of the build folder, and OpenCV, ffmpeg and libvips where they are installed. It writes the table of
measurements.md and slanted-edge.svg in FOLDER, docs/explanation by default. Every program gets the same frame of 8-bit grey: an edge at 5 degrees from DARK to
BRIGHT, blurred by a Gaussian, with white noise.
"""
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
WIDTH, HEIGHT, ANGLE = 400, 2400, math.radians(5)
DARK, BRIGHT, BLUR, NOISE = 64, 192, 1.0, 2.0  # counts, counts, pixels, counts
REACH, BINS = 16, 4  # pixels on either side of the edge, bins of a pixel
FLAT = 40, 24  # flat areas: pixels from the edge, and from the border
LEFT, TOP, PLOT_WIDTH, PLOT_HEIGHT = 60, 20, 480, 400  # of the picture

# --- the frame and its evaluation ---------------------------------------------


def edge_at(y):
    """Where the edge crosses row y."""
    return WIDTH / 2 + (y - HEIGHT / 2) * math.tan(ANGLE)


def ideal_sample(x, y, blur):
    d = (x - edge_at(y)) * math.cos(ANGLE)
    return DARK + (BRIGHT - DARK) * (1 + math.erf(d / (blur * math.sqrt(2)))) / 2


def make_frame(noise=NOISE):
    """Returns: the frame, row by row"""
    draw = random.Random(12233).gauss
    values = (ideal_sample(x, y, BLUR) + (draw(0, noise) if noise else 0) for y in range(HEIGHT) for x in range(WIDTH))
    return bytes(min(255, max(0, math.floor(v + 0.5))) for v in values)


def fit_edge(frame):
    """The line through the centroids of the derivatives of all rows, weighted by a Hamming window.

    Returns: the column of the edge in row 0, and columns a row
    """
    at, slope = edge_at(0) + 1, math.tan(ANGLE)  # off on purpose: the first pass corrects it
    for _ in range(3):
        rows = []
        for y in range(HEIGHT):
            middle = round(at + slope * y)
            total = moment = 0
            for x in range(middle - 6, middle + 7):
                weight = 0.54 + 0.46 * math.cos(math.pi * (x - at - slope * y) / 7)
                step = weight * (frame[y * WIDTH + x + 1] - frame[y * WIDTH + x - 1])
                total += step
                moment += step * x
            rows.append(moment / total)
        mean = sum(rows) / HEIGHT
        centre = (HEIGHT - 1) / 2
        slope = sum((y - centre) * (x - mean) for y, x in enumerate(rows)) / sum((y - centre) ** 2 for y in range(HEIGHT))
        at = mean - slope * centre
    return at, slope


def edge_profile(frame, line):
    """Returns: the mean sample in each bin across the edge, BINS bins a pixel"""
    at, slope = line
    cosine = 1 / math.hypot(1, slope)
    n = 2 * REACH * BINS
    sums, counts = [0] * n, [0] * n
    for y in range(HEIGHT):
        middle = round(at + slope * y)
        for x in range(middle - REACH - 1, middle + REACH + 2):
            i = math.floor(((x - at - slope * y) * cosine + REACH) * BINS)
            if 0 <= i < n:
                sums[i] += frame[y * WIDTH + x]
                counts[i] += 1
    return [s / c for s, c in zip(sums, counts)]


def modulation(profile, frequency):
    """Returns: the MTF at a frequency in cycles a pixel"""
    n = len(profile)
    parts = [0.0, 0.0]
    total = 0.0
    for i in range(1, n - 1):
        step = (profile[i + 1] - profile[i - 1]) * (0.54 + 0.46 * math.cos(2 * math.pi * (i - (n - 1) / 2) / n))
        turn = 2 * math.pi * frequency * i / BINS
        total += step
        parts[0] += step * math.cos(turn)
        parts[1] += step * math.sin(turn)
    across = 2 * math.pi * frequency / BINS  # of the two bins of a difference
    return math.hypot(*parts) / total / (math.sin(across) / across if across else 1)


def half_frequency(mtf):
    """Returns: the frequency from which on the function falls below 1/2"""
    step = 0.002
    before, last = mtf(0), 0
    for k in range(1, 500):
        value = mtf(k * step)
        if value < 0.5 <= before:
            return (last + (before - 0.5) / (before - value)) * step
        before, last = value, k
    raise ValueError("The MTF does not fall below 1/2.")


def flat_noise(frame, line):
    """Returns: the standard deviation of the flat areas, root mean square of both sides"""
    at, slope = line
    variances = []
    for side in -1, 1:
        n = total = squares = 0
        for y in range(FLAT[1], HEIGHT - FLAT[1]):
            middle = round(at + slope * y)
            first, end = (FLAT[1], middle - FLAT[0]) if side < 0 else (middle + FLAT[0], WIDTH - FLAT[1])
            row = frame[y * WIDTH + first:y * WIDTH + end]
            n += len(row)
            total += sum(row)
            squares += sum(v * v for v in row)
        variances.append(squares / n - (total / n) ** 2)
    return math.sqrt(sum(variances) / 2)


def evaluate(frame, line):
    """Returns: MTF50 in cycles a pixel, noise in counts, over- and undershoot in parts of the step"""
    profile = edge_profile(frame, line)
    ends = 4 * BINS
    dark, bright = sum(profile[:ends]) / ends, sum(profile[-ends:]) / ends
    # a running mean of a pixel keeps noise of single bins out
    smooth = [sum(profile[i:i + BINS]) / BINS for i in range(len(profile) - BINS + 1)]
    return (half_frequency(lambda f: modulation(profile, f)), flat_noise(frame, line), (max(smooth) - bright) / (bright - dark),
            (dark - min(smooth)) / (bright - dark))


# --- the programs -------------------------------------------------------------


def run_command(arguments, frame, **options):
    """Runs a program on files: IN and OUT in its arguments."""
    with tempfile.TemporaryDirectory() as folder:
        names = {"IN": os.path.join(folder, "in.raw"), "OUT": os.path.join(folder, "out.raw")}
        with open(names["IN"], "wb") as file:
            file.write(frame)
        for key, name in names.items():
            arguments = [argument.replace(key, name) for argument in arguments]
        subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, **options)
        with open(names["OUT"], "rb") as file:
            return file.read()


def lapsharpen(frame, settings, environment=None):
    return run_command(
        ["gst-launch-1.0", "-q", "filesrc", "location=IN", f"blocksize={len(frame)}", "!", "rawvideoparse", "format=gray8", f"width={WIDTH}",
         f"height={HEIGHT}", "!", "lapsharpen", *settings.split(), "!", "filesink", "location=OUT"], frame, env=environment)


def ffmpeg(frame, settings):
    # unsharp takes no grey: the luma of YUV with idle chroma
    planes = frame + bytes([128]) * (2 * len(frame))
    out = run_command(
        ["ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", "yuv444p", "-s", f"{WIDTH}x{HEIGHT}", "-i", "IN", "-vf", settings, "-f", "rawvideo",
         "-pix_fmt", "yuv444p", "OUT"], planes)
    return out[:len(frame)]


def vips(frame, settings):
    header = f"P5 {WIDTH} {HEIGHT} 255\n".encode()
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "in.pgm"), os.path.join(folder, "out.pgm")
        with open(source, "wb") as file:
            file.write(header + frame)
        subprocess.run(["vips", "sharpen", source, target, *settings.split()], check=True)
        with open(target, "rb") as file:
            return file.read()[-len(frame):]


def opencv(frame, settings):
    import cv2  # pylint: disable=import-outside-toplevel
    import numpy as np  # pylint: disable=import-outside-toplevel

    image = np.frombuffer(frame, np.uint8).reshape(HEIGHT, WIDTH)
    name, *numbers = settings.split()
    if name == "filter2D":
        s = float(numbers[0])
        kernel = np.array([[0, -s, 0], [-s, 1 + 4 * s, -s], [0, -s, 0]], np.float32)
        return cv2.filter2D(image, -1, kernel).tobytes()
    radius, amount = map(float, numbers)
    return cv2.addWeighted(image, 1 + amount, cv2.GaussianBlur(image, (0, 0), radius), -amount, 0).tobytes()


def has_opencv():
    try:
        import cv2  # pylint: disable=import-outside-toplevel,unused-import
    except ImportError:
        return False
    return True


# program, what is run, strengths; the first families are drawn, with a colour
CURVES = [
    ("lapsharpen", "amount={}", (0.1, 0.2, 0.35, 0.5, 1), "#000000"),
    ("lapsharpen", "method=unsharp radius=1 amount={}", (0.25, 0.5, 1, 1.5, 2, 3), "#0072b2"),
    ("lapsharpen", "method=unsharp radius=2 amount={}", (0.25, 0.5, 1, 1.5, 2), "#56b4e9"),
    ("lapsharpen", "method=unsharp radius=1 threshold=3 threshold-unit=sigma coring=soft amount={}", (1, 2, 3, 4, 6), "#009e73"),
    ("lapsharpen", "method=cas amount={}", (0.25, 0.5, 1), "#999999"),
    ("OpenCV", "filter2D {}", (0.5,), "#cc79a7"),
    ("OpenCV", "GaussianBlur+addWeighted 1 {}", (0.5, 1, 2), "#e69f00"),
    ("ffmpeg", "unsharp=5:5:{}", (0.5, 1, 1.5), "#d55e00"),
    ("ffmpeg", "cas={}", (0.25, 0.5, 0.92), "#882255"),
    ("libvips", "--sigma {}", (0.5, 1, 2), "#ee3377"),
]
SINGLE = [("lapsharpen", "method=unsharp radius=1 amount=2 clamp=local"),
          ("lapsharpen", "method=unsharp radius=1 amount=2 halo-bright=4 halo-dark=4")]


def find_programs(build):
    """Returns: what runs each program; those that are missing are named"""
    plugins = [os.path.join(build, "gst", name) for name in sorted(os.listdir(os.path.join(build, "gst")))]
    environment = dict(os.environ, GST_PLUGIN_PATH_1_0=":".join(plugins))
    programs = {"lapsharpen": lambda frame, settings: lapsharpen(frame, settings, environment)}
    for name, there, run in (("OpenCV", has_opencv(), opencv), ("ffmpeg", shutil.which("ffmpeg"), ffmpeg), ("libvips", shutil.which("vips"), vips)):
        if there:
            programs[name] = run
        else:
            print(f"slanted-edge.py: skipped {name}, which is not installed.", file=sys.stderr)
    return programs


def measure(build):
    """Returns: (program, settings, colour or None, MTF50 and noise times that of the input, over- and undershoot), the input's first"""
    programs = find_programs(build)
    frame = make_frame()
    line = fit_edge(frame)
    half, noise, *halo = evaluate(frame, line)
    rows = [("input", f"MTF50 {half:.3f} cycles a pixel, noise {noise:.2f} counts", None, 1, 1, *halo)]
    cases = [(program, settings.format(s), colour) for program, settings, strengths, colour in CURVES for s in strengths]
    for program, settings, colour in cases + [(*case, None) for case in SINGLE]:
        if program in programs:
            out = evaluate(programs[program](frame, settings), line)
            rows.append((program, settings, colour, out[0] / half, out[1] / noise, *out[2:]))
    return rows


# --- the page -----------------------------------------------------------------


def write(rows):
    """Returns: the table as Markdown"""
    lines = ["| program | settings | MTF50, times | noise, times | MTF50 gained per noise gained | overshoot, undershoot (% of the step) |",
             "| --- | --- | --- | --- | --- | --- |"]
    for program, settings, _, half, noise, over, under in rows:
        # below 5 % more noise the quotient is one of two errors
        quotient = f"{(half - 1) / (noise - 1):.2f}" if noise > 1.05 else "-"
        lines.append(f"| {program} | {settings if program == 'input' else '`' + settings + '`'} | {half:.2f} | {noise:.2f} | {quotient} |"
                     f" {100 * over:.1f}, {100 * under:.1f} |")
    return "\n".join(lines) + "\n"


def draw_picture(rows):
    """Returns: MTF50 over noise as SVG, a line for each family"""
    most = math.ceil(max(row[4] for row in rows))
    top = math.ceil(2 * max(row[3] for row in rows)) / 2

    def place(noise, half):
        return LEFT + (noise - 0.9) / (most - 0.9) * PLOT_WIDTH, TOP + (top - half) / (top - 0.95) * PLOT_HEIGHT

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + PLOT_WIDTH + 390}" height="{TOP + PLOT_HEIGHT + 50}" font-family="sans-serif"'
           ' font-size="12">', '<rect width="100%" height="100%" fill="white"/>']
    for n in range(1, most + 1):
        x, _ = place(n, 1)
        out.append(f'<path d="M{x:.1f} {TOP}v{PLOT_HEIGHT}" stroke="#ddd"/><text x="{x:.1f}" y="{TOP + PLOT_HEIGHT + 16}" text-anchor="middle">{n}</text>')
    for k in range(10, round(10 * top) + 1, 2):
        _, y = place(1, k / 10)
        out.append(f'<path d="M{LEFT} {y:.1f}h{PLOT_WIDTH}" stroke="#ddd"/><text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{k / 10:.1f}</text>')
    out.append(f'<text x="{LEFT + PLOT_WIDTH / 2}" y="{TOP + PLOT_HEIGHT + 36}" text-anchor="middle">noise, times that of the input</text>'
               f'<text transform="translate(16 {TOP + PLOT_HEIGHT / 2}) rotate(-90)" text-anchor="middle">MTF50, times that of the input</text>')
    colours = {row[2]: row for row in rows if row[2]}
    for i, (program, settings, _, colour) in enumerate(curve for curve in CURVES if curve[3] in colours):
        points = [place(row[4], row[3]) for row in rows if row[2] == colour]
        label = f"{program} {settings.split('{}')[0].replace('method=', '').replace(' amount=', '').rstrip(':= ')}"
        label = label.replace(" threshold-unit=sigma coring=soft", " sigma, soft")
        y = TOP + 12 + 20 * i
        out.append(f'<polyline points="{" ".join(f"{x:.1f},{v:.1f}" for x, v in points)}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        out += [f'<circle cx="{x:.1f}" cy="{v:.1f}" r="3" fill="{colour}"/>' for x, v in points]
        out.append(f'<path d="M{LEFT + PLOT_WIDTH + 14} {y}h24" stroke="{colour}" stroke-width="3"/>'
                   f'<text x="{LEFT + PLOT_WIDTH + 44}" y="{y + 4}">{label}</text>')
    return "\n".join(out + ["</svg>", ""])


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder = sys.argv[2] if len(sys.argv) > 2 else os.path.join(ROOT, "docs", "explanation")
    rows = measure(sys.argv[1])
    print(write(rows), end="")
    with open(os.path.join(folder, "slanted-edge.svg"), "w", encoding="utf-8") as file:
        file.write(draw_picture(rows))
    page = os.path.join(folder, "measurements.md")
    if not os.path.exists(page):
        return
    with open(page, encoding="utf-8") as file:
        text = file.read()
    before, _, rest = text.partition("<!-- slanted edge: begin -->\n")
    _, _, after = rest.partition("<!-- slanted edge: end -->")
    with open(page, "w", encoding="utf-8") as file:
        file.write(before + "<!-- slanted edge: begin -->\n" + write(rows) + "<!-- slanted edge: end -->" + after)


if __name__ == "__main__":
    main()
