# SPDX-License-Identifier: LGPL-2.1-or-later
"""The colours of code in light pages: they stand out, none is red for whole here-documents, and all can be read; see check-contrast."""
from pygments.styles.borland import BorlandStyle
from pygments.token import Comment, Generic, Name, Whitespace


class CodeStyle(BorlandStyle):
    background_color = "#f8f8f8"
    styles = {
        **BorlandStyle.styles,
        Whitespace: "",
        Comment: "italic #007000",
        Comment.Preproc: "noitalic #007070",
        Name.Attribute: "#c00000",
        Generic.Heading: "#555555",
        Generic.Subheading: "#666666",
        Generic.Output: "#666666",
    }
