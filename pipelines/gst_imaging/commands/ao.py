# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes the control matrix of an adaptive optics loop from its interaction matrix.

The interaction matrix has the shape [2 cells, commands]: a column is what one command does to all slopes, dx of all cells and
then dy, divided by the command. The result is control.npy for shreconstruct, and report.html with the singular values. Weak
modes, which would turn noise into large commands, are left out (--keep, --condition) or weakened (--alpha).
"""
from .. import job, library
from ..command import UNREADABLE, WRONG_USE, Failure
from ..report import plots

EXAMPLES = [
    ("invert interaction.npy -o control", "leaves out modes a hundred times weaker than the strongest"),
    ("invert interaction.fits -o control --keep 80 --modal", "80 modes, each with a gain of its own"),
]
CONDITION = 100


def add_arguments(parser):
    parser.add_argument("what", choices=["invert"], help="invert: control matrix from interaction matrix")
    parser.add_argument("input", metavar="FILE", help="interaction matrix [2 cells, commands], in any format of arrays")
    job.add_arguments(parser)
    parser.add_argument("--keep", type=int, metavar="N", help="keep the N strongest modes")
    parser.add_argument("--condition", type=float, metavar="C",
                        help=f"leave out modes that are C times weaker than the strongest (default {CONDITION})")
    parser.add_argument("--alpha", type=float, metavar="A",
                        help="keep all modes, and weaken those below A times the strongest (Tikhonov)")
    parser.add_argument("--modal", action="store_true", help="write the product of slopes and modes, and the modes, as two files")


def read_matrix(np, path):
    pages = [(shape, page.copy()) for shape, _start, page in library.Arrays().pages(path)]
    shape = pages[0][0]
    values = np.concatenate([page for _shape, page in pages]).reshape(shape)
    if values.ndim != 2 or values.shape[0] % 2 or np.iscomplexobj(values):
        turned = values.ndim == 2 and values.shape[1] % 2 == 0
        raise Failure(UNREADABLE, f"{path} has the shape {list(values.shape)}; an interaction matrix has [2 cells, commands]"
                      + (": transpose it." if turned else "."))
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise Failure(UNREADABLE, f"{path} has {values[row, column]} in row {row}, column {column}; all numbers must be finite.")
    return values.astype(np.float64)


def factors(np, options, strengths):
    """Returns: what each singular value is inverted to; 0 leaves the mode out"""
    if strengths.size == 0 or strengths[0] == 0:
        raise Failure(UNREADABLE, f"{options.input}: no command moves a spot: all numbers are 0.")
    if options.alpha is not None:
        return strengths / (strengths ** 2 + (options.alpha * strengths[0]) ** 2)
    n = options.keep if options.keep is not None else int((strengths * (options.condition or CONDITION) >= strengths[0]).sum())
    inverted = np.zeros_like(strengths)
    inverted[:n] = 1 / strengths[:n]
    if not np.isfinite(inverted).all():
        raise Failure(WRONG_USE, f"--keep {n} takes modes of strength 0: {(strengths > 0).sum()} are above it.")
    return inverted


def check(options, n_modes):
    given = [name for name in ("keep", "condition", "alpha") if getattr(options, name) is not None]
    if len(given) > 1:
        raise Failure(WRONG_USE, f"--{given[0]} and --{given[1]} are two ways to treat weak modes: give one of them.")
    if options.keep is not None and not 1 <= options.keep <= n_modes:
        raise Failure(WRONG_USE, f"--keep is {options.keep}; the matrix has {n_modes} modes.")
    if options.condition is not None and not options.condition >= 1:
        raise Failure(WRONG_USE, f"--condition is {options.condition:g}; it must be 1 or more.")
    if options.alpha is not None and not 0 < options.alpha < 1:
        raise Failure(WRONG_USE, f"--alpha is {options.alpha:g}; it must be between 0 and 1.")


def show(np, made, strengths, inverted, control):
    report, used = made.report, inverted > 0
    report.figure("commands", len(control), about="of the mirror")
    report.figure("cells", control.shape[1] // 2)
    report.figure("modes used", int(used.sum()), about=f"of {len(strengths)}")
    report.figure("weakest mode used", float(strengths[used][-1] / strengths[0]), about="relative to the strongest")
    report.figure("noise of a command", float(np.sqrt((control ** 2).sum(1).mean())), "for each unit of noise in a slope",
                  about="rms over the commands; multiply it with the noise of your slopes and with the gain")
    numbers = np.arange(1, len(strengths) + 1)
    series = {"used": (numbers[used], strengths[used])}
    if not used.all():
        series["left out"] = (numbers[~used], strengths[~used])
    report.plot("Singular values", plots.scatter(("mode", ""), ("strength", ""), series, log_y=True),
                "How strongly each mode of the mirror moves the spots. Modes far below the others are not seen by the sensor.")


def run(options):
    np = library.numpy()

    def work(path, made):
        matrix = read_matrix(np, path)
        check(options, min(matrix.shape))
        made.input(path, "interaction matrix")
        for name in ("keep", "condition", "alpha", "modal"):
            made.setting(name, getattr(options, name))
        if made.is_complete():
            return made.result
        slopes, strengths, modes = np.linalg.svd(matrix, full_matrices=False)
        inverted = factors(np, options, strengths)
        used = inverted > 0
        control = (modes.T[:, used] * inverted[used]) @ slopes.T[used]
        arrays = library.Arrays()
        if options.modal:
            arrays.save_values(np, made.path("control.npy"),
                               np.ascontiguousarray((inverted[used, None] * slopes.T[used]).astype(np.float32)))
            arrays.save_values(np, made.path("modes.npy"), np.ascontiguousarray(modes.T[:, used].astype(np.float32)))
        else:
            arrays.save_values(np, made.path("control.npy"), np.ascontiguousarray(control.astype(np.float32)))
        show(np, made, strengths, inverted, control)
        return made.finish(commands=matrix.shape[1], cells=matrix.shape[0] // 2, modes=int(used.sum()))

    return job.run_all(options, "ao", [options.input], work)
