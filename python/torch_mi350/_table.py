"""Plain text tables."""


def table(head, rows, right=()):
    """Lines of a table; columns in `right` are right-aligned."""
    cells = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]

    def line(row):
        parts = [c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths))]
        return "  ".join(parts).rstrip()

    return [line(cells[0]), line(["-" * w for w in widths]), *map(line, cells[1:])]
