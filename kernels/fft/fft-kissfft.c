/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* KissFFT transforms compact complex rows. The rest is here: layouts, batches,
 * and real rows of even width through a complex one of half of it (its own
 * kiss_fftr keeps a buffer in the plan and so cannot be shared by threads, and
 * it refuses odd widths, which go through a complex row here). */
#include <kiss_fft.h>
#include <stdlib.h>

#include "fft/fft-private.h"

typedef kiss_fft_cpx Complex;

typedef struct State {
  kiss_fft_cfg row;  /* of width, or half of it for real rows of even width */
  Complex *twiddles; /* exp (-i 2 pi k / width), k = 0..width / 4; NULL unless
                      * rows are real and of even width */
} State;

/* The parts of one execution's scratch, a row each. */
typedef struct Scratch {
  Complex *loaded, *result;
} Scratch;

static inline Complex
add (Complex a, Complex b)
{
  return (Complex){a.r + b.r, a.i + b.i};
}

static inline Complex
subtract (Complex a, Complex b)
{
  return (Complex){a.r - b.r, a.i - b.i};
}

static inline Complex
multiply (Complex a, Complex b)
{
  return (Complex){a.r * b.r - a.i * b.i, a.r * b.i + a.i * b.r};
}

static inline Complex
conjugate (Complex a)
{
  return (Complex){a.r, -a.i};
}

/* --- rows: each is read before anything of it is written ----------------- */

static void
row_c2c (const State *state, uint32_t width, const Complex *in, size_t in_step,
    Complex *out, size_t out_step, const Scratch *s)
{
  const Complex *from = in;
  Complex *to = out_step == 1 ? out : s->result;

  if (in_step != 1 || in == out) { /* kiss_fft in place would allocate */
    for (uint32_t x = 0; x < width; x++)
      s->loaded[x] = in[x * in_step];
    from = s->loaded;
  }
  kiss_fft (state->row, from, to);
  if (to != out)
    for (uint32_t x = 0; x < width; x++)
      out[x * out_step] = to[x];
}

/* With Z the spectrum of the pairs in(2j) + i in(2j+1), m = width / 2 and w =
 * exp (-i 2 pi / width): E = (Z(k) + conj Z(m-k)) / 2 and O = (Z(k) - conj
 * Z(m-k)) / 2i are the spectra of the even and the odd samples, X(k) = E +
 * w^k O, X(m-k) = conj (E - w^k O). Numerical Recipes, section 12.3. */
static void
split_spectrum (
    const State *state, uint32_t m, const Complex *z, Complex *out, size_t step)
{
  out[0] = (Complex){z[0].r + z[0].i, 0};
  out[m * step] = (Complex){z[0].r - z[0].i, 0};
  for (uint32_t k = 1; k <= m / 2; k++) {
    Complex mirrored = conjugate (z[m - k]);
    Complex even = add (z[k], mirrored);
    Complex odd = subtract (z[k], mirrored);
    Complex turned =
        multiply (state->twiddles[k], (Complex){odd.i, -odd.r}); /* / i */
    Complex sum = add (even, turned), difference = subtract (even, turned);

    out[k * step] = (Complex){0.5f * sum.r, 0.5f * sum.i};
    out[(m - k) * step] = (Complex){0.5f * difference.r, -0.5f * difference.i};
  }
}

/* split_spectrum backwards, times 2, which makes the scale width, not m. */
static void
join_spectrum (
    const State *state, uint32_t m, const Complex *in, size_t step, Complex *z)
{
  z[0] = (Complex){in[0].r + in[m * step].r, in[0].r - in[m * step].r};
  for (uint32_t k = 1; k <= m / 2; k++) {
    Complex mirrored = conjugate (in[(m - k) * step]);
    Complex even = add (in[k * step], mirrored);
    Complex odd = subtract (in[k * step], mirrored);
    Complex turned = multiply (
        conjugate (state->twiddles[k]), (Complex){-odd.i, odd.r}); /* * i */

    z[k] = add (even, turned);
    z[m - k] = conjugate (subtract (even, turned));
  }
}

static void
row_r2c (const State *state, uint32_t width, const float *in, size_t in_step,
    Complex *out, size_t out_step, const Scratch *s)
{
  const Complex *from = s->loaded;

  if (width % 2) {
    for (uint32_t x = 0; x < width; x++)
      s->loaded[x] = (Complex){in[x * in_step], 0};
    kiss_fft (state->row, s->loaded, s->result);
    for (uint32_t u = 0; u <= width / 2; u++)
      out[u * out_step] = s->result[u];
    out[0].i = 0;
    return;
  }
  if (in_step == 1)
    from = (const Complex *) in;
  else
    for (uint32_t x = 0; x < width / 2; x++)
      s->loaded[x] = (Complex){in[2 * x * in_step], in[(2 * x + 1) * in_step]};
  kiss_fft (state->row, from, s->result);
  split_spectrum (state, width / 2, s->result, out, out_step);
}

static void
row_c2r (const State *state, uint32_t width, const Complex *in, size_t in_step,
    float *out, size_t out_step, const Scratch *s)
{
  if (width % 2) {
    s->loaded[0] = (Complex){in[0].r, 0};
    for (uint32_t u = 1; u <= width / 2; u++) {
      s->loaded[u] = in[u * in_step];
      s->loaded[width - u] = conjugate (in[u * in_step]);
    }
    kiss_fft (state->row, s->loaded, s->result);
    for (uint32_t x = 0; x < width; x++)
      out[x * out_step] = s->result[x].r;
    return;
  }
  join_spectrum (state, width / 2, in, in_step, s->loaded);
  if (out_step == 1) {
    kiss_fft (state->row, s->loaded, (Complex *) out);
    return;
  }
  kiss_fft (state->row, s->loaded, s->result);
  for (uint32_t x = 0; x < width / 2; x++) {
    out[2 * x * out_step] = s->result[x].r;
    out[(2 * x + 1) * out_step] = s->result[x].i;
  }
}

/* --- the table ----------------------------------------------------------- */

static bool
splits (const ImkFftConfig *c)
{
  return true;
}

static void
plan_execute (const ImkFftConfig *c, const void *state, const void *in,
    void *out, void *scratch)
{
  Scratch s = {scratch, (Complex *) scratch + c->width};

  for (size_t i = 0; i < c->n_transforms; i++) {
    const void *from =
        (const char *) in + i * c->in.distance * imk_fft_size_in (c);
    void *to = (char *) out + i * c->out.distance * imk_fft_size_out (c);

    switch (c->kind) {
    case IMK_FFT_R2C:
      row_r2c (state, c->width, from, c->in.step, to, c->out.step, &s);
      break;
    case IMK_FFT_C2R:
      row_c2r (state, c->width, from, c->in.step, to, c->out.step, &s);
      break;
    default:
      row_c2c (state, c->width, from, c->in.step, to, c->out.step, &s);
    }
  }
}

static void
plan_destroy (void *data)
{
  State *state = data;

  if (!state)
    return;
  kiss_fft_free (state->row);
  free (state->twiddles);
  free (state);
}

static bool
make_twiddles (uint32_t width, State *state)
{
  uint32_t n = width / 4 + 1;

  state->twiddles = malloc (n * sizeof (*state->twiddles));
  if (!state->twiddles)
    return false;
  for (uint32_t k = 0; k < n; k++) {
    double angle = -2 * M_PI * k / width;

    state->twiddles[k] = (Complex){(float) cos (angle), (float) sin (angle)};
  }
  return true;
}

static ImkStatus
plan_create (const ImkFftConfig *c, unsigned liberties, void **data,
    size_t *scratch_size, ImkError *error)
{
  bool paired = c->kind != IMK_FFT_C2C && c->width % 2 == 0;
  bool inverse = c->direction == IMK_FFT_BACKWARD;
  State *state = calloc (1, sizeof (*state));
  bool ok = state != NULL;

  if (ok) {
    state->row = kiss_fft_alloc (
        (int) (paired ? c->width / 2 : c->width), inverse, NULL, NULL);
    ok = state->row != NULL;
  }
  if (ok && paired)
    ok = make_twiddles (c->width, state);
  if (!ok) {
    plan_destroy (state);
    return IMK_NO_MEMORY (error, "to plan rows of %u samples.", c->width);
  }
  *data = state;
  *scratch_size = 2 * (size_t) c->width * sizeof (Complex);
  return IMK_OK;
}

const ImkFftLibrary imk_fft_kissfft = {
    .name = "kissfft",
    .splits = splits,
    .create = plan_create,
    .execute = plan_execute,
    .destroy = plan_destroy,
};
