# SPDX-License-Identifier: LGPL-2.1-or-later
"""octangio behind octbscan: a flow phantom of scatterers that move, from spectra to mm/s, compared with the truth and with NumPy
in float64."""
import os
import shutil
import sys
import tempfile
import unittest

import numpy as np

from support import SOURCE, Gst, main, play

sys.path.insert(0, os.path.join(SOURCE, "pipelines"))
from gst_imaging import metadata

SAMPLES, LINES, REPEATS, SETS = 512, 24, 4, 2
ENDS = 880.0, 820.0  # nm: wavenumbers rise with the samples
INTERVAL = 1000.0  # us
PEAK = 0.06  # mm/s in the middle of the vessel
CENTRE, RADIUS = 200.0, 60.0  # um
K = 2e3 * np.pi / np.linspace(*ENDS, SAMPLES)
MIDDLE = 2 / (1 / ENDS[0] + 1 / ENDS[1])
STEP = 1e-3 / (2 * abs(1 / ENDS[0] - 1 / ENDS[1])) * (SAMPLES - 1) / SAMPLES  # um from depth to depth


def velocity(z):
    """Returns: mm/s to larger depths, a parabola"""
    return np.where(abs(z - CENTRE) < RADIUS, PEAK * (1 - ((z - CENTRE) / RADIUS) ** 2), 0)


def phantom(bulk, noise, moves=True, together=False, k=K, index=1):
    """Returns: spectra [B-scans, lines, samples]: scatterers in tissue of a refractive index and in a vessel; the whole sample moves
    by up to bulk um, each line by itself or all of a B-scan together. k: of the samples, 1 / um"""
    rng = np.random.default_rng(5)
    lamp = 20000 * np.hanning(SAMPLES)
    spectra = np.empty((SETS * REPEATS, LINES, SAMPLES))
    of_bscan = rng.uniform(-bulk, bulk, SETS * REPEATS) if together else None
    for line in range(LINES):
        z = rng.uniform(60, 500, 500)
        amplitude = rng.rayleigh(0.004, 500)
        for b in range(SETS * REPEATS):
            shift = of_bscan[b] if together else rng.uniform(-bulk, bulk)
            at = z + (velocity(z) * b * INTERVAL * 1e-3 if moves else 0) + shift
            fringes = (amplitude[:, None] * np.cos(2 * k * index * at[:, None])).sum(0)
            spectra[b, line] = lamp * (1 + fringes)
    spectra += rng.normal(0, noise, spectra.shape)
    return np.rint(spectra + 500).astype("u2")


@unittest.skipUnless(Gst.ElementFactory.find("octbscan"), "built without an FFT")
class OctAngio(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def flow(self, spectra, *settings, pad="complex", oct_settings="", background=None, ends=ENDS):
        """Returns: [sets, depths, lines] of octangio, and Z [B-scans, lines, depths] of octbscan"""
        spectra_path, flow, z = (os.path.join(self.folder, name) for name in ("s.npy", "flow.npy", "z.npy"))
        for path in flow, z:
            if os.path.exists(path):
                os.remove(path)
        np.save(spectra_path, spectra)
        with open(os.path.join(self.folder, "oct.ini"), "w", encoding="utf-8") as file:
            file.write(f"[camera]\nlambda-first={ends[0]}\nlambda-last={ends[1]}\n")
        play(f"picturesrc location={spectra_path} ! octbscan name=o upsample={SAMPLES} taper=none background=file"
             f" background-location={self.background(background)} calibration={self.folder}/oct.ini {oct_settings} ! fakesink async=false"
             f" o.{pad} ! tee name=t ! queue ! octangio repeats={REPEATS} {' '.join(settings)} ! other/tensors !"
             f" picturesink location={flow} async=false  t. ! queue ! other/tensors ! picturesink location={z} async=false")
        found, values = np.load(flow), np.load(z)
        if pad == "complex":
            values = values.astype(complex).reshape(len(spectra), LINES, -1)
        return found.reshape(SETS, -1, LINES), values

    def test_depths_are_those_of_complex_and_of_linear(self):
        for pad, depth, lateral in ("complex", 0, 1), ("linear", 1, 0):
            with self.subTest(pad):
                self.flow(phantom(0, 20), "method=mean", pad=pad, oct_settings="crop-top=3 lateral-step-um=4 flip=none")
                axes = metadata.sidecar(os.path.join(self.folder, "z.npy"))["quantity"]["axes"]
                self.assertEqual([axes[i]["name"] for i in (depth, lateral)], ["depth", "lateral"])
                self.assertAlmostEqual(axes[depth]["origin"], 3 * axes[depth]["step"])
                self.assertAlmostEqual(axes[depth]["step"] / STEP, 1, delta=1e-2)
                self.assertEqual((axes[lateral]["step"], axes[lateral]["unit"]), (4, "um"))
                flow = metadata.sidecar(os.path.join(self.folder, "flow.npy"))["quantity"]["axes"]
                self.assertEqual(flow[:2], [axes[lateral], axes[depth]])

    def background(self, name):
        """Returns: the path of the file @name of the folder, or of the background of phantom()"""
        path = os.path.join(self.folder, name or "dark.npy")
        if name:
            return path
        np.save(path, 500 + 20000 * np.hanning(SAMPLES))
        return path

    def test_velocity_of_the_phantom(self):
        """Within 3 % of the truth, with bulk motion of several radians; beside the vessel nothing moves."""
        spectra = phantom(bulk=0.3, noise=5)
        flow, z = self.flow(spectra, "method=doppler", "lateral-window=24", "depth-window=3", f"wavelength-nm={MIDDLE}",
                            f"interval-us={INTERVAL}")
        depths = STEP * np.arange(flow.shape[1])
        truth, found = velocity(depths), flow[:, :, LINES // 2].mean(0)
        vessel = (abs(depths - CENTRE) < 0.8 * RADIUS)
        tissue = (depths > 80) & (abs(depths - CENTRE) > 1.2 * RADIUS) & (depths < 480)
        share = found[vessel].sum() / truth[vessel].sum()
        print(f"# flow {share:.4f} of the truth, rms in tissue {1000 * np.std(found[tissue]):.2f} um/s of {1000 * PEAK:.0f}")
        self.assertLess(abs(share - 1), 0.03)
        self.assertLess(abs(found[tissue]).max(), 0.1 * PEAK)
        # the other way round it is the other sign
        flow, _z = self.flow(spectra, "method=doppler", "lateral-window=24", "depth-window=3", f"wavelength-nm={MIDDLE}",
                             f"interval-us={INTERVAL}", "falling-wavenumbers=true")
        np.testing.assert_allclose(flow[:, :, LINES // 2].mean(0), -found, atol=1e-7)

    def share_of_flow(self, ends, *settings, index=1, oct_settings=""):
        """Returns: the flow through the vessel over the truth, for spectra whose wavelengths go from one end to the other"""
        k = 2e3 * np.pi / np.linspace(*ends, SAMPLES)
        flow, _z = self.flow(phantom(bulk=0, noise=5, k=k, index=index), "method=doppler", "lateral-window=24", "depth-window=3", *settings,
                             oct_settings=oct_settings, ends=ends)
        axis = metadata.sidecar(os.path.join(self.folder, "flow.npy"))["quantity"]["axes"][1]
        depths = metadata.places(axis, flow.shape[1])
        vessel = abs(depths - CENTRE) < 0.8 * RADIUS
        return flow[:, vessel, LINES // 2].mean(0).sum() / velocity(depths[vessel]).sum()

    def test_sign_and_wavelength_are_those_of_the_calibration(self):
        """Flow to larger depths is positive, whether wavelengths rise or fall with the samples; properties override."""
        interval, falling, rising = f"interval-us={INTERVAL}", ENDS, ENDS[::-1]
        for ends, settings, expected in (falling, [], 1), (rising, [], 1), (rising, ["falling-wavenumbers=false"], -1), \
                (falling, ["falling-wavenumbers=true", f"wavelength-nm={2 * MIDDLE}"], -2):
            share = self.share_of_flow(ends, interval, *settings)
            print(f"# {ends}, {settings}: flow {share:.4f} of the truth")
            self.assertLess(abs(share / expected - 1), 0.03, (ends, settings))

    def test_refractive_index_is_that_of_octbscan(self):
        for settings, expected in ([], 1), (["refractive-index=1.2"], 1.38 / 1.2):
            share = self.share_of_flow(ENDS, f"interval-us={INTERVAL}", *settings, index=1.38, oct_settings="refractive-index=1.38")
            print(f"# refractive index, {settings}: flow {share:.4f} of the truth")
            self.assertLess(abs(share / expected - 1), 0.03, settings)

    def test_files_of_complex_depths_tell_the_same(self):
        """A flow from the file of the pad complex is that behind octbscan."""
        settings = ["method=doppler", f"interval-us={INTERVAL}"]
        flow, _z = self.flow(phantom(bulk=0, noise=5, k=K[::-1]), *settings, ends=ENDS[::-1], oct_settings="refractive-index=1.38")
        again = os.path.join(self.folder, "again.npy")
        play(f"picturesrc location={self.folder}/z.npy ! octangio repeats={REPEATS} {' '.join(settings)} ! other/tensors !"
             f" picturesink location={again}")
        np.testing.assert_array_equal(np.load(again).reshape(flow.shape), flow)

    def test_numpy_gives_the_same(self):
        spectra = phantom(bulk=0, noise=20)
        for method in "mean", "speckle-variance", "decorrelation", "complex-decorrelation", "doppler", "eigen":
            flow, z = self.flow(spectra, f"method={method}", "bulk-motion=false", "lateral-window=1", "depth-window=1",
                                "tissue-components=2")
            for index in range(SETS):
                values = z[index * REPEATS:(index + 1) * REPEATS]
                amplitude, pairs = abs(values), (values[1:] * values[:-1].conj()).sum(0)
                power = amplitude ** 2
                if method == "eigen":
                    expected = np.empty(values.shape[1:])
                    for line in range(LINES):
                        _u, _s, vh = np.linalg.svd(values[:, line].T, full_matrices=False)
                        rest = values[:, line].T - values[:, line].T @ vh[:2].conj().T @ vh[:2]
                        expected[line] = (abs(rest) ** 2).mean(1)
                else:
                    expected = {
                        "mean": power.mean(0), "speckle-variance": amplitude.var(0), "doppler": np.angle(pairs),
                        "decorrelation": 1 - (2 * amplitude[1:] * amplitude[:-1] / (power[1:] + power[:-1])).mean(0),
                        "complex-decorrelation": 1 - abs(pairs) / ((power[1:] + power[:-1]) / 2).sum(0)}[method]
                found = flow[index].T.astype(float)
                if method in ("mean", "speckle-variance", "eigen"):
                    found = 10 ** (found / 10)
                worst = abs(found - expected).max() / expected.max()
                print(f"# {method}: worst {worst:.1e} of the largest")
                self.assertLess(worst, 2e-5, method)

    def test_static_tissue_has_the_noise_of_theory(self):
        """The noise of Z comes from that of the spectra: 4 sigma^2 sum w^2 / (sum w)^2, here without a window 4 sigma^2 / N."""
        sigma = 20
        spectra = phantom(bulk=0, noise=sigma, moves=False)
        power = 4 * (sigma ** 2 + 1 / 12) / SAMPLES
        flow, z = self.flow(spectra, "method=eigen", "lateral-window=1")
        found = (10 ** (flow[:, 10:200] / 10)).mean()
        expected = (REPEATS - 1) / REPEATS * power
        print(f"# eigen: {found:.4f}, theory {expected:.4f}")
        self.assertLess(abs(found / expected - 1), 0.05)
        flow, z = self.flow(spectra, "method=complex-decorrelation", "bulk-motion=false", "lateral-window=47", "depth-window=8")
        inside = range(15, 70)  # where there are scatterers
        energy = (abs(z) ** 2).mean((0, 1))
        found = np.array([flow[:, at, LINES // 2 - 1].mean() for at in inside])
        expected = np.array([power / energy[at - 3:at + 5].mean() for at in inside])
        print(f"# complex decorrelation: {found.mean():.5f}, theory {expected.mean():.5f}")
        self.assertLess(abs(found.mean() / expected.mean() - 1), 0.1)

    def test_bands_are_windows_of_the_spectrum(self):
        """bands=4 is the mean of four octbscan with the window of a band each. The noise of what changes completely falls with the square
        root of the bands."""
        rng = np.random.default_rng(9)
        lamp = 20000 * (0.2 + np.hanning(SAMPLES))
        spectra = np.empty((SETS * REPEATS, LINES, SAMPLES))
        for line in spectra.reshape(-1, SAMPLES):  # other scatterers each time
            z = rng.uniform(60, 1400, 2000)
            line[:] = 500 + lamp * (1 + 0.003 * np.cos(2 * K * z[:, None]).sum(0)) + rng.normal(0, 5, SAMPLES)
        spectra = np.rint(spectra).astype("u2")
        np.save(os.path.join(self.folder, "lamp.npy"), 500 + lamp)
        whole, z = self.flow(spectra, "method=decorrelation", oct_settings="scale=2", background="lamp.npy")
        found, _z = self.flow(spectra, "method=decorrelation", "bands=4", "depth-scale=2", oct_settings="scale=2", background="lamp.npy")
        told, _z = self.flow(spectra, "method=decorrelation", "bands=4", oct_settings="scale=2", background="lamp.npy")
        np.testing.assert_array_equal(told, found)  # octbscan tells its scale, and so does a file
        self.assertEqual(metadata.sidecar(os.path.join(self.folder, "z.npy"))["quantity"]["depth-scale"], 2)
        expected = np.zeros(found.shape)
        for band in range(4):
            at = (np.arange(SAMPLES) / SAMPLES - (band + 0.5) / 4) * 4  # in widths at half of the maximum
            np.save(os.path.join(self.folder, "window.npy"), np.exp(-4 * np.log(2) * at ** 2))
            expected += self.flow(spectra, "method=decorrelation", background="lamp.npy",
                                  oct_settings=f"scale=2 window=file window-location={self.folder}/window.npy")[0] / 4
        inside = slice(24, 440)  # in 512 depths: beyond are the ends of the filter, and no scatterers
        worst = np.quantile(abs(found - expected)[:, inside], 0.999)
        noise = found[:, inside].std() / whole[:, inside].std()
        print(f"# bands: {worst:.1e} from four windows, noise {noise:.3f} of that of the whole spectrum, theory 0.5;"
              f" mean {found[:, inside].mean():.4f} and {whole[:, inside].mean():.4f}, theory {1 - np.pi / 4:.4f}")
        self.assertLess(worst, 5e-3)
        self.assertLess(abs(noise / 0.5 - 1), 0.05)
        self.assertLess(abs(found[:, inside].mean() / (1 - np.pi / 4) - 1), 0.02)

    def test_backward_bscans_are_turned(self):
        """With bidirectional=true each place of a repeat is compared with the same place of the next"""
        spectra = phantom(bulk=0.3, noise=5)
        back_and_forth = spectra.copy()
        back_and_forth[1::2] = spectra[1::2, ::-1]
        for method in "decorrelation", "complex-decorrelation", "eigen":
            expected, _z = self.flow(spectra, f"method={method}", "backend=cpu")
            found, _z = self.flow(back_and_forth, f"method={method}", "backend=cpu", oct_settings="bidirectional=true")
            np.testing.assert_array_equal(found, expected, method)

    def test_complex_follows_tracking(self):
        """A sample that moves by some depths decorrelates, unless octbscan aligns the pad complex."""
        spectra = phantom(bulk=40, noise=5, moves=False, together=True)
        found = {}
        for aligns in "false", "true":
            flow, _z = self.flow(spectra, "method=complex-decorrelation", "depth-window=5", "lateral-window=5",
                                 oct_settings=f"scale=4 tracking=xcorr tracking-reach=120 tracking-lock=true tracking-complex={aligns}")
            found[aligns] = flow[:, 4 * 25:4 * 65].mean()  # tissue, wherever it moves
        print(f"# decorrelation of tissue that moves: {found['false']:.3f}, aligned {found['true']:.3f}")
        self.assertGreater(found["false"], 0.3)
        self.assertLess(found["true"], 1e-3 * found["false"])

    def test_nothing_is_downloaded_behind_an_octbscan_on_the_device(self):
        """auto follows the complex depths, on the mock as on a GPU."""
        path = os.path.join(self.folder, "s.npy")
        np.save(path, phantom(bulk=0, noise=5))
        pipeline = Gst.parse_launch(f"picturesrc location={path} ! octbscan name=o backend=cuda ! fakesink async=false o.complex ! queue !"
                                    f" octangio name=a repeats={REPEATS} method=complex-decorrelation ! other/tensors ! fakesink async=false")
        pipeline.set_state(Gst.State.PLAYING)
        message = pipeline.get_bus().timed_pop_filtered(30 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
        angio = pipeline.get_by_name("a")
        found = [angio.get_property("active-backend"), angio.get_property("active-memory")]
        downloads = [pipeline.get_by_name(name).get_property("stats").get_value("bytes-downloaded") for name in "ao"]
        pipeline.set_state(Gst.State.NULL)
        self.assertEqual(message.type, Gst.MessageType.EOS)
        self.assertEqual((found, downloads), (["cuda", "device"], [0, 0]))

    def test_pipelines_of_the_page_end(self):
        """A sink prerolls behind a set, with the B-scans beside it or without."""
        path = os.path.join(self.folder, "s.npy")
        np.save(path, phantom(bulk=0, noise=5))
        for source in "", "o.src ! queue ! fakesink ":
            with self.subTest(source):
                play(f"picturesrc location={path} ! octbscan name=o {source}o.complex ! queue ! octangio repeats={REPEATS}"
                     f" method=complex-decorrelation ! picturesink location={self.folder}/set%d.png")
                self.assertTrue(os.path.exists(f"{self.folder}/set{SETS - 1}.png"))

    def test_intensities_and_enface(self):
        spectra = phantom(bulk=0, noise=5)
        flow, _linear = self.flow(spectra, "method=decorrelation", pad="linear")
        vessel = int(CENTRE / STEP)
        self.assertGreater(flow[:, vessel - 10:vessel + 10].mean(), 3 * flow[:, 2 * vessel:2 * vessel + 20].mean())
        self.assertEqual(flow.shape[2], LINES)


if __name__ == "__main__":
    main()
