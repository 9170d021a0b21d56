# SPDX-License-Identifier: LGPL-2.1-or-later
"""Meshes: what trimesh reads of them is what the maps hold; and normals of 16 bits, through files."""
import json
import os
import struct
import unittest

import numpy as np

from support import FolderCase, launch, main

try:
    import trimesh
except ImportError:
    trimesh = None

FORMATS = os.environ["FORMATS"].split()
WIDTH, HEIGHT, MM = 60, 44, 0.5


def dome():
    """A quarter of a sphere and a hole: normals [h, w, 3], 0 where there is none, and a colour of each pixel."""
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(float)
    n = np.stack([(x - 20) / 60, (25 - y) / 60, np.zeros_like(x)], -1)
    n[..., 2] = np.sqrt(1 - (n ** 2).sum(-1))
    n[np.hypot(x - 40, y - 12) < 5] = 0
    n[:3, :9] = 0
    albedo = np.stack([x / WIDTH, y / HEIGHT, 0.2 + 0 * x], -1)
    return n, albedo


def words_of(normals):
    return np.where(normals.any(-1, keepdims=True), 32768.5 + 32767 * normals, 0).astype("<u2")


def read(path):
    with open(path, "rb") as file:
        return file.read()


def srgb(linear):
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * np.maximum(linear, 1e-9) ** (1 / 2.4) - 0.055)


class Case(FolderCase):
    def setUp(self):
        super().setUp()
        self.normals, self.albedo = dome()
        np.save(self.path("normals.npy"), words_of(self.normals)[np.newaxis])
        np.save(self.path("albedo.npy"), (65535 * self.albedo + 0.5).astype("<u2")[np.newaxis])

    def integrate(self, mesh, *words, albedo="albedo.npy", normals="normals.npy", **options):
        return launch(
            "picturesrc", "location=" + self.path(normals), "!", "n.sink",
            *(["picturesrc", "location=" + self.path(albedo), "!", "n.albedo"] if albedo else []),
            "normalintegrate", "name=n", f"mm-per-pixel={MM}", "mesh-location=" + self.path(mesh), *words, **options)


class Meshes(Case):
    def expected(self):
        """Vertices in mm, normals, texture coordinates, colours, and the number of faces."""
        self.integrate("x.ply", "n.tensor", "!", "filesink", "location=" + self.path("heights.f32"))
        z = np.fromfile(self.path("heights.f32"), "<f4").reshape(HEIGHT, WIDTH)
        there = np.isfinite(z)
        self.assertTrue((there == self.normals.any(-1)).all())
        rows, columns = np.nonzero(there)
        n = self.normals[there]
        corners = np.stack([there[:-1, :-1], there[:-1, 1:], there[1:, :-1], there[1:, 1:]]).sum(0)
        return (np.stack([columns * MM, (HEIGHT - 1 - rows) * MM, z[there]], 1), n,
                np.stack([(columns + 0.5) / WIDTH, 1 - (rows + 0.5) / HEIGHT], 1),
                (255 * srgb(self.albedo[there]) + 0.5).astype(int), np.maximum(corners - 2, 0).sum())

    def load(self, name):
        found = trimesh.load(self.path(name), process=False, maintain_order=True)
        if isinstance(found, trimesh.Scene):
            found, = found.geometry.values()
        return found

    def colours(self, mesh):
        """Of the picture, where the texture coordinates point."""
        material = mesh.visual.material
        picture = np.asarray(getattr(material, "baseColorTexture", None) or material.image)
        x = (mesh.visual.uv[:, 0] * WIDTH).astype(int)
        y = ((1 - mesh.visual.uv[:, 1]) * HEIGHT).astype(int)
        return picture[y, x, :3].astype(int)

    @unittest.skipUnless(trimesh and "png" in FORMATS, "trimesh is not installed, or built without png")
    def test_all_formats_hold_the_same_surface(self):
        vertices, normals, uv, colours, n_faces = self.expected()
        for name, mm in (("a.ply", 1), ("a.obj", 1), ("a.glb", 1000)):
            with self.subTest(name):
                self.integrate(name)
                mesh = self.load(name)
                self.assertEqual(mesh.vertices.shape, vertices.shape)
                self.assertEqual(len(mesh.faces), n_faces)
                self.assertLess(np.abs(mm * mesh.vertices - vertices).max(), 2e-6)
                self.assertLess(np.abs(mesh.vertex_normals - normals).max(), 2e-5)
                self.assertLess(np.abs(mesh.visual.uv - uv).max(), 2e-6)
                self.assertLessEqual(np.abs(self.colours(mesh) - colours).max(), 1)
                outward = (mesh.face_normals * mesh.vertex_normals[mesh.faces[:, 0]]).sum(1)
                self.assertGreater(outward.min(), 0.9)
                self.assertGreater(mesh.face_normals[:, 2].min(), 0)

    def test_colours_are_also_at_the_vertices(self):
        colours = self.expected()[3]
        data = read(self.path("x.ply"))
        body = data[data.index(b"end_header\n") + 11:]
        found = np.frombuffer(body, np.uint8, 35 * len(colours)).reshape(-1, 35)[:, 32:]
        self.assertLessEqual(np.abs(found - colours).max(), 1)
        self.integrate("ignored.ply", "n.mesh", "!", "model/obj", "!", "filesink", "location=" + self.path("b.obj"))
        lines = [line.split()[4:] for line in read(self.path("b.obj")).splitlines() if line.startswith(b"v ")]
        self.assertLess(np.abs(255 * np.array(lines, float) - colours).max(), 1.001)

    @unittest.skipUnless("png" in FORMATS, "built without png")
    def test_a_glb_is_as_its_specification_says(self):
        self.integrate("a.glb")
        data = read(self.path("a.glb"))
        magic, version, size, json_size, kind = struct.unpack_from("<4sIII4s", data)
        self.assertEqual((magic, version, size, kind), (b"glTF", 2, len(data), b"JSON"))
        self.assertEqual(json_size % 4, 0)
        scene = json.loads(data[20:20 + json_size])
        bin_size, kind = struct.unpack_from("<I4s", data, 20 + json_size)
        self.assertEqual(kind, b"BIN\0")
        self.assertEqual(28 + json_size + bin_size, len(data))
        numbers = data[28 + json_size:]
        self.assertLessEqual(bin_size - scene["buffers"][0]["byteLength"], 3)
        end = 0
        for view in scene["bufferViews"]:
            self.assertEqual(view["byteOffset"], end)
            self.assertEqual(end % 4, 0)
            end += view["byteLength"]
        self.assertLessEqual(end, scene["buffers"][0]["byteLength"])
        counts = []
        for accessor in scene["accessors"]:
            view = scene["bufferViews"][accessor["bufferView"]]
            n = {"SCALAR": 1, "VEC2": 2, "VEC3": 3}[accessor["type"]]
            self.assertEqual(view["byteLength"], 4 * n * accessor["count"])
            values = np.frombuffer(numbers, {5126: "<f4", 5125: "<u4"}[accessor["componentType"]],
                                   n * accessor["count"], view["byteOffset"]).reshape(-1, n)
            counts.append(len(values))
            if "min" in accessor:
                self.assertEqual(np.float32(accessor["min"]).tolist(), values.min(0).tolist())
                self.assertEqual(np.float32(accessor["max"]).tolist(), values.max(0).tolist())
            if accessor["type"] == "SCALAR":
                self.assertEqual(values.max(), counts[0] - 1)
        self.assertEqual(len(set(counts[:3])), 1)
        self.assertIn("min", scene["accessors"][scene["meshes"][0]["primitives"][0]["attributes"]["POSITION"]])
        view = scene["bufferViews"][scene["images"][0]["bufferView"]]
        self.assertEqual(numbers[view["byteOffset"]:][:8], b"\x89PNG\r\n\x1a\n")

    def test_without_an_albedo_there_is_no_picture(self):
        for name in ("a.obj", "a.glb", "a.ply"):
            self.integrate(name, albedo=None)
        self.assertEqual(sorted(os.listdir(self.folder)),
                         ["a.glb", "a.obj", "a.ply", "albedo.npy", "normals.npy"])

    def test_each_map_has_a_file_where_the_name_has_a_number(self):
        words = words_of(self.normals)
        np.save(self.path("two.npy"), np.stack([words, words[::-1]]))
        self.integrate("m%03d.ply", "mesh-step=4", albedo=None, normals="two.npy")
        first, second = (read(self.path(f"m00{i}.ply")) for i in range(2))
        self.assertNotEqual(first, second)
        self.integrate("m.ply", "mesh-step=4", albedo=None, normals="two.npy")
        self.assertEqual(read(self.path("m.ply")), second)

    def test_percent_signs_and_u_are_as_in_picturesink(self):
        words = words_of(self.normals)
        np.save(self.path("two.npy"), np.stack([words, words]))
        for name, files in (("50%_m%03d.ply", ["50%_m000.ply", "50%_m001.ply"]), ("u%02u.ply", ["u00.ply", "u01.ply"])):
            self.integrate(name, "mesh-step=4", albedo=None, normals="two.npy")
            self.assertEqual(sorted(n for n in os.listdir(self.folder) if n.endswith(".ply") and n[0] == name[0]), files)
        printed = self.integrate("a%d_%d.ply", albedo=None, normals="two.npy", status=1)
        self.assertIn("two places for a number", printed)

    @unittest.skipUnless("png" in FORMATS, "built without png")
    def test_files_of_others_beside_a_mesh_stay(self):
        for foreign, mesh in (("stone.png", "stone.ply"), ("stone.mtl", "stone.obj")):
            with self.subTest(foreign):
                with open(self.path(foreign), "wb") as file:
                    file.write(b"of somebody else")
                for i in range(2):
                    printed = self.integrate(mesh)
                    self.assertEqual(read(self.path(foreign)), b"of somebody else")
                    self.assertRegex(printed, f'{foreign}" is there and was not written by gst-imaging: it stays')
                    self.assertEqual(printed.count("WARNING: from"), 1)
                self.assertNotIn(b"stone.png" if foreign == "stone.png" else b"mtllib", read(self.path(mesh))[:2000])
                os.remove(self.path(foreign))
                for i in range(2):  # ours are replaced
                    self.assertNotIn("WARNING", self.integrate(mesh))

    def test_one_albedo_is_enough(self):
        words = words_of(self.normals)
        np.save(self.path("two.npy"), np.stack([words, words]))
        self.integrate("m%d.ply", normals="two.npy")
        self.assertEqual(*(read(self.path(f"m{i}.ply")).split(b"end_header")[1] for i in range(2)))

    def test_what_cannot_be_written_is_said(self):
        np.save(self.path("small.npy"), np.zeros((1, 5, 7), "u1"))
        for name, albedo, words in (("a.stl", None, ".glb, .obj or .ply"), ("no/a.ply", None, "mesh-location"),
                                    ("a.ply", "small.npy", "The albedo has 7 x 5 pixels and the normals 60 x 44")):
            with self.subTest(name):
                self.assertIn(words, self.integrate(name, albedo=albedo, status=1))


if __name__ == "__main__":
    main()
