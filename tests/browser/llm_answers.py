"""Forty answers in the shapes that language models write, each with what hand-written renderers tend to get wrong."""

from __future__ import annotations

ANSWERS: dict[str, str] = {
    "loose numbered list": "Here is how:\n\n1. Open the file.\n\n2. Read it.\n\n3. Close it.\n\nThat is all.",
    "code with an empty line in a list": (
        "1. **Install** it:\n\n   ```bash\n   pip install thing\n\n   thing --help\n   ```\n\n"
        "2. Run it:\n\n   ```python\n   import thing\n\n\n"
        "   thing.run()\n   ```\n\n3. Done."
    ),
    "nested bullets": "- Fruit\n  - Apples\n    - Braeburn\n    - Cox\n  - Pears\n- Vegetables\n  1. Leeks\n  2. Kale",
    "bullets with paragraphs": (
        "* First point.\n\n  More about the first point.\n\n* Second point.\n\n  > A quote inside.\n\n* Third point."
    ),
    "list that starts at seven": "7. seven\n8. eight\n9. nine",
    "list with parentheses": "1) one\n2) two\n\nand\n\n- a\n- b",
    "two lists side by side": "- a\n- b\n\n* c\n* d",
    "emphasis of every kind": "_soft_, *soft*, __strong__, **strong**, ***both***, ~~gone~~, snake_case_name and 2*3*4.",
    "strong with code": "Use **`--force`** with care, *and `-n`* first. ``a ` tick``.",
    "table with alignment": "| name | size | note |\n|:-----|-----:|:----:|\n| a | 1 | x |\n| **b** | 22 | `y` |",
    "table with an escaped bar": "| operator | meaning |\n|---|---|\n| `a \\| b` | or |\n| a \\| b | bar |",
    "table without outer bars": "a | b\n--|--\n1 | 2\n3 | 4",
    "table then text": "| a | b |\n|---|---|\n| 1 | 2 |\n\nAfter the table.",
    "table with missing cells": "| a | b | c |\n|---|---|---|\n| 1 |\n| 1 | 2 | 3 | 4 |",
    "task list": "To do:\n\n- [x] write it\n- [ ] test it\n- [ ] **ship** it\n- not a task",
    "setext headings": "Title\n=====\n\nSection\n-------\n\nText.",
    "all headings": "# one\n## two\n### three ###\n#### four\n##### five\n###### six\n####### not a heading\n#nor this",
    "indented code": "Run:\n\n    make test\n\n    make docs\n\nand wait.",
    "fence with tildes": '~~~json\n{"a": "```"}\n~~~',
    "long fence around a fence": "````markdown\n```python\nprint(1)\n```\n````\n\nAfter.",
    "fence that never closes": "Look:\n\n```python\nprint('still code')\n\n# heading?",
    "quote with a list": "> Advice:\n>\n> 1. Rest.\n> 2. Drink.\n>\n> > Nested.\n\nOutside.",
    "lazy quote": "> A quote that\ngoes on lazily.\n\nNot in it.",
    "hard breaks": "Roses are red,  \nviolets are blue,\\\nthis is new.\nThis is the same line.",
    "rules between parts": "Part one\n\n---\n\nPart two\n\n***\n\nPart three\n\n___",
    "links with parentheses": (
        "See [Python](https://en.example.org/wiki/Python_(language)) and [titled](https://example.org 'a title')."
    ),
    "reference links": (
        'Read [the guide][g] or [Guide].\n\n[g]: https://example.org/guide\n[Guide]: https://example.org/other "Other"'
    ),
    "bare addresses": (
        "Go to https://example.org/a?b=c&d=e. Or www.example.org, or <https://example.org/x>, or (https://example.org/y)."
    ),
    "images": "![A chart](https://example.org/a.png)\n\nText with ![inline](https://example.org/b.png 'B') in it.",
    "linked image": "[![badge](https://example.org/badge.svg)](https://example.org)",
    "escapes": "\\*not soft\\*, 1\\. not a list, \\# not a heading, \\`not code\\`, a\\\\b, &copy; &lt;tag&gt; &amp;amp;",
    "html as text in code": 'Use `<div class="x">` and:\n\n```html\n<script>alert(1)</script>\n```',
    "comparison with less-than": "If a < b and b > c then 1 < 2 > 0.",
    "list interrupted by code": "- one\n\n```\ncode between\n```\n\n- two",
    "numbered steps with bullets": (
        "1. Plan\n   - goal\n   - budget\n2. Build\n   - **frame**\n   - roof\n\n     with tiles\n3. Live"
    ),
    "headings and lists without blank lines": "## Pros\n- fast\n- cheap\n## Cons\n- ugly\nSummary: **buy**.",
    "emoji and other scripts": "✅ **Done** — naïve café, 日本語の*強調*, עברית, 👩‍💻 and “quotes”…",
    "inline mathematics": (
        "The loss is $L(\\theta) = -\\sum_i \\log \\sigma(y_i z_i^\\top \\theta)$, so \\(a_1 * b_1\\) "
        "and \\(a_2 * b_2\\) stay apart. It costs $5 or $10."
    ),
    "displayed mathematics": (
        "By Bayes:\n\n$$\np(\\theta \\mid D) = \\frac{p(D \\mid \\theta)\\, p(\\theta)}{p(D)}\n$$\n\nand\n\n"
        "\\[\n\\begin{aligned}\na &= b + c \\\\\nd &= e_1 * f_1\n\\end{aligned}\n\\]\n\nDone."
    ),
    "mathematics in a list": (
        "1. First:\n\n   $$x^2 + y^2 = z^2$$\n\n2. Then \\(x < y\\) and `$HOME`.\n\n- **Cost:** $n \\log n$"
    ),
}
