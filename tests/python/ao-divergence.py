# SPDX-License-Identifier: LGPL-2.1-or-later
"""A closed loop that drives its mirror away is told, and one that holds is not, with the simulated telescope of ao-loop.py."""
import importlib.util
import os

import numpy as np

from support import Gst, main

specification = importlib.util.spec_from_file_location("ao_loop", os.path.join(os.path.dirname(os.path.abspath(__file__)), "ao-loop.py"))
ao_loop = importlib.util.module_from_spec(specification)
specification.loader.exec_module(ao_loop)
N = ao_loop.N
N_SEEDS = int(os.environ.get("AO_DIVERGENCE_SEEDS", "1"))


class DivergenceTest(ao_loop.Loop):
    def warnings_of(self, control, more, n_frames, before=lambda t, tel, element: None, **options):
        """Returns: frames at which the loop was told to drive away, and the texts"""
        path = os.path.join(self.folder, "control.npy")
        np.save(path, control.astype(np.float32))
        tel, told = ao_loop.telescope(n_frames, **options), []
        with self.stream(path, more) as stream:
            element, bus = stream.element("rc"), stream.pipeline.get_bus()

            def step(t):
                before(t, tel, element)
                message = bus.pop_filtered(Gst.MessageType.WARNING)
                while message:
                    text = message.parse_warning()[0].message
                    if "drives the mirror away" in text:
                        told.append((t, text))
                    message = bus.pop_filtered(Gst.MessageType.WARNING)
            self.run_loop(tel, stream, n_frames, step)
        return told

    def test_a_loop_that_drives_away_is_told(self):
        _d, _path, _interaction, control = self.matrices()
        order = np.random.default_rng(5).permutation(N * N)
        swapped = control.reshape(-1, 2, N * N)[:, :, order].reshape(control.shape)
        for name, matrix, more in (("sign", -control, ""), ("sign, small gain", -control, "gain=0.1"), ("gain", control, "gain=1.5"),
                                   ("swapped", swapped, ""), ("limits", -control, "minimum=-5 maximum=5"),
                                   ("gain, limits", 3 * control, "minimum=-5 maximum=5")):
            with self.subTest(name):
                told = self.warnings_of(matrix, more, 420)
                print(name, told)
                self.assertEqual(len(told), 1)
                self.assertIn("gain", told[0][1])

    def test_a_loop_that_holds_is_not_told(self):
        _d, _path, _interaction, control = self.matrices()

        def blackout(t, tel, _element):
            tel.is_dark = 100 <= t < 180

        def reset(t, _tel, element):
            if t % 100 == 50:
                element.emit("reset")

        def gains(t, _tel, element):
            element.set_property("gain", (0.1, 0.5, 0.3)[t // 100 % 3])

        def opens(t, _tel, element):
            element.set_property("loop", "open" if t % 100 < 20 else "closed")

        def onset(t, tel, _element):
            if t == 0:
                tel.real_air, tel.air = tel.air, lambda: 0 * tel.real_air()
            if t == 100:
                tel.air = tel.real_air

        def drift(t, tel, _element):
            if t == 0:
                tel.real_air, tel.columns = tel.air, np.nonzero(tel.corners)[1]
            tel.air = lambda: tel.real_air() + 0.3 * max(0, t - 20) * tel.columns
        n = 0
        for seed in range(1, N_SEEDS + 1):
            for name, before, more, options in (
                    ("plain", None, "", {}), ("strong", None, "", {"r0": 0.08}), ("weak", None, "gain=0.1", {"r0": 0.08, "wind": 20}),
                    ("limited", None, "minimum=-25 maximum=25", {}), ("faint", None, "gain=0.3", {"photons": 300}), ("blackout", blackout, "", {}),
                    ("blackout, held", blackout, "min-valid=0.3", {}), ("reset", reset, "", {}), ("gains", gains, "", {}), ("opens", opens, "", {}),
                    ("onset", onset, "", {}), ("drift", drift, "gain=0.1", {"r0": 2})):
                with self.subTest(name, seed=seed):
                    n += 1
                    self.assertEqual(self.warnings_of(control, more, 320, before or (lambda t, tel, element: None), seed=seed, **options), [])
        print(f"{n} good runs")


for inherited in filter(lambda name: name.startswith("test_"), dir(ao_loop.Loop)):
    setattr(DivergenceTest, inherited, None)  # those of ao-loop.py run there
if __name__ == "__main__":
    main()
