/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstshreconstructsettings.h"

#include "gstshreconstructcontroller.h"
#include "gstshreconstructfile.h"
#include "gstshreconstructmatrix.h"

static const GEnumValue loop_values[] = {
    {GST_SH_RECONSTRUCT_LOOP_CLOSED, "The controller drives the mirror",
        "closed"},
    {GST_SH_RECONSTRUCT_LOOP_OPEN,
        "The mirror takes the reference commands; the controller begins anew "
        "when the loop is closed",
        "open"},
    {0, NULL, NULL},
};

static const GEnumValue order_values[] = {
    {GST_SH_RECONSTRUCT_ORDER_AUTO,
        "What the file of the matrix says, else x-then-y", "auto"},
    {GST_SH_RECONSTRUCT_ORDER_X_THEN_Y, "dx of all cells, then dy of all cells",
        "x-then-y"},
    {GST_SH_RECONSTRUCT_ORDER_INTERLEAVED,
        "dx and dy of the first cell, then of the second, and so on",
        "interleaved"},
    {0, NULL, NULL},
};

static const GEnumValue invalid_values[] = {
    {IMK_SHRECONSTRUCT_INVALID_ZERO, "Slope 0: the cell moves nothing", "zero"},
    {IMK_SHRECONSTRUCT_INVALID_HOLD,
        "The last valid slope of the cell, 0 before the first", "hold"},
    {IMK_SHRECONSTRUCT_INVALID_EXCLUDE,
        "The cell is taken out of the least-squares fit; needs "
        "interaction-location",
        "exclude"},
    {0, NULL, NULL},
};

static const GEnumValue storage_values[] = {
    {IMK_SHRECONSTRUCT_STORAGE_F32, "float32", "f32"},
    {IMK_SHRECONSTRUCT_STORAGE_F16,
        "float16, 11 significant bits; each row has a power of 2 of its own",
        "f16"},
    {IMK_SHRECONSTRUCT_STORAGE_BF16, "bfloat16, 8 significant bits", "bf16"},
    {0, NULL, NULL},
};

static const GEnumValue dark_values[] = {
    {IMK_SHRECONSTRUCT_DARK_HOLD, "The mirror stays as it is", "hold"},
    {IMK_SHRECONSTRUCT_DARK_REFERENCE,
        "The mirror takes the reference commands; the controller begins anew",
        "reference"},
    {0, NULL, NULL},
};

static const GEnumValue wavefront_values[] = {
    {IMK_SHWAVEFRONT_SOUTHWELL, "Zonal: a point in the middle of each lenslet",
        "southwell"},
    {IMK_SHWAVEFRONT_FRIED, "Zonal: a point at each corner of the lenslets",
        "fried"},
    {IMK_SHWAVEFRONT_ZERNIKE,
        "Modal: the wavefront-modes first Zernike modes after piston",
        "zernike"},
    {0, NULL, NULL},
};

static const GEnumValue calibration_values[] = {
    {IMK_SHCALIBRATION_PUSH_PULL, "Each command alone, up and down",
        "push-pull"},
    {IMK_SHCALIBRATION_HADAMARD,
        "All commands at once, by the rows of a Hadamard matrix, up and down",
        "hadamard"},
    {IMK_SHCALIBRATION_SINUSOIDAL,
        "Up to 32 commands at once, each with its own frequency", "sinusoidal"},
    {0, NULL, NULL},
};

/* --- files ---------------------------------------------------------------- */

static gpointer
load_matrix (const gchar *property, const gchar *location, ImkError *error)
{
  return gst_sh_reconstruct_matrix_load (property, location, 0, error);
}

static gpointer
load_interaction (const gchar *property, const gchar *location, ImkError *error)
{
  return gst_sh_reconstruct_matrix_load (property, location, 1, error);
}

#define FILE_OF(NAME, GROUP, MEMBER, BLURB) \
  GST_IMAGING_PATH (NAME "-location", LIVE, GST_SH_RECONSTRUCT_##GROUP, \
      GstShReconstructSettings, MEMBER, gst_sh_reconstruct_array_load, g_free, \
      BLURB)
#define MATRIX_OF(NAME, MEMBER, BLURB) \
  GST_IMAGING_PATH (NAME "-location", LIVE, GST_SH_RECONSTRUCT_KERNEL, \
      GstShReconstructSettings, MEMBER, load_##MEMBER, \
      gst_sh_reconstruct_matrix_free, BLURB)
#define LIMIT_OF(NUMBER, NAME, MEMBER, MIN, BLURB) \
  GST_IMAGING_DOUBLE ("mirror-" #NUMBER "-" NAME, LIVE, \
      GST_SH_RECONSTRUCT_OUTPUT, GstShReconstructSettings, \
      mirror_limits[NUMBER].MEMBER, MIN, G_MAXDOUBLE, NULL, BLURB)
#define MIRROR_OF(NUMBER) \
  GST_IMAGING_PATH ("mirror-" #NUMBER "-location", LIVE, \
      GST_SH_RECONSTRUCT_OUTPUT, GstShReconstructSettings, mirrors[NUMBER], \
      gst_sh_reconstruct_array_load, g_free, \
      "Path of an array [commands of this mirror, commands]: the matrix " \
      "that makes the output of the pad mirror_" #NUMBER \
      " from the commands"), \
      LIMIT_OF (NUMBER, "minimum", minimum, -G_MAXDOUBLE, \
          "Smallest command that is sent to mirror_" #NUMBER \
          ", in its units"), \
      LIMIT_OF (NUMBER, "maximum", maximum, -G_MAXDOUBLE, \
          "Largest command that is sent to mirror_" #NUMBER ", in its units"), \
      LIMIT_OF (NUMBER, "slew-limit", slew, 0, \
          "The most that a command of mirror_" #NUMBER \
          " changes from one frame to the next, in its units. 0: no limit")
#define NUMBER_OF(NAME, MEMBER, MIN, MAX, UNIT, BLURB) \
  GST_IMAGING_DOUBLE (NAME, LIVE, GST_SH_RECONSTRUCT_CONTROL, \
      GstShReconstructSettings, MEMBER, MIN, MAX, UNIT, BLURB)
#define COUNT_OF(NAME, GROUP, MEMBER, MIN, MAX, UNIT, BLURB) \
  GST_IMAGING_UINT (NAME, LIVE, GROUP, GstShReconstructSettings, MEMBER, MIN, \
      MAX, UNIT, BLURB)
#define CHOICE_OF(NAME, GROUP, MEMBER, TYPE_NAME, VALUES, BLURB) \
  GST_IMAGING_ENUM (NAME, LIVE, GROUP, GstShReconstructSettings, MEMBER, \
      TYPE_NAME, VALUES, BLURB)

static const GstImagingSetting settings[] = {
    MATRIX_OF ("matrix", matrix,
        "Path of an array [commands, 2 cells], with modes-location [modes, 2 "
        "cells]: the control matrix R, in units of the mirror for each unit of "
        "a slope. Without it the commands are those of reference-location, as "
        "many as `commands`"),
    GST_IMAGING_PATH ("modes-location", LIVE, GST_SH_RECONSTRUCT_KERNEL,
        GstShReconstructSettings, modes, gst_sh_reconstruct_modes_load, g_free,
        "Path of an array [commands, modes]: the commands that make each mode. "
        "Empty: each command is a mode"),
    GST_IMAGING_PATH ("controller-location", LIVE, GST_SH_RECONSTRUCT_CONTROL,
        GstShReconstructSettings, controller,
        gst_sh_reconstruct_controller_load, gst_sh_reconstruct_controller_free,
        "Path of an array [2, terms] or [modes, 2, terms]: the terms a and b of "
        "the controller, in place of gain and leak. Empty: gain and leak"),
    FILE_OF ("reference", CONTROL, reference,
        "Path of an array [commands]: the commands of the flat mirror, to which "
        "corrections are added. Empty: 0"),
    FILE_OF ("slope-offsets", CONTROL, offsets,
        "Path of an array [2, cells]: the slopes that the loop shall reach, "
        "such as those of non-common-path aberrations. Empty: 0"),
    MATRIX_OF ("interaction", interaction,
        "Path of an array [2 cells, commands]: the interaction matrix that the "
        "control matrix was made from, for invalid-policy=exclude, and to warn "
        "of a control matrix with another sign or size"),
    FILE_OF ("actuator-map", OUTPUT, actuator_map,
        "Path of an array [outputs]: which command, from 0, each output of the "
        "pad src has; -1: it is always 0. Empty: the commands in their order"),
    MIRROR_OF (0),
    MIRROR_OF (1),
    MIRROR_OF (2),
    MIRROR_OF (3),
    CHOICE_OF ("slope-order", GST_SH_RECONSTRUCT_KERNEL, order,
        "GstShReconstructOrder", order_values,
        "Order of the columns of the control matrix, and of the rows of the "
        "interaction matrix"),
    CHOICE_OF ("input-order", 0, input_order, "GstShReconstructOrder",
        order_values,
        "Order of slopes that arrive as tensors of one row [2 cells], such as "
        "those of other programs in shared memory. auto: that of the columns of "
        "the control matrix"),
    CHOICE_OF ("matrix-storage", GST_SH_RECONSTRUCT_KERNEL, storage,
        "GstShReconstructStorage", storage_values,
        "How the control matrix is kept. With 16 bits a GPU reads half as much "
        "for each frame; commands differ by about 0.0002 (f16) or 0.0016 (bf16) "
        "of their rms. A CPU gains nothing"),
    NUMBER_OF ("gain", gain, 0, 10, NULL,
        "Part of the measured error that is corrected in a frame, without "
        "controller-location"),
    NUMBER_OF ("leak", leak, 0, 1, NULL,
        "Part of the correction that is forgotten in a frame, without "
        "controller-location"),
    GST_IMAGING_ARRAY ("mode-gains", LIVE, GST_SH_RECONSTRUCT_CONTROL,
        GstShReconstructSettings, mode_gains, -G_MAXDOUBLE, G_MAXDOUBLE, NULL,
        "Factors of the gain, one for each mode, 0 to 10. Empty: 1 for all"),
    GST_IMAGING_INT_ARRAY ("dead-actuators", LIVE,
        GST_SH_RECONSTRUCT_CONTROL | GST_SH_RECONSTRUCT_INVERSE,
        GstShReconstructSettings, dead, G_MININT, G_MAXINT, NULL,
        "Numbers, from 0, of commands that stay at those of the reference and "
        "are not poked. Empty: none"),
    NUMBER_OF ("minimum", minimum, -G_MAXDOUBLE, G_MAXDOUBLE, NULL,
        "Smallest command that is sent, in units of the mirror"),
    NUMBER_OF ("maximum", maximum, -G_MAXDOUBLE, G_MAXDOUBLE, NULL,
        "Largest command that is sent, in units of the mirror"),
    NUMBER_OF ("slew-limit", slew, 0, G_MAXDOUBLE, NULL,
        "The most that a command changes from one frame to the next, in units "
        "of the mirror. 0: no limit"),
    CHOICE_OF ("invalid-policy", GST_SH_RECONSTRUCT_KERNEL, invalid,
        "GstShReconstructInvalid", invalid_values,
        "What the slope of an invalid cell counts as"),
    COUNT_OF ("exclude-cells", GST_SH_RECONSTRUCT_CONTROL, exclude_cells, 1,
        IMK_SHRECONSTRUCT_MAX_CELLS, NULL,
        "The most cells that a frame takes out of the fit or back into it, with "
        "invalid-policy=exclude: bounds the time of a frame"),
    NUMBER_OF ("min-valid", min_valid, 0, 1, NULL,
        "Share of valid cells below which no correction is made: see low-light"),
    CHOICE_OF ("low-light", GST_SH_RECONSTRUCT_CONTROL, dark,
        "GstShReconstructLowLight", dark_values,
        "What the mirror does while fewer cells than min-valid are valid"),
    GST_IMAGING_ENUM ("loop", LIVE, 0, GstShReconstructSettings, loop,
        "GstShReconstructLoop", loop_values,
        "Whether the controller drives the mirror"),
    GST_IMAGING_BOOLEAN ("freeze", LIVE, 0, GstShReconstructSettings, freeze,
        "Keep the commands as they are: slopes are not used. A reset, an open "
        "loop and a calibration move the mirror nevertheless"),
    GST_IMAGING_STRING ("results", LIVE, 0, GstShReconstructSettings, results,
        "Name of the shcentroid whose slopes on a frame are used. Empty: the "
        "first ones on a frame"),
    COUNT_OF ("commands", GST_SH_RECONSTRUCT_KERNEL, n_commands, 0,
        IMK_SHRECONSTRUCT_MAX_COMMANDS, NULL,
        "Commands of the mirror, to calibrate it without matrix-location"),
    CHOICE_OF ("wavefront-method", GST_SH_RECONSTRUCT_WAVEFRONT,
        wavefront_method, "GstShReconstructWavefront", wavefront_values,
        "How the pad wavefront is made from the slopes"),
    COUNT_OF ("wavefront-modes", GST_SH_RECONSTRUCT_WAVEFRONT, wavefront_modes,
        0, IMK_SHWAVEFRONT_MAX_MODES, NULL,
        "Zernike modes after piston, in the order of Noll, with "
        "wavefront-method=zernike; 0: those that the grid tells, at most 20"),
    GST_IMAGING_DOUBLE ("wavefront-scale", LIVE, GST_SH_RECONSTRUCT_WAVEFRONT,
        GstShReconstructSettings, wavefront_scale, -G_MAXDOUBLE, G_MAXDOUBLE,
        "nm",
        "Wavefront across a lenslet for a slope of 1: size of a pixel times "
        "pitch over focal length of the lenslets. Not 0"),
    COUNT_OF ("wavefront-columns", GST_SH_RECONSTRUCT_WAVEFRONT,
        wavefront_columns, 0, IMK_SHWAVEFRONT_MAX_SIDE, NULL,
        "Lenslets of a row, where slopes come as tensors. 0: as many as rows"),
    CHOICE_OF ("calibration-method", 0, calibration_method,
        "GstShReconstructCalibration", calibration_values,
        "How the action calibrate pokes"),
    GST_IMAGING_DOUBLE ("calibration-poke", LIVE, 0, GstShReconstructSettings,
        calibration_poke, G_MINFLOAT, G_MAXFLOAT, NULL,
        "Amplitude of the pokes of the action calibrate, in units of the "
        "mirror"),
    COUNT_OF ("calibration-repeats", 0, calibration_repeats, 2,
        IMK_SHCALIBRATION_MAX_REPEATS, NULL,
        "How often the action calibrate pokes each command; the spread tells "
        "the noise"),
    COUNT_OF ("calibration-frames", 0, calibration_frames, 1, 1000, "frames",
        "Frames that are averaged for each poke"),
    COUNT_OF ("realtime-priority", 0, realtime_priority, 0, 99, NULL,
        "Priority of SCHED_FIFO for the thread that brings the frames, from the "
        "first frame on. 0: the thread stays as it is"),
    GST_IMAGING_INT ("cpu", LIVE, 0, GstShReconstructSettings, cpu, -1, 1023,
        NULL,
        "Number of the only processor that the thread that brings the frames "
        "may run on, from the first frame on. -1: the thread stays as it is"),
    GST_IMAGING_BOOLEAN ("lock-memory", LIVE, 0, GstShReconstructSettings,
        lock_memory,
        "Keep all memory of the process, also that of later allocations, from "
        "being swapped out, until the process ends"),
};

static void
init_settings (gpointer data)
{
  GstShReconstructSettings *s = data;
  ImkShreconstructConfig c;
  ImkShwavefrontConfig w;
  ImkShcalibrationConfig k;

  imk_shreconstruct_config_init (&c);
  s->cpu = -1;
  s->gain = c.gain;
  s->leak = c.leak;
  s->minimum = -G_MAXDOUBLE;
  s->maximum = G_MAXDOUBLE;
  for (guint i = 0; i < GST_SH_RECONSTRUCT_N_MIRRORS; i++)
    s->mirror_limits[i] = (ImkShlimits){s->minimum, s->maximum, s->slew};
  s->invalid = c.invalid;
  s->storage = c.storage;
  s->dark = c.dark;
  s->min_valid = c.min_valid;
  s->exclude_cells = c.exclude_cells;
  imk_shwavefront_config_init (&w);
  s->wavefront_method = w.method;
  s->wavefront_scale = w.scale;
  imk_shcalibration_config_init (&k);
  s->calibration_method = k.method;
  s->calibration_poke = k.poke;
  s->calibration_repeats = k.n_repeats;
  s->calibration_frames = k.n_frames;
}

const GstImagingSettingsTable gst_sh_reconstruct_table = {
    .settings = settings,
    .n_settings = G_N_ELEMENTS (settings),
    .size = sizeof (GstShReconstructSettings),
    .replan = GST_SH_RECONSTRUCT_KERNEL,
    .has_engine = TRUE,
    .init = init_settings,
    .apply = gst_sh_reconstruct_apply,
    .prepare = gst_sh_reconstruct_prepare,
};
