/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstimagingnumber.h"

#include <math.h>
#include <string.h>

/* --- whole numbers -------------------------------------------------------- */

/* Two digits a division. */
static gsize
print_whole (gchar *text, guint64 value)
{
  static const gchar pairs[] =
      "00010203040506070809101112131415161718192021222324"
      "25262728293031323334353637383940414243444546474849"
      "50515253545556575859606162636465666768697071727374"
      "75767778798081828384858687888990919293949596979899";
  gchar digits[20], *at = digits + sizeof (digits);
  gsize n;

  for (; value >= 10; value /= 100) {
    at -= 2;
    memcpy (at, pairs + 2 * (value % 100), 2);
  }
  if (value || at == digits + sizeof (digits))
    *--at = (gchar) ('0' + value);
  n = (gsize) (digits + sizeof (digits) - at);
  memcpy (text, at, n);
  return n;
}

/* --- any number, by the C library ----------------------------------------- */

static gsize
print_slowly (gchar *text, gdouble value)
{
  for (gint n = 15; n <= 17; n++) {
    gchar format[] = "%.15g";

    format[3] = (gchar) ('0' + n - 10);
    g_ascii_formatd (text, GST_IMAGING_NUMBER_SIZE, format, value);
    if (g_ascii_strtod (text, NULL) == value)
      break;
  }
  return strlen (text);
}

/* --- the fewest digits ---------------------------------------------------- */

#ifdef __SIZEOF_INT128__

__extension__ typedef unsigned __int128 Wide;

/* 5^p */
static const guint64 fives[] = {1, 5, 25, 125, 625, 3125, 15625, 78125, 390625,
    1953125, 9765625, 48828125, 244140625, 1220703125, 6103515625, 30517578125,
    152587890625, 762939453125, 3814697265625, 19073486328125, 95367431640625,
    476837158203125, 2384185791015625, 11920928955078125, 59604644775390625,
    298023223876953125, 1490116119384765625, 7450580596923828125};
/* m 2^e, 2^52 <= m < 2^53, of a normal number above 0 */
typedef struct {
  guint64 m;
  gint e;
} Binary;

static Binary
split (gdouble value)
{
  guint64 bits;

  memcpy (&bits, &value, sizeof (bits));
  return (Binary){
      (bits & ((1ull << 52) - 1)) | 1ull << 52, (gint) (bits >> 52) - 1075};
}

/* digits 10^(exponent - 16 + n_zeros); digits do not end with a 0 */
typedef struct {
  guint64 digits;
  gint n_zeros, exponent;
} Decimal;

/* The double m 2^e stands for all numbers that are nearer to it than to its
 * neighbours. Times 10^p, with p such that it has 17 digits before the point,
 * that range is
 *   ((4 m - 2) 5^p, (4 m + 2) 5^p) / 2^s,  s = 2 - e - p,
 * and above a power of two, where the neighbour is half as far, from 4 m - 1.
 * Its ends are exact in 128 bits, for 0 <= p <= 27 and s > 0: exponents from
 * -11 to 14. The most zeros with which a whole number within can end are the
 * digits that are not needed. The ends are left out, for it depends on the
 * reader whether they are this double. */
static Decimal
shorten (Binary v, gint exponent)
{
  gint p = 16 - exponent, s = 2 - v.e - p, n = 0;
  Wide middle = (Wide) (4 * v.m) * fives[p];
  Wide low = middle - (Wide) (v.m == 1ull << 52 ? 1 : 2) * fives[p];
  Wide high = middle + (Wide) 2 * fives[p];
  /* the whole numbers within, then their tens, hundreds, ... */
  guint64 first = (guint64) (low >> s) + 1;
  guint64 last = (guint64) ((high - 1) >> s);
  guint64 digits, ten; /* 10^n */
  Wide rest, unit;

  while (last / 10 >= (first + 9) / 10) {
    first = (first + 9) / 10;
    last /= 10;
    n++;
  }
  /* the nearest to the middle, of two the even one */
  ten = fives[n] << n;
  digits = (guint64) (middle >> s) / ten;
  unit = (Wide) ten << s;
  rest = middle - digits * unit;
  if (digits < first || (digits < last && 2 * rest + (digits & 1) > unit))
    digits++;
  return (Decimal){digits, n, exponent};
}

/* As %g. */
static gsize
print_decimal (gchar *text, Decimal d)
{
  gchar digits[20];
  gsize n = print_whole (digits, d.digits), at = 0, before;
  gint exponent = d.exponent + d.n_zeros + (gint) n - 17;

  if (exponent < -4) {
    text[at++] = digits[0];
    if (n > 1)
      text[at++] = '.';
    memcpy (text + at, digits + 1, n - 1);
    at += n - 1;
    memcpy (text + at, "e-", 2);
    text[at + 2] = (gchar) ('0' - exponent / 10);
    text[at + 3] = (gchar) ('0' - exponent % 10);
    return at + 4;
  }
  if (exponent < 0) {
    before = (gsize) (1 - exponent);
    memcpy (text, "0.000", before);
    memcpy (text + before, digits, n);
    return before + n;
  }
  /* not whole, so digits are left behind the point */
  before = (gsize) exponent + 1;
  memcpy (text, digits, before);
  text[before] = '.';
  memcpy (text + before + 1, digits + before, n - before);
  return n + 1;
}

/* Returns: 0 for what is too large or too small */
static gsize
print_quickly (gchar *text, gdouble value)
{
  static const gdouble limits[] = {1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4,
      1e-3, 1e-2, 1e-1, 1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10,
      1e11, 1e12, 1e13, 1e14, 1e15};
  Binary v = split (value);
  gint exponent;

  if (!(value >= 1e-10 && value < 1e15))
    return 0;
  /* log10 of the power of two below value, 1233 / 4096 = log10 (2) */
  exponent = ((v.e + 52) * 1233) >> 12;
  if (value >= limits[exponent + 11])
    exponent++;
  return print_decimal (text, shorten (v, exponent));
}

#else

static gsize
print_quickly (gchar *text, gdouble value)
{
  return 0;
}

#endif

gsize
gst_imaging_number_print (gchar *text, gdouble value)
{
  gdouble size = fabs (value);
  gsize sign = value < 0, n;

  if (isnan (value)) {
    memcpy (text, "nan", 3);
    return 3;
  }
  text[0] = '-';
  if (size < 1e15 && size == (gdouble) (guint64) size)
    return sign + print_whole (text + sign, (guint64) size);
  n = print_quickly (text + sign, size);
  return n ? sign + n : print_slowly (text, value);
}
