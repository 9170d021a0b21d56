# SPDX-License-Identifier: LGPL-2.1-or-later
"""The table of jobs: a row is a command with its inputs, its output and its options."""
import contextlib
import csv
import os
import shlex

from .. import command
from ..command import UNREADABLE, WRONG_USE, Failure

YES, NO = ("yes", "true", "1"), ("", "no", "false", "0")


class Row:
    """One job. number: its place in the table, from 1 on."""

    def __init__(self, number, line, names, cells):
        self.number, self.line = number, line
        self.cells = {name: cell for name, cell in zip(names, cells) if cell}
        self.command, self.output = self.cells.pop("command", ""), self.cells.pop("output", "")

    def words(self, parser):
        """Returns: the arguments of the command, without those of its output"""
        # inputs first: an option in arguments may take all words behind it
        words = [f"./{path}" if path.startswith("-") else path for path in split(self.cells, "input")]
        words += split(self.cells, "arguments")
        for name, cell in self.cells.items():
            if name.endswith("="):
                words.append(name + cell)
            elif name not in ("input", "arguments"):
                words += option(parser, name, cell)
        return words

    def paths(self):
        """Generates the words that may be paths of what it reads"""
        for name in self.cells:
            with contextlib.suppress(Failure):
                for word in split(self.cells, name):
                    yield word.partition("=")[2] if word.startswith("-") else word


def split(cells, name):
    try:
        return shlex.split(cells.get(name, ""))
    except ValueError as error:
        raise Failure(WRONG_USE, f'"{cells[name]}" in the column {name} has no end: {error}.') from error


def option(parser, name, cell):
    """Returns: a cell of the column of an option as words"""
    action = parser.find_option(f"--{name}")
    if not action:
        raise Failure(WRONG_USE, f"{parser.prog} has no option --{name}. A property has a column {name}=, with the sign.")
    if action.nargs == 0:
        if cell.lower() not in YES + NO:
            raise Failure(WRONG_USE, f'--{name} is "{cell}": an option without a value is yes or no.')
        return [f"--{name}"] if cell.lower() in YES else []
    values = [cell] if action.nargs is None and not parser.is_repeated(action) else split({name: cell}, name)
    if action.nargs is None:
        return [f"--{name}={value}" for value in values]
    return [f"--{name}", *values]


def write(path, heading, lines):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([heading, *lines])


def read(path):
    """Returns: the rows of a table"""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = file.readlines()
            return list(rows_of(path, csv.reader(lines, delimiter=delimiter(lines), strict=True)))
    except (csv.Error, UnicodeDecodeError) as error:
        raise Failure(UNREADABLE, f"{path} is no table of CSV in UTF-8: {error}.") from error


def delimiter(lines):
    """Returns: the one of the heading. Excel writes semicolons where numbers have a decimal comma"""
    heading = next((line for line in lines if line.strip() and not line.lstrip(' "').startswith("#")), "")
    return max(",;\t", key=heading.count)


def rows_of(path, table):
    names, number = None, 0
    for cells in table:
        cells = [cell.strip() for cell in cells]
        while cells and not cells[-1]:  # as spreadsheets add
            cells.pop()
        if not cells or cells[0].startswith("#"):
            continue
        if names is None:
            names = cells
            check_names(path, names)
            continue
        number += 1
        if len(cells) > len(names):
            raise Failure(UNREADABLE, f"{path}, line {table.line_num}: {len(cells)} cells, and there are {len(names)} columns."
                                      f' A cell with "{table.dialect.delimiter}" is written in quotes.')
        yield Row(number, table.line_num, names, cells)
    if names is None:
        raise Failure(UNREADABLE, f"{path} is empty. Its first line names the columns: command,input,output.")


def check_names(path, names):
    for name in "command", "output":
        if name not in names:
            raise Failure(UNREADABLE, f'{path} has no column "{name}". Its first line names the columns, as command,input,output.')
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Failure(UNREADABLE, f'{path} has two columns "{twice}".')


def check_outputs(path, rows):
    """Two rows with one output would replace each other for ever; so would one whose output is in that of another one."""
    found = {}
    for row in rows:
        if not row.output:
            raise Failure(UNREADABLE, f"{path}, line {row.line}: there is no output.")
        place = os.path.abspath(row.output)
        if place in found:
            raise Failure(UNREADABLE, f"{path}, lines {found[place]} and {row.line}: two rows have the output {row.output}.")
        found[place] = row.line
    for row in rows:
        outer = place = os.path.abspath(row.output)
        while (outer := os.path.dirname(outer)) != place:
            if outer in found:
                raise Failure(UNREADABLE, f"{path}, lines {found[outer]} and {row.line}: the output {row.output} is in that of another row, which "
                                          "would replace it. Give each row a folder beside the others.")
            place = outer


class Needs:
    """Which row of a table makes what another one reads. failed: numbers of rows"""

    def __init__(self, table):
        self.table, self.by_output, self.failed = table, {}, set()

    def maker(self, path):
        """Returns: the row in whose output a path is, or None"""
        if not self.by_output:
            self.by_output = {os.path.abspath(row.output): row for row in self.table}
        place = os.path.abspath(path)
        while place not in self.by_output and place != os.path.dirname(place):
            place = os.path.dirname(place)
        return self.by_output.get(place)

    def explain(self, row):
        """Returns: a sentence on what a row that failed lacks of another one; "" where it lacks nothing"""
        for path in row.paths():
            maker = self.maker(path)
            if maker not in (None, row) and (maker.number in self.failed or not os.path.exists(path)):
                state = "failed" if maker.number in self.failed else "has no result yet: call the command again"
                return f" It needs {path}, of the output of row {maker.number} (line {maker.line}), which {state}."
        return ""


def select(rows, shard):
    """shard: I/N, every N-th row from the I-th on; None for all"""
    if shard is None:
        return rows
    first, _slash, of = shard.partition("/")
    if not (first.isascii() and first.isdigit() and of.isascii() and of.isdigit() and 1 <= int(first) <= int(of)):
        raise Failure(WRONG_USE, f'--shard is "{shard}", and is I/N with I from 1 to N, as 3/8.')
    return rows[int(first) - 1::int(of)]


def parser_of(row):
    """Returns: the parser of the command of a row"""
    if row.command not in command.names():
        raise Failure(WRONG_USE, f'There is no command "{row.command}" for a row of a table.')
    return command.Parser(row.command, command.load(row.command))
