"""A report in one file: figures, tables, settings, versions, seeds and times, with nothing to load from elsewhere."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from duelist.experiments.records import latex_table
from duelist.plotting.paper import PaperFigure
from duelist.reports.tables import ReportTable

_NEW_LINE = "\n"
_SHORT = 16  # characters that a cell keeps on one line


@dataclass(frozen=True)
class Section:
    """A heading, paragraphs, then tables, then figures, then preformatted text."""

    heading: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[ReportTable] = ()
    figures: Sequence[PaperFigure] = ()
    listing: str = ""


@dataclass(frozen=True)
class Report:
    """Sections under a title."""

    title: str
    sections: Sequence[Section] = field(default_factory=list)


def html_report(report: Report, images: Mapping[str, bytes]) -> str:
    """The report as one HTML page, with the PNG image of every figure embedded."""
    parts = [_HEAD.format(title=html.escape(report.title)), f"<h1>{html.escape(report.title)}</h1>"]
    for section in report.sections:
        parts.append(f"<h2>{html.escape(section.heading)}</h2>")
        parts += [f"<p>{html.escape(text)}</p>" for text in section.paragraphs]
        parts += [_html_table(table) for table in section.tables]
        parts += [_html_figure(figure, images[figure.name]) for figure in section.figures]
        if section.listing:
            parts.append(f"<pre>{html.escape(section.listing)}</pre>")
    parts.append("</main></body></html>\n")
    return "\n".join(parts)


def markdown_report(report: Report) -> str:
    """The same report as Markdown, with figures as links to the PNG files next to it."""
    parts = [f"# {report.title}"]
    for section in report.sections:
        parts.append(f"## {section.heading}")
        parts += section.paragraphs
        parts += [_markdown_table(table) for table in section.tables]
        parts += [f"![{figure.caption}]({figure.name}.png)\n\n*{figure.caption}*" for figure in section.figures]
        if section.listing:
            parts.append(f"```\n{section.listing}\n```")
    return "\n\n".join(parts) + "\n"


def latex_report(report: Report) -> str:
    """Every table of the report for LaTeX, which needs the package `booktabs`."""
    tables = [
        latex_table(table.headings, table.rows, caption=table.title, note=table.note)
        for section in report.sections
        for table in section.tables
    ]
    return "\n\n".join([f"% Tables of: {report.title}. Needs \\usepackage{{booktabs}}.", *tables]) + "\n"


def _html_table(table: ReportTable) -> str:
    head = "".join(f"<th>{html.escape(heading)}</th>" for heading in table.headings)
    body = "\n".join(
        "<tr>"
        + "".join(f'<td class="{_cell_class(cell)}">{html.escape(cell).replace(_NEW_LINE, "<br>")}</td>' for cell in row)
        + "</tr>"
        for row in table.rows
    )
    note = f'<p class="note">{html.escape(table.note)}</p>' if table.note else ""
    title = f"<h3>{html.escape(table.title)}</h3>"
    return f'{title}<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>{note}'


def _cell_class(cell: str) -> str:
    """The CSS class of a cell: numbers are aligned right, words left, and outcomes are bold."""
    if cell.startswith(("held", "not decided")):
        return "held" if cell == "held" else "partly"
    if cell == "did not hold":
        return "not"
    if cell[:1].isdigit() or cell[:1] in ("+", "-"):
        return "number"
    return "short" if len(cell) <= _SHORT else ""


def _html_figure(figure: PaperFigure, image: bytes) -> str:
    data, caption = base64.b64encode(image).decode(), html.escape(figure.caption)
    return f'<figure><img alt="{caption}" src="data:image/png;base64,{data}"><figcaption>{caption}</figcaption></figure>'


def _markdown_table(table: ReportTable) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace(_NEW_LINE, "<br>") for cell in cells) + " |"

    rule = "|" + "---|" * len(table.headings)
    rows = [line(table.headings), rule, *(line(row) for row in table.rows)]
    return f"### {table.title}\n\n" + "\n".join(rows) + (f"\n\n{table.note}" if table.note else "")


_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; margin: 0; }}
main {{ max-width: 70rem; margin: 0 auto; padding: 1.5rem; }}
h1 {{ font-size: 1.7rem; }} h2 {{ margin-top: 2.5rem; border-bottom: 1px solid #ddd; }} h3 {{ margin-bottom: .3rem; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: .85rem; }}
th, td {{ padding: .25rem .6rem; border-bottom: 1px solid #e5e5e5; text-align: left; vertical-align: top; }}
th {{ border-bottom: 2px solid #999; }}
th, td.short {{ white-space: nowrap; }}
td.number {{ text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }}
td.held {{ color: #00664c; font-weight: 600; white-space: nowrap; }}
td.partly {{ color: #7a5200; font-weight: 600; white-space: nowrap; }}
td.not {{ color: #a03c00; font-weight: 600; white-space: nowrap; }}
p.note, figcaption {{ color: #555; font-size: .85rem; max-width: 60rem; }}
figure {{ margin: 1.5rem 0; }} img {{ max-width: 100%; height: auto; }}
pre {{ background: #f6f6f6; padding: .8rem; overflow-x: auto; font-size: .8rem; }}
</style></head><body><main>"""
