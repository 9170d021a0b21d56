// SPDX-License-Identifier: LGPL-2.1-or-later
"use strict";

// What draws a tile under the light, with WebGL or without. Both compute what the element relight does (Blinn 1977): with the
// unit vectors n, l to the light, and h halfway from l to the camera,
//   albedo (ambient + diffuse max (0, n.l)) + specular max (0, n.h)^shininess where n.l > 0,
// cut off at 1, to the power 1 / gamma; black where there is no normal.
//
// @scene: x, y: the light, in a disc of radius 1; ambient, diffuse, specular, shininess, gamma; painted: with albedo, else with
// plain everywhere; relief: slopes are multiplied by it; show: "surface", "normals" or "height"; serial: changes with any of them

relief.COLOURS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]]; // of heights, as in the report
relief.SHOWN = ["surface", "normals", "height"];

relief.vectors = (scene) => {
  const z = Math.sqrt(Math.max(0, 1 - scene.x ** 2 - scene.y ** 2));
  const length = Math.hypot(scene.x, scene.y, z + 1);
  return { light: [scene.x, scene.y, z], halfway: [scene.x / length, scene.y / length, (z + 1) / length] };
};

const VERTEX = `
attribute vec2 corner;
varying vec2 at;
void main() {
  at = vec2(0.5 + 0.5 * corner.x, 0.5 - 0.5 * corner.y);
  gl_Position = vec4(corner, 0.0, 1.0);
}`;

const FRAGMENT = `
precision highp float;
varying vec2 at;
uniform sampler2D normalsHigh, normalsLow, albedoHigh, albedoLow, heights;
uniform vec3 light, halfway, colours[5];
uniform float ambient, diffuse, specular, shininess, power, relief, plain;
uniform bool grey, painted;
uniform int show;

vec3 words(vec3 high, vec3 low) {
  return floor(high * 255.0 + 0.5) * 256.0 + floor(low * 255.0 + 0.5);
}

vec3 colourOf(float place) {
  vec3 colour = colours[0];
  for (int i = 0; i < 4; i++)
    colour = mix(colour, colours[i + 1], clamp(4.0 * place - float(i), 0.0, 1.0));
  return colour;
}

void main() {
  vec3 code = words(texture2D(normalsHigh, at).rgb, texture2D(normalsLow, at).rgb);
  vec3 n = code - 32768.0, albedo = vec3(65535.0 * plain);
  float facing, matte, gloss = 0.0;

  gl_FragColor = vec4(0.0, 0.0, 0.0, 1.0);
  if (code == vec3(0.0) || n == vec3(0.0))
    return;
  n.xy *= relief;
  n = normalize(n);
  if (show == 1) {
    gl_FragColor.rgb = (128.0 + 127.0 * n) / 255.0;
    return;
  }
  if (show == 2) {
    vec3 height = texture2D(heights, at).rgb;
    float word = words(height.rrr, height.ggg).r;
    if (word > 0.0)
      gl_FragColor.rgb = colourOf((word - 1.0) / 65534.0);
    return;
  }
  if (painted) {
    vec3 high = texture2D(albedoHigh, at).rgb;
    albedo = grey ? words(high.rrr, high.ggg) : words(high, texture2D(albedoLow, at).rgb);
  }
  facing = dot(n, light);
  matte = ambient + diffuse * max(facing, 0.0);
  if (specular > 0.0 && facing > 0.0)
    gloss = specular * pow(max(dot(n, halfway), 1e-6), shininess);
  gl_FragColor.rgb = pow(clamp(albedo / 65535.0 * matte + gloss, 0.0, 1.0), vec3(power));
}`;

relief.Gpu = class {
  #textures = new WeakMap(); // tile -> textures
  #places = {};

  // Throws an Error where there is no WebGL.
  constructor(about) {
    this.about = about;
    this.canvas = document.createElement("canvas");
    // kept, because a tile is copied from here after it was drawn
    this.gl = this.canvas.getContext("webgl", { alpha: false, antialias: false, depth: false, preserveDrawingBuffer: true });
    if (!this.gl) throw new Error("WebGL is missing");
    this.canvas.addEventListener("webglcontextlost", (event) => {
      event.preventDefault();
      this.lost?.();
    });
    this.#build();
  }

  #build() {
    const gl = this.gl;
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.bindAttribLocation(program, 0, "corner");
    gl.linkProgram(program);
    const precision = gl.getShaderPrecisionFormat(gl.FRAGMENT_SHADER, gl.HIGH_FLOAT).precision;
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) || precision < 23) throw new Error("WebGL lacks what this page needs");
    gl.useProgram(program);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([-1, -1, 1, -1, -1, 1, 1, 1]), gl.STATIC_DRAW);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
    gl.pixelStorei(gl.UNPACK_COLORSPACE_CONVERSION_WEBGL, gl.NONE);
    gl.pixelStorei(gl.UNPACK_PREMULTIPLY_ALPHA_WEBGL, false);
    for (let i = 0; i < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); i++) {
      const name = gl.getActiveUniform(program, i).name.replace("[0]", "");
      this.#places[name] = gl.getUniformLocation(program, name);
    }
    ["normalsHigh", "normalsLow", "albedoHigh", "albedoLow", "heights"].forEach((name, i) => gl.uniform1i(this.#places[name], i));
    gl.uniform3fv(this.#places.colours, relief.COLOURS.flat().map((level) => level / 255));
    gl.uniform1i(this.#places.grey, this.about.grey);
  }

  #upload(picture) {
    const gl = this.gl;
    const texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGB, gl.RGB, gl.UNSIGNED_BYTE, picture);
    for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, name, gl.NEAREST);
    for (const name of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, name, gl.CLAMP_TO_EDGE);
    return texture;
  }

  #bind(tile) {
    const gl = this.gl;
    let textures = this.#textures.get(tile);
    if (!textures) {
      const { normals, albedo, height } = tile.pictures;
      textures = [...normals, albedo[0], albedo[1] ?? null, height[0]].map((picture) => picture && this.#upload(picture));
      this.#textures.set(tile, textures);
    }
    textures.forEach((texture, i) => {
      gl.activeTexture(gl.TEXTURE0 + i);
      gl.bindTexture(gl.TEXTURE_2D, texture ?? textures[i - 1]);
    });
  }

  // Returns: a canvas whose lower left corner holds the tile until the next call
  draw(tile, scene) {
    const gl = this.gl;
    const { light, halfway } = relief.vectors(scene);
    if (this.canvas.width !== this.about.tile) this.canvas.width = this.canvas.height = this.about.tile;
    this.#bind(tile);
    gl.clear(gl.COLOR_BUFFER_BIT); // a smoothed edge takes what is beside the tile
    gl.viewport(0, this.about.tile - tile.height, tile.width, tile.height);
    gl.uniform3fv(this.#places.light, light);
    gl.uniform3fv(this.#places.halfway, halfway);
    for (const name of ["ambient", "diffuse", "specular", "shininess", "relief", "plain"]) gl.uniform1f(this.#places[name], scene[name]);
    gl.uniform1f(this.#places.power, 1 / scene.gamma);
    gl.uniform1i(this.#places.painted, scene.painted);
    gl.uniform1i(this.#places.show, relief.SHOWN.indexOf(scene.show));
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    return this.canvas;
  }

  forget(tile) {
    this.#textures.get(tile)?.forEach((texture) => texture && this.gl.deleteTexture(texture));
    this.#textures.delete(tile);
  }
};

// Powers of light: the place in the table is the root, for which the power 1 / 2.2 is nearly a line.
const STEPS = 4096;

relief.Cpu = class {
  #drawn = new WeakMap(); // tile -> canvas, and the serial of its scene
  #table = new Uint8ClampedArray(STEPS + 1);
  #gamma = 0;

  constructor(about) {
    this.about = about;
    this.slow = true;
  }

  #prepare(gamma) {
    if (gamma === this.#gamma) return;
    this.#gamma = gamma;
    for (let i = 0; i <= STEPS; i++) this.#table[i] = Math.round(255 * (i / STEPS) ** (2 / gamma));
  }

  draw(tile, scene) {
    let drawn = this.#drawn.get(tile);
    if (!drawn) {
      const canvas = document.createElement("canvas");
      canvas.width = tile.width;
      canvas.height = tile.height;
      drawn = { canvas, image: new ImageData(tile.width, tile.height), channels: this.about.grey ? 1 : 3 };
      drawn.normals = tile.words("normals", 3);
      drawn.albedo = tile.words("albedo", drawn.channels);
      this.#drawn.set(tile, drawn);
    }
    if (drawn.serial !== scene.serial) {
      this.#prepare(scene.gamma);
      this.#light(tile, drawn, scene);
      drawn.canvas.getContext("2d").putImageData(drawn.image, 0, 0);
      drawn.serial = scene.serial;
    }
    return drawn.canvas;
  }

  #light(tile, { image, normals, albedo, channels }, scene) {
    const { light, halfway } = relief.vectors(scene);
    const { ambient, diffuse, specular, shininess, painted, plain } = scene;
    const stretch = scene.relief;
    const table = this.#table;
    const out = image.data;
    const level = (value) => table[Math.round(STEPS * Math.sqrt(Math.min(value, 1)))];
    for (let i = 0, at = 0; at < out.length; i++, at += 4) {
      const [r, g, b] = [normals[3 * i], normals[3 * i + 1], normals[3 * i + 2]];
      const [x, y, z] = [stretch * (r - 32768), stretch * (g - 32768), b - 32768];
      const length = Math.sqrt(x * x + y * y + z * z);
      out[at] = out[at + 1] = out[at + 2] = 0;
      out[at + 3] = 255;
      if (!(r || g || b) || !length) continue;
      if (scene.show === "normals") {
        out[at] = 128 + (127 * x) / length;
        out[at + 1] = 128 + (127 * y) / length;
        out[at + 2] = 128 + (127 * z) / length;
        continue;
      }
      if (scene.show === "height") {
        const place = (4 * (tile.heights[i] - 1)) / 65534;
        const stop = Math.min(3, Math.floor(place));
        for (let c = 0; c < 3 && place >= 0; c++)
          out[at + c] = relief.COLOURS[stop][c] + (place - stop) * (relief.COLOURS[stop + 1][c] - relief.COLOURS[stop][c]);
        continue;
      }
      const facing = (x * light[0] + y * light[1] + z * light[2]) / length;
      const matte = ambient + diffuse * Math.max(facing, 0);
      let gloss = 0;
      if (specular > 0 && facing > 0)
        gloss = specular * Math.max((x * halfway[0] + y * halfway[1] + z * halfway[2]) / length, 0) ** shininess;
      for (let c = 0; c < 3; c++)
        out[at + c] = level((painted ? albedo[channels * i + (channels > 1 ? c : 0)] / 65535 : plain) * matte + gloss);
    }
  }

  forget(tile) {
    this.#drawn.delete(tile);
  }
};
