# SPDX-License-Identifier: LGPL-2.1-or-later
"""Spheres before a pinhole camera on the axis of the picture. Axes: x to the right, y up, z to the camera."""


class Pinhole:
    def __init__(self, np, focal_length, sensor_width, size, mm_per_pixel=None):
        """size: height, width of the pictures. mm_per_pixel: of z = 0, on which spheres stand; without one, spheres have radius 1 and
        the camera is at the origin"""
        self.np, self.focal = np, focal_length / sensor_width * size[1]
        self.middle = (size[1] - 1) / 2, (size[0] - 1) / 2
        self.height = mm_per_pixel and mm_per_pixel * self.focal
        self.place = np.array([0, 0, self.height or 0.0])

    def rays(self, column, row):
        """Returns: unit vectors [..., 3] from the camera"""
        np = self.np
        column, row = np.broadcast_arrays(np.asarray(column, float), np.asarray(row, float))
        way = np.stack([column - self.middle[0], self.middle[1] - row, np.full(column.shape, -self.focal)], -1)
        return way / np.linalg.norm(way, axis=-1, keepdims=True)

    def sphere(self, column, row, radius):
        """Of an outline with this middle and the area of such a circle: it is an ellipse, whose longer axis points to the middle of the
        picture. With a the half angle of the cone of rays around the sphere and t that of its axis from the camera's, the shorter
        axis is sqrt (cos^2 t - sin^2 a) / cos a times as long. Returns: middle [3], radius"""
        np = self.np
        x, y = column - self.middle[0], self.middle[1] - row
        far, longer = np.hypot(x, y), radius
        for _round in range(30):
            ends = np.arctan((far - longer) / self.focal), np.arctan((far + longer) / self.focal)
            lean, half = (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
            longer = radius / (np.sqrt(np.cos(lean) ** 2 - np.sin(half) ** 2) / np.cos(half)) ** 0.5
        out = np.array([x, y]) / far if far > 0 else np.zeros(2)
        way = np.append(np.sin(lean) * out, -np.cos(lean))
        real = self.height / (1 + np.cos(lean) / np.sin(half)) if self.height else 1.0
        return self.place + real / np.sin(half) * way, float(real)

    def surface(self, circle, column, row):
        """Where rays meet a sphere. Returns: points, normals, the rays, each [..., 3], and whether they meet it"""
        np = self.np
        middle, radius = self.sphere(*circle)
        way = self.rays(column, row)
        along = way @ (middle - self.place)
        rest = along ** 2 - ((middle - self.place) ** 2).sum() + radius ** 2
        points = self.place + (along - np.sqrt(np.maximum(rest, 0)))[..., None] * way
        return points, (points - middle) / radius, way, rest > 0

    def reflect(self, circle, column, row):
        """Returns: points of a mirror sphere and the directions in which they reflect the camera"""
        points, normals, way, _meets = self.surface(circle, column, row)
        return points, way - 2 * (way * normals).sum(-1, keepdims=True) * normals
